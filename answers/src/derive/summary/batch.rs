//! The calls of a segment, brought together by the sum they belong to: a segment has many calls and few sums, so each sum is looked up
//! and touched once a segment, not once a call. With many tasks the sums do not fit into a CPU's cache.

use indexmap::{IndexMap, IndexSet};
use rustc_hash::FxBuildHasher;
use systape_format::model::{Call, CallState};

use super::shared::{PARTS, Shared, part_of};
use super::stats::Stats;
use super::tally::One;
use systape_events::group::value::Key;

/// No entry of [`Batch::others`].
const NONE: u32 = u32::MAX;

/// With fewer sums than these in a segment each is added up on its own, which costs less than bringing its calls together.
const FEW: usize = 512;

/// Where the sums of a key are.
#[derive(Clone, Copy, Debug)]
struct KeySums {
    /// Part of the shared sums.
    part: u32,
    /// Number there; None: not looked up yet.
    number: Option<u32>,
}

/// The calls of a segment by sums, each of which has a number here. Its memory serves for the next segment.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Keys without the call, if that is one of them.
    bases: IndexMap<Key, KeySums, FxBuildHasher>,
    /// The base of each sum, and its call if that is a key.
    sums: IndexSet<(u32, Option<Call>), FxBuildHasher>,
    /// How many of `calls` each sum has; while they are given away, where those of it begin in `sorted`.
    counts: Vec<u32>,
    /// Sum and duration of each call that returned without an error, in less than 2^32 ns.
    calls: Vec<(u32, u32)>,
    sorted: Vec<u32>,
    /// Last of the other calls of each sum; [`NONE`]: there is none.
    last: Vec<u32>,
    /// The other calls, each with the one of its sum before it.
    others: Vec<(u32, One)>,
    /// The sums of each part.
    of_part: Vec<Vec<u32>>,
    /// Their places in a part.
    places: Vec<u32>,
    /// Each sum, if the segment before had few of them: then `calls` and `others` stay empty.
    own: Option<Vec<Stats>>,
}

impl Batch {
    /// Number of the base `key`.
    pub(super) fn base(&mut self, key: Key) -> u32 {
        let number = self.bases.get_index_of(&key).unwrap_or_else(|| {
            let part = part_of(&key) as u32;
            self.bases.insert_full(key, KeySums { part, number: None }).0
        });
        number as u32
    }

    /// Number of the sum of a base and a call, if that is a key.
    pub(super) fn sum(&mut self, base: u32, call: Option<Call>) -> u32 {
        let (number, new) = self.sums.insert_full((base, call));
        if new {
            self.counts.push(0);
            self.last.push(NONE);
            self.own.iter_mut().for_each(|own| own.push(Stats::default()));
        }
        number as u32
    }

    /// Takes a call of the sum with that number, which ran from enter to return without an error.
    #[inline(always)]
    pub(super) fn add_ok(&mut self, number: u32, dur: u64) {
        if let Some(own) = &mut self.own {
            return own[number as usize].add_ok(dur);
        }
        match u32::try_from(dur) {
            Ok(dur) => {
                self.counts[number as usize] += 1;
                self.calls.push((number, dur));
            }
            Err(_) => self.add(number, One::ok(dur)),
        }
    }

    /// Takes another call: one that failed, took seconds, or did not run from enter to return.
    #[cold]
    pub(super) fn add(&mut self, number: u32, one: One) {
        // nobody called the child's return from a clone
        if one.state == CallState::CloneChild {
            return;
        }
        if let Some(own) = &mut self.own {
            return one.give(&mut own[number as usize]);
        }
        let before = std::mem::replace(&mut self.last[number as usize], self.others.len() as u32);
        self.others.push((before, one));
    }

    /// Adds all to `shared`, from the part `begin` on, and is empty then. `syscall`: the index of the call among the keys.
    pub(super) fn give(&mut self, shared: &Shared, begin: usize, syscall: Option<usize>) {
        self.sort();
        self.of_part.resize_with(PARTS, Vec::new);
        for (number, (base, _)) in self.sums.iter().enumerate() {
            self.of_part[self.bases[*base as usize].part as usize].push(number as u32);
        }
        for part in (0..PARTS).map(|at| begin.wrapping_add(at) % PARTS) {
            self.give_part(shared, part, syscall);
        }
        self.own = (self.sums.len() < FEW).then(Vec::new);
        self.bases.clear();
        self.sums.clear();
        self.counts.clear();
        self.last.clear();
        self.others.clear();
    }

    /// Puts the durations of each sum side by side.
    fn sort(&mut self) {
        let mut end = 0;
        for count in &mut self.counts {
            // the calls of a sum fill its part from its end
            end += *count;
            *count = end;
        }
        self.sorted.resize(self.calls.len(), 0);
        for (number, dur) in self.calls.drain(..).rev() {
            let at = &mut self.counts[number as usize];
            *at -= 1;
            self.sorted[*at as usize] = dur;
        }
        // the end of each is the begin of the next
        self.counts.push(end);
    }

    fn give_part(&mut self, shared: &Shared, part: usize, syscall: Option<usize>) {
        let Self { bases, sums, counts, sorted, last, others, of_part, places, own, .. } = self;
        let numbers = &mut of_part[part];
        if numbers.is_empty() {
            return;
        }
        let durs = |number: u32| &sorted[counts[number as usize] as usize..counts[number as usize + 1] as usize];
        let mut part = shared.lock(part);
        places.extend(numbers.iter().filter_map(|number| {
            let (base, call) = sums[*number as usize];
            let (key, base) = bases.get_index_mut(base as usize)?;
            Some(part.place(key, &mut base.number, call.zip(syscall)))
        }));
        // all are read once before any is added to: the CPU waits for the memory of many at a time
        let met = places.iter().zip(&*numbers).map(|(place, number)| part.at(*place).peek(durs(*number)));
        std::hint::black_box(met.fold(0, u64::wrapping_add));
        let changes = places.len();
        for (number, place) in numbers.drain(..).zip(places.drain(..)) {
            let tally = part.at(place);
            match own {
                Some(own) => tally.merge(&own[number as usize]),
                None => tally.add_all_ok(durs(number)),
            }
            let mut at = last[number as usize];
            while let Some((before, one)) = others.get(at as usize) {
                tally.add_one(*one);
                at = *before;
            }
        }
        part.relieve(changes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::summary::tally::Tally;
    use proptest::prelude::*;
    use systape_events::group::Groups;
    use systape_events::group::value::Value;

    proptest! {
        #[test]
        fn the_same_as_one_by_one(
            calls in prop::collection::vec((0_u64..40, 0_u32..3, (0_u64..5_000_000_000, 0_u32..10), 0_u16..3), 0..900),
            few in 1_u64..40, cut in 0_usize..900, by_call: bool, own: bool,
        ) {
            let mut expected = Groups::<Tally>::default();
            let (shared, mut batch) = (Shared::new(None, 1), Batch { own: own.then(Vec::new), ..Batch::default() });
            let syscall = by_call.then_some(0);
            for (at, (key, nr, (dur, shift), errno)) in calls.iter().enumerate() {
                let dur = &(dur >> (shift * 3));
                let (key, call) = (Value::Number(*key % few), Call { nr: *nr, ..Call::default() });
                let of_call = by_call.then_some(Value::Call(call));
                let whole: Key = of_call.iter().cloned().chain([key.clone()]).collect();
                expected.of(&whole).add_one(One { errno: *errno, ..One::ok(*dur) });
                let base = batch.base(by_call.then_some(Value::Unknown).into_iter().chain([key]).collect());
                let sum = batch.sum(base, by_call.then_some(call));
                match *errno {
                    0 => batch.add_ok(sum, *dur),
                    errno => batch.add(sum, One { errno, ..One::ok(*dur) }),
                }
                if at == cut {
                    batch.give(&shared, at, syscall);
                }
            }
            batch.give(&shared, 0, syscall);
            let mut expected: Vec<_> = expected.into_sums().map(|(key, tally)| (key, tally.stats().into_owned())).collect();
            let found = shared.into_parts().in_memory().into_iter().flat_map(Groups::into_sums);
            let mut found: Vec<_> = found.map(|(key, tally)| (key, tally.stats().into_owned())).collect();
            found.sort_by(|a, b| a.0.cmp(&b.0));
            expected.sort_by(|a, b| a.0.cmp(&b.0));
            prop_assert_eq!(found, expected);
        }
    }
}
