//! Processes of a tape that comes in parts. Memory grows with the processes that live, not with those that lived.

use systape_format::model::{CPU_NONE, Family, Gap, GapCause, ProcessKind};
use systape_format::reader::Tape;

use super::Processes;
use super::read;
use systape_events::scan::Scan;

/// Most processes that are kept; the oldest are left out then.
const MOST: usize = 1 << 18;
/// Ended processes that wait until they are left out together.
const FEW: usize = 1024;
/// Most losses that are kept; of more, any time may be one.
const MOST_GAPS: usize = 1024;

/// The processes of a tape up to now.
#[derive(Debug, Default)]
pub struct Living {
    /// Processes that live, and those that ended in the last part.
    pub processes: Processes,
    /// Losses of events of process life.
    pub gaps: Vec<Gap>,
    /// Some were left out because there were too many.
    pub crowded: bool,
    /// The first checkpoint was read.
    begun: bool,
    /// How many ended and are still there.
    ended: usize,
    /// The end of the last part.
    until: u64,
}

/// What a part of a tape says of processes, by their places among all, in the order of the tape.
#[derive(Debug, Default)]
pub struct LifeFacts {
    /// Programs that began: the process, and the place among its programs.
    pub programs: Vec<(usize, usize)>,
    /// Processes that ended.
    pub ended: Vec<usize>,
}

impl Living {
    /// Adds a part; what cannot be read is added to `findings`.
    pub fn add(&mut self, tape: &Tape, findings: &mut Vec<String>) -> LifeFacts {
        if !self.begun && self.processes.all.is_empty() {
            self.processes = Processes::new(tape.session().window_open);
        }
        self.forget();
        self.gaps.extend(read::gaps(tape));
        if self.gaps.len() > MOST_GAPS {
            self.gaps.drain(1..);
            self.gaps.iter_mut().for_each(|gap| (gap.last, gap.pid) = (0, 0));
        }
        // only where an exec was lost does a later checkpoint know what the events do not
        if tape.checkpoints() > 0 && (!self.begun || !self.gaps.is_empty()) {
            read::checkpoint(tape, 0, !self.begun, &mut self.processes, findings);
            self.processes.order();
            self.begun = true;
        }
        let mut came = LifeFacts::default();
        let coverage = Scan::all(tape).walk(
            "events of process life",
            |segment, dict| segment.processes(dict),
            |_, dict, events| {
                for task in &dict.tasks {
                    self.processes.see(task);
                }
                for event in &events {
                    let Some(at) = self.processes.event(event, &dict.tasks) else { continue };
                    match event.kind {
                        ProcessKind::Exec => came.programs.push((at, self.processes.all[at].images.len() - 1)),
                        ProcessKind::Exit if event.group_dead => came.ended.push(at),
                        _ => {}
                    }
                }
            },
        );
        self.ended += came.ended.len();
        findings.extend(coverage.sentences());
        let end = tape.segments().iter().map(|segment| segment.end_max).max();
        if !findings.is_empty() || !tape.findings().is_empty() || !tape.misses().is_empty() {
            self.gaps.push(torn(self.until, end.unwrap_or(u64::MAX)));
        }
        self.until = self.until.max(end.unwrap_or(0));
        came
    }

    /// Leaves out what no later part is about: ended processes, and programs before the last.
    fn forget(&mut self) {
        let all = &mut self.processes.all;
        for process in all.iter_mut() {
            process.images.drain(..process.images.len().saturating_sub(1));
            process.names.drain(..process.names.len().saturating_sub(1));
        }
        let crowded = all.len() > MOST;
        if self.ended > FEW.max(all.len() / 2) || crowded {
            self.processes.forget(|_, process| process.end().is_some());
            self.ended = 0;
        }
        let oldest = self.processes.all.len().saturating_sub(MOST / 2);
        if self.processes.all.len() > MOST {
            self.crowded = true;
            self.processes.forget(|at, _| at < oldest);
        }
    }

    /// Whether an event of process life that `pid` had in `from` to `to` may be missing.
    pub fn lost(&self, pid: u32, from: u64, to: u64) -> bool {
        read::lost_between(&self.gaps, pid, from, to)
    }

    /// Whether an event of process life is missing anywhere.
    pub fn lossy(&self) -> bool {
        !self.gaps.is_empty()
    }
}

/// What is unreadable between these times may have been events of any process.
fn torn(first: u64, last: u64) -> Gap {
    let (cause, family) = (GapCause::Damaged, Family::Process);
    Gap { cause, family, cpu: CPU_NONE, count: 0, first, last, pid: 0, ledger: false }
}
