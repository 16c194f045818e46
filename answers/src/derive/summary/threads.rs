//! Names and cgroups of the threads of a process. A row of the ledger is about a process; these facts decide whether it
//! may have calls of a selected thread, or has no others. Read only on demand.

use rustc_hash::{FxHashMap, FxHashSet};
use systape_format::Error;
use systape_format::model::{CGROUP_ALL_THREADS, Family, ProcessKind, Task};
use systape_format::reader::{Segment, Tape};

use systape_events::filter::Scope;
use systape_events::group::value::Value;
use systape_events::loss::loses;
use systape_events::scan::lost;

/// Facts about the threads of all processes.
#[derive(Debug, Default)]
pub struct ThreadFacts {
    /// Processes with a thread that passes `-t` and `--comm`; None = any may have one, because something was lost.
    asked: Option<FxHashSet<Value>>,
    /// Processes with a thread that does not pass, or did not once.
    others: FxHashSet<Value>,
    /// From here on every recorded thread is known: the tape has who lived then, and who began since.
    known_from: u64,
    /// Times at which each process moved to another cgroup. None: not known.
    moves: Option<FxHashMap<Value, Vec<u64>>>,
    /// Processes whose threads were in several cgroups.
    split: FxHashSet<Value>,
}

impl ThreadFacts {
    /// Reads all tables of tasks and their events.
    pub fn read(tape: &Tape, scope: &Scope<'_>) -> Self {
        let (mut asked, mut moves, mut split) = (FxHashSet::default(), FxHashMap::default(), FxHashSet::default());
        let (mut others, mut known_from) = (FxHashSet::default(), u64::MAX);
        let mut whole = tape.findings().is_empty() && !lost::any(tape, |gap| loses(gap, &[Family::Process]));
        let mut see = |task: &Task| {
            let of = if scope.thread(task) { &mut asked } else { &mut others };
            of.insert(process(task));
        };
        for at in 0..tape.checkpoints() {
            let Ok(checkpoint) = tape.checkpoint(at) else {
                whole = false;
                continue;
            };
            known_from = known_from.min(checkpoint.ts);
            let mut cgroups: FxHashMap<Value, u64> = FxHashMap::default();
            for task in &checkpoint.tasks {
                see(task);
                if *cgroups.entry(process(task)).or_insert(task.cgroup_id) != task.cgroup_id {
                    split.insert(process(task));
                }
            }
        }
        for at in 0..tape.segments().len() {
            whole &= segment(&tape.segment(at), &mut see, &mut moves, &mut split).is_ok();
        }
        if !whole {
            return Self::default();
        }
        Self { asked: Some(asked), others, known_from, moves: Some(moves), split }
    }

    /// Whether a thread of the process of `leader` passes `-t` and `--comm`.
    pub(crate) fn may_pass(&self, leader: &Task) -> bool {
        self.asked.as_ref().is_none_or(|asked| asked.contains(&process(leader)))
    }

    /// Whether every thread of the process of `leader` passes `-t` and `--comm`, and did whatever it was called: then so do all calls
    /// that ended at `first` or later.
    pub(crate) fn all_pass(&self, leader: &Task, first: u64) -> bool {
        let whose = process(leader);
        let passes = self.asked.as_ref().is_some_and(|asked| asked.contains(&whose));
        passes && !self.others.contains(&whose) && leader.upid != 0 && first >= self.known_from
    }

    /// Whether moves between cgroups are known.
    pub(crate) fn know_moves(&self) -> bool {
        self.moves.is_some()
    }

    /// Whether calls of that process that ended in [`from`, `to`] may have been made in several cgroups.
    pub fn moved(&self, leader: &Task, from: u64, to: u64) -> bool {
        let Some(moves) = &self.moves else { return true };
        let process = process(leader);
        let within = |ts: &u64| (from..=to).contains(ts);
        self.split.contains(&process) || moves.get(&process).is_some_and(|times| times.iter().any(within))
    }
}

fn process(task: &Task) -> Value {
    Value::process(task)
}

/// Reads one segment; an error if a required part is missing.
fn segment(
    segment: &Segment<'_>,
    see: &mut impl FnMut(&Task),
    moves: &mut FxHashMap<Value, Vec<u64>>,
    split: &mut FxHashSet<Value>,
) -> Result<(), Error> {
    let dict = segment.dict()?;
    dict.tasks.iter().for_each(see);
    for event in segment.processes(&dict)? {
        let Some(task) = dict.tasks.get(event.task as usize) else { continue };
        if event.kind != ProcessKind::Cgroup {
            continue;
        }
        if event.flags & CGROUP_ALL_THREADS == 0 && task.tid != task.pid {
            split.insert(process(task));
        }
        moves.entry(process(task)).or_default().push(event.ts);
    }
    Ok(())
}
