//! The threads and processes of a log, as lines tell of them.

use std::collections::HashMap;
use std::sync::Arc;

use systape_abi::Abi;
use systape_format::model::{
    FORK_SHARES_FILES, FORK_SHARES_FS, FORK_THREAD, Family, RecordedFamilies, Task, UID_UNKNOWN,
};

use super::survey::{Birth, LogSurvey};

/// Most threads that are known at once.
const MOST: usize = 1 << 18;
/// Bits of clone (include/uapi/linux/sched.h).
const CLONE_FS: u64 = 0x200;
const CLONE_FILES: u64 = 0x400;
const CLONE_THREAD: u64 = 0x1_0000;
/// Most bytes of a thread's name.
const MAX_COMM: usize = 15;
/// Most processes that are remembered after their ends.
const MOST_GONE: usize = 1 << 16;

/// Families that a log has.
pub(super) const FAMILIES: [Family; 3] = [Family::Syscall, Family::Process, Family::Signal];

/// A thread that lives.
#[derive(Clone, Debug)]
pub(super) struct LogThread {
    /// What a tape says of it.
    pub task: Arc<Task>,
    /// The ABI of its calls.
    pub abi: Abi,
    /// The line of the call that made it.
    birth: Option<u64>,
}

/// A thread that was made.
#[derive(Clone, Debug)]
pub(super) struct MadeThread {
    /// Time at which it was made.
    pub ts: u64,
    /// The new thread.
    pub child: Arc<Task>,
    /// The thread that made it.
    pub parent: Arc<Task>,
    /// Bits of a fork.
    pub flags: u32,
}

/// All threads.
#[derive(Debug)]
pub(super) struct LogThreads {
    live: HashMap<u32, LogThread>,
    /// Leaders of processes that ended, by their numbers: their parents hear of them afterwards.
    gone: HashMap<u32, Arc<Task>>,
    /// Living threads of each process, by upid.
    counts: HashMap<u32, u32>,
    next: u32,
    native: Abi,
    /// Numbers of threads of which nothing says whose they are.
    pub strangers: u64,
}

impl LogThreads {
    /// An empty list, for programs of `native`.
    pub(super) fn new(native: Abi) -> Self {
        Self { live: HashMap::new(), gone: HashMap::new(), counts: HashMap::new(), next: 1, native, strangers: 0 }
    }

    /// Makes a process that no call of the log made.
    pub(super) fn unborn(&mut self, tid: u32) -> Arc<Task> {
        let number = self.number();
        let task = Task {
            tid,
            pid: tid,
            uid: UID_UNKNOWN,
            utid: number,
            upid: number,
            recorded: RecordedFamilies::of(&FAMILIES),
            ..Task::default()
        };
        self.enter(task, self.native, None)
    }

    /// The thread `tid`, of which a line at `ts`, the `line`th, came; made if it is new. None: there are too many.
    pub(super) fn of(
        &mut self,
        survey: &mut LogSurvey,
        tid: u32,
        ts: u64,
        line: u64,
    ) -> Option<(LogThread, Option<MadeThread>)> {
        if let Some(known) = self.live.get(&tid) {
            return Some((known.clone(), None));
        }
        if self.live.len() >= MOST {
            return None;
        }
        // the latest that began before this line; of an earlier one the log has no lines
        let born = survey.births.get_mut(&tid).and_then(|births| {
            let before = births.partition_point(|birth| birth.line < line);
            births.drain(..before).next_back()
        });
        let parent = born.and_then(|birth| self.live.get(&birth.parent).cloned());
        let (Some(birth), Some(parent)) = (born, parent) else {
            self.strangers += 1;
            self.unborn(tid);
            return self.live.get(&tid).cloned().map(|thread| (thread, None));
        };
        let made = self.made(tid, ts, birth, &parent);
        self.live.get(&tid).cloned().map(|thread| (thread, Some(made)))
    }

    fn made(&mut self, tid: u32, ts: u64, birth: Birth, parent: &LogThread) -> MadeThread {
        let number = self.number();
        let is_thread = birth.flags & CLONE_THREAD != 0;
        let ts = ts.min(birth.done);
        let task = Task {
            tid,
            pid: if is_thread { parent.task.pid } else { tid },
            start_ns: ts,
            leader_start_ns: if is_thread { parent.task.leader_start_ns } else { ts },
            utid: number,
            upid: if is_thread { parent.task.upid } else { number },
            ppid: if is_thread { parent.task.ppid } else { parent.task.pid },
            ..(*parent.task).clone()
        };
        let bit = |set: bool, bit: u32| if set { bit } else { 0 };
        let flags = bit(is_thread, FORK_THREAD)
            | bit(birth.flags & CLONE_FILES != 0, FORK_SHARES_FILES)
            | bit(birth.flags & CLONE_FS != 0, FORK_SHARES_FS);
        let child = self.enter(task, parent.abi, Some(birth.line));
        MadeThread { ts, child, parent: Arc::clone(&parent.task), flags }
    }

    fn number(&mut self) -> u32 {
        let number = self.next;
        self.next = self.next.saturating_add(1);
        number
    }

    fn enter(&mut self, task: Task, abi: Abi, birth: Option<u64>) -> Arc<Task> {
        *self.counts.entry(task.upid).or_default() += 1;
        let task = Arc::new(task);
        self.gone.remove(&task.tid);
        self.live.insert(task.tid, LogThread { task: Arc::clone(&task), abi, birth });
        task
    }

    /// A call that began on `line` made `tid`: an older thread of that number is gone, although no line said so.
    pub(super) fn is_made(&mut self, tid: u32, line: u64) {
        let older = |thread: &LogThread| match thread.birth {
            Some(birth) => birth < line,
            None => false,
        };
        if self.live.get(&tid).is_some_and(older) {
            self.ended(tid);
        }
    }

    /// The thread ended: what it was, and whether it was the last of its process.
    pub(super) fn ended(&mut self, tid: u32) -> Option<(Arc<Task>, bool)> {
        let thread = self.live.remove(&tid)?;
        let count = self.counts.get_mut(&thread.task.upid)?;
        *count = count.saturating_sub(1);
        let last = *count == 0;
        if last {
            self.counts.remove(&thread.task.upid);
        }
        if thread.task.tid == thread.task.pid {
            if self.gone.len() >= MOST_GONE {
                self.gone.clear();
            }
            self.gone.insert(tid, Arc::clone(&thread.task));
        }
        Some((thread.task, last))
    }

    /// The leader of process `pid`, which lives or ended not long ago; None: the log has none of that number.
    pub(super) fn leader(&self, pid: u32) -> Option<Arc<Task>> {
        let lives = self.live.get(&pid).map(|thread| &thread.task);
        lives.or_else(|| self.gone.get(&pid)).filter(|task| task.pid == pid).cloned()
    }

    /// Thread `by` goes on under the number `tid`, whose thread is gone: that of its process.
    pub(super) fn took_over(&mut self, tid: u32, by: u32) {
        if tid == by {
            return;
        }
        let Some((gone, _)) = self.ended(tid) else { return };
        if let Some((task, _)) = self.ended(by) {
            let birth = None;
            let task = Task { comm: task.comm.clone(), ..(*gone).clone() };
            self.enter(task, self.native, birth);
        } else {
            self.enter((*gone).clone(), self.native, None);
        }
    }

    /// Names a thread; its new entry, if the name is new.
    pub(super) fn named(&mut self, tid: u32, comm: &[u8]) -> Option<Arc<Task>> {
        let comm = &comm[..comm.len().min(MAX_COMM)];
        let thread = self.live.get_mut(&tid).filter(|thread| thread.task.comm != comm)?;
        thread.task = Arc::new(Task { comm: comm.to_vec(), ..(*thread.task).clone() });
        Some(Arc::clone(&thread.task))
    }

    /// A thread's programs use this many bits from now on.
    pub(super) fn bits(&mut self, tid: u32, bits: u8) {
        if let Some(thread) = self.live.get_mut(&tid) {
            thread.abi = match bits {
                32 => Abi::I386,
                super::body::X32 => Abi::X32,
                _ => self.native,
            };
        }
    }
}

/// The name that a thread has after it executed `path`.
pub(super) fn comm_of_program(path: &[u8]) -> &[u8] {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    &name[..name.len().min(MAX_COMM)]
}
