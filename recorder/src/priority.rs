//! The priority of the drain. It runs rarely and shortly, but when it is late events are lost: it goes first where that is
//! allowed. A new thread has the niceness of the one that makes it, so the right to raise it is needed by the main
//! thread alone, before it gives its rights up; anybody may lower it again.

use std::thread;

use anyhow::{Result, anyhow};

use crate::self_stats::counted;

/// Niceness of the drain.
const NICE: i32 = -15;

/// The main thread's niceness was raised; [`Raised::lower`] makes it what it was.
#[derive(Debug)]
pub(crate) struct Raised {
    before: i32,
}

impl Raised {
    /// Raises it, where that is allowed.
    pub(crate) fn new() -> Self {
        // SAFETY: no memory is touched; who = 0 is the calling thread. An error looks like a niceness of -1, and what is
        // set in the end is then no more than that.
        let before = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        set(NICE.min(before));
        Self { before }
    }

    /// Does what makes threads that are not to have it.
    ///
    /// # Errors
    /// When `work` fails or dies.
    pub(crate) fn without<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        let lowered = || {
            set(self.before);
            work()
        };
        thread::scope(|scope| scope.spawn(counted("scan", lowered)).join()).map_err(|_| anyhow!("a thread died"))?
    }

    /// For the threads that come now.
    pub(crate) fn lower(self) {
        set(self.before);
    }
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
