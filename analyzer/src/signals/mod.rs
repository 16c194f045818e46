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
mod sent;
pub mod track;
pub mod via;

use systape_abi::signo;

pub use missing::Missing;
pub use outcome::{Cause, Disposition};
pub use record::Record;
pub use track::{Choice, Tracker};
pub use via::Via;

/// Whether `sig` is of those that mostly end nobody, whose loss has a cause of its own (GapCause::Everyday). As the BPF side divides them
/// (signals.bpf.h); the rest of them end their target unless it cares for them.
pub fn everyday(sig: u32) -> bool {
    matches!(sig, 14 | 17 | 18 | 23 | 26..=29 | 32..)
}

/// Whether a process that does nothing about `sig` stops.
pub fn stops(sig: u32) -> bool {
    (signo::SIGSTOP..=signo::SIGTTOU).contains(&sig)
}

/// Whether a process that does nothing about `sig` ends.
pub fn ends(sig: u32) -> bool {
    use signo::{SIGCHLD, SIGCONT, SIGURG, SIGWINCH};
    !stops(sig) && !matches!(sig, 0 | SIGCHLD | SIGCONT | SIGURG | SIGWINCH)
}
