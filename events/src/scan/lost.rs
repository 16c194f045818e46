//! Times in which events are missing from a tape: known before any is read, or found on the way.

use systape_format::header::BlockKind;
use systape_format::model::{CPU_NONE, Gap, GapCause};
use systape_format::reader::{Segment, Tape};

use super::later::HasTime;

/// Kind of the missing events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingKind {
    /// Other events than calls.
    Events,
    /// Events of process life: what tasks are called, who began and ended.
    Life,
    /// Calls of tasks.
    Calls,
}

/// A time span in which events are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Time of the first.
    pub first: u64,
    /// Time of the last.
    pub last: u64,
    /// CPU of the events; None: any.
    pub cpu: Option<u32>,
    /// Process of the events; 0: any.
    pub pid: u32,
}

impl HasTime for (MissingKind, Lost) {
    fn key(&self) -> (u64, u8) {
        (self.1.first, 0)
    }
}

impl Lost {
    /// Events of any process on any CPU.
    pub fn any(first: u64, last: u64) -> Self {
        Self { first, last, cpu: None, pid: 0 }
    }

    fn of(gap: &Gap, window: (u64, u64)) -> Self {
        // each CPU has its ring; other causes are not tied to where an event happened
        let cpu = (gap.cause == GapCause::RingFull && gap.cpu != CPU_NONE).then_some(gap.cpu);
        // a loss at an unknown time is told with the segment that follows it
        let (first, last) = if gap.last == 0 { window } else { (gap.first, gap.last) };
        Self { first, last, cpu, pid: gap.pid }
    }
}

/// The time of a segment, as far as known.
pub fn window(segment: &Segment<'_>) -> (u64, u64) {
    let info = segment.info();
    segment.dict().map_or((info.start_min, info.end_max), |dict| (dict.window_start, dict.window_end))
}

/// Whether there is a gap that `wanted` picks, or gaps that cannot be read: one of them may be it.
pub fn any(tape: &Tape, wanted: impl Fn(&Gap) -> bool) -> bool {
    !gaps(tape, |_, gap| wanted(gap)).is_empty()
}

/// The losses of the gaps that `wanted` selects by gap and index of the segment; in order of their first times.
pub fn gaps(tape: &Tape, wanted: impl Fn(usize, &Gap) -> bool) -> Vec<Lost> {
    let mut lost = Vec::new();
    for at in 0..tape.segments().len() {
        let segment = tape.segment(at);
        if !segment.has(BlockKind::Gaps) {
            continue;
        }
        let window = window(&segment);
        match segment.gaps() {
            Ok(gaps) => lost.extend(gaps.iter().filter(|gap| wanted(at, gap)).map(|gap| Lost::of(gap, window))),
            Err(_) => lost.push(Lost::any(window.0, window.1)),
        }
    }
    lost.sort_by_key(|lost| lost.first);
    lost
}
