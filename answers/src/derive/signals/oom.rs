//! Victims of the OOM killer.
//!
//! The kernel first sends the SIGKILL and then marks the victim (`__oom_kill_process`, mm/oom_kill.c). Processes that
//! share the victim's memory get a SIGKILL of their own afterwards, without a mark. The task that ran out of memory
//! does all of it.

use rustc_hash::FxHashMap;
use systape_format::model::{OomMemory, Task};

use crate::derive::processes::track::key;

/// A mark and its SIGKILL are tens of microseconds apart; a machine without memory may take longer.
pub(crate) const APART: u64 = 1_000_000_000;

/// The OOM killer marked a victim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Time of the mark.
    pub ts: u64,
    /// A thread of the victim.
    pub victim: Task,
    /// The task that ran out of memory; None = not known.
    pub short: Option<Task>,
    /// The victim's memory.
    pub memory: OomMemory,
}

/// All marks of a tape.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    all: Vec<Mark>,
    /// Victim → its marks.
    by_victim: FxHashMap<u64, Vec<usize>>,
    /// Task that ran out → its marks.
    by_short: FxHashMap<u64, Vec<usize>>,
}

impl Marks {
    /// Adds a mark.
    pub fn push(&mut self, mark: Mark) {
        let at = self.all.len();
        self.by_victim.entry(key(&mark.victim)).or_default().push(at);
        if let Some(short) = &mark.short {
            self.by_short.entry(key(short)).or_default().push(at);
        }
        self.all.push(mark);
    }

    /// The mark that explains a SIGKILL sent to `target` at `ts`: it follows soon.
    pub(crate) fn of_victim(&self, target: &Task, ts: u64) -> Option<&Mark> {
        self.find(&self.by_victim, target, |mark| mark.ts >= ts && mark.ts - ts <= APART)
    }

    /// The mark that `sender` made of another process about the time when it sent a SIGKILL to `target`.
    pub fn of_other(&self, sender: &Task, target: &Task, ts: u64) -> Option<&Mark> {
        let other = |mark: &Mark| key(&mark.victim) != key(target);
        self.find(&self.by_short, sender, |mark| other(mark) && mark.ts.abs_diff(ts) <= APART)
    }

    fn find(&self, by: &FxHashMap<u64, Vec<usize>>, task: &Task, fits: impl Fn(&Mark) -> bool) -> Option<&Mark> {
        by.get(&key(task))?.iter().map(|at| &self.all[*at]).find(|mark| fits(mark))
    }
}
