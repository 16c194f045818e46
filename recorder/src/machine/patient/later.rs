//! Jobs without a waiting caller: it takes results when they arrive.

use std::sync::Arc;
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::{LeftBehind, PATIENCE, Reader};

/// Most jobs and results at once.
const MOST: usize = 4096;

/// Does jobs `J` with results `R` in their order, unless some hang.
#[derive(Debug)]
pub(crate) struct LaterJobs<J, R> {
    name: &'static str,
    work: fn(J) -> R,
    tell: Sender<J>,
    todo: Receiver<J>,
    done: Sender<R>,
    answers: Receiver<R>,
    /// The worker; None = none was started, or it was left behind.
    reader: Option<Arc<Reader>>,
    /// Jobs without a result.
    open: usize,
    /// Time of the last result, or of the first job after all were done.
    moved: Instant,
    bound: LeftBehind,
}

impl<J: Send + 'static, R: Send + 'static> LaterJobs<J, R> {
    /// Starts nothing before the first job.
    pub(crate) fn new(name: &'static str, work: fn(J) -> R) -> Self {
        let ((tell, todo), (done, answers)) = (bounded(MOST), unbounded());
        let (moved, bound) = (Instant::now(), LeftBehind::default());
        Self { name, work, tell, todo, done, answers, reader: None, open: 0, moved, bound }
    }

    /// Adds a job. False = it will not be done: too many jobs are open, or too many threads hang.
    pub(crate) fn ask(&mut self, job: J) -> bool {
        self.look();
        if self.open >= MOST || !self.has_reader() || self.tell.try_send(job).is_err() {
            return false;
        }
        if self.open == 0 {
            self.moved = Instant::now();
        }
        self.open += 1;
        true
    }

    /// A result, if there is one.
    pub(crate) fn take(&mut self) -> Option<R> {
        let answer = self.answers.try_recv().ok();
        self.taken(answer)
    }

    /// The next result; waits for it until then, unless jobs queue up.
    pub(crate) fn wait(&mut self, until: Instant) -> Option<R> {
        let answer = match self.todo.len() {
            0 | 1 if self.open > 0 => self.answers.recv_deadline(until).ok(),
            _ => self.answers.try_recv().ok(),
        };
        self.taken(answer)
    }

    fn taken(&mut self, answer: Option<R>) -> Option<R> {
        if answer.is_some() {
            self.open -= 1;
            self.moved = Instant::now();
        } else if self.open > 0 {
            self.look();
        }
        answer
    }

    /// Leaves a hanging reader behind; another one takes the next job.
    fn look(&mut self) {
        if self.open == 0 || self.moved.elapsed() < PATIENCE || !self.answers.is_empty() {
            return;
        }
        self.moved = Instant::now();
        if self.reader.as_ref().is_some_and(|reader| reader.is_starved()) {
            return;
        }
        if let Some(reader) = self.reader.take() {
            reader.leave(&self.bound);
        }
        if !self.todo.is_empty() {
            self.has_reader();
        }
    }

    /// Starts a worker if there is none.
    fn has_reader(&mut self) -> bool {
        if self.reader.is_none() && self.bound.has_room() {
            let (todo, done, work) = (self.todo.clone(), self.done.clone(), self.work);
            let run = move |own: &Reader| {
                for job in todo {
                    if done.send(work(job)).is_err() || own.was_left() {
                        return;
                    }
                }
            };
            self.reader = Reader::start(self.name, run).ok().map(|(reader, _)| reader);
        }
        self.reader.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::super::STUCK_MAX;
    use super::*;

    fn hang(job: u32) -> u32 {
        if job == 1 {
            loop {
                thread::park();
            }
        }
        job + 100
    }

    fn answer(later: &mut LaterJobs<u32, u32>) -> u32 {
        loop {
            if let Some(answer) = later.take() {
                return answer;
            }
            thread::yield_now();
        }
    }

    #[test]
    fn nobody_waits_and_what_hangs_is_passed_by() {
        let mut later = LaterJobs { bound: LeftBehind::apart(), ..LaterJobs::new("later", hang) };
        assert_eq!(later.take(), None);
        assert!(later.ask(2) && later.ask(3));
        assert_eq!((answer(&mut later), answer(&mut later)), (102, 103));
        assert!(later.ask(5));
        assert_eq!(later.wait(Instant::now() + Duration::from_secs(60)), Some(105));
        assert!(later.ask(1) && later.ask(4));
        assert_eq!(answer(&mut later), 104, "the next in turn does not wait for it");
        assert_eq!(later.open, 1);
        // the last that may hang has nobody to go on in its place
        for _ in 2..STUCK_MAX {
            assert!(later.ask(1) && later.ask(6));
            assert_eq!(answer(&mut later), 106);
        }
        assert!(later.bound.has_room() && later.ask(1));
        while later.bound.has_room() {
            assert_eq!(later.take(), None);
            thread::yield_now();
        }
        assert!(!later.ask(7), "as many hang as may");
    }
}
