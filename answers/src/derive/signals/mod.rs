//! Signals: sender, target, way, and outcome.
//!
//! [`track`] takes plain values in the order of the tape and keeps the selected ones; [`via`] derives from all facts of
//! a signal how it was sent; [`act`] groups those of one act. The ends of processes come from [`crate::derive::processes`].

pub mod act;
#[cfg(test)]
mod exercise;
pub mod missing;
pub mod oom;
pub mod outcome;
pub mod pending;
pub mod record;
mod sent;
pub mod track;
pub mod via;

use systape_abi::signo;

pub use missing::Missing;
pub use outcome::{Disposition, EndedTarget};
pub use record::SignalLine;
pub use track::{SignalChoice, Tracker};
pub use via::Via;

/// Whether `sig` is one of those that mostly end no process, whose loss has a cause of its own (GapCause::Everyday).
/// The BPF side divides them in the same way (signals.bpf.h); the other signals end a target that does not handle them.
pub fn everyday(sig: u32) -> bool {
    matches!(sig, 14 | 17 | 18 | 23 | 26..=29 | 32..)
}

/// Whether the default action of `sig` is to stop.
pub fn stops(sig: u32) -> bool {
    (signo::SIGSTOP..=signo::SIGTTOU).contains(&sig)
}

/// Whether the default action of `sig` is to end the process.
pub fn ends(sig: u32) -> bool {
    use signo::{SIGCHLD, SIGCONT, SIGURG, SIGWINCH};
    !stops(sig) && !matches!(sig, 0 | SIGCHLD | SIGCONT | SIGURG | SIGWINCH)
}
