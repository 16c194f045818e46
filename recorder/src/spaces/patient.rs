//! Does what may wait for a file system in a thread of its own: one that does not answer (NFS without its server, FUSE) keeps
//! that thread waiting, not its caller.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::self_stats::counted;

/// How long a file may take to open, or to read where it is small. Local files take microseconds.
pub const PATIENCE: Duration = Duration::from_millis(500);
/// Most threads left waiting for files.
pub const STUCK_MAX: usize = 8;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// Not tried: too many others are waited for.
    TooMany,
    /// It takes too long, and would again.
    TooLong,
}

/// Does jobs `J` with results `R`, one at a time.
#[derive(Debug)]
pub struct Patient<J, R> {
    /// Of its threads; at most 15 characters show.
    name: &'static str,
    work: fn(J) -> R,
    worker: Option<Worker<J, R>>,
    /// One clone for each thread: counts those that are left.
    threads: Arc<()>,
}

#[derive(Debug)]
struct Worker<J, R> {
    jobs: Sender<J>,
    results: Receiver<R>,
}

impl<J: Send + 'static, R: Send + 'static> Patient<J, R> {
    /// Starts nothing before the first job.
    pub fn new(name: &'static str, work: fn(J) -> R) -> Self {
        Self { name, work, worker: None, threads: Arc::default() }
    }

    /// Does a job, or leaves it to be done when nobody waits any more.
    ///
    /// # Errors
    /// See [`Unanswered`].
    pub fn run(&mut self, patience: Duration, job: J) -> Result<R, Unanswered> {
        if self.worker.is_none() {
            self.worker = self.start();
        }
        let Some(worker) = &self.worker else { return Err(Unanswered::TooMany) };
        let sent = worker.jobs.send(job).is_ok();
        if sent && let Ok(result) = worker.results.recv_timeout(patience) {
            return Ok(result);
        }
        // left to wait; it ends when it notices that nobody listens
        self.worker = None;
        Err(Unanswered::TooLong)
    }

    fn start(&self) -> Option<Worker<J, R>> {
        if Arc::strong_count(&self.threads) > STUCK_MAX {
            return None;
        }
        let (jobs, todo) = bounded::<J>(1);
        let (done, results) = bounded(1);
        let (held, work) = (Arc::clone(&self.threads), self.work);
        let work = move || {
            let _held = held;
            for job in todo {
                if done.send(work(job)).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name(self.name.into()).spawn(counted(self.name, work)).ok()?;
        Some(Worker { jobs, results })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hangs_keeps_a_thread_and_nobody_else() {
        /// Like a server that does not answer, unless it is asked for 0.
        fn hang(job: u32) -> u32 {
            if job == 0 {
                return 7;
            }
            loop {
                thread::park();
            }
        }
        let mut patient = Patient::new("hang", hang);
        let long = Duration::from_secs(60);
        for _ in 0..STUCK_MAX {
            assert_eq!(patient.run(long, 0), Ok(7));
            assert_eq!(patient.run(Duration::from_millis(1), 1), Err(Unanswered::TooLong));
        }
        assert_eq!(patient.run(long, 0), Err(Unanswered::TooMany));
    }
}
