//! What every thread was doing at every moment: on a CPU, waiting for one, asleep, and in which call.
//!
//! [`tracker`] makes intervals from plain values: the states at the start, switches, wake-ups, process life, calls. It
//! needs no tape, keeps one [`Thread`] per thread and never pairs events across a loss. [`gaps`] says where losses are. Reports are [`Sink`]s.

pub mod decode;
pub mod feed;
pub mod gaps;
pub mod keys;
pub mod names;
pub mod targets;
pub mod tracker;

use std::sync::Arc;

use systape_format::model::{Call, Task};

use decode::Part;

/// Position of a thread in the tracker's table; used again after the thread's death.
pub type Slot = usize;

/// Why a thread waits for a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// It was woken.
    Woken,
    /// It was taken off a CPU although it wanted to go on.
    Preempted,
    /// It is new: made, and not woken for the first time yet.
    Made,
    /// It is new and was woken for the first time.
    New,
    /// It waited already when the recording began.
    Before,
}

/// What a thread is in, as far as the scheduler is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// On a CPU.
    Running,
    /// Waiting for a CPU.
    Waiting(Why),
    /// Asleep or stopped; the letter of ps(1): S D T t I P, Z or X while it waits to be reaped.
    Sleeping(u8),
    /// Not known: nothing was heard of it yet, or something was lost.
    Unknown,
}

impl State {
    /// How reports call it: RUN, RQ, the letter, `?`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "RUN",
            Self::Waiting(_) => "RQ",
            Self::Unknown => "?",
            Self::Sleeping(letter) => match letter {
                b'S' => "S",
                b'D' => "D",
                b'T' => "T",
                b't' => "t",
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
    /// Which.
    pub call: Call,
    /// What it is on, see [`names::Names`].
    pub file: u32,
    /// When it began.
    pub start: u64,
    /// It began at `start` or before.
    pub began_before: bool,
    /// Whether a report asked for this row.
    pub counted: bool,
    /// (position of the segment, row) it comes from; None: from a checkpoint.
    pub row: Option<(u32, u32)>,
}

/// Where a thread is in its program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Doing {
    /// Between calls: its own code, or a fault or stop it took there; the kernel's for a kernel thread.
    #[default]
    User,
    /// In a call.
    Call(InCall),
    /// Not known: calls were lost.
    Unknown,
}

/// A thread that woke another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waker {
    /// Which.
    pub slot: Slot,
    /// A network softirq did it at the end of the thread's own send.
    pub softirq: bool,
}

/// How an interval ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It came on this CPU.
    In(u32),
    /// It left its CPU; the letter of what it is in from then on, R while it only waits.
    Out(u8),
    /// It was woken, by a thread or (None) an interrupt.
    Woken(Option<Waker>),
    /// A call was entered or left: the state goes on.
    Step,
    /// Something was lost.
    Lost,
    /// It died.
    Died,
    /// The recording, or the part of it that is looked at, ended.
    Stop,
}

/// A stretch of time in which a thread's state and call did not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// What it was in.
    pub state: State,
    /// From when.
    pub from: u64,
    /// Until when.
    pub to: u64,
    /// It was in that state before `from` too, for how long is not known.
    pub began_before: bool,
    /// It was in that state before `from` too: the interval before ended with [`End::Step`].
    pub continued: bool,
    /// Why it ended.
    pub end: End,
    /// Where it was.
    pub doing: Doing,
    /// The CPU it ran on, or ran on last; CPU_NONE: not known.
    pub cpu: u32,
}

impl Interval {
    /// Its length, ns; a lower bound of the state's when [`Self::open`].
    pub fn len(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// Whether it takes no time.
    pub fn is_empty(&self) -> bool {
        self.to <= self.from
    }

    /// Whether the state lasted longer than is known.
    pub fn open(&self) -> bool {
        self.began_before || matches!(self.end, End::Lost | End::Stop)
    }
}

/// What is known of a thread now.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Who; the newest name.
    pub task: Arc<Task>,
    /// What it is in.
    pub state: State,
    /// Since when.
    pub since: u64,
    /// It was in `state` before `since` too.
    pub began_before: bool,
    /// The state goes on after a call was entered or left at `since`.
    pub continued: bool,
    /// The CPU it runs on or ran on last; CPU_NONE: not known.
    pub cpu: u32,
    /// Where it is.
    pub doing: Doing,
    /// When it last left a CPU; 0: not known.
    pub last_out: u64,
    /// When it last came on a CPU; 0: not known.
    pub last_in: u64,
    /// It may have left a CPU after `last_out`: something was lost.
    pub missed_out: bool,
    /// It may have come on one after `last_in`.
    pub missed_in: bool,
    /// It ended.
    pub dead: bool,
    /// Whether all that happens to it is recorded. Tasks that only appear beside recorded ones are not followed.
    pub followed: bool,
}

/// What takes the intervals of all threads, each thread's in order of time and without holes or overlaps.
pub trait Sink: Send {
    /// An interval of `threads[slot]` ended.
    fn interval(&mut self, threads: &[Thread], slot: Slot, interval: &Interval);
    /// `slot` left a CPU: what it was in until then was told. `row` is the switch's place in `part`.
    fn left(&mut self, _slot: Slot, _part: &Part, _row: u32) {}
    /// Whether what happens to this thread is in the answer: if not, it does not matter what was lost of it.
    fn concerns(&self, _thread: &Thread) -> bool {
        true
    }
    /// Whether what a thread did as `before` and what it did as `after` are told apart: an interval ends where it changed. None: as
    /// anything it may have become.
    fn parts(&self, _before: &Task, _after: Option<&Task>) -> bool {
        false
    }
    /// Everything before `ts` was told.
    fn reached(&mut self, _ts: u64) {}
    /// Whether nothing more is wanted.
    fn done(&self) -> bool {
        false
    }
}
