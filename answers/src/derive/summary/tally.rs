//! The calls of one key in little memory while they are few: most of the keys of a question with very many have a call or two.

use std::borrow::Cow;

use smallvec::SmallVec;
use systape_format::model::{CallState, LedgerRow};

use super::stats::Stats;
use systape_events::group::Add;
use systape_events::values::spill::{Stored, put_number, take_u64};

/// Most calls that are kept one by one.
const FEW: usize = 8;

/// A call.
#[derive(Clone, Copy, Debug)]
pub(super) struct One {
    /// Duration as in its row, ns.
    pub(super) dur: u64,
    /// Error as in its row.
    pub(super) errno: u16,
    /// What its row says.
    pub(super) state: CallState,
    /// exit and exit_group.
    pub(super) timeless: bool,
}

impl One {
    /// A call that ran from enter to return without an error.
    pub(super) fn ok(dur: u64) -> Self {
        Self { dur, errno: 0, state: CallState::Complete, timeless: false }
    }

    /// What it adds to [`Stats::total`].
    fn time(self) -> u128 {
        match self.state {
            CallState::Complete => self.dur.into(),
            CallState::InFlight | CallState::Killed | CallState::NoReturn | CallState::BeganBefore
                if !self.timeless =>
            {
                self.dur.into()
            }
            _ => 0,
        }
    }

    pub(super) fn give(self, stats: &mut Stats) {
        stats.add(self.state, self.dur, self.errno, self.timeless);
    }
}

/// The calls of one key: themselves, or their sums.
#[derive(Clone, Debug)]
pub enum Tally {
    /// A few calls, in any order.
    Few(Calls),
    /// Sums of more calls, or of some that were counted.
    Many(Box<Stats>),
}

/// A few calls; one needs no memory of its own.
#[derive(Clone, Debug, Default)]
pub struct Calls(SmallVec<[One; 1]>);

impl Default for Tally {
    fn default() -> Self {
        Self::Few(Calls::default())
    }
}

impl Tally {
    /// Reads what adding `durs` would change; the result means nothing.
    pub(super) fn peek(&self, durs: &[u32]) -> u64 {
        match self {
            Self::Few(calls) => calls.0.len() as u64,
            Self::Many(stats) => stats.peek(durs),
        }
    }

    /// Adds a call.
    pub(super) fn add_one(&mut self, one: One) {
        match self {
            Self::Few(calls) if calls.0.len() < FEW => calls.0.push(one),
            _ => one.give(self.sums()),
        }
    }

    /// Adds calls that returned without an error, at most 2^32.
    pub(super) fn add_all_ok(&mut self, durs: &[u32]) {
        match self {
            Self::Few(calls) if calls.0.len() + durs.len() <= FEW => {
                calls.0.extend(durs.iter().map(|dur| One::ok((*dur).into())));
            }
            _ => self.sums().add_all_ok(durs),
        }
    }

    /// Adds sums.
    pub(super) fn merge(&mut self, stats: &Stats) {
        self.sums().merge(stats);
    }

    /// Counts the calls of a row of the ledger.
    pub(super) fn add_counted(&mut self, row: &LedgerRow, timeless: bool) {
        self.sums().add_counted(row, timeless);
    }

    /// All calls.
    pub fn calls(&self) -> u64 {
        match self {
            Self::Few(calls) => calls.0.len() as u64,
            Self::Many(stats) => stats.calls,
        }
    }

    /// Time in all of them, as [`Stats::total`].
    pub fn total(&self) -> u128 {
        match self {
            Self::Few(calls) => calls.0.iter().map(|one| one.time()).sum(),
            Self::Many(stats) => stats.total(),
        }
    }

    /// The sums.
    pub fn stats(&self) -> Cow<'_, Stats> {
        match self {
            Self::Few(calls) => Cow::Owned(calls.stats()),
            Self::Many(stats) => Cow::Borrowed(stats),
        }
    }

    /// The sums, which are kept from now on.
    fn sums(&mut self) -> &mut Stats {
        if let Self::Few(calls) = self {
            *self = Self::Many(Box::new(calls.stats()));
        }
        match self {
            Self::Many(stats) => stats,
            Self::Few(_) => unreachable!("sums are kept"),
        }
    }
}

impl Calls {
    fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        self.0.iter().for_each(|one| one.give(&mut stats));
        stats
    }
}

impl Add for Tally {
    fn add(&mut self, other: &Self) {
        match other {
            Self::Few(calls) => calls.0.iter().for_each(|one| self.add_one(*one)),
            Self::Many(stats) => self.merge(stats),
        }
    }
}

/// What stands before the sums of a tally, where others have the number of their calls.
const SUMS: u128 = FEW as u128 + 1;

impl Stored for Tally {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Few(Calls(calls)) => {
                put_number(calls.len() as u128, out);
                for One { dur, errno, state, timeless } in calls {
                    put_number((*dur).into(), out);
                    put_number((*errno).into(), out);
                    out.extend_from_slice(&[*state as u8, (*timeless).into()]);
                }
            }
            Self::Many(stats) => {
                put_number(SUMS, out);
                stats.put(out);
            }
        }
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let count = take_u64(from)?;
        if u128::from(count) == SUMS {
            return Stats::take(from).map(|stats| Self::Many(Box::new(stats)));
        }
        let one = |_| {
            let (dur, errno) = (take_u64(from)?, take_u64(from)?.try_into().ok()?);
            let ([state, timeless], rest) = from.split_first_chunk()?;
            *from = rest;
            let state = CallState::from_raw(*state)?;
            Some(One { dur, errno, state, timeless: *timeless != 0 })
        };
        Some(Self::Few(Calls((0..count).map(one).collect::<Option<_>>()?)))
    }

    fn heap(&self) -> usize {
        match self {
            Self::Few(Calls(calls)) if calls.spilled() => calls.capacity() * size_of::<One>(),
            Self::Few(_) => 0,
            Self::Many(stats) => size_of::<Stats>() + stats.heap(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn its_sums_are_those_of_the_calls(
            calls in prop::collection::vec((0_u64..9_000_000_000, 0_u16..3, 0_usize..4), 0..3 * FEW), cut in 0_usize..3 * FEW,
        ) {
            const STATES: [CallState; 4] =
                [CallState::Complete, CallState::InFlight, CallState::NoReturn, CallState::BeganBefore];
            let (mut expected, mut tallies) = (Stats::default(), [Tally::default(), Tally::default()]);
            for (at, (dur, errno, state)) in calls.iter().enumerate() {
                let one = One { dur: *dur, errno: *errno, state: STATES[*state], timeless: *state == 2 };
                one.give(&mut expected);
                tallies[usize::from(at < cut)].add_one(one);
            }
            for tally in &mut tallies {
                let mut bytes = Vec::new();
                tally.put(&mut bytes);
                *tally = Tally::take(&mut &*bytes).expect("what was put");
            }
            let [mut one, other] = tallies;
            one.add(&other);
            prop_assert_eq!((one.calls(), one.total()), (expected.calls, expected.total()));
            prop_assert_eq!(one.stats().into_owned(), expected);
        }
    }

    #[test]
    fn one_call_is_small() {
        assert!(size_of::<Tally>() <= 32, "{}", size_of::<Tally>());
    }
}
