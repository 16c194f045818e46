//! A signal with all its facts.

use systape_format::model::Task;

use super::oom::Mark;
use super::outcome::Outcome;
use super::sent::Sent;
use super::via::{Actor, Via};
use crate::derive::processes::Ending;

/// One line of the report.
#[derive(Clone, Debug)]
pub struct SignalLine {
    /// The signal as sent.
    pub sent: Sent,
    /// Way that it was sent; [`Via::Unknown`] and the like when only its effect was recorded.
    pub via: Via,
    /// Outcome of the signal.
    pub outcome: Outcome,
    /// The OOM killer's choice behind it.
    pub mark: Option<Mark>,
    /// Number of its act, from 1: signals sent to several processes by one act share it.
    pub act: u32,
    /// The process died of it, but the signal itself was not recorded.
    pub unseen: Option<Ending>,
}

impl SignalLine {
    /// When the target took it; None: that was not recorded.
    pub fn taken_at(&self) -> Option<u64> {
        let only = self.sent.only_taken().then_some(self.sent.event.ts);
        only.or(self.outcome.taken.map(|taken| taken.ts))
    }

    /// Sender of the signal; None = none (a timer, the kernel), or not known.
    pub fn sender(&self) -> Option<&Task> {
        match self.via.actor() {
            Actor::Sender => self.sent.sender.as_deref(),
            Actor::User => self.sent.user(),
            // only who runs sends what says that a program sent it
            Actor::Nobody if self.sent.call_unknown && self.sent.by_program() => self.sent.user(),
            Actor::Nobody => None,
        }
    }
}
