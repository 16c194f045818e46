//! The threads of a profile, with what happened in them.

use rustc_hash::FxHashMap;
use systape_format::model::Task;

use super::markers::MarkerRow;

/// A look at what a thread ran.
#[derive(Clone, Copy, Debug)]
pub(super) struct StackSample {
    /// Time of the sample.
    pub ts: u64,
    /// Number of the stack.
    pub stack: u32,
}

/// Time that a thread was off the CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct OffCpuWait {
    /// Number of the thread.
    pub thread: u32,
    /// Time at which it began.
    pub ts: u64,
    /// How long it was, ns.
    pub ns: u64,
    /// Number of the stack.
    pub stack: u32,
}

/// A thread.
#[derive(Debug)]
pub(super) struct ProfiledThread {
    /// Newest entry of the thread.
    pub task: Task,
    /// What it ran.
    pub samples: Vec<StackSample>,
    /// What happened in it.
    pub markers: Vec<MarkerRow>,
}

/// What identifies the thread of `task`: on old tapes nothing but its number does.
fn identity(task: &Task) -> u64 {
    if task.utid == 0 { 1 << 32 | u64::from(task.tid) } else { u64::from(task.utid) }
}

/// All threads in which something happened, in order of the first.
#[derive(Debug, Default)]
pub(super) struct ProfiledThreads {
    /// The threads.
    pub all: Vec<ProfiledThread>,
    numbers: FxHashMap<u64, u32>,
    /// When threads ended, those too in which nothing happened so far.
    ends: FxHashMap<u64, u64>,
}

impl ProfiledThreads {
    /// Number of the thread of `task`, which is an entry no older than those before.
    pub(super) fn number(&mut self, task: &Task) -> u32 {
        let number = *self.numbers.entry(identity(task)).or_insert(self.all.len() as u32);
        match self.all.get_mut(number as usize) {
            Some(thread) if thread.task.comm == task.comm => {}
            Some(thread) => thread.task = task.clone(),
            None => {
                let task = task.clone();
                self.all.push(ProfiledThread { task, samples: Vec::new(), markers: Vec::new() });
            }
        }
        number
    }

    /// The thread of `task` ended at `ts`.
    pub(super) fn ended(&mut self, task: &Task, ts: u64) {
        self.ends.insert(identity(task), ts);
    }

    /// When the thread of `task` ended; None: it did not, or nobody knows.
    pub(super) fn end(&self, task: &Task) -> Option<u64> {
        self.ends.get(&identity(task)).copied()
    }
}
