//! A signal as it was sent.

use std::sync::Arc;

use systape_format::model::{
    Ancestor, SIGNAL_INTERRUPT, SIGNAL_SENDER_KTHREAD, SignalEvent, SignalInfo, SignalKind, Task,
};

use crate::derive::processes::track;
use systape_abi::si_code as code;
use systape_events::calls::CallInfo;

/// A signal as it was sent, or taken where only that is known: the event with its indices resolved.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The event. For a death without a recorded signal only `ts` and `sig` are valid.
    pub event: SignalEvent,
    /// The task that ran.
    pub sender: Option<Arc<Task>>,
    /// The thread it was sent to.
    pub target: Arc<Task>,
    /// The call `sender` was in; None = it was in none, or that is not known.
    pub call: Option<Arc<CallInfo>>,
    /// Whether `sender` may have been in a call although `call` is None.
    pub call_unknown: bool,
    /// Processes above the sender, the parent first; moved here from `event`.
    pub sender_above: Arc<[Ancestor]>,
    /// Processes above the target.
    pub target_above: Arc<[Ancestor]>,
    /// Index of its segment and its own among the segment's signals; None = it was not recorded.
    pub place: Option<(usize, u32)>,
}

/// Arguments of calls are register values: an `int` is their low half.
fn int(arg: u64) -> i32 {
    arg as u32 as i32
}

impl Sent {
    /// Name of the call `sender` was in.
    pub fn call_name(&self) -> Option<&str> {
        self.call.as_deref().map(|call| call.name.as_str())
    }

    /// Whether it went to a thread of the sending process, the sending one included.
    pub fn to_own_process(&self) -> bool {
        self.sender.as_ref().is_some_and(|sender| track::key(sender) == track::key(&self.target))
    }

    /// Whether it went to the thread that sent it.
    pub(crate) fn to_itself(&self) -> bool {
        let same = |s: &Task| s.tid == self.target.tid && s.start_ns == self.target.start_ns;
        self.to_own_process() && self.sender.as_deref().is_some_and(same)
    }

    /// Whether only that it was taken is known, not when it was sent: of an imported log.
    pub fn only_taken(&self) -> bool {
        self.event.kind == SignalKind::Deliver
    }

    /// The task that ran, if it is a user's and sent the signal itself: not one that an interrupt interrupted.
    pub fn user(&self) -> Option<&Task> {
        let other = self.event.flags & (SIGNAL_INTERRUPT | SIGNAL_SENDER_KTHREAD) != 0;
        self.sender.as_deref().filter(|_| !other)
    }

    /// Whether a program sent it by any call of its own: its siginfo has the pid of the process that ran.
    pub(super) fn by_program(&self) -> bool {
        let event = &self.event;
        let said =
            event.info == SignalInfo::Siginfo && matches!(event.code, code::SI_USER | code::SI_TKILL | code::SI_QUEUE);
        let named = |sender: &Task| self.only_taken() || [sender.pid, sender.ns_pid].contains(&event.si_pid);
        said && self.sender.as_deref().is_some_and(named)
    }

    /// The target process group of a kill (0: the sender's own, 1: all processes); None = it went to one process.
    pub fn group(&self) -> Option<u32> {
        let pid = int(self.event.call_args[0]);
        (self.call_name() == Some("kill") && pid <= 0).then(|| pid.unsigned_abs())
    }
}
