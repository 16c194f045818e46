//! Which calls and block I/Os are kept when there are more than a profile may have: the longest, so that it shows the whole time.

use std::cmp::Reverse;

use systape_answers::derive::block::files::Files;
use systape_answers::derive::block::io::Io;
use systape_events::families;
use systape_events::load::OpenCalls;
use systape_events::question::Question;
use systape_events::scan::Scan;
use systape_format::Error;
use systape_format::model::{CallState, Core, Dict, Family, Time};
use systape_format::reader::Segment;

/// Number of the segment of calls that no segment has: open when the recording ended abnormally.
pub(super) const OPEN: u32 = u32::MAX;

/// The order in which events are kept: the longest first, of equal ones the first on the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EventRank {
    /// ns, as far as they are known.
    length: Reverse<u64>,
    /// Place of the segment in the tape, or [`OPEN`].
    segment: u32,
    /// Not a call but a block I/O.
    block: bool,
    row: u32,
}

impl EventRank {
    /// That of a call.
    pub(super) fn call(length: u64, segment: u32, row: u32) -> Self {
        Self { length: Reverse(length), segment, block: false, row }
    }

    /// That of a block I/O.
    pub(super) fn block(io: &Io<'_>, segment: u32, row: u32) -> Self {
        let length = Reverse(io.whole().or(io.latency()).unwrap_or(0));
        Self { length, segment, block: true, row }
    }

    /// ns, as far as they are known.
    pub(super) fn length(&self) -> u64 {
        self.length.0
    }
}

/// The first of many values in their order; memory is for twice as many as are kept.
#[derive(Debug)]
pub(super) struct FirstValues<T> {
    most: usize,
    values: Vec<T>,
    left: u64,
}

impl<T: Ord> FirstValues<T> {
    /// A list that keeps at most `most` values.
    pub(super) fn of(most: usize) -> Self {
        Self { most, values: Vec::new(), left: 0 }
    }

    /// Adds one value.
    pub(super) fn add(&mut self, value: T) {
        self.values.push(value);
        if self.values.len() >= self.most.saturating_mul(2).max(1024) {
            self.prune();
        }
    }

    fn prune(&mut self) {
        if self.values.len() <= self.most {
            return;
        }
        self.left += (self.values.len() - self.most) as u64;
        if let Some(last) = self.most.checked_sub(1) {
            self.values.select_nth_unstable(last);
        }
        self.values.truncate(self.most);
    }

    /// The first, in order, and how many more there were.
    pub(super) fn finish(mut self) -> (Vec<T>, u64) {
        self.prune();
        self.values.sort_unstable();
        (self.values, self.left)
    }
}

/// Which events are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeptEvents {
    /// Every event that passes.
    All,
    /// Events up to this one in their order.
    Until(EventRank),
    /// Not a single event.
    Nothing,
}

impl KeptEvents {
    /// The `most` that are kept of those that pass the filters of `question`.
    pub(super) fn of(question: &Question<'_>, most: usize) -> Self {
        let scan = Scan::candidates(question);
        let rows: u64 = scan.segments().iter().map(|at| u64::from(question.tape.segments()[*at].rows)).sum();
        if rows + OPEN_AT_MOST <= most as u64 && families::recorded(question.tape, Family::Block) == Some(false) {
            return Self::All;
        }
        let mut first = FirstValues::of(most);
        // what cannot be read here cannot be read afterwards, and is told then
        let _ = scan.parts(
            |at, segment, _| ranks(question, at as u32, segment).unwrap_or_default(),
            |ranks: Vec<EventRank>| ranks.into_iter().for_each(|rank| first.add(rank)),
        );
        if let Some(open) = OpenCalls::read(question.tape) {
            passing(question, OPEN, &open.dict, &open.core, &open.time, |row| {
                first.add(EventRank::call(open.core.dur[row], OPEN, row as u32));
            });
        }
        match first.finish() {
            (_, 0) => Self::All,
            (kept, _) => kept.last().map_or(Self::Nothing, |last| Self::Until(*last)),
        }
    }

    /// Whether `rank` is among them.
    pub(super) fn has(&self, rank: &EventRank) -> bool {
        match self {
            Self::All => true,
            Self::Until(last) => rank <= last,
            Self::Nothing => false,
        }
    }
}

/// More threads than a machine has: each may have one open call.
const OPEN_AT_MOST: u64 = 1 << 16;

/// Passes the rows of calls that pass the filters of `question`; `number`: the segment's.
pub(super) fn passing(
    question: &Question<'_>,
    number: u32,
    dict: &Dict,
    core: &Core,
    time: &Time,
    mut each: impl FnMut(usize),
) {
    let filter = question.scope.segment(dict, number);
    for row in 0..core.call.len() {
        // no one called the child's side of a clone
        if core.state[row] != CallState::CloneChild && filter.core(core, row) && filter.time(time, row) {
            each(row);
        }
    }
}

/// The ranks of what passes in a segment.
fn ranks(question: &Question<'_>, at: u32, segment: &Segment<'_>) -> Result<Vec<EventRank>, Error> {
    let dict = segment.dict()?;
    let mut ranks = Vec::new();
    let blocks = segment.blocks(&dict).unwrap_or_default();
    let files = Files::read(segment, &dict, &blocks).unwrap_or_default();
    for (row, io) in blocks.iter().enumerate() {
        let io = Io::new(io, &dict).with(&files);
        if io.passes(&question.scope) {
            ranks.push(EventRank::block(&io, at, row as u32));
        }
    }
    if segment.info().rows > 0 {
        let core = segment.core(&dict)?;
        let time = segment.time(&dict, &core)?;
        passing(question, segment.info().segment, &dict, &core, &time, |row| {
            ranks.push(EventRank::call(core.dur[row], at, row as u32));
        });
    }
    Ok(ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_are_kept_and_of_equal_ones_the_first() {
        let ranks = [(5, 1), (9, 2), (5, 0), (1, 3)].map(|(length, row)| EventRank::call(length, 0, row));
        let mut first = FirstValues::of(2);
        ranks.iter().for_each(|rank| first.add(*rank));
        let (kept, left) = first.finish();
        assert_eq!((kept.as_slice(), left), ([ranks[1], ranks[2]].as_slice(), 2));
        let until = KeptEvents::Until(kept[1]);
        assert_eq!(ranks.map(|rank| until.has(&rank)), [false, true, true, false]);
    }

    #[test]
    fn many_values_take_the_memory_of_few() {
        let mut first = FirstValues::of(10);
        (0..100_000_u32).for_each(|value| {
            first.add(value.wrapping_mul(2_654_435_761) % 1_000_003);
            assert!(first.values.len() <= 1024);
        });
        let (kept, left) = first.finish();
        assert_eq!((kept.len(), left), (10, 99_990));
        let mut none = FirstValues::of(0);
        none.add(1);
        assert_eq!(none.finish(), (Vec::new(), 1));
    }
}
