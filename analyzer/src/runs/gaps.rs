//! Where scheduler events and calls are missing.

use rustc_hash::FxHashMap;
use systape_format::header::BlockKind;
use systape_format::model::{CPU_NONE, Family, Gap, GapCause};
use systape_format::reader::{Segment, Tape};

use crate::loss::{is_loss, loses};

/// A time in which events are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Time of the first.
    pub first: u64,
    /// Time of the last.
    pub last: u64,
    /// Where they happened; None: anywhere.
    pub cpu: Option<u32>,
    /// Whose; 0: anybody's.
    pub pid: u32,
}

impl Lost {
    fn of(gap: &Gap, window: (u64, u64)) -> Self {
        // each CPU has its ring; other causes are not tied to where an event happened
        let cpu = (gap.cause == GapCause::RingFull && gap.cpu != CPU_NONE).then_some(gap.cpu);
        // a loss at an unknown time is told with the segment that follows it
        let (first, last) = if gap.last == 0 { window } else { (gap.first, gap.last) };
        Self { first, last, cpu, pid: gap.pid }
    }
}

/// More processes than this with counted calls in one segment are told as all: each is looked at for every event.
const PROCESSES: usize = 64;

/// Where calls are missing. Of those in the ledger it is known whose they were and how long they took: a thread that was in one may have
/// been in it for that long before its end.
pub fn of_calls(tape: &Tape) -> Vec<Lost> {
    let counted: Option<Vec<Lost>> = (0..tape.segments().len())
        .map(|at| tape.segment(at))
        .filter(|segment| segment.has(BlockKind::Ledger))
        .try_fold(Vec::new(), |mut all, segment| {
            all.extend(counted(&segment).ok()?);
            Some(all)
        });
    // without the whole ledger its gaps must do
    let known = counted.is_some();
    let mut lost = of(tape, |gap| loses(gap, &[Family::Syscall]) && !(known && gap.ledger));
    lost.extend(counted.unwrap_or_default());
    lost.sort_by_key(|lost| lost.first);
    lost
}

/// Whose calls that are missing may have begun before `at` and ended later: processes, 0 = anybody's. Of those in the ledger it is known
/// how long they took, see [`of_calls`].
pub fn of_longer_calls(tape: &Tape, at: u64) -> Vec<u32> {
    // calls that were open at an abnormal end are on no tape
    let anybody = tape.end().is_none() || !tape.findings().is_empty();
    let later = |lost: &Lost| lost.last >= at;
    let lost = of(tape, |gap| loses(gap, &[Family::Syscall]) && !gap.ledger);
    let pids = lost.iter().filter(|lost| later(lost)).map(|lost| lost.pid);
    pids.chain(anybody.then_some(0)).collect()
}

/// Where the calls that the ledger of `segment` counts, and that `record` was not asked to leave out, were made.
fn counted(segment: &Segment<'_>) -> Result<Vec<Lost>, systape_format::Error> {
    let dict = segment.dict()?;
    let mut by_pid: FxHashMap<u32, Lost> = FxHashMap::default();
    for row in segment.ledger(&dict)? {
        if !row.reason.is_loss() {
            continue;
        }
        let pid = row.task.and_then(|task| dict.tasks.get(task as usize)).map_or(0, |task| task.pid);
        let first = row.first.saturating_sub(row.max);
        let lost = by_pid.entry(pid).or_insert(Lost { first, last: row.last, cpu: None, pid });
        (lost.first, lost.last) = (lost.first.min(first), lost.last.max(row.last));
    }
    if by_pid.len() <= PROCESSES {
        return Ok(by_pid.into_values().collect());
    }
    let first = by_pid.values().map(|lost| lost.first).min().unwrap_or(0);
    let last = by_pid.values().map(|lost| lost.last).max().unwrap_or(0);
    Ok(vec![Lost { first, last, cpu: None, pid: 0 }])
}

/// The losses of `family` and of events of no known family, whatever a report's filters say: a state comes from events
/// of other CPUs and processes too. In order of their first times.
pub fn of_family(tape: &Tape, family: Family) -> Vec<Lost> {
    of(tape, |gap| is_loss(gap.cause) && (gap.family == family || gap.family == Family::Unknown))
}

/// The losses that `wanted` picks, in order of their first times.
fn of(tape: &Tape, wanted: impl Fn(&Gap) -> bool) -> Vec<Lost> {
    let mut lost = Vec::new();
    for at in 0..tape.segments().len() {
        let segment = tape.segment(at);
        if !segment.has(BlockKind::Gaps) {
            continue;
        }
        let info = segment.info();
        let window = segment.dict().map_or((info.start_min, info.end_max), |dict| (dict.window_start, dict.window_end));
        match segment.gaps() {
            Ok(gaps) => lost.extend(gaps.iter().filter(|gap| wanted(gap)).map(|gap| Lost::of(gap, window))),
            Err(_) => lost.push(Lost { first: window.0, last: window.1, cpu: None, pid: 0 }),
        }
    }
    lost.sort_by_key(|lost| lost.first);
    lost
}

/// The losses that a moment lies in.
#[derive(Clone, Debug, Default)]
pub struct Active {
    lost: Vec<Lost>,
}

impl Active {
    /// `lost` begins.
    pub fn begin(&mut self, lost: Lost) {
        self.lost.push(lost);
    }

    /// Forgets those that ended before `ts`.
    pub fn end_before(&mut self, ts: u64) {
        self.lost.retain(|lost| lost.last >= ts);
    }

    /// Whether nothing is being lost.
    pub fn none(&self) -> bool {
        self.lost.is_empty()
    }

    /// Whether events of a thread of `pid` that is on no CPU may be missing.
    pub fn anywhere(&self, pid: u32) -> bool {
        self.lost.iter().any(|lost| lost.pid == 0 || lost.pid == pid)
    }

    /// Whether events of a thread of `pid` that runs on `cpu` may be missing.
    pub fn on(&self, cpu: u32, pid: u32) -> bool {
        self.lost.iter().any(|lost| (lost.pid == 0 || lost.pid == pid) && lost.cpu.is_none_or(|c| c == cpu))
    }
}
