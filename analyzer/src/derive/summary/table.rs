//! Sums arranged for print: groups by events, calls by time.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::cmp::Ordering;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::column::Column;
use super::counted::Quantile;
use super::group::Sums;
use super::ledger::Knowledge;
use super::plan::Plan;
use super::stats::Stats;
use super::tally::Tally;
use crate::table::calls::{CallBook, CallInfo};
use crate::table::group::by::By;
use crate::table::group::packed::Packed;
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
    pub key: Key,
    /// The call; None: it is no key.
    pub call: Option<Arc<CallInfo>>,
    /// A task of it; None: there is none among the keys, or it is not known.
    pub task: Option<&'a Task>,
    /// Their sums.
    pub stats: Cow<'a, Stats>,
    /// They may be too low.
    pub short: bool,
    quantiles: OnceCell<[Option<Quantile>; 2]>,
}

impl<'a> Row<'a> {
    /// Sums without keys.
    pub(crate) fn of_all(stats: &'a Stats, short: bool) -> Self {
        let (key, quantiles) = (Key::new(), OnceCell::new());
        Self { key, call: None, task: None, stats: Cow::Borrowed(stats), short, quantiles }
    }

    /// The median and the 99th percentile of `stats`, found once.
    pub(crate) fn quantiles(&self) -> &[Option<Quantile>; 2] {
        self.quantiles.get_or_init(|| [500, 990].map(|permille| self.stats.quantile(permille)))
    }
}

/// The sums of all keys, the largest of a column first, those without a value last; equal ones with the most time first. A row is made
/// when it is asked for: there may be millions.
#[derive(Debug)]
pub(crate) struct Ranked<'a> {
    sums: &'a Sums,
    knowledge: &'a Knowledge,
    plan: &'a Plan,
    /// What is known of the calls among the keys.
    infos: FxHashMap<Call, Arc<CallInfo>>,
    /// The number of the first key of each of the sums' parts.
    begins: Vec<u32>,
    order: Vec<Ranking>,
}

/// The place of a row among others.
#[derive(Clone, Copy, Debug)]
struct Ranking {
    /// The value, and 1; 0: there is none. Of the greatest ones the last that there is.
    value: u64,
    /// Place of the call's name among all.
    name: u32,
    /// Number of the key.
    at: u32,
}

/// The sums of all keys by `column`.
pub(crate) fn rows<'a>(
    sums: &'a Sums,
    knowledge: &'a Knowledge,
    book: &CallBook<'_>,
    plan: &'a Plan,
    column: Column,
) -> Ranked<'a> {
    let mut ranked =
        Ranked { sums, knowledge, plan, infos: FxHashMap::default(), begins: Vec::new(), order: Vec::new() };
    let mut begin = 0;
    let by_call = plan.has(By::Syscall);
    for groups in &sums.groups {
        ranked.begins.push(begin);
        // a place is made before filters on durations decide
        for (at, (key, tally)) in groups.iter().enumerate().filter(|(_, (_, tally))| tally.calls() > 0) {
            if let Some(call) = by_call.then(|| ranked.call(&key.key())).flatten() {
                ranked.infos.entry(call).or_insert_with(|| book.get(call));
            }
            let value = column.of(&tally.stats());
            let value = value.map_or(0, |value| u64::try_from(value).unwrap_or(u64::MAX).saturating_add(1));
            ranked.order.push(Ranking { value, name: 0, at: begin + at as u32 });
        }
        begin += groups.len() as u32;
    }
    let mut order = std::mem::take(&mut ranked.order);
    if by_call {
        let mut names: Vec<&str> = ranked.infos.values().map(|info| &*info.long_name).collect();
        names.sort_unstable();
        names.dedup();
        for ranking in &mut order {
            let info = ranked.info(&ranked.get(ranking.at).0.key());
            let place = info.map(|info| names.binary_search(&&*info.long_name).unwrap_or_default());
            ranking.name = place.map_or(0, |place| place as u32 + 1);
        }
    }
    // no two have the same key
    order.sort_unstable_by(|one, other| {
        other.value.cmp(&one.value).then_with(|| {
            let ((one_key, a), (other_key, b)) = (ranked.get(one.at), ranked.get(other.at));
            let (total, value) = (|tally: &Tally| tally.total(), |tally: &Tally| column.of(&tally.stats()));
            let by_value = if one.value == u64::MAX { value(b).cmp(&value(a)) } else { Ordering::Equal };
            let by_time = by_value.then_with(|| total(b).cmp(&total(a))).then_with(|| b.calls().cmp(&a.calls()));
            by_time.then_with(|| one.name.cmp(&other.name)).then_with(|| one_key.cmp(&other_key))
        })
    });
    ranked.order = order;
    ranked
}

impl<'a> Ranked<'a> {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// All, in order.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Row<'a>> + Clone {
        self.order.iter().map(|ranking| self.row(ranking.at))
    }

    /// Their sums, and whether they may be too low, in order.
    pub(crate) fn sums(&self) -> impl Iterator<Item = (Cow<'a, Stats>, bool)> {
        self.order.iter().map(|ranking| {
            let (key, tally) = self.get(ranking.at);
            (tally.stats(), self.knowledge.differs() && self.knowledge.short(&key.key()))
        })
    }

    /// Whether one of them may be too low because calls were lost, and not left out by request.
    pub(crate) fn lost(&self) -> bool {
        let any = || self.order.iter().any(|ranking| self.knowledge.row_lost(&self.get(ranking.at).0.key()));
        self.knowledge.lost() || (self.knowledge.differs() && any())
    }

    fn get(&self, at: u32) -> (Packed<'a>, &'a Tally) {
        let part = self.begins.partition_point(|begin| *begin <= at) - 1;
        self.sums.groups[part].get(at - self.begins[part])
    }

    fn row(&self, at: u32) -> Row<'a> {
        let (key, tally) = self.get(at);
        let key = key.key();
        Row {
            call: self.info(&key).cloned(),
            task: self.sums.labels.get(&key, self.plan),
            stats: tally.stats(),
            short: self.knowledge.short(&key),
            quantiles: OnceCell::new(),
            key,
        }
    }

    fn call(&self, key: &[Value]) -> Option<Call> {
        match &key[self.plan.place(By::Syscall)?] {
            Value::Call(call) => Some(*call),
            _ => None,
        }
    }

    fn info(&self, key: &[Value]) -> Option<&Arc<CallInfo>> {
        self.infos.get(&self.call(key)?)
    }
}

/// `rows` in groups with equal keys except the syscall, and the events of all. `sorted`: the groups in the order of their first
/// rows; else in ascending order of events (the busiest last, as perf prints them).
pub(crate) fn groups<'a>(
    rows: impl IntoIterator<Item = Row<'a>>,
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
            let short = knowledge.group_short(&row.key);
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
