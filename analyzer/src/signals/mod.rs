//! Who sent which signal to whom, by what way, and what came of it.
//!
//! [`track`] takes plain values in the order of the tape and keeps those that are asked for; [`via`] tells from all facts of one how
//! it was sent; [`act`] tells which were sent by one act. What a process ended with comes from [`crate::processes`].

pub mod act;
#[cfg(test)]
mod exercise;
pub mod missing;
pub mod oom;
pub mod outcome;
pub mod record;
pub mod track;
pub mod via;

pub use missing::Missing;
pub use outcome::{Cause, Disposition, Outcome};
pub use record::{Record, Sent};
pub use track::{Choice, Tracker};
pub use via::Via;

/// Numbers of signals, the same on x86 and arm64 (include/uapi/asm-generic/signal.h).
#[expect(missing_docs, reason = "the names say it")]
pub mod number {
    pub const SIGHUP: u32 = 1;
    pub const SIGINT: u32 = 2;
    pub const SIGQUIT: u32 = 3;
    pub const SIGILL: u32 = 4;
    pub const SIGTRAP: u32 = 5;
    pub const SIGABRT: u32 = 6;
    pub const SIGBUS: u32 = 7;
    pub const SIGFPE: u32 = 8;
    pub const SIGKILL: u32 = 9;
    pub const SIGSEGV: u32 = 11;
    pub const SIGPIPE: u32 = 13;
    pub const SIGALRM: u32 = 14;
    pub const SIGTERM: u32 = 15;
    pub const SIGCHLD: u32 = 17;
    pub const SIGCONT: u32 = 18;
    pub const SIGSTOP: u32 = 19;
    pub const SIGTSTP: u32 = 20;
    pub const SIGTTIN: u32 = 21;
    pub const SIGTTOU: u32 = 22;
    pub const SIGURG: u32 = 23;
    pub const SIGXCPU: u32 = 24;
    pub const SIGXFSZ: u32 = 25;
    pub const SIGVTALRM: u32 = 26;
    pub const SIGPROF: u32 = 27;
    pub const SIGWINCH: u32 = 28;
    pub const SIGIO: u32 = 29;
    pub const SIGSYS: u32 = 31;
}

/// Whether `sig` is of those that mostly end nobody, whose loss has a cause of its own (GapCause::Everyday). As the BPF side divides them
/// (signals.bpf.h); the rest of them end their target unless it cares for them.
pub fn everyday(sig: u32) -> bool {
    matches!(sig, 14 | 17 | 18 | 23 | 26..=29 | 32..)
}

/// Whether a process that does nothing about `sig` stops.
pub fn stops(sig: u32) -> bool {
    (number::SIGSTOP..=number::SIGTTOU).contains(&sig)
}

/// Whether a process that does nothing about `sig` ends.
pub fn ends(sig: u32) -> bool {
    use number::{SIGCHLD, SIGCONT, SIGURG, SIGWINCH};
    !stops(sig) && !matches!(sig, 0 | SIGCHLD | SIGCONT | SIGURG | SIGWINCH)
}
