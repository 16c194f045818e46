//! What came of a signal.

use systape_format::model::{SIGNAL_BLOCKED, SIGNAL_HANDLED, SIGNAL_IGNORED, SignalEvent};

use super::missing::Lost;
use crate::processes::Ending;
use systape_abi::signo::{SIGKILL, SIGSTOP};

/// [`SignalEvent::result`]: queued.
pub const DELIVERED: u8 = 0;
/// [`SignalEvent::result`]: the target ignores it, or is beyond signals already.
pub const IGNORED: u8 = 1;
/// [`SignalEvent::result`]: one like it was waiting, so this one was dropped.
pub const ALREADY_PENDING: u8 = 2;
/// [`SignalEvent::result`]: no room in the queue, and the sender was told so.
pub const OVERFLOW: u8 = 3;
/// [`SignalEvent::result`]: no room for the siginfo; the signal itself was queued.
pub const INFO_LOST: u8 = 4;

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

/// What the target did about signals of that number when it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Nothing: the kernel's default.
    Default,
    /// It has a handler.
    Handler,
    /// It ignores them.
    Ignore,
}

impl Disposition {
    /// At `event`. No one can handle or ignore SIGKILL and SIGSTOP.
    pub fn of(event: &SignalEvent) -> Self {
        match event.flags {
            _ if unstoppable(event) => Self::Default,
            flags if flags & SIGNAL_IGNORED != 0 => Self::Ignore,
            flags if flags & SIGNAL_HANDLED != 0 => Self::Handler,
            _ => Self::Default,
        }
    }

    /// Its name in JSON and CSV.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Explains {
    /// There was a handler when it was sent: only if the target took the default action all the same (SA_RESETHAND, exec).
    IfTaken,
    /// It was blocked: it ended the target once that was unblocked.
    Later,
    /// Nothing was in its way.
    AtOnce,
}

/// How well `event` explains that its target died of this signal; None = it cannot have been it: ignored, not queued, or one like it was
/// already pending.
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
    /// When.
    pub ts: u64,
    /// Its handler; 0 = default action, 1 = ignore.
    pub handler: u64,
    /// Events of such signals are missing in between: it may have been another one that was taken then, and this one before.
    pub at_most: bool,
}

/// Whether a signal is what ended its target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cause {
    /// It is not.
    #[default]
    No,
    /// It is.
    Yes,
    /// Of those that were seen it is the one, but these were lost between it and the end.
    Maybe(Lost),
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// When a thread of the target took it; None = that was not seen.
    pub taken: Option<Taken>,
    /// How the target's process ended, mostly afterwards (a signal may come to one that is not reaped yet); None = it did not, or that
    /// is not known.
    pub end: Option<Ending>,
    /// It would be known if the process had ended.
    pub followed: bool,
    /// Whether this signal is what ended it.
    pub cause: Cause,
    /// It stopped the process.
    pub stopped: bool,
}
