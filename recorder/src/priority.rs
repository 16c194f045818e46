//! The priority of the drain. It runs rarely and briefly, but a late drain loses events: it gets a high priority if
//! allowed. A new thread inherits its parent's niceness, so only the main thread needs the right to raise it, before it
//! gives up its rights. Lowering it again needs no right.
//!
//! At the end all threads get one if that takes long: programs of the recorder's own session share the CPU time of the session with
//! it (sched_autogroup), and 64 that spin would leave it a hundredth.

use std::fs;
use std::thread;

use anyhow::{Result, anyhow};

use crate::self_stats::counted;

/// Niceness of the drain.
const NICE: i32 = -15;
/// Niceness of all threads at an end that takes long.
const HURRIED: i32 = -10;

/// The main thread's niceness was raised; [`Raised::lower`] restores it.
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
        may_hurry();
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

impl Default for Raised {
    fn default() -> Self {
        Self::new()
    }
}

/// Without rights a niceness may be as low as this limit says, counted down from 20. Nothing is inherited: who is started later gives
/// it up, and the command was started before.
fn may_hurry() {
    let limit = (20 - HURRIED).cast_unsigned().into();
    let limit = libc::rlimit { rlim_cur: limit, rlim_max: limit };
    // SAFETY: the kernel reads one rlimit. Without the right nothing changes.
    unsafe { libc::setrlimit(libc::RLIMIT_NICE, &raw const limit) };
}

/// Raises the priority of all threads of this process, where that was allowed.
pub(crate) fn hurry() {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    for tid in threads.filter_map(|entry| entry.file_name().to_str()?.parse::<libc::id_t>().ok()) {
        // SAFETY: numbers only, of a thread of this process. An error looks like a niceness of -1, and is one if it has ended.
        unsafe {
            if libc::getpriority(libc::PRIO_PROCESS, tid) > HURRIED {
                libc::setpriority(libc::PRIO_PROCESS, tid, HURRIED);
            }
        }
    }
}

fn set(nice: i32) {
    // SAFETY: no memory is touched; who = 0 is the calling thread. Without the right nothing changes.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
}
