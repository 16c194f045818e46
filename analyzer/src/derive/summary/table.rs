//! Sums arranged for print: groups by events, calls by time.

use std::cmp::Reverse;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::column::Column;
use super::group::Sums;
use super::ledger::Knowledge;
use super::plan::Plan;
use super::stats::Stats;
use crate::table::calls::{CallBook, CallInfo};
use crate::table::group::by::By;
use crate::table::group::value::{Key, Value};
use systape_format::model::Task;

/// The calls of one group.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    /// The common keys of its rows: all except the syscall.
    pub key: Key,
    /// A task of it; of several the newest, of a process its leader if that made calls. None: as in [`Row`].
    pub task: Option<&'a Task>,
    /// Position of its first row among all.
    first: usize,
    /// Enters plus exits.
    pub events: u64,
    /// Its rows may be too low.
    pub short: bool,
    /// Its calls, in the order of all rows.
    pub rows: Vec<Row<'a>>,
}

/// The calls of one key.
#[derive(Clone, Debug)]
pub(crate) struct Row<'a> {
    /// All keys.
    pub key: &'a [Value],
    /// The call; None: it is no key.
    pub call: Option<Arc<CallInfo>>,
    /// A task of it; None: there is none among the keys, or it is not known.
    pub task: Option<&'a Task>,
    /// Their sums.
    pub stats: &'a Stats,
    /// They may be too low.
    pub short: bool,
}

/// The sums of all keys, the largest of `column` first, those without a value last; equal ones with the most time first.
pub(crate) fn rows<'a>(
    sums: &'a Sums,
    knowledge: &Knowledge,
    book: &CallBook<'_>,
    plan: &Plan,
    column: Column,
) -> Vec<Row<'a>> {
    let call = |key: &[Value]| match plan.place(By::Syscall).map(|at| &key[at]) {
        Some(Value::Call(call)) => Some(book.get(*call)),
        _ => None,
    };
    let row = |(key, stats): (&'a [Value], &'a Stats)| Row {
        key,
        call: call(key),
        task: sums.labels.get(key, plan),
        stats,
        short: knowledge.short(key),
    };
    // a place is made before filters on durations decide
    let mut rows: Vec<Row<'_>> = sums.groups.iter().filter(|(_, stats)| stats.calls > 0).map(row).collect();
    let name = |row: &Row<'_>| row.call.as_ref().map(|call| call.long_name.clone());
    // None is less than any value
    let value = |row: &Row<'_>| Reverse(column.of(row.stats));
    rows.sort_by_cached_key(|row| {
        (value(row), Reverse(row.stats.total()), Reverse(row.stats.calls), name(row), row.key)
    });
    rows
}

/// `rows` in groups with equal keys except the syscall, and the events of all. `sorted`: the groups in the order of their first
/// rows; else in ascending order of events (the busiest last, as perf prints them).
pub(crate) fn groups<'a>(
    rows: Vec<Row<'a>>,
    knowledge: &Knowledge,
    plan: &Plan,
    sorted: bool,
) -> (Vec<Group<'a>>, u64) {
    let syscall = plan.place(By::Syscall);
    let mut by_key: FxHashMap<Key, Group<'a>> = FxHashMap::default();
    for (at, row) in rows.into_iter().enumerate() {
        let parts = row.key.iter().enumerate().filter(|(at, _)| Some(*at) != syscall);
        let key: Key = parts.map(|(_, value)| value.clone()).collect();
        let group = by_key.entry(key).or_insert_with_key(|key| {
            let short = knowledge.group_short(row.key);
            Group { key: key.clone(), task: row.task, first: at, events: 0, short, rows: Vec::new() }
        });
        group.events = group.events.saturating_add(row.stats.events());
        group.rows.push(row);
    }
    let mut groups: Vec<Group<'_>> = by_key.into_values().collect();
    if sorted {
        groups.sort_by_key(|group| group.first);
    } else {
        groups.sort_by(|a, b| (a.events, &a.key).cmp(&(b.events, &b.key)));
    }
    let events = groups.iter().fold(0_u64, |events, group| events.saturating_add(group.events));
    (groups, events)
}
