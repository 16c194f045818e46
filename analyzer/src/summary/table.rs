//! Sums arranged for print: groups by events, calls by time.

use std::cmp::Reverse;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::group::Sums;
use super::ledger::Knowledge;
use super::plan::Plan;
use super::stats::Stats;
use crate::calls::{CallBook, CallInfo};
use crate::group::by::By;
use crate::group::value::{Key, Value};
use systape_format::model::Task;

/// The calls of one group.
#[derive(Debug)]
pub struct Group {
    /// What all its rows have in common: the keys but for the syscall.
    pub key: Key,
    /// A task of it; of several the newest, of a process its leader if that made calls.
    pub task: Task,
    /// Enters plus exits.
    pub events: u64,
    /// It may have made more calls than its rows say.
    pub short: bool,
    /// Its calls, most time first.
    pub rows: Vec<Row>,
}

/// The calls of one key.
#[derive(Debug)]
pub struct Row {
    /// All keys.
    pub key: Key,
    /// Which call; None: it is no key.
    pub call: Option<Arc<CallInfo>>,
    /// A task of it, if one is a key.
    pub task: Task,
    /// Their sums.
    pub stats: Stats,
    /// There may be more of them.
    pub short: bool,
}

/// What every key added up to, most time first.
pub fn rows(sums: Sums, knowledge: &Knowledge, book: &CallBook<'_>, plan: &Plan) -> Vec<Row> {
    let task = |key: &[Value]| sums.labels.get(key, plan).cloned().unwrap_or_default();
    let call = |key: &[Value]| match plan.place(By::Syscall).map(|at| &key[at]) {
        Some(Value::Call(call)) => Some(book.get(*call)),
        _ => None,
    };
    let row = |(key, stats): (Key, Stats)| Row {
        task: task(&key),
        call: call(&key),
        short: knowledge.short(&key),
        stats,
        key,
    };
    let groups = sums.groups.into_sums().into_iter();
    // a place is made before filters on durations decide
    let mut rows: Vec<Row> = groups.filter(|(_, stats)| stats.calls > 0).map(row).collect();
    let name = |row: &Row| row.call.as_ref().map(|call| call.long_name.clone());
    rows.sort_by_cached_key(|row| (Reverse(row.stats.total()), Reverse(row.stats.calls), name(row), row.key.clone()));
    rows
}

/// `rows` in groups of what is the same but for the syscall, in ascending order of events (the busiest last, as perf prints them), and
/// the events of all.
pub fn groups(rows: Vec<Row>, knowledge: &Knowledge, plan: &Plan) -> (Vec<Group>, u64) {
    let syscall = plan.place(By::Syscall);
    let mut by_key: FxHashMap<Key, Group> = FxHashMap::default();
    for row in rows {
        let parts = row.key.iter().enumerate().filter(|(at, _)| Some(*at) != syscall);
        let key: Key = parts.map(|(_, value)| value.clone()).collect();
        let group = by_key.entry(key).or_insert_with_key(|key| {
            let (short, task) = (knowledge.group_short(&row.key), row.task.clone());
            Group { key: key.clone(), task, events: 0, short, rows: Vec::new() }
        });
        group.events = group.events.saturating_add(row.stats.events());
        group.rows.push(row);
    }
    let mut groups: Vec<Group> = by_key.into_values().collect();
    groups.sort_by(|a, b| (a.events, &a.key).cmp(&(b.events, &b.key)));
    let events = groups.iter().fold(0_u64, |events, group| events.saturating_add(group.events));
    (groups, events)
}
