//! Sums arranged for print: groups by events, calls by time.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::column::Column;
use super::counted::Quantile;
use super::group::Sums;
use super::ledger::Knowledge;
use super::plan::Plan;
use super::stats::Stats;
use super::tally::Tally;
use systape_events::calls::{CallBook, CallInfo};
use systape_events::group::by::GroupKey;
use systape_events::group::packed::Packed;
use systape_events::group::spilling::{Entry, Ordered};
use systape_events::group::value::{Key, Value};
use systape_events::values::order::InOrder as _;
use systape_format::model::{Call, Task};

/// The calls of one group.
#[derive(Debug)]
pub struct SummaryGroup<'a> {
    /// The common keys of its rows: all except the syscall.
    pub key: Key,
    /// A task of it; of several the newest, of a process its leader if that made calls. None: as in [`Row`].
    pub task: Option<&'a Task>,
    /// Position of its first row among all.
    first: usize,
    /// Enters plus exits.
    pub events: u64,
    /// Whether its rows may be too low.
    pub short: bool,
    /// Calls of the group, in the order of all rows.
    pub rows: Vec<Row<'a>>,
}

/// The calls of one key.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// All keys.
    pub key: Key,
    /// The call; None: it is no key.
    pub call: Option<Arc<CallInfo>>,
    /// A task of it; None: there is none among the keys, or it is not known.
    pub task: Option<&'a Task>,
    /// Sums of the calls.
    pub stats: Cow<'a, Stats>,
    /// Whether they may be too low.
    pub short: bool,
    quantiles: OnceCell<[Option<Quantile>; 2]>,
}

impl<'a> Row<'a> {
    /// Sums without keys.
    pub fn of_all(stats: &'a Stats, short: bool) -> Self {
        let (key, quantiles) = (Key::new(), OnceCell::new());
        Self { key, call: None, task: None, stats: Cow::Borrowed(stats), short, quantiles }
    }

    /// The median and the 99th percentile of `stats`, found once.
    pub fn quantiles(&self) -> &[Option<Quantile>; 2] {
        self.quantiles.get_or_init(|| [500, 990].map(|permille| self.stats.quantile(permille)))
    }
}

/// The sums of all keys, the largest of a column first, those without a value last; equal ones with the most time first. A row is made
/// when it is asked for: there may be millions.
#[derive(Debug)]
pub struct Ranked<'a> {
    sums: &'a Sums,
    knowledge: &'a Knowledge,
    plan: &'a Plan,
    /// What is known of the calls among the keys.
    infos: FxHashMap<Call, Arc<CallInfo>>,
    ordered: Ordered<'a, Tally>,
}

/// The sums of all keys by `column`.
pub fn rows<'a>(
    sums: &'a Sums,
    knowledge: &'a Knowledge,
    book: &'a CallBook<'_>,
    plan: &'a Plan,
    column: Column,
) -> Ranked<'a> {
    let at = plan.place(GroupKey::Syscall);
    let call = move |key: Packed<'_>| {
        // decoding a key costs: not where none has a call
        let at = at?;
        match key.key().get(at)? {
            Value::Call(call) => Some(*call),
            _ => None,
        }
    };
    // whether a value was too large for its number
    let too_large = Rc::new(Cell::new(false));
    let is_too_large = Rc::clone(&too_large);
    let mut infos: FxHashMap<Call, Arc<CallInfo>> = FxHashMap::default();
    let number = |key: Packed<'_>, tally: &Tally| {
        // a place is made before filters on durations decide
        if tally.calls() == 0 {
            return None;
        }
        if let Some(call) = call(key) {
            infos.entry(call).or_insert_with(|| book.get(call));
        }
        // 0: there is no value; of the greatest ones the last that there is
        let value = column.of(&tally.stats());
        let number = value.map_or(0, |value| u64::try_from(value).unwrap_or(u64::MAX).saturating_add(1));
        too_large.set(too_large.get() || number == u64::MAX);
        Some(number)
    };
    // of equal numbers; no two have the same key
    let compare = move |one: (Packed<'_>, &Tally), other: (Packed<'_>, &Tally)| {
        let value = |tally: &Tally| column.of(&tally.stats());
        let measured = |tally: &Tally| (tally.total(), tally.calls());
        let by_value = || if is_too_large.get() { value(other.1).cmp(&value(one.1)) } else { Ordering::Equal };
        let by_name = || {
            let [one, other] = [one.0, other.0].map(call);
            if one == other {
                return Ordering::Equal;
            }
            let [one, other] = [one, other].map(|call| call.map(|call| book.get(call)));
            one.as_ref().map(|info| &info.long_name).cmp(&other.as_ref().map(|info| &info.long_name))
        };
        let by_time = by_value().then_with(|| measured(other.1).cmp(&measured(one.1)));
        by_time.then_with(by_name).then_with(|| one.0.cmp(&other.0))
    };
    let ordered = Ordered::new(&sums.groups, number, compare);
    Ranked { sums, knowledge, plan, infos, ordered }
}

impl<'a> Ranked<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.ordered.len()
    }

    /// All, in order.
    pub fn iter(&self) -> impl Iterator<Item = Row<'a>> + Clone {
        self.ordered.iter().map(|entry| self.row(entry))
    }

    /// Sums of the groups, and whether they may be too low, in order.
    pub fn sums(&self) -> impl Iterator<Item = (Cow<'a, Stats>, bool)> {
        self.ordered.iter().map(|entry| {
            let short = self.knowledge.differs() && self.knowledge.short(&entry.key().key());
            (stats(entry.sum), short)
        })
    }

    /// Whether one of them may be too low because calls were lost, and not left out by request.
    pub fn lost(&self) -> bool {
        let any = || self.ordered.any(|key| self.knowledge.row_lost(&key.key()));
        self.knowledge.lost() || (self.knowledge.differs() && any())
    }

    fn row(&self, entry: Entry<'a, Tally>) -> Row<'a> {
        let key = entry.key().key();
        Row {
            call: self.info(&key).cloned(),
            task: self.sums.labels.get(&key, self.plan),
            stats: stats(entry.sum),
            short: self.knowledge.short(&key),
            quantiles: OnceCell::new(),
            key,
        }
    }

    fn call(&self, key: &[Value]) -> Option<Call> {
        match &key[self.plan.place(GroupKey::Syscall)?] {
            Value::Call(call) => Some(*call),
            _ => None,
        }
    }

    fn info(&self, key: &[Value]) -> Option<&Arc<CallInfo>> {
        self.infos.get(&self.call(key)?)
    }
}

fn stats(tally: Cow<'_, Tally>) -> Cow<'_, Stats> {
    match tally {
        Cow::Borrowed(tally) => tally.stats(),
        Cow::Owned(tally) => Cow::Owned(tally.stats().into_owned()),
    }
}

/// `rows` in groups with equal keys except the syscall, and the events of all. `sorted`: the groups in the order of their first
/// rows; else in ascending order of events (the busiest last, as perf prints them).
pub fn groups<'a>(
    rows: impl IntoIterator<Item = Row<'a>>,
    knowledge: &Knowledge,
    plan: &Plan,
    sorted: bool,
) -> (Vec<SummaryGroup<'a>>, u64) {
    let syscall = plan.place(GroupKey::Syscall);
    let mut by_key: FxHashMap<Key, SummaryGroup<'a>> = FxHashMap::default();
    for (at, row) in rows.into_iter().enumerate() {
        let parts = row.key.iter().enumerate().filter(|(at, _)| Some(*at) != syscall);
        let key: Key = parts.map(|(_, value)| value.clone()).collect();
        let group = by_key.entry(key).or_insert_with_key(|key| {
            let short = knowledge.group_short(&row.key);
            SummaryGroup { key: key.clone(), task: row.task, first: at, events: 0, short, rows: Vec::new() }
        });
        group.events = group.events.saturating_add(row.stats.events());
        group.rows.push(row);
    }
    let mut groups: Vec<SummaryGroup<'_>> = by_key.into_values().collect();
    if sorted {
        groups.order_by_key(|group| group.first);
    } else {
        groups.order_by(|a, b| (a.events, &a.key).cmp(&(b.events, &b.key)));
    }
    let events = groups.iter().fold(0_u64, |events, group| events.saturating_add(group.events));
    (groups, events)
}
