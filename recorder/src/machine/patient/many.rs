//! Many jobs at once, such as reading all of every process at the start.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, bounded, unbounded};

use super::{LeftBehind, PATIENCE, Reader};

/// If nothing has progressed for this long, another thread takes the next job.
const STEP: Duration = Duration::from_millis(100);
/// Most results that wait to be taken.
const ANSWERS: usize = 64;

/// Steps reported by a job, so that a long one does not count as hanging.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobProgress(Arc<AtomicU64>);

impl JobProgress {
    /// One more step.
    pub(crate) fn step(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Does jobs, passing each result to `take` with its number, in order if possible. There is no time limit while
/// something progresses: each hanging job costs [`STEP`], the last of them [`PATIENCE`]. Returns the numbers of those
/// without a result.
pub(crate) fn each<J: Send + 'static, R: Send + 'static>(
    name: &'static str,
    jobs: Vec<J>,
    work: impl Fn(J, &JobProgress) -> R + Clone + Send + 'static,
    take: impl FnMut(usize, R),
) -> Vec<usize> {
    bounded_by(&LeftBehind::default(), name, jobs, work, take)
}

fn bounded_by<J: Send + 'static, R: Send + 'static>(
    bound: &LeftBehind,
    name: &'static str,
    jobs: Vec<J>,
    work: impl Fn(J, &JobProgress) -> R + Clone + Send + 'static,
    mut take: impl FnMut(usize, R),
) -> Vec<usize> {
    let mut waiting = vec![true; jobs.len()];
    let mut count = jobs.len();
    let (tell, todo) = unbounded();
    jobs.into_iter().enumerate().for_each(|job| drop(tell.send(job)));
    drop(tell);
    let (done, answers) = bounded(ANSWERS);
    let moved = JobProgress::default();
    let mut readers: Vec<Arc<Reader>> = Vec::new();
    let start = |readers: &mut Vec<Arc<Reader>>| {
        let (todo, done, moved, work) = (todo.clone(), done.clone(), moved.clone(), work.clone());
        let run = move |own: &Reader| {
            for (number, job) in todo {
                if done.send((number, work(job, &moved))).is_err() || own.was_left() {
                    return;
                }
            }
        };
        let started = bound.has_room().then(|| Reader::start(name, run).ok()).flatten();
        started.map(|(reader, _)| readers.push(reader)).is_some()
    };
    let (mut steps, mut last) = (0, Instant::now());
    let mut going = count == 0 || start(&mut readers);
    while count > 0 && going {
        match answers.recv_timeout(STEP) {
            Ok((number, answer)) => {
                take(number, answer);
                // what `take` needed is not its time
                (waiting[number], count, last) = (false, count - 1, Instant::now());
            }
            Err(RecvTimeoutError::Disconnected) => going = false,
            Err(RecvTimeoutError::Timeout) => {
                let now = moved.0.load(Ordering::Relaxed);
                if now != steps || readers.iter().any(|reader| reader.is_starved()) {
                    (steps, last) = (now, Instant::now());
                    continue;
                }
                if let (Some(stuck), false) = (readers.last(), todo.is_empty()) {
                    stuck.leave(bound);
                    if start(&mut readers) {
                        continue;
                    }
                }
                going = last.elapsed() < PATIENCE;
            }
        }
    }
    forget(&todo);
    if count > 0 {
        // those that have ended do not count
        readers.iter().for_each(|reader| reader.leave(bound));
    }
    (0..waiting.len()).filter(|number| waiting[*number]).collect()
}

/// A late thread finds nothing left to do.
fn forget<J>(todo: &Receiver<J>) {
    while todo.try_recv().is_ok() {}
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::thread;

    use super::super::STUCK_MAX;
    use super::*;

    /// 1 hangs, 2 takes longer than the patience but progresses.
    fn work(job: u32, moved: &JobProgress) -> u32 {
        match job {
            1 => loop {
                thread::park();
            },
            2 => {
                for _ in 0..20 {
                    thread::sleep(PATIENCE / 10);
                    moved.step();
                }
            }
            _ => {}
        }
        job + 100
    }

    fn run(bound: &LeftBehind, jobs: &[u32]) -> (Vec<(usize, u32)>, Vec<usize>) {
        let taken = Mutex::new(Vec::new());
        let rest = bounded_by(bound, "many", jobs.to_vec(), work, |number, answer| {
            taken.lock().unwrap().push((number, answer));
        });
        (taken.into_inner().unwrap(), rest)
    }

    #[test]
    fn those_that_hang_cost_their_own_answers_only() {
        let bound = LeftBehind::apart();
        assert_eq!(run(&bound, &[]), (vec![], vec![]));
        assert_eq!(run(&bound, &[3, 4]), (vec![(0, 103), (1, 104)], vec![]));
        assert_eq!(run(&bound, &[3, 1, 4, 1, 5, 1]), (vec![(0, 103), (2, 104), (4, 105)], vec![1, 3, 5]));
        assert_eq!(bound.0.load(Ordering::Relaxed), 3);
        let hang = vec![1; STUCK_MAX - 3];
        assert_eq!(run(&bound, &hang).1.len(), STUCK_MAX - 3);
        assert_eq!(run(&bound, &[3, 4]), (vec![], vec![0, 1]), "as many hang as may");
    }

    #[test]
    fn a_long_answer_is_one() {
        assert_eq!(run(&LeftBehind::apart(), &[2, 3]), (vec![(0, 102), (1, 103)], vec![]));
    }
}
