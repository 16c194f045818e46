//! A single job beside others.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use crossbeam_channel::{Receiver, bounded};

use super::{LeftBehind, Reader};
use crate::machine::limits;

/// A job in progress.
#[derive(Debug)]
pub(crate) struct Asked<R> {
    answer: Receiver<R>,
    thread: Option<(Arc<Reader>, JoinHandle<()>)>,
    bound: LeftBehind,
}

impl<R: Send + 'static> Asked<R> {
    /// Starts it, in a thread called `name`. With limited address space (`ulimit -v`) it is done in this thread: the
    /// allocator reserves 64 MiB for a process's second thread, which the recording's buffers would lack.
    pub(crate) fn new(name: &'static str, work: impl FnOnce() -> R + Send + 'static) -> Self {
        let bound = LeftBehind::default();
        let (done, answer) = bounded(1);
        let run = move |_: &Reader| drop(done.send(work()));
        if limits::limit(libc::RLIMIT_AS).is_some_and(|limit| limit.rlim_cur != libc::RLIM_INFINITY) {
            run(&Reader::default());
            return Self { answer, thread: None, bound };
        }
        let thread = bound.has_room().then(|| Reader::start(name, run).ok()).flatten();
        Self { answer, thread, bound }
    }

    /// The result; None = it did not come in time. With a result the thread is gone.
    pub(crate) fn get(self, until: Instant) -> Option<R> {
        let Some((reader, thread)) = self.thread else { return self.answer.try_recv().ok() };
        let answer = self.answer.recv_deadline(until);
        match &answer {
            Ok(_) => drop(thread.join()),
            Err(_) => reader.leave(&self.bound),
        }
        answer.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_answer_or_none() {
        let soon = || Instant::now() + Duration::from_millis(1);
        assert_eq!(Asked::new("once", || 7).get(Instant::now() + Duration::from_secs(60)), Some(7));
        let (stay, wait) = bounded::<()>(0);
        assert_eq!(Asked::new("once", move || wait.recv().is_ok()).get(soon()), None);
        drop(stay);
    }
}
