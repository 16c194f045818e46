//! What a thread is called, its user and its cgroup, where the sink tells these apart.
//!
//! They change at events of process life, and an interval ends there. Where such events are missing, the entry of a thread beside an event says
//! what it is then: of the time since the entry before it is known only if that was the same. What ended meanwhile with something that does
//! not say who the thread is (a call's beginning, another loss) is told as [`State::Unknown`].

use std::sync::Arc;

use systape_format::model::Task;

use super::{IntervalSink, Slot, State, Tracker, key};
use systape_events::scan::lost::Lost;

impl<S: IntervalSink> Tracker<S> {
    /// A task becomes at `ts` what `task` says.
    pub fn becomes(&mut self, task: &Arc<Task>, ts: u64) {
        if let Some(slot) = self.by_utid.get(&key(task)).copied() {
            self.is(slot, task, ts, true);
        }
    }

    /// A thread is what `task` says from `ts` on; `told`: it became so then, otherwise it may have been so before.
    pub(super) fn is(&mut self, slot: Slot, task: &Arc<Task>, ts: u64, told: bool) {
        self.settle_at(slot, ts);
        let (before, doubt) = (&self.threads[slot].task, self.notes[slot].doubt);
        let new = !Arc::ptr_eq(before, task);
        let differs = new && self.sink.parts(before, Some(task));
        if differs || doubt {
            let ts = self.at(ts);
            let doubts = self.may_become(task);
            // what it was until then is known if it still is
            self.notes[slot].doubt = differs && (doubt || !told);
            if differs || (doubts && self.parted(slot)) {
                self.step(slot, ts);
            }
            self.notes[slot].doubt = doubts;
            // the rest of a wait is not the whole
            self.threads[slot].began_before |= differs && !self.parted(slot);
        } else if new && told && self.parted(slot) && self.sink.steps(before, task) {
            let ts = self.at(ts);
            self.step(slot, ts);
        }
        if new {
            self.threads[slot].task = Arc::clone(task);
            self.follow(slot, ts, self.coverage.followed.has(task));
        }
    }

    /// All threads of the process of `task` are in its cgroup from `ts` on.
    pub fn moves(&mut self, task: &Task, ts: u64) {
        for slot in 0..self.threads.len() {
            let before = &self.threads[slot].task;
            if (before.pid, before.upid) == (task.pid, task.upid) && before.cgroup_id != task.cgroup_id {
                let after = Arc::new(Task { cgroup_id: task.cgroup_id, ..Task::clone(before) });
                self.is(slot, &after, ts, true);
            }
        }
    }

    /// Events of process life are missing from here on.
    pub(crate) fn lose_life(&mut self, lost: Lost) {
        let ts = self.loses(lost);
        self.lost_life.end_before(ts);
        self.lost_life.begin(lost);
        for slot in 0..self.threads.len() {
            let task = &self.threads[slot].task;
            if (lost.pid == 0 || lost.pid == task.pid) && self.sink.parts(task, None) {
                if self.parted(slot) {
                    self.step(slot, ts);
                }
                self.notes[slot].doubt = true;
            }
        }
    }

    /// Whether it may have become something else since the last event that says who it is.
    pub fn doubts(&self, slot: Slot) -> bool {
        self.notes[slot].doubt
    }

    /// Whether a part of its time has a meaning of its own: of a wait the length has, too.
    fn parted(&self, slot: Slot) -> bool {
        !matches!(self.threads[slot].state, State::Waiting(_))
    }

    /// Whether `task` may become something else unseen.
    pub(super) fn may_become(&self, task: &Task) -> bool {
        self.lost_life.anywhere(task.pid) && self.sink.parts(task, None)
    }
}
