//! Rows that began before their segment.
//!
//! Calls are stored by end. A segment's *own* rows began inside its window. Its *carry* rows began earlier, perhaps
//! hours, and belong among the rows of earlier segments. The index has the least start among a segment's carry rows:
//! when time reaches it, they alone are read.

use std::ops::Range;

use systape_format::model::{Core, SegmentInfo};
use systape_format::reader::Tape;

/// Which rows of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// The calls that began in its window, and all other events.
    Own,
    /// The calls that began before it.
    Carry,
}

impl Rows {
    /// The calls among the rows of a segment.
    pub fn of(self, core: &Core) -> Range<usize> {
        match self {
            Self::Own => core.carry_rows..core.call.len(),
            Self::Carry => 0..core.carry_rows,
        }
    }
}

/// Least start among a segment's carry rows, which begin before all its other rows. None: the tape has no index.
pub fn carry_start(info: &SegmentInfo) -> Option<u64> {
    [info.carry_start_min, info.start_min].into_iter().find(|start| *start != 0)
}

/// Start of the earliest event in the segment at `next` and later ones, apart from carry rows; u64::MAX: there is none.
pub fn frontier(tape: &Tape, next: Option<usize>) -> u64 {
    // a dict that cannot be read is told of when its turn comes; until then the least end of its rows must do
    next.map_or(u64::MAX, |at| tape.segment(at).dict().map_or(tape.segments()[at].end_min, |dict| dict.window_start))
}

/// The plan of which segments' carry rows must be read before a time.
#[derive(Clone, Debug)]
pub struct CarryPlan {
    /// (least start of its carry rows, segment), descending: the next one is last.
    pending: Vec<(u64, usize)>,
}

impl CarryPlan {
    /// `segments`: (index, least start of its carry rows) of those that have any.
    pub fn new(segments: impl IntoIterator<Item = (usize, u64)>) -> Self {
        let mut pending: Vec<_> = segments.into_iter().map(|(at, start)| (start, at)).collect();
        pending.sort_unstable_by(|a, b| b.cmp(a));
        Self { pending }
    }

    /// The plan for the segments at these indices; without an index they may have begun at any time.
    pub fn of(tape: &Tape, segments: &[usize]) -> Self {
        let infos = segments.iter().map(|at| (*at, &tape.segments()[*at]));
        Self::new(infos.filter(|(_, info)| info.carry_rows > 0).map(|(at, info)| (at, carry_start(info).unwrap_or(0))))
    }

    /// The segments with carry rows that began before `frontier`, each returned once.
    pub fn due(&mut self, frontier: u64) -> Vec<usize> {
        let mut due = Vec::new();
        while let Some((start, at)) = self.pending.last().copied() {
            if start >= frontier {
                break;
            }
            self.pending.pop();
            due.push(at);
        }
        due.sort_unstable();
        due
    }
}
