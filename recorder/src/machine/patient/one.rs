//! One job at a time.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::{LeftBehind, Reader, STARVED_MAX};

/// Why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// Not tried: too many others hang.
    TooMany,
    /// The job hangs, and would again.
    TooLong,
}

/// Does jobs `J` with results `R`, one at a time.
#[derive(Debug)]
pub(crate) struct Patient<J, R> {
    /// Of its threads; at most 15 characters show.
    name: &'static str,
    work: fn(J) -> R,
    worker: Option<Worker<J, R>>,
    bound: LeftBehind,
}

#[derive(Debug)]
struct Worker<J, R> {
    jobs: Sender<J>,
    results: Receiver<R>,
    reader: Arc<Reader>,
}

impl<J: Send + 'static, R: Send + 'static> Patient<J, R> {
    /// Starts nothing before the first job.
    pub(crate) fn new(name: &'static str, work: fn(J) -> R) -> Self {
        Self { name, work, worker: None, bound: LeftBehind::default() }
    }

    /// Does a job; one that hangs is left behind.
    ///
    /// # Errors
    /// See [`Unanswered`].
    pub(crate) fn run(&mut self, patience: Duration, job: J) -> Result<R, Unanswered> {
        if self.worker.is_none() {
            self.worker = self.start();
        }
        let Some(worker) = &self.worker else { return Err(Unanswered::TooMany) };
        if worker.jobs.send(job).is_ok() {
            for _ in 0..STARVED_MAX {
                match worker.results.recv_timeout(patience) {
                    Ok(result) => return Ok(result),
                    Err(RecvTimeoutError::Timeout) if worker.reader.is_starved() => {}
                    Err(_) => break,
                }
            }
        }
        // it ends when it notices that nobody listens
        worker.reader.leave(&self.bound);
        self.worker = None;
        Err(Unanswered::TooLong)
    }

    fn start(&self) -> Option<Worker<J, R>> {
        if !self.bound.has_room() {
            return None;
        }
        let (jobs, todo) = bounded::<J>(1);
        let (done, results) = bounded(1);
        let work = self.work;
        let run = move |_: &Reader| {
            for job in todo {
                if done.send(work(job)).is_err() {
                    return;
                }
            }
        };
        let (reader, _) = Reader::start(self.name, run).ok()?;
        Some(Worker { jobs, results, reader })
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::super::STUCK_MAX;
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
        let bound = LeftBehind::apart();
        let mut patient = Patient { bound: bound.clone(), ..Patient::new("hang", hang) };
        let long = Duration::from_secs(60);
        for _ in 0..STUCK_MAX {
            assert_eq!(patient.run(long, 0), Ok(7));
            assert_eq!(patient.run(Duration::from_millis(1), 1), Err(Unanswered::TooLong));
        }
        assert_eq!(patient.run(long, 0), Err(Unanswered::TooMany));
        // the bound is one for all
        let mut other = Patient { bound, ..Patient::new("other", hang) };
        assert_eq!(other.run(long, 0), Err(Unanswered::TooMany));
    }
}
