//! Reads that may hang, in threads of their own.
//!
//! A file of another process or of a file system may block its reader for any time: /proc/PID/cmdline and maps wait for
//! the process's mmap lock, a file for its disk or its server. Every such read goes through one of
//! - [`Patient`]: one job at a time, done within a time or not at all;
//! - [`each`]: many jobs at once, while anything progresses;
//! - [`LaterJobs`]: jobs without a waiting caller;
//! - [`Asked`]: a single job.
//!
//! A hanging thread is left behind. It ends by itself when its wait does, and does not prevent the process from ending
//! if the kernel can interrupt its wait for SIGKILL. [`LeftBehind`] limits their number: with that many left behind no
//! further read is tried, and the caller gets no result.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::machine::bounded;
use crate::own::cpu_time::counted;

mod later;
mod many;
mod once;
mod one;

pub(crate) use later::LaterJobs;
pub(crate) use many::{JobProgress, each};
pub(crate) use once::Asked;
pub(crate) use one::Patient;

/// Longest time of a read. Those of /proc and of local files take microseconds.
pub(crate) const PATIENCE: Duration = Duration::from_millis(500);
/// Most threads left waiting.
pub(crate) const STUCK_MAX: usize = 8;
/// Bytes of a reader's stack. They count as data (`ulimit -d`), and readers need little.
const STACK: usize = 512 << 10;
/// A thread that waits for a CPU, not for a file, gets its time this many times.
const STARVED_MAX: u32 = 20;

/// Number of threads left behind. The default is this process's.
#[derive(Clone, Debug)]
pub(crate) struct LeftBehind(Arc<AtomicUsize>);

impl Default for LeftBehind {
    fn default() -> Self {
        static SHARED: OnceLock<Arc<AtomicUsize>> = OnceLock::new();
        Self(Arc::clone(SHARED.get_or_init(Arc::default)))
    }
}

impl LeftBehind {
    #[cfg(test)]
    fn apart() -> Self {
        Self(Arc::default())
    }

    /// Whether one more may be left behind.
    fn has_room(&self) -> bool {
        self.0.load(Ordering::Relaxed) < STUCK_MAX
    }
}

/// Whether no thread of this process is left behind any more.
pub(crate) fn none_hang() -> bool {
    LeftBehind::default().0.load(Ordering::Relaxed) == 0
}

/// Counts a thread that was left behind, while it exists.
#[derive(Debug)]
struct Left(LeftBehind);

impl Left {
    fn new(bound: &LeftBehind) -> Self {
        bound.0.fetch_add(1, Ordering::Relaxed);
        Self(bound.clone())
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A reader's thread. The thread and its owner share it; it is freed when both have dropped it.
#[derive(Debug, Default)]
struct Reader {
    /// 0 = it has not begun.
    tid: AtomicU32,
    left: OnceLock<Left>,
}

impl Reader {
    /// Starts it. It needs no more stack than a few reads do.
    fn start(name: &'static str, work: impl FnOnce(&Self) + Send + 'static) -> io::Result<(Arc<Self>, JoinHandle<()>)> {
        let this = Arc::new(Self::default());
        let own = Arc::clone(&this);
        let run = move || {
            // SAFETY: it touches no memory.
            own.tid.store(unsafe { libc::gettid() }.cast_unsigned(), Ordering::Relaxed);
            work(&own);
        };
        let handle = Builder::new().name(name.into()).stack_size(STACK).spawn(counted(name, run))?;
        Ok((this, handle))
    }

    /// Whether its owner has given it up: another thread took its place.
    fn was_left(&self) -> bool {
        self.left.get().is_some()
    }

    /// Its owner gives it up.
    fn leave(&self, bound: &LeftBehind) {
        self.left.get_or_init(|| Left::new(bound));
    }

    /// Whether it is runnable without a CPU: only the machine's load delays it.
    fn is_starved(&self) -> bool {
        match self.tid.load(Ordering::Relaxed) {
            0 => true,
            tid => {
                let stat = bounded::head(format!("/proc/self/task/{tid}/stat"), bounded::LINES).unwrap_or_default();
                is_runnable(&stat.bytes)
            }
        }
    }
}

/// Whether /proc/PID/stat shows state R. The name before the state may contain anything.
fn is_runnable(stat: &[u8]) -> bool {
    let state = stat.iter().rposition(|&b| b == b')').and_then(|at| stat.get(at + 2));
    state == Some(&b'R')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_counts_until_it_ends() {
        let bound = LeftBehind::apart();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (reader, thread) = Reader::start("test", move |_| wait.recv().unwrap_or_default()).unwrap();
        reader.leave(&bound);
        reader.leave(&bound);
        drop(reader);
        assert_eq!(bound.0.load(Ordering::Relaxed), 1);
        drop(go);
        thread.join().unwrap();
        assert_eq!(bound.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn who_waits_for_a_cpu_is_not_stuck() {
        assert!(is_runnable(b"7 (a) b) R 1 2"));
        assert!(!is_runnable(b"7 (R) D 1 2") && !is_runnable(b""));
    }
}
