//! Sums arranged for print: groups by events, calls by time.

use std::cmp::Reverse;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::group::{GroupKey, Sums};
use super::ledger::{Kind, Knowledge, kind};
use super::stats::Stats;
use crate::calls::{CallBook, CallInfo};
use crate::summary::mode::SummaryMode;
use systape_format::model::Task;

/// The calls of one group.
#[derive(Debug)]
pub struct Group {
    /// Its key.
    pub key: GroupKey,
    /// A task of it; of several the newest, of a process its leader if that made calls.
    pub task: Task,
    /// Enters plus exits.
    pub events: u64,
    /// What it is a group of.
    pub kind: Kind,
    /// It may have made more calls than its rows say.
    pub short: bool,
    /// Its calls, most time first.
    pub rows: Vec<Row>,
}

/// The calls of one group with one number.
#[derive(Debug)]
pub struct Row {
    /// Which call.
    pub call: Arc<CallInfo>,
    /// Their sums.
    pub stats: Stats,
    /// There may be more of them.
    pub short: bool,
}

/// Groups in ascending order of events (the busiest last, as perf prints them), and the events of all.
pub fn groups(sums: Sums, knowledge: &Knowledge, book: &CallBook<'_>, mode: SummaryMode) -> (Vec<Group>, u64) {
    let mut by_key: FxHashMap<GroupKey, Group> = FxHashMap::default();
    let mut labels = sums.labels;
    for ((key, call), stats) in sums.stats {
        // a place is made before filters on durations decide
        if stats.calls == 0 {
            continue;
        }
        let group = by_key.entry(key).or_insert_with(|| {
            let task = labels.remove(&key).map(|label| label.task).unwrap_or_default();
            let short = knowledge.short((key, &task), mode, None);
            Group { key, task, events: 0, kind: kind(key, mode), short, rows: Vec::new() }
        });
        group.events = group.events.saturating_add(stats.events());
        let short = knowledge.short((key, &group.task), mode, Some(call));
        group.rows.push(Row { call: book.get(call), stats, short });
    }
    let mut groups: Vec<Group> = by_key.into_values().collect();
    for group in &mut groups {
        group.rows.sort_by(|a, b| {
            (Reverse(a.stats.total()), Reverse(a.stats.calls), &a.call.long_name).cmp(&(
                Reverse(b.stats.total()),
                Reverse(b.stats.calls),
                &b.call.long_name,
            ))
        });
    }
    groups.sort_by_key(|group| (group.events, group.key));
    let events = groups.iter().fold(0_u64, |events, group| events.saturating_add(group.events));
    (groups, events)
}
