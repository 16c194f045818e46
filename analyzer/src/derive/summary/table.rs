//! Sums arranged for print: groups by events, calls by time.

use std::cell::OnceCell;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::column::Column;
use super::counted::Quantile;
use super::group::Sums;
use super::ledger::Knowledge;
use super::plan::Plan;
use super::stats::Stats;
use crate::table::calls::{CallBook, CallInfo};
use crate::table::group::by::By;
use crate::table::group::value::{Key, Value};
use crate::values::order::InOrder as _;
use systape_format::model::{Call, Task};

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
    quantiles: OnceCell<[Option<Quantile>; 2]>,
}

impl<'a> Row<'a> {
    /// Sums without keys.
    pub(crate) fn of_all(stats: &'a Stats, short: bool) -> Self {
        Self { key: &[], call: None, task: None, stats, short, quantiles: OnceCell::new() }
    }

    /// The median and the 99th percentile of `stats`, found once.
    pub(crate) fn quantiles(&self) -> &[Option<Quantile>; 2] {
        self.quantiles.get_or_init(|| [500, 990].map(|permille| self.stats.quantile(permille)))
    }
}

/// The sums of all keys, the largest of `column` first, those without a value last; equal ones with the most time first.
pub(crate) fn rows<'a>(
    sums: &'a Sums,
    knowledge: &Knowledge,
    book: &CallBook<'_>,
    plan: &Plan,
    column: Column,
) -> Vec<Row<'a>> {
    let syscall = plan.place(By::Syscall);
    let call = |key: &[Value]| match syscall.map(|at| &key[at]) {
        Some(Value::Call(call)) => Some(*call),
        _ => None,
    };
    // a place is made before filters on durations decide
    let (labels, sums) = (&sums.labels, sums.groups.iter().filter(|(_, stats)| stats.calls > 0));
    let mut infos: FxHashMap<Call, Arc<CallInfo>> = FxHashMap::default();
    let mut order: Vec<(Option<u128>, u128, &[Value], &Stats)> = Vec::new();
    for (key, stats) in sums {
        if let Some(call) = call(key) {
            infos.entry(call).or_insert_with(|| book.get(call));
        }
        order.push((column.of(stats), stats.total(), key, stats));
    }
    let info = |key: &[Value]| infos.get(&call(key)?);
    let name = |key| info(key).map(|call| call.long_name.as_str());
    // None is less than any value; no two have the same key
    order.sort_unstable_by(|a, b| {
        let of_time = || b.1.cmp(&a.1).then_with(|| b.3.calls.cmp(&a.3.calls));
        b.0.cmp(&a.0).then_with(of_time).then_with(|| name(a.2).cmp(&name(b.2))).then_with(|| a.2.cmp(b.2))
    });
    let row = |(_, _, key, stats): (_, _, &'a [Value], &'a Stats)| Row {
        key,
        call: info(key).cloned(),
        task: labels.get(key, plan),
        stats,
        short: knowledge.short(key),
        quantiles: OnceCell::new(),
    };
    order.into_iter().map(row).collect()
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
        groups.order_by_key(|group| group.first);
    } else {
        groups.order_by(|a, b| (a.events, &a.key).cmp(&(b.events, &b.key)));
    }
    let events = groups.iter().fold(0_u64, |events, group| events.saturating_add(group.events));
    (groups, events)
}
