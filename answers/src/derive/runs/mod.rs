//! State of every thread at every moment: on a CPU, waiting for one, asleep, and in which call.
//!
//! [`tracker`] makes intervals from plain values: the states at the start, switches, wake-ups, process life, calls. It
//! needs no tape, keeps one [`Thread`] per thread and never pairs events across a loss. [`gaps`] has the losses.
//! Reports are [`IntervalSink`]s.

pub mod decode;
pub mod feed;
pub mod gaps;
pub mod keys;
pub mod names;
pub mod queued;
pub mod rest;
pub mod targets;
pub mod tracker;

use std::sync::Arc;

use systape_format::model::{Call, Task};

use decode::Part;
use queued::CallsInTurn;

use systape_events::values::spill::Store;

/// What a thread is found by: without an id that is unique in the tape the number must do.
pub(crate) fn thread_key(task: &Task) -> u64 {
    if task.utid == 0 { 1 << 32 | u64::from(task.tid) } else { u64::from(task.utid) }
}

/// Index of a thread in the tracker's table; reused after the thread's death.
pub type Slot = usize;

/// Why a thread waits for a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// The thread was woken.
    Woken,
    /// The thread was preempted.
    Preempted,
    /// The thread is new: forked, and not woken for the first time yet.
    Made,
    /// The thread is new and was woken for the first time.
    New,
    /// The thread waited when the recording began.
    Before,
    /// The thread was throttled, and the quota let it run again.
    Unthrottled,
}

/// State of a thread for the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Running on a CPU.
    Running,
    /// Waiting for a CPU.
    Waiting(Why),
    /// Runnable, but a cgroup of it has used up its quota of CPU time for this period. Older tapes do not tell this from waiting for
    /// a CPU.
    Throttled,
    /// Asleep or stopped; the letter of ps(1): S D T t I P, Z or X while it waits to be reaped; F while the freezer of a
    /// control group holds it.
    Sleeping(u8),
    /// Not known: it had no event yet, or something was lost.
    Unknown,
}

impl State {
    /// Name of the state in reports: RUN, RQ, throttled, the letter, `?`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "RUN",
            Self::Waiting(_) => "RQ",
            Self::Throttled => "throttled",
            Self::Unknown => "?",
            Self::Sleeping(letter) => match letter {
                b'S' => "S",
                b'D' => "D",
                b'T' => "T",
                b't' => "t",
                b'F' => "F",
                b'I' => "I",
                b'P' => "P",
                b'Z' => "Z",
                b'X' => "X",
                _ => "?",
            },
        }
    }
}

/// A call a thread is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InCall {
    /// The call.
    pub call: Call,
    /// File of the call, see [`names::Names`].
    pub file: u32,
    /// When it began.
    pub start: u64,
    /// Whether it began at `start` or before.
    pub began_before: bool,
    /// Whether it passes the filters.
    pub counted: bool,
    /// (index of the segment, row); None: from a checkpoint.
    pub row: Option<(u32, u32)>,
}

/// The call of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Doing {
    /// Code in no call: in its own code, or in a fault or stop there; for a kernel thread in the kernel.
    #[default]
    User,
    /// Code in a call.
    Call(InCall),
    /// Not known: calls were lost.
    Unknown,
}

/// A thread that woke another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waker {
    /// The thread.
    pub slot: Slot,
    /// Whether it was by a network softirq at the end of the thread's own send.
    pub softirq: bool,
}

/// How an interval ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The thread got this CPU.
    In(u32),
    /// The thread left its CPU; the letter of its next state, R if it only waits.
    Out(u8),
    /// The thread was woken, by a thread or (None) an interrupt.
    Woken(Option<Waker>),
    /// The thread's cgroup got CPU time again: it waits for a CPU.
    Unthrottled,
    /// A call was entered or left; the state continues.
    Step,
    /// Something was lost.
    Lost,
    /// The thread died.
    Died,
    /// The recording, or the selected part of it, ended.
    Stop,
}

/// A stretch of time in which a thread's state and call did not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The state.
    pub state: State,
    /// Start of the interval.
    pub from: u64,
    /// End of the interval.
    pub to: u64,
    /// Whether it had that state before `from` too, for an unknown time.
    pub began_before: bool,
    /// Whether it had that state before `from` too: the interval before ended with [`End::Step`].
    pub continued: bool,
    /// Why it ended.
    pub end: End,
    /// The call.
    pub doing: Doing,
    /// The CPU it ran on, or ran on last; CPU_NONE: not known.
    pub cpu: u32,
}

impl Interval {
    /// Length of the interval, ns; a lower bound for the state's when [`Self::open`].
    pub fn len(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// Whether it has length 0.
    pub fn is_empty(&self) -> bool {
        self.to <= self.from
    }

    /// Whether the state lasted longer than known.
    pub fn open(&self) -> bool {
        self.began_before || matches!(self.end, End::Lost | End::Stop)
    }
}

/// The current state of a thread.
#[derive(Clone, Debug)]
pub struct Thread {
    /// The task, with its newest name.
    pub task: Arc<Task>,
    /// State of the thread.
    pub state: State,
    /// Start of the state.
    pub since: u64,
    /// Whether it had `state` before `since` too.
    pub began_before: bool,
    /// The state continues after a call was entered or left at `since`.
    pub continued: bool,
    /// The CPU it runs on or ran on last; CPU_NONE: not known.
    pub cpu: u32,
    /// Call of the thread.
    pub doing: Doing,
    /// When it last left a CPU; 0: not known.
    pub last_out: u64,
    /// When it last got a CPU; 0: not known.
    pub last_in: u64,
    /// Whether it may have left a CPU after `last_out`, because something was lost.
    pub missed_out: bool,
    /// Whether it may have got one after `last_in`.
    pub missed_in: bool,
    /// Whether it is dead.
    pub dead: bool,
    /// Whether all its events are recorded. Tasks that only appear beside recorded ones are not tracked.
    pub followed: bool,
}

/// Receives the intervals of all threads: each thread's in order of time, without holes or overlaps. Those of one thread on a CPU may come
/// later than others that end after them, but before what it wakes, and all before [`Self::passed`].
pub trait IntervalSink: Send {
    /// An interval of `threads[slot]` ended.
    fn interval(&mut self, threads: &[Thread], slot: Slot, interval: &Interval);
    /// Intervals of `threads[slot]` in which it was in its own code and in calls in turn.
    fn calls(&mut self, threads: &[Thread], slot: Slot, calls: &CallsInTurn<'_>) {
        calls.each(|interval| self.interval(threads, slot, interval));
    }
    /// `slot` left a CPU, after its interval was passed. `row` is the switch's index in `part`.
    fn left(&mut self, _slot: Slot, _part: &Part, _row: u32) {}
    /// Whether this thread is part of the answer: if not, its losses do not matter.
    fn concerns(&self, _thread: &Thread) -> bool {
        true
    }
    /// Whether an interval ends where a thread is known to have become `after`. Unlike [`Self::parts`] its time is known where that is not.
    fn steps(&self, _before: &Task, _after: &Task) -> bool {
        false
    }

    /// Whether what a thread did as `before` and what it did as `after` are told apart: an interval ends where it changed. None: as
    /// anything it may have become.
    fn parts(&self, _before: &Task, _after: Option<&Task>) -> bool {
        false
    }
    /// `number` stands for the file `name` from here on.
    fn file(&mut self, _number: u32, _name: &[u8]) {}
    /// Bytes of sums that it can put into a file; None: it cannot, or needs the names of files by their numbers.
    fn bytes(&self) -> Option<usize> {
        None
    }
    /// Puts them there: numbers of files so far have no names any more.
    fn spill(&mut self, _store: &Store) {}
    /// The intervals of all threads that ended so far were passed.
    fn passed(&mut self) {}
    /// Whether nothing more is needed.
    fn done(&self) -> bool {
        false
    }
}

/// Two sinks that are fed in one pass.
impl<A: IntervalSink, B: IntervalSink> IntervalSink for (A, B) {
    fn interval(&mut self, threads: &[Thread], slot: Slot, interval: &Interval) {
        self.0.interval(threads, slot, interval);
        self.1.interval(threads, slot, interval);
    }

    fn calls(&mut self, threads: &[Thread], slot: Slot, calls: &CallsInTurn<'_>) {
        self.0.calls(threads, slot, calls);
        self.1.calls(threads, slot, calls);
    }

    fn left(&mut self, slot: Slot, part: &Part, row: u32) {
        self.0.left(slot, part, row);
        self.1.left(slot, part, row);
    }

    fn concerns(&self, thread: &Thread) -> bool {
        self.0.concerns(thread) || self.1.concerns(thread)
    }

    fn steps(&self, before: &Task, after: &Task) -> bool {
        self.0.steps(before, after) || self.1.steps(before, after)
    }

    fn parts(&self, before: &Task, after: Option<&Task>) -> bool {
        self.0.parts(before, after) || self.1.parts(before, after)
    }

    fn file(&mut self, number: u32, name: &[u8]) {
        self.0.file(number, name);
        self.1.file(number, name);
    }

    fn passed(&mut self) {
        self.0.passed();
        self.1.passed();
    }

    fn done(&self) -> bool {
        self.0.done() && self.1.done()
    }
}
