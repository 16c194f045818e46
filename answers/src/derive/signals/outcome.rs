//! The outcome of a signal.

use systape_format::model::{SIGNAL_BLOCKED, SIGNAL_HANDLED, SIGNAL_IGNORED, SignalEvent};

use super::missing::Lost;
use crate::derive::processes::Ending;
use systape_abi::signo::{SIGKILL, SIGSTOP};

/// [`SignalEvent::result`]: queued.
pub(crate) const DELIVERED: u8 = 0;
/// [`SignalEvent::result`]: the target ignores it, or takes no signals any more.
pub const IGNORED: u8 = 1;
/// [`SignalEvent::result`]: the same signal was pending, so this one was dropped.
pub const ALREADY_PENDING: u8 = 2;
/// [`SignalEvent::result`]: the queue was full, and the sender got an error.
pub const OVERFLOW: u8 = 3;
/// [`SignalEvent::result`]: the siginfo was dropped; the signal itself was queued.
pub(crate) const INFO_LOST: u8 = 4;

/// The name of a result in JSON and CSV.
pub fn result_name(result: u8) -> &'static str {
    match result {
        DELIVERED => "delivered",
        IGNORED => "ignored",
        ALREADY_PENDING => "already-pending",
        OVERFLOW => "overflow",
        INFO_LOST => "info-lost",
        _ => "unknown",
    }
}

/// The target's disposition for that signal when it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// The kernel's default action.
    Default,
    /// The target has a handler.
    Handler,
    /// The target ignores them.
    Ignore,
}

impl Disposition {
    /// The disposition at `event`. SIGKILL and SIGSTOP cannot be handled or ignored.
    pub fn of(event: &SignalEvent) -> Self {
        match event.flags {
            _ if unstoppable(event) => Self::Default,
            flags if flags & SIGNAL_IGNORED != 0 => Self::Ignore,
            flags if flags & SIGNAL_HANDLED != 0 => Self::Handler,
            _ => Self::Default,
        }
    }

    /// Name of the outcome in JSON and CSV.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Handler => "handler",
            Self::Ignore => "ignore",
        }
    }
}

fn unstoppable(event: &SignalEvent) -> bool {
    matches!(event.sig, SIGKILL | SIGSTOP)
}

/// Whether the thread it was sent to blocked it then.
pub fn blocked(event: &SignalEvent) -> bool {
    event.flags & SIGNAL_BLOCKED != 0 && !unstoppable(event)
}

/// Whether it was queued.
pub fn queued(event: &SignalEvent) -> bool {
    matches!(event.result, DELIVERED | INFO_LOST)
}

/// How well a signal explains that its target died of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Explains {
    /// The target had a handler when it was sent: possible only if the target took the default action nevertheless
    /// (SA_RESETHAND, exec).
    IfTaken,
    /// The signal was blocked: possible once it was unblocked.
    Later,
    /// Neither handled nor blocked.
    AtOnce,
}

/// How well `event` explains that its target died of this signal; None = impossible: ignored, not queued, or the same
/// signal was already pending.
pub fn explains(event: &SignalEvent) -> Option<Explains> {
    match Disposition::of(event) {
        _ if !queued(event) => None,
        Disposition::Ignore => None,
        Disposition::Handler => Some(Explains::IfTaken),
        Disposition::Default if blocked(event) => Some(Explains::Later),
        Disposition::Default => Some(Explains::AtOnce),
    }
}

/// The target took it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Time when it was taken.
    pub ts: u64,
    /// Address of the handler; 0 = default action, 1 = ignore.
    pub handler: u64,
    /// Events of such signals are missing in between: perhaps another one was taken then, and this one before.
    pub at_most: bool,
}

/// Whether a signal is what ended its target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndedTarget {
    /// No, something else ended it.
    #[default]
    No,
    /// Yes, it ended the target.
    Yes,
    /// Likely this one of the recorded signals, but these were lost between it and the end.
    Maybe(Lost),
}

/// Outcome of a signal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// When a thread of the target took it; None = not recorded.
    pub taken: Option<Taken>,
    /// How the target's process ended, mostly afterwards (a signal may reach a process that is not reaped yet); None =
    /// it did not, or not known.
    pub end: Option<Ending>,
    /// Whether the end of the process would be known.
    pub followed: bool,
    /// Whether this signal ended it.
    pub cause: EndedTarget,
    /// Whether it stopped the process.
    pub stopped: bool,
}
