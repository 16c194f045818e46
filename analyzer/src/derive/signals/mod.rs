//! Signals: sender, target, way, and outcome.
//!
//! [`track`] takes plain values in the order of the tape and keeps the selected ones; [`via`] derives from all facts of
//! a signal how it was sent; [`act`] groups those of one act. The ends of processes come from [`crate::derive::processes`].

pub(crate) mod act;
#[cfg(test)]
mod exercise;
pub(crate) mod missing;
pub(crate) mod oom;
pub(crate) mod outcome;
pub(crate) mod pending;
pub(crate) mod record;
mod sent;
pub(crate) mod track;
pub(crate) mod via;

use systape_abi::signo;

pub(crate) use missing::Missing;
pub(crate) use outcome::{Disposition, EndedTarget};
pub(crate) use record::SignalLine;
pub(crate) use track::{SignalChoice, Tracker};
pub(crate) use via::Via;

/// Whether `sig` is one of those that mostly end no process, whose loss has a cause of its own (GapCause::Everyday).
/// The BPF side divides them in the same way (signals.bpf.h); the other signals end a target that does not handle them.
pub(crate) fn everyday(sig: u32) -> bool {
    matches!(sig, 14 | 17 | 18 | 23 | 26..=29 | 32..)
}

/// Whether the default action of `sig` is to stop.
pub(crate) fn stops(sig: u32) -> bool {
    (signo::SIGSTOP..=signo::SIGTTOU).contains(&sig)
}

/// Whether the default action of `sig` is to end the process.
pub(crate) fn ends(sig: u32) -> bool {
    use signo::{SIGCHLD, SIGCONT, SIGURG, SIGWINCH};
    !stops(sig) && !matches!(sig, 0 | SIGCHLD | SIGCONT | SIGURG | SIGWINCH)
}
