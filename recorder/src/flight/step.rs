//! What the encoder's thread tells the thread that keeps chunks, in order with the pieces.

use crossbeam_channel::Sender;
use systape_format::encode::EncodedSegment;
use systape_format::model::{ClockSample, Family};
use systape_format::segment::SegmentData;

/// Sums from the start of the recording until some moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    /// Events stored, by family.
    pub events: Vec<(Family, u64)>,
    /// Events lost, by family.
    pub lost: Vec<(Family, u64)>,
    /// Calls of the recorder itself.
    pub own_calls: u64,
}

/// What came between two sums.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SumsDelta {
    /// Events stored, by family.
    pub events: Vec<(Family, u64)>,
    /// Events lost.
    pub lost: Vec<(Family, u64)>,
    /// Calls of the recorder itself.
    pub own_calls: u64,
}

impl Sums {
    /// What came between `earlier` and this.
    pub(crate) fn since(&self, earlier: &Self) -> SumsDelta {
        let difference = |now: &[(Family, u64)], then: &[(Family, u64)]| {
            let before = |family| then.iter().find(|(of, _)| *of == family).map_or(0, |(_, count)| *count);
            let rest = now.iter().map(|&(family, count)| (family, count.saturating_sub(before(family))));
            rest.filter(|(_, count)| *count > 0).collect()
        };
        SumsDelta {
            events: difference(&self.events, &earlier.events),
            lost: difference(&self.lost, &earlier.lost),
            own_calls: self.own_calls.saturating_sub(earlier.own_calls),
        }
    }
}

/// The beginning of a chunk.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChunkMark {
    /// Time of its checkpoint.
    pub ts: u64,
    /// Clocks then.
    pub clock: ClockSample,
    /// Sums until then.
    pub sums: Sums,
}

/// Who asked for a tape gets its file name, or why there is none.
pub(crate) type Reply = Sender<Result<String, String>>;

/// A tape begins.
#[derive(Debug)]
pub(crate) struct Opening {
    /// Part of its name: what fired.
    pub slug: String,
    /// What fired, in words.
    pub what: String,
}

/// A tape ends.
#[derive(Debug)]
pub(crate) struct Closing {
    /// End of its window.
    pub window_close: u64,
    /// Sums until then.
    pub sums: Sums,
    /// Why it ends, in words.
    pub reason: String,
    /// Wait status of the command; -1 = there is none, or it runs.
    pub command_exit: i32,
    /// Who waits for it.
    pub replies: Vec<Reply>,
}

/// A message; `S` is a segment, before or after compression.
#[derive(Debug)]
pub(crate) enum Step<S> {
    /// The next piece is this chunk's checkpoint.
    Chunk(ChunkMark),
    /// What only a tape that begins with the last chunk needs: names of its sockets.
    Prologue(S),
    /// A tape begins, with rows that only it has.
    Open(Opening, S),
    /// The tape ends, with rows that only it has: what is still in flight.
    Close(Box<Closing>, S),
}

/// A step before compression.
pub(crate) type Raw = Step<Box<SegmentData>>;
/// A step after compression.
pub(crate) type Ready = Step<EncodedSegment>;

impl<S> Step<S> {
    /// Changes the kind of its segment.
    ///
    /// # Errors
    /// That of `change`.
    pub(crate) fn try_map<T, E>(self, change: impl FnOnce(S) -> Result<T, E>) -> Result<Step<T>, E> {
        Ok(match self {
            Self::Chunk(mark) => Step::Chunk(mark),
            Self::Prologue(segment) => Step::Prologue(change(segment)?),
            Self::Open(opening, segment) => Step::Open(opening, change(segment)?),
            Self::Close(closing, segment) => Step::Close(closing, change(segment)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_a_tape_are_differences() {
        let sums = |lost: &[(Family, u64)], own_calls| Sums { lost: lost.to_vec(), own_calls, ..Sums::default() };
        let earlier = sums(&[(Family::Sched, 5)], 10);
        let later = sums(&[(Family::Sched, 5), (Family::Net, 7)], 13);
        let expected = SumsDelta { events: vec![], lost: vec![(Family::Net, 7)], own_calls: 3 };
        assert_eq!(later.since(&earlier), expected);
        assert_eq!(later.since(&Sums::default()).lost, [(Family::Sched, 5), (Family::Net, 7)]);
    }
}
