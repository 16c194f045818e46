//! Calls that are applied late, in queues ([`crate::derive::runs::queued`]), and the alarms that apply them in time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

use super::{Doing, End, Interval, IntervalSink, Slot, State, Tracker};
use crate::derive::runs::queued::{CallEdge, CallQueue, CallSpan, CallsInTurn, ENTER_ORDER, PartCalls};

/// Calls of the current part that wait.
#[derive(Debug, Default)]
pub(super) struct Queues {
    part: PartCalls,
    /// By slot.
    of_slot: Vec<CallQueue>,
    /// Slots that have one.
    slots: Vec<Slot>,
    /// Times at which the next edge of a slot is applied, if that may not wait.
    alarms: BinaryHeap<Reverse<((u64, u8), Slot)>>,
    /// Something was lost: no edge may wait.
    in_order: bool,
    /// Calls from here on do not count.
    until: u64,
    /// Whether a call of the part goes on with the one before.
    restarts: bool,
    /// Time of the latest edge that was applied.
    last: u64,
}

impl Queues {
    /// Queues without calls; nothing counts from `until` on.
    pub(super) fn new(until: u64) -> Self {
        Self { until, ..Self::default() }
    }

    fn next(&self, slot: Slot) -> Option<(u64, u8)> {
        let key = self.of_slot.get(slot)?.key(&self.part.spans);
        key.filter(|(ts, _)| *ts < self.until)
    }
}

impl<S: IntervalSink> Tracker<S> {
    /// The calls of the part whose events follow.
    pub fn part(&mut self, calls: PartCalls) {
        self.queues.restarts = calls.restarts.contains(&true);
        self.queues.part = calls;
    }

    /// The first of the calls `left` of a thread begins now.
    pub fn queue(&mut self, slot: Slot, left: Range<u32>) {
        if slot >= self.queues.of_slot.len() {
            self.queues.of_slot.resize_with(slot + 1, CallQueue::default);
        }
        self.queues.of_slot[slot] = CallQueue { left, inside: false };
        self.queues.slots.push(slot);
        self.watch(slot);
    }

    /// Something happens at `key`, time and order: what may not wait and is before it is applied.
    pub fn comes_to(&mut self, key: (u64, u8)) {
        self.ring(key);
        self.at(key.0);
    }

    /// Applies what may not wait and is before `key`, the time and order of what happens next.
    pub(super) fn ring(&mut self, key: (u64, u8)) {
        while let Some(Reverse((at, slot))) = self.queues.alarms.peek().copied().filter(|alarm| alarm.0.0 < key) {
            self.queues.alarms.pop();
            // since the alarm was set it may have got a CPU
            if !self.may_wait(slot) && self.queues.next(slot) == Some(at) {
                let mut queue = std::mem::take(&mut self.queues.of_slot[slot]);
                self.apply(slot, &mut queue);
                self.queues.of_slot[slot] = queue;
                self.watch(slot);
            }
        }
    }

    /// Lets no call wait from `ts` on: something is lost.
    pub(super) fn in_order(&mut self, ts: u64) {
        if self.queues.in_order {
            return;
        }
        for at in 0..self.queues.slots.len() {
            self.settle(self.queues.slots[at], (ts, 0));
        }
        self.queues.in_order = true;
        for at in 0..self.queues.slots.len() {
            self.watch(self.queues.slots[at]);
        }
    }

    /// All events of the part were passed.
    pub fn end_part(&mut self) {
        self.ring((u64::MAX, 0));
        for slot in std::mem::take(&mut self.queues.slots) {
            self.settle(slot, (u64::MAX, 0));
            self.queues.of_slot[slot] = CallQueue::default();
        }
        self.queues.part = PartCalls::default();
        self.queues.alarms.clear();
        self.at(self.queues.last);
        self.sink.passed();
    }

    /// Applies the calls of a thread before `key`, if they could wait until now.
    pub(super) fn settle(&mut self, slot: Slot, key: (u64, u8)) {
        if self.queues.next(slot).is_none_or(|next| next >= key) || !self.may_wait(slot) {
            return;
        }
        let (now, mut queue) = (self.now, std::mem::take(&mut self.queues.of_slot[slot]));
        while self.may_wait(slot)
            && let Some(at) = queue.key(&self.queues.part.spans).filter(|at| *at < key && at.0 < self.queues.until)
        {
            if !queue.inside && self.pass_in_turn(slot, &mut queue, key) {
                continue;
            }
            // they are applied as if it were then
            self.now = at.0;
            self.queues.last = self.queues.last.max(at.0);
            self.apply(slot, &mut queue);
        }
        self.now = now;
        self.queues.of_slot[slot] = queue;
        self.watch(slot);
    }

    /// Passes calls that end before `key` together: what each of them would do, step by step. False: there are none, or something is
    /// to be looked at with each.
    fn pass_in_turn(&mut self, slot: Slot, queue: &mut CallQueue, key: (u64, u8)) -> bool {
        let (part, thread, note) = (&self.queues.part, &self.threads[slot], &self.notes[slot]);
        // before the calls are looked at: who is looked at step by step would look at all of them with each step
        let plain = thread.followed
            && !thread.dead
            && !note.doubt
            && !note.by_loss
            && !self.call_losses
            && !self.queues.restarts;
        let next = part.spans.get(queue.left.start as usize).filter(|_| plain && !queue.left.is_empty());
        let same = |span: &CallSpan| Arc::ptr_eq(&thread.task, &part.tasks[span.task as usize]);
        let Some(from) = next.filter(|span| span.start >= thread.since && same(span)) else { return false };
        let spans = part.in_turn(queue.left.clone(), key.min((self.queues.until, 0)));
        let Some(to) = spans.last() else { return false };
        let first = Interval {
            state: thread.state,
            from: thread.since,
            to: from.start,
            began_before: thread.began_before,
            continued: thread.continued,
            end: End::Step,
            doing: thread.doing,
            cpu: thread.cpu,
        };
        let (end, before, next) = (to.end, part.last_of(spans), queue.left.start + spans.len() as u32);
        self.sink.calls(&self.threads, slot, &CallsInTurn { first, spans, part });
        let thread = &mut self.threads[slot];
        (thread.since, thread.began_before, thread.continued, thread.doing) = (end, false, true, Doing::User);
        (self.notes[slot].before, queue.left.start) = (before, next);
        self.queues.last = self.queues.last.max(end);
        true
    }

    /// Applies the calls of a thread before what happens to it at `ts`.
    pub fn settle_at(&mut self, slot: Slot, ts: u64) {
        self.settle(slot, (ts, ENTER_ORDER));
    }

    /// Sets the alarm for the next call of a thread that may not wait.
    pub(super) fn watch(&mut self, slot: Slot) {
        if let Some(next) = self.queues.next(slot).filter(|_| !self.may_wait(slot)) {
            self.queues.alarms.push(Reverse((next, slot)));
        }
    }

    /// Whether calls of a thread change nothing but what it does.
    fn may_wait(&self, slot: Slot) -> bool {
        let state = self.threads[slot].state;
        !self.queues.in_order && (state == State::Running || (state == State::Unknown && !self.coverage.every_cpu))
    }

    fn apply(&mut self, slot: Slot, queue: &mut CallQueue) {
        match queue.take(&self.queues.part) {
            Some(CallEdge::Enter { call, restarts: true }) => self.restart(slot, call),
            Some(CallEdge::Enter { call, restarts: false }) => self.enter(slot, call),
            Some(CallEdge::Leave { task, ts, cpu }) => {
                if !Arc::ptr_eq(&self.threads[slot].task, &task) || self.doubts(slot) {
                    self.is(slot, &task, ts, false);
                }
                self.leave(ts, slot, cpu);
            }
            None => {}
        }
    }
}
