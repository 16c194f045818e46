//! The critical path of a thread: what its time went to, across the threads that it waited for.
//!
//! [`log`] writes down the stretches of every thread's time, each in one state, and what ended its sleeps. [`walk`] goes backwards from the
//! end of the asked-for time: a sleep that another thread ended is replaced by what that thread did meanwhile, and so on. The parts
//! tile the time exactly. [`doing`] says in which calls the threads were in these parts, [`behind`] who had the CPUs that they waited for.

pub mod behind;
pub mod disk;
pub mod doing;
pub mod log;
pub mod walk;

use super::runs::State;

/// Index of a thread in a [`log::Log`].
pub type Id = u32;

/// Why a stretch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A thread woke it; `softirq`: by the network softirq at the end of its own send.
    Woken {
        /// The waker.
        by: Id,
        /// See there.
        softirq: bool,
    },
    /// An interrupt woke it: a timer, a device, or the sender of a packet that is not known.
    Interrupt,
    /// The thread got a CPU, left one, died, or something was lost.
    Changed,
    /// The interval goes on at the end of the recording, or of the time asked for.
    GoesOn,
}

/// Time of a thread in one state, CLOCK_MONOTONIC ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The time when it begins.
    pub from: u64,
    /// The time when it ends.
    pub to: u64,
    /// The state.
    pub state: State,
    /// The CPU it ran on, or got after waiting; CPU_NONE: not known.
    pub cpu: u32,
    /// Why it ended.
    pub ended: Ended,
    /// Which of the thread's entries says who it is.
    pub task: u32,
}
