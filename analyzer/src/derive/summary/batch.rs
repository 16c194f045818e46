//! The calls of a segment, brought together by the sum they belong to: with many tasks the sums do not fit into a CPU's cache,
//! and each is then touched once a segment, not once a call.

use super::stats::Stats;
use crate::table::group::Groups;

/// Sums that fit into the cache: with fewer than these, bringing calls together costs more than it gains.
pub(super) const FEW: usize = 512;

/// No number yet.
const NONE: u32 = u32::MAX;

/// Durations of calls that returned without an error, and where they belong. Its memory serves for the next segment.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Number here of each sum by its place in the sums; [`NONE`]: none of its calls was met.
    numbers: Vec<u32>,
    /// Place of each number.
    places: Vec<u32>,
    /// Calls of each number; then where those of it end in `sorted`.
    counts: Vec<u32>,
    /// Number and duration of each call.
    calls: Vec<(u32, u64)>,
    sorted: Vec<u64>,
}

impl Batch {
    /// Takes a call of the sum at `place`.
    #[inline]
    pub(super) fn add(&mut self, place: u32, dur: u64) {
        let at = place as usize;
        if at >= self.numbers.len() {
            self.numbers.resize(at + 1, NONE);
        }
        let mut number = self.numbers[at];
        if number == NONE {
            number = self.places.len() as u32;
            self.numbers[at] = number;
            self.places.push(place);
            self.counts.push(0);
        }
        self.counts[number as usize] += 1;
        self.calls.push((number, dur));
    }

    /// Adds all to `sums`, and is empty then.
    pub(super) fn give(&mut self, sums: &mut Groups<Stats>) {
        let mut end = 0;
        for count in &mut self.counts {
            // the calls of a number fill its part from its end
            end += *count;
            *count = end;
        }
        self.sorted.resize(self.calls.len(), 0);
        for (number, dur) in self.calls.drain(..).rev() {
            let at = &mut self.counts[number as usize];
            *at -= 1;
            self.sorted[*at as usize] = dur;
        }
        let ends = self.counts.iter().skip(1).copied().chain([end]);
        for ((place, from), to) in self.places.drain(..).zip(&self.counts).zip(ends) {
            sums.at(place).add_all_ok(&self.sorted[*from as usize..to as usize]);
            self.numbers[place as usize] = NONE;
        }
        self.counts.clear();
    }

    /// The sums are others now.
    pub(super) fn forget(&mut self) {
        self.numbers.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::group::value::Value;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_same_as_one_by_one(calls in prop::collection::vec((0_u64..40, 0_u64..5_000_000), 0..400), cut in 0_usize..400) {
            let (mut expected, mut sums) = (Groups::<Stats>::default(), Groups::<Stats>::default());
            let mut batch = Batch::default();
            for (at, (key, dur)) in calls.iter().enumerate() {
                expected.of(&[Value::Number(*key)]).add_ok(*dur);
                batch.add(sums.place(&[Value::Number(*key)]), *dur);
                if at == cut {
                    batch.give(&mut sums);
                }
            }
            batch.give(&mut sums);
            prop_assert_eq!(sums.iter().collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
        }
    }
}
