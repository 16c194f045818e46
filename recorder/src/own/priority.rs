//! The priority of the drain. It runs rarely and briefly, but a late drain loses events: it gets a high priority if
//! allowed. A new thread inherits its parent's niceness, so only the main thread needs the right to raise it, before it
//! gives up its rights. Lowering it again needs no right.

use std::thread;

use anyhow::{Result, anyhow};

use crate::own::cpu_time::counted;

/// Niceness of the drain.
const NICE: i32 = -15;
/// Niceness while programs are loaded, which takes a third of a second of CPU time: beside 32 threads that never rest, in the session
/// of `record` and so in its share (sched_autogroup), it took 7 s.
const LOADING: i32 = -10;

/// The main thread's niceness was raised; [`Raised::lower`] restores it.
#[derive(Debug)]
pub(crate) struct Raised {
    before: i32,
}

impl Raised {
    /// Raises it for the drain, where that is allowed.
    pub(crate) fn new() -> Self {
        Self::to(NICE)
    }

    /// Raises it while programs are loaded, where that is allowed.
    pub(crate) fn while_loading() -> Self {
        Self::to(LOADING)
    }

    fn to(nice: i32) -> Self {
        // SAFETY: no memory is touched; who = 0 is the calling thread. An error looks like a niceness of -1, and what is
        // set in the end is then no more than that.
        let before = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        set(nice.min(before));
        Self { before }
    }

    /// Runs `work`, which makes threads without the raised priority.
    ///
    /// # Errors
    /// When `work` fails or panics.
    pub(crate) fn without<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        let lowered = || {
            set(self.before);
            work()
        };
        thread::scope(|scope| scope.spawn(counted("scan", lowered)).join()).map_err(|_| anyhow!("a thread died"))?
    }

    /// Restores it for the threads made from now on.
    pub(crate) fn lower(self) {
        set(self.before);
    }
}

/// Has this thread run as soon as it is due, before all that do not ask for that too (SCHED_FIFO), where it is allowed. Threads that it makes do not.
pub(crate) fn run_when_due() {
    let param = libc::sched_param { sched_priority: 1 };
    // SAFETY: param is valid; who = 0 is the calling thread. Without the right nothing changes.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const param) };
    // timers that may be late are put together with others, and a look would come with what these wake
    // SAFETY: numbers only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// Raises the priority of this thread as that of the drain, where it is allowed.
pub(crate) fn raise_own() {
    set(NICE);
}

impl Default for Raised {
    fn default() -> Self {
        Self::new()
    }
}

fn set(nice: i32) {
    // SAFETY: no memory is touched; who = 0 is the calling thread. Without the right nothing changes.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
}
