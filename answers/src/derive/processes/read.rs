//! Feeds [`Processes`] from a tape.

use systape_format::header::BlockKind;
use systape_format::model::{Family, Gap};
use systape_format::reader::Tape;

use super::Processes;
use systape_events::loss::loses;
use systape_events::scan::{Scan, lost};

/// The processes of `tape`. Parts that cannot be read are added to `findings`: processes may be missing then.
pub fn read(tape: &Tape, findings: &mut Vec<String>) -> Processes {
    let mut processes = Processes::new(tape.session().window_open);
    checkpoint(tape, 0, true, &mut processes, findings);
    let coverage = Scan::all(tape).walk(
        "events of process life",
        |segment, dict| segment.processes(dict),
        |_, dict, events| {
            dict.tasks.iter().for_each(|task| {
                processes.see(task);
            });
            for event in &events {
                processes.event(event, &dict.tasks);
            }
        },
    );
    findings.extend(coverage.sentences());
    // only where an exec was lost does a later checkpoint know what the events do not
    if lost(tape) {
        (1..tape.checkpoints()).for_each(|at| checkpoint(tape, at, false, &mut processes, findings));
    }
    processes.finish()
}

/// Adds the checkpoint `at` of `tape`; `first`: its tasks existed when the recording began.
pub(super) fn checkpoint(tape: &Tape, at: usize, first: bool, processes: &mut Processes, findings: &mut Vec<String>) {
    if at >= tape.checkpoints() {
        return;
    }
    match tape.checkpoint(at) {
        Ok(checkpoint) => processes.checkpoint(&checkpoint, first),
        Err(error) => findings.push(format!("checkpoint {at}: {error}")),
    }
}

/// Whether events of process life are missing anywhere, regardless of filters: one may be an end that is not on the
/// tape.
pub fn lost(tape: &Tape) -> bool {
    lost::any(tape, |gap| loses(gap, &[Family::Process]))
}

/// The times in which they are missing.
pub fn gaps(tape: &Tape) -> Vec<Gap> {
    let gaps = |at: usize| tape.segment(at).gaps().unwrap_or_default();
    (0..tape.segments().len())
        .filter(|at| tape.segment(*at).has(BlockKind::Gaps))
        .flat_map(gaps)
        .filter(|gap| loses(gap, &[Family::Process]))
        .collect()
}

/// Whether one of these gaps may have an event that `pid` had in `from` to `to`.
pub fn lost_between(gaps: &[Gap], pid: u32, from: u64, to: u64) -> bool {
    let missing =
        |gap: &Gap| (gap.pid == 0 || gap.pid == pid) && (gap.last == 0 || (gap.last >= from && gap.first <= to));
    gaps.iter().any(missing)
}
