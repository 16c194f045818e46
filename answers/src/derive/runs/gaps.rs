//! Where scheduler events and calls are missing.

use rustc_hash::FxHashMap;
use systape_format::header::BlockKind;
use systape_format::model::{Family, GapCause};
use systape_format::reader::{Segment, Tape};

use systape_events::loss::{is_loss, loses};
use systape_events::scan::lost::{self, Lost};
use systape_events::values::order::InOrder as _;

/// If more processes than this have counted calls in one segment, the calls count as anybody's, because each process is
/// tested for every event.
const PROCESSES: usize = 64;

/// Times in which calls are missing. For those in the ledger the process and the durations are known: a thread may have
/// been in such a call for that long before its end.
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
    let mut lost = lost::gaps(tape, |_, gap| loses(gap, &[Family::Syscall]) && !(known && gap.ledger));
    lost.extend(counted.unwrap_or_default());
    lost.order_by_key(|lost| lost.first);
    lost
}

/// Processes whose missing calls may have begun before `at` and ended later; 0 = any process. For those in the ledger
/// the durations are known, see [`of_calls`].
pub fn of_longer_calls(tape: &Tape, at: u64) -> Vec<u32> {
    // calls that were open at an abnormal end are on no tape
    let anybody = tape.end().is_none() || !tape.findings().is_empty();
    let later = |lost: &Lost| lost.last >= at;
    let lost = lost::gaps(tape, |_, gap| loses(gap, &[Family::Syscall]) && !gap.ledger);
    let pids = lost.iter().filter(|lost| later(lost)).map(|lost| lost.pid);
    pids.chain(anybody.then_some(0)).collect()
}

/// Times and processes of the calls that the ledger of `segment` counts, except those left out by request.
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
    Ok(vec![Lost::any(first, last)])
}

/// The losses of `family` and of unknown families, regardless of a report's filters, because a state depends on events
/// of other CPUs and processes too. In order of their first times. Not switches that no program saw: of these the switch that
/// follows on their CPU says whose state they touch.
pub(crate) fn of_family(tape: &Tape, family: Family) -> Vec<Lost> {
    let unseen = |cause| family == Family::Sched && cause == GapCause::Hidden;
    let of_it = |of| of == family || of == Family::Unknown;
    lost::gaps(tape, |_, gap| is_loss(gap.cause) && of_it(gap.family) && !unseen(gap.cause))
}

/// The losses at the current moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Active {
    lost: Vec<Lost>,
}

impl Active {
    /// `lost` begins.
    pub(crate) fn begin(&mut self, lost: Lost) {
        self.lost.push(lost);
    }

    /// Drops those that ended before `ts`.
    pub(crate) fn end_before(&mut self, ts: u64) {
        self.lost.retain(|lost| lost.last >= ts);
    }

    /// Whether there is no loss now.
    pub(crate) fn none(&self) -> bool {
        self.lost.is_empty()
    }

    /// Whether events of a thread of `pid` off the CPU may be missing.
    pub(crate) fn anywhere(&self, pid: u32) -> bool {
        self.lost.iter().any(|lost| lost.pid == 0 || lost.pid == pid)
    }

    /// Whether events of a thread of `pid` that runs on `cpu` may be missing.
    pub(crate) fn on(&self, cpu: u32, pid: u32) -> bool {
        self.lost.iter().any(|lost| (lost.pid == 0 || lost.pid == pid) && lost.cpu.is_none_or(|c| c == cpu))
    }
}
