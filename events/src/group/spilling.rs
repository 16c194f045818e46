//! Sums by key of which only as many are in memory as there is room for, and these sums in an order.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::iter::Peekable;
use std::rc::Rc;

use super::packed::Packed;
use super::{Add, Groups};
use crate::values::spill::{MergedRuns, Run, SpilledSum, Store, Stored};

/// Fewer sums than these stay in memory, however large they are.
const LEAST: usize = 16;
/// Sums are measured after so many changes at the earliest.
const STEP: usize = 1024;

/// Sums by key. Those for which there is no memory are in runs by key, each with a part of its sums.
#[derive(Debug)]
pub struct Spilling<A> {
    /// Sums in memory.
    pub groups: Groups<A>,
    runs: Vec<Run>,
    store: Option<Store>,
    /// Part of the memory that they may take: one of so many.
    share: usize,
    /// Changes since `heap` was measured.
    changes: usize,
    /// Bytes of the sums elsewhere in memory.
    heap: usize,
}

impl<A> Default for Spilling<A> {
    fn default() -> Self {
        Self { groups: Groups::default(), runs: Vec::new(), store: None, share: 1, changes: 0, heap: 0 }
    }
}

impl<A: Add + Stored> Spilling<A> {
    /// One of `share` such that have the memory of `store` together.
    #[inline]
    pub fn new(store: Option<Store>, share: usize) -> Self {
        Self { store, share, ..Self::default() }
    }

    /// Puts all sums into the file, after so many may have changed, if they take more memory than there is with `beside`, bytes of
    /// who keeps something for each. Then none is in memory, and their places mean nothing.
    pub fn relieve(&mut self, changes: usize, beside: usize) -> bool {
        let Some(store) = &self.store else { return false };
        let limit = store.limit() / self.share;
        self.changes += changes;
        if self.changes > STEP + self.groups.len() / 2 {
            self.changes = 0;
            self.heap = self.groups.iter().map(|(_, sum)| sum.heap()).sum();
        }
        let full = self.groups.bytes() + self.heap + beside > limit && self.groups.len() >= LEAST;
        if full {
            self.spill();
        }
        full
    }

    fn spill(&mut self) {
        let Some(store) = &self.store else { return };
        let mut writer = store.writer();
        for place in self.groups.by_key() {
            let (key, sum) = self.groups.get(place);
            writer.put(key.0, sum);
        }
        self.runs.push(writer.finish());
        self.groups.clear();
        (self.heap, self.changes) = (0, 0);
    }
}

/// All sums: in memory or, if that is too little for them, in the file.
#[derive(Debug)]
pub struct Parts<A> {
    memory: Vec<Groups<A>>,
    /// Runs by key of each part; empty: all are in memory.
    spilled: Vec<Vec<Run>>,
    store: Option<Store>,
}

impl<A> Default for Parts<A> {
    fn default() -> Self {
        Self { memory: Vec::new(), spilled: Vec::new(), store: None }
    }
}

impl<A: Add + Stored> Parts<A> {
    /// Joins the sums of `parts`; each key is in one of them.
    pub fn of(mut parts: Vec<Spilling<A>>) -> Self {
        if parts.iter().all(|part| part.runs.is_empty()) {
            return Self { memory: parts.into_iter().map(|part| part.groups).collect(), ..Self::default() };
        }
        let store = parts.iter().find_map(|part| part.store.clone());
        let spilled = parts.iter_mut().map(|part| {
            part.spill();
            part.groups = Groups::default();
            std::mem::take(&mut part.runs)
        });
        Self { memory: Vec::new(), spilled: spilled.collect(), store }
    }

    /// Sums that are in memory.
    #[cfg(any(test, feature = "exercise"))]
    #[inline]
    pub fn in_memory(self) -> Vec<Groups<A>> {
        assert!(self.spilled.is_empty());
        self.memory
    }
}

/// A key and its sum.
#[derive(Clone, Debug)]
pub struct Entry<'a, A: Clone> {
    key: Cow<'a, [u8]>,
    /// The sum.
    pub sum: Cow<'a, A>,
}

impl<A: Clone> Entry<'_, A> {
    /// The key.
    #[inline]
    pub fn key(&self) -> Packed<'_> {
        Packed(&self.key)
    }
}

/// Compares keys and sums whose greatest values are equal; no two are equal.
type Compare<'a, A> = Rc<dyn Fn((Packed<'_>, &A), (Packed<'_>, &A)) -> Ordering + 'a>;

/// Sums in an order: that of a number, the greatest first, then another.
pub struct Ordered<'a, A> {
    parts: &'a Parts<A>,
    compare: Compare<'a, A>,
    /// The number of the first key of each of the parts in memory.
    begins: Vec<u32>,
    /// Those in memory; see [`Lazily`] for those with equal numbers.
    order: Vec<Ranking>,
    /// Of those in the file: records whose keys begin with the number, turned round.
    runs: Vec<Run>,
    len: usize,
}

impl<A> std::fmt::Debug for Ordered<'_, A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ordered").field("len", &self.len).finish_non_exhaustive()
    }
}

/// The number of a sum in two halves, and its place. Small: there is one for each sum.
#[derive(Clone, Copy, Debug)]
struct Ranking {
    high: u32,
    low: u32,
    at: u32,
}

impl Ranking {
    fn of(number: u64, at: u32) -> Self {
        Self { high: (number >> 32) as u32, low: number as u32, at }
    }

    fn number(self) -> (u32, u32) {
        (self.high, self.low)
    }
}

/// Bytes of the number before the key of a record.
const NUMBER: usize = size_of::<u64>();

impl<'a, A: Add + Stored + Clone> Ordered<'a, A> {
    /// Puts those sums in order to which `number` gives one.
    pub fn new(
        parts: &'a Parts<A>,
        mut number: impl FnMut(Packed<'_>, &A) -> Option<u64>,
        compare: impl Fn((Packed<'_>, &A), (Packed<'_>, &A)) -> Ordering + 'a,
    ) -> Self {
        let (begins, order, runs) = (Vec::new(), Vec::new(), Vec::new());
        let mut ordered = Self { parts, compare: Rc::new(compare), begins, order, runs, len: 0 };
        match &parts.store {
            Some(store) => ordered.in_file(store, number),
            None => ordered.in_memory(&mut number),
        }
        ordered
    }

    fn in_memory(&mut self, number: &mut impl FnMut(Packed<'_>, &A) -> Option<u64>) {
        let (mut begin, mut order) = (0, Vec::new());
        for groups in &self.parts.memory {
            self.begins.push(begin);
            for (at, (key, sum)) in (begin..).zip(groups.iter()) {
                order.extend(number(key, sum).map(|number| Ranking::of(number, at)));
            }
            begin += groups.len() as u32;
        }
        order.sort_unstable_by_key(|ranking| std::cmp::Reverse(ranking.number()));
        self.len = order.len();
        self.order = order;
    }

    fn in_file(&mut self, store: &Store, mut number: impl FnMut(Packed<'_>, &A) -> Option<u64>) {
        let by_key = |one: &SpilledSum<A>, other: &SpilledSum<A>| one.key.cmp(&other.key);
        let (mut room, mut records, mut runs) = (0, Vec::new(), Vec::new());
        let compare = self.of_records();
        let mut write = |records: &mut Vec<SpilledSum<A>>| {
            records.sort_unstable_by(&compare);
            let mut writer = store.writer();
            records.drain(..).for_each(|record| writer.put(&record.key, &record.sum));
            runs.push(writer.finish());
        };
        for part in &self.parts.spilled {
            let part = store.narrowed(part.clone(), &by_key);
            for SpilledSum { key, sum } in WholeSums(MergedRuns::new(&part, by_key).peekable()) {
                let Some(number) = number(Packed(&key), &sum) else { continue };
                let key = [&(!number).to_be_bytes()[..], &key].concat();
                room += key.len() + size_of::<SpilledSum<A>>() + sum.heap();
                records.push(SpilledSum { key, sum });
                self.len += 1;
                // the sums may be measured too low
                if room > store.limit() / 4 {
                    write(&mut records);
                    room = 0;
                }
            }
        }
        write(&mut records);
        self.runs = store.narrowed(runs, &compare);
    }

    fn of_records(&self) -> impl Fn(&SpilledSum<A>, &SpilledSum<A>) -> Ordering + Clone + use<'a, A> {
        let compare = Rc::clone(&self.compare);
        move |one: &SpilledSum<A>, other: &SpilledSum<A>| {
            let by_key = || compare((Packed(&one.key[NUMBER..]), &one.sum), (Packed(&other.key[NUMBER..]), &other.sum));
            one.key[..NUMBER].cmp(&other.key[..NUMBER]).then_with(by_key)
        }
    }

    fn get(&self, at: u32) -> (Packed<'a>, &'a A) {
        let part = self.begins.partition_point(|begin| *begin <= at) - 1;
        self.parts.memory[part].get(at - self.begins[part])
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether one of the keys `is` so; in no order, which costs less.
    #[inline]
    pub fn any(&self, is: impl Fn(Packed<'_>) -> bool) -> bool {
        let mut in_file = MergedRuns::new(&self.runs, self.of_records());
        self.order.iter().any(|ranking| is(self.get(ranking.at).0))
            || in_file.any(|record| is(Packed(&record.key[NUMBER..])))
    }

    /// All, in order.
    pub fn iter(&self) -> impl Iterator<Item = Entry<'a, A>> + Clone {
        let lazily = Lazily { ordered: self, next: 0, run: Vec::new().into_iter() };
        let in_memory = lazily.map(|at| {
            let (key, sum) = self.get(at);
            Entry { key: Cow::Borrowed(key.0), sum: Cow::Borrowed(sum) }
        });
        let in_file = MergedRuns::new(&self.runs, self.of_records()).map(|SpilledSum { mut key, sum }| {
            key.drain(..NUMBER);
            Entry { key: Cow::Owned(key), sum: Cow::Owned(sum) }
        });
        // one of them is empty
        in_memory.chain(in_file)
    }
}

/// The places of those in memory, in order. Sums with equal numbers are ordered when they are reached: most questions are for the
/// first rows, and of millions of sums most are equal to others.
#[derive(Clone)]
struct Lazily<'o, 'a, A> {
    ordered: &'o Ordered<'a, A>,
    /// Of the order, behind `run`.
    next: usize,
    run: std::vec::IntoIter<u32>,
}

impl<A: Add + Stored + Clone> Iterator for Lazily<'_, '_, A> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if let Some(at) = self.run.next() {
            return Some(at);
        }
        let ordered = self.ordered;
        let rest = ordered.order.get(self.next..)?;
        let number = rest.first()?.number();
        let equal = rest.partition_point(|ranking| ranking.number() == number);
        let mut run: Vec<u32> = rest[..equal].iter().map(|ranking| ranking.at).collect();
        run.sort_unstable_by(|one, other| (ordered.compare)(ordered.get(*one), ordered.get(*other)));
        self.next += equal;
        self.run = run.into_iter();
        self.run.next()
    }
}

/// Records by key, each key once.
struct WholeSums<I: Iterator>(Peekable<I>);

impl<A: Add, I: Iterator<Item = SpilledSum<A>>> Iterator for WholeSums<I> {
    type Item = SpilledSum<A>;

    fn next(&mut self) -> Option<SpilledSum<A>> {
        let mut record = self.0.next()?;
        while let Some(more) = self.0.next_if(|more| more.key == record.key) {
            record.sum.add(&more.sum);
        }
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::super::value::Value;
    use super::*;
    use crate::values::spill::{put_number, take_u64};
    use proptest::prelude::*;

    #[derive(Clone, Debug, Default)]
    struct Count(u64);

    impl Add for Count {
        fn add(&mut self, other: &Self) {
            self.0 += other.0;
        }
    }

    impl Stored for Count {
        fn put(&self, out: &mut Vec<u8>) {
            put_number(self.0.into(), out);
        }

        fn take(from: &mut &[u8]) -> Option<Self> {
            take_u64(from).map(Self)
        }

        fn heap(&self) -> usize {
            0
        }
    }

    /// Keys and counts in order, and how many runs there were.
    fn ordered(counts: &[(u64, u64)], limit: Option<usize>, share: usize) -> (Vec<(u64, u64)>, usize) {
        let store = limit.map(Store::of_test);
        let mut parts: Vec<Spilling<Count>> = (0..share).map(|_| Spilling::new(store.clone(), share)).collect();
        for (key, count) in counts {
            let part = &mut parts[*key as usize % share];
            part.groups.of(&[Value::Number(*key)]).0 += count;
            part.relieve(1, 0);
        }
        let runs = parts.iter().map(|part| part.runs.len()).sum();
        let parts = Parts::of(parts);
        // an order in which many are equal, and a filter
        let number = |_: Packed<'_>, count: &Count| (!count.0.is_multiple_of(7)).then_some(count.0 / 16);
        let ordered = Ordered::new(&parts, number, |one, other| other.1.0.cmp(&one.1.0).then(one.0.cmp(&other.0)));
        let found: Vec<(u64, u64)> = ordered
            .iter()
            .map(|entry| match entry.key().key()[..] {
                [Value::Number(key)] => (key, entry.sum.0),
                _ => unreachable!(),
            })
            .collect();
        assert_eq!(found.len(), ordered.len());
        assert!(ordered.iter().map(|entry| entry.sum.0).eq(found.iter().map(|(_, count)| *count)));
        (found, runs)
    }

    proptest! {
        #[test]
        fn sums_in_the_file_are_those_in_memory(
            counts in prop::collection::vec((0_u64..600, 0_u64..90), 300..3000), share in 1_usize..5, limit in 0_usize..4000,
        ) {
            let (expected, none) = ordered(&counts, None, share);
            let (found, runs) = ordered(&counts, Some(limit), share);
            prop_assert_eq!(found, expected);
            prop_assert!(none == 0 && runs > 0);
        }
    }
}
