//! How long threads waited for a CPU, from wake-ups and switches in order of time.

use rustc_hash::FxHashMap;

/// Threads that are remembered; with more, all are forgotten: some waits are missed then, none is invented.
const MOST: usize = 1 << 16;

/// Runnable threads, with the time since when.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunQueue(FxHashMap<u32, u64>);

impl RunQueue {
    /// A thread became runnable. One that was keeps its time.
    pub(crate) fn runnable(&mut self, tid: u32, ts: u64) {
        if self.0.len() >= MOST {
            self.0.clear();
        }
        self.0.entry(tid).or_insert(ts);
    }

    /// A CPU went from `prev`, which stays runnable or not, to `next`; returns how long that waited. 0 is the idle task.
    pub(crate) fn switch(&mut self, (prev, runnable): (u32, bool), next: u32, ts: u64) -> Option<u64> {
        let waited = self.0.remove(&next).map(|since| ts.saturating_sub(since));
        if prev != 0 {
            self.0.remove(&prev);
            if runnable {
                self.runnable(prev, ts);
            }
        }
        waited.filter(|_| next != 0)
    }

    /// Records were lost: what was known may be wrong.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_from_runnable_to_running() {
        let mut queue = RunQueue::default();
        queue.runnable(7, 100);
        queue.runnable(7, 150);
        assert_eq!(queue.switch((0, true), 7, 300), Some(200), "since the first wake-up");
        assert_eq!(queue.switch((7, true), 8, 400), None, "8 was not seen");
        assert_eq!(queue.switch((8, false), 7, 450), Some(50), "7 was preempted");
        assert_eq!(queue.switch((7, false), 0, 500), None);
        assert_eq!(queue.switch((0, true), 8, 600), None, "8 slept and its wake-up is missing");
        queue.runnable(9, 700);
        queue.forget();
        assert_eq!(queue.switch((0, false), 9, 800), None);
        (1..200_000).for_each(|tid| queue.runnable(tid, 1));
        assert!(queue.0.len() <= MOST);
    }
}
