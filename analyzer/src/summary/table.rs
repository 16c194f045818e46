//! Sums arranged for print: groups by events, calls by time.

use std::cmp::Reverse;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::collect::{GroupKey, Sums};
use super::stats::Stats;
use crate::calls::{CallBook, CallInfo};
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
    /// Its calls, most time first.
    pub rows: Vec<(Arc<CallInfo>, Stats)>,
}

/// Groups in ascending order of events (the busiest last, as perf prints them), and the events of all.
pub fn groups(sums: Sums, book: &CallBook<'_>) -> (Vec<Group>, u64) {
    let mut by_key: FxHashMap<GroupKey, Group> = FxHashMap::default();
    let mut labels = sums.labels;
    for ((key, call), stats) in sums.stats {
        // a place is made before filters on durations decide
        if stats.calls == 0 {
            continue;
        }
        let group = by_key.entry(key).or_insert_with(|| {
            let task = labels.remove(&key).map(|label| label.task).unwrap_or_default();
            Group { key, task, events: 0, rows: Vec::new() }
        });
        group.events += stats.events();
        group.rows.push((book.get(call), stats));
    }
    let mut groups: Vec<Group> = by_key.into_values().collect();
    for group in &mut groups {
        group.rows.sort_by(|(a_call, a), (b_call, b)| {
            (Reverse(a.total()), Reverse(a.calls), &a_call.long_name).cmp(&(
                Reverse(b.total()),
                Reverse(b.calls),
                &b_call.long_name,
            ))
        });
    }
    groups.sort_by_key(|group| (group.events, group.key));
    let events = groups.iter().map(|group| group.events).sum();
    (groups, events)
}
