//! Stretches of every thread's time, from the intervals of [`crate::derive::runs`].
//!
//! Calls do not part them, so they are as many as switches and wake-ups in the time asked for.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_format::model::{CPU_NONE, Task};

use super::{Ended, Id, Stretch};
use crate::derive::runs::queued::CallsInTurn;
use crate::derive::runs::thread_key as key;
use crate::derive::runs::{End, Interval, IntervalSink, Slot, State, Thread};

/// Numbers of threads that stay the same from one pass over a tape to the next.
#[derive(Clone, Debug, Default)]
pub struct Ids {
    by_key: FxHashMap<u64, Id>,
    /// The key and id of the thread in each slot.
    slots: Vec<(u64, Id)>,
}

impl Ids {
    /// The id of the thread of `task`; None: it has none.
    pub fn known(&self, task: &Task) -> Option<Id> {
        self.by_key.get(&key(task)).copied()
    }

    /// The id of the thread in `slot`.
    pub fn of(&mut self, threads: &[Thread], slot: Slot) -> Id {
        let key = key(&threads[slot].task);
        if slot >= self.slots.len() {
            self.slots.resize(slot + 1, (u64::MAX, 0));
        }
        if self.slots[slot].0 != key {
            let next = self.by_key.len() as Id;
            self.slots[slot] = (key, *self.by_key.entry(key).or_insert(next));
        }
        self.slots[slot].1
    }
}

/// Name of the recorder's threads, and of the process that it makes for a command until that is executed.
pub const RECORDER: &[u8] = b"record";

/// One thread.
#[derive(Clone, Debug, Default)]
pub struct Logged {
    /// Entries of the thread, the newest last; a new one where its name changed.
    pub tasks: Vec<Arc<Task>>,
    /// Stretches of its time, in order.
    pub stretches: Vec<Stretch>,
}

impl Logged {
    /// The entry that is valid in `stretch`.
    pub fn task(&self, stretch: &Stretch) -> &Arc<Task> {
        &self.tasks[stretch.task as usize]
    }

    /// The entry at `ts`; the last one without a stretch there.
    pub fn task_at(&self, ts: u64) -> Option<&Arc<Task>> {
        let at = self.stretches.partition_point(|stretch| stretch.to <= ts);
        let stretch = self.stretches.get(at).map(|stretch| self.task(stretch));
        stretch.or(self.tasks.last())
    }

    /// The entry that was valid longest between `from` and `to`: a shell that becomes its last command was the shell.
    pub fn mostly(&self, (from, to): (u64, u64)) -> Option<&Arc<Task>> {
        let mut times = vec![0; self.tasks.len()];
        let first = self.stretches.partition_point(|stretch| stretch.to <= from);
        for stretch in self.stretches[first..].iter().take_while(|stretch| stretch.from < to) {
            times[stretch.task as usize] += stretch.to.min(to).saturating_sub(stretch.from.max(from));
        }
        // of equal ones the newest
        times.iter().zip(&self.tasks).max_by_key(|(time, _)| **time).map(|(_, task)| task)
    }

    fn entry(&mut self, task: &Arc<Task>) -> u32 {
        match self.tasks.last_mut() {
            Some(last) if Arc::ptr_eq(last, task) => {}
            Some(last) if last.comm == task.comm && last.exe == task.exe => *last = Arc::clone(task),
            _ => self.tasks.push(Arc::clone(task)),
        }
        (self.tasks.len() - 1) as u32
    }
}

/// The stretches that end after `from`.
#[derive(Debug)]
pub struct Log {
    /// CLOCK_MONOTONIC ns.
    pub from: u64,
    /// The threads, by [`Id`].
    pub threads: Vec<Logged>,
    /// Ids of the threads.
    pub ids: Ids,
}

impl Log {
    /// Nothing yet.
    pub fn new(from: u64) -> Self {
        Self { from, threads: Vec::new(), ids: Ids::default() }
    }

    fn id(&mut self, threads: &[Thread], slot: Slot) -> Id {
        let id = self.ids.of(threads, slot);
        if id as usize >= self.threads.len() {
            self.threads.resize_with(id as usize + 1, Logged::default);
        }
        if self.threads[id as usize].tasks.is_empty() {
            self.threads[id as usize].entry(&threads[slot].task);
        }
        id
    }
}

impl IntervalSink for Log {
    // a part of a path is of one name
    fn steps(&self, before: &Task, after: &Task) -> bool {
        (&after.comm, &after.exe) != (&before.comm, &before.exe)
    }

    // calls do not part stretches
    fn calls(&mut self, threads: &[Thread], slot: Slot, calls: &CallsInTurn<'_>) {
        let whole = Interval { to: calls.end(), ..calls.first };
        if whole.from < self.from {
            calls.each(|interval| self.interval(threads, slot, interval));
        } else {
            self.interval(threads, slot, &whole);
        }
    }

    fn interval(&mut self, threads: &[Thread], slot: Slot, interval: &Interval) {
        if interval.is_empty() || interval.to <= self.from {
            return;
        }
        let id = self.id(threads, slot) as usize;
        let ended = match interval.end {
            End::Woken(Some(waker)) => Ended::Woken { by: self.id(threads, waker.slot), softirq: waker.softirq },
            End::Woken(None) => Ended::Interrupt,
            End::Stop => Ended::GoesOn,
            End::In(_) | End::Out(_) | End::Unthrottled | End::Step | End::Lost | End::Died => Ended::Changed,
        };
        let cpu = match (interval.state, interval.end) {
            (State::Waiting(_), End::In(cpu)) => cpu,
            (State::Waiting(_), _) => CPU_NONE,
            _ => interval.cpu,
        };
        let thread = &mut self.threads[id];
        let task = thread.entry(&threads[slot].task);
        let stretch = Stretch { from: interval.from, to: interval.to, state: interval.state, cpu, ended, task };
        match thread.stretches.last_mut() {
            Some(last)
                if interval.continued
                    && last.to == stretch.from
                    && last.state == stretch.state
                    && last.task == stretch.task =>
            {
                *last = Stretch { from: last.from, ..stretch };
            }
            _ => thread.stretches.push(stretch),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_that_becomes_its_last_command_was_mostly_a_shell() {
        let task = |comm: &str| Arc::new(Task { comm: comm.as_bytes().to_vec(), ..Task::default() });
        let stretch = |from, to, task| {
            let (state, ended) = (State::Running, Ended::Changed);
            Stretch { from, to, state, cpu: CPU_NONE, ended, task }
        };
        let stretches = vec![stretch(0, 60, 0), stretch(60, 70, 1), stretch(70, 100, 1)];
        let thread = Logged { tasks: vec![task("bash"), task("sleep")], stretches };
        let named = |span| thread.mostly(span).map(|task| task.comm.as_slice());
        assert_eq!((named((0, 100)), named((50, 100))), (Some(&b"bash"[..]), Some(&b"sleep"[..])));
        assert_eq!((named((100, 200)), Logged::default().mostly((0, 9))), (Some(&b"sleep"[..]), None));
    }
}
