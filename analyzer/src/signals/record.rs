//! A signal with everything that is known of it.

use systape_format::model::Task;

use super::oom::Mark;
use super::outcome::Outcome;
use super::sent::Sent;
use super::via::{Actor, Via};
use crate::processes::Ending;

/// One line of the report.
#[derive(Clone, Debug)]
pub struct Record {
    /// What was sent.
    pub sent: Sent,
    /// How; [`Via::Unknown`] and the like when only its effect was seen.
    pub via: Via,
    /// What came of it.
    pub outcome: Outcome,
    /// The OOM killer's choice behind it.
    pub mark: Option<Mark>,
    /// Number of the act it belongs to, from 1: several processes signalled at one go share it.
    pub act: u32,
    /// The process ended so, but no signal was seen that did it.
    pub unseen: Option<Ending>,
}

impl Record {
    /// Who sent it; None = nobody (a timer, the kernel by itself), or not known.
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
