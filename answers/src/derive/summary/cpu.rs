//! Time in calls that was spent on a CPU and off it.

use std::sync::Arc;

use systape_format::model::{Call, Family, Task};

use super::plan::Plan;
use crate::derive::runs::decode::Needs;
use crate::derive::runs::{Doing, End, InCall, Interval, IntervalSink, Slot, State, Thread, feed};
use systape_events::families;
use systape_events::group::{Add, Groups};
use systape_events::question::Question;

/// Sums of one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Calls with a fully known history; other calls are in no sum.
    pub calls: u64,
    /// Time of the calls on a CPU, ns.
    pub on: u64,
    /// Time of the calls off it, asleep or waiting for one, ns.
    pub off: u64,
    /// Calls with a partly unknown history: they began before the recording, did not end, or a loss may concern them.
    pub unknown: u64,
}

/// Sums by key.
pub type CpuTimes = Groups<CpuTime>;

impl Add for CpuTime {
    fn add(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.on = self.on.saturating_add(other.on);
        self.off = self.off.saturating_add(other.off);
        self.unknown = self.unknown.saturating_add(other.unknown);
    }
}

/// Adds up the calls that pass the filters. None: scheduler events were not recorded, or the tape does not say of which
/// tasks.
pub fn collect(question: &mut Question<'_>, plan: &Plan) -> Option<CpuTimes> {
    if families::recorded(question.tape, Family::Sched) != Some(true) {
        return None;
    }
    let sink = CpuSink { plan, accs: Vec::new(), sums: CpuTimes::default() };
    // calls are chosen by their start, and end later
    let fed = feed::feed(question, Needs { calls: true, counted: true, ..Needs::default() }, u64::MAX, sink);
    fed.coverage.tell(&mut question.loss);
    Some(fed.tracker.sink.sums)
}

/// The call a thread is in.
#[derive(Clone, Debug, Default)]
struct Acc {
    call: Option<InCall>,
    on: u64,
    off: u64,
    unknown: bool,
    /// The task of these calls.
    task: Arc<Task>,
    /// Places of the sums of this task's calls.
    places: Vec<(Call, u32)>,
}

impl Acc {
    /// The place of the sum of `call`.
    fn place(&mut self, call: Call, plan: &Plan, sums: &mut CpuTimes) -> u32 {
        if let Some((_, place)) = self.places.iter().find(|(known, _)| *known == call) {
            return *place;
        }
        let place = sums.place(&plan.key(&self.task, call));
        self.places.push((call, place));
        place
    }
}

struct CpuSink<'a> {
    plan: &'a Plan,
    accs: Vec<Acc>,
    sums: CpuTimes,
}

impl CpuSink<'_> {
    fn finish(&mut self, slot: Slot, whole: bool) {
        let acc = &mut self.accs[slot];
        let (on, off, unknown) =
            (std::mem::take(&mut acc.on), std::mem::take(&mut acc.off), std::mem::take(&mut acc.unknown));
        let Some(call) = acc.call.take().filter(|call| call.counted) else { return };
        let place = acc.place(call.call, self.plan, &mut self.sums);
        let sum = self.sums.at(place);
        if !whole || unknown || call.began_before {
            sum.unknown += 1;
            return;
        }
        sum.calls += 1;
        // times of a tape may be anything
        sum.on = sum.on.saturating_add(on);
        sum.off = sum.off.saturating_add(off);
    }
}

impl IntervalSink for CpuSink<'_> {
    fn interval(&mut self, threads: &[Thread], slot: Slot, interval: &Interval) {
        if slot >= self.accs.len() {
            self.accs.resize_with(slot + 1, Acc::default);
        }
        let call = match interval.doing {
            Doing::Call(call) => Some(call),
            Doing::User | Doing::Unknown => None,
        };
        if self.accs[slot].call != call {
            self.finish(slot, true);
            let acc = &mut self.accs[slot];
            acc.call = call;
            if !Arc::ptr_eq(&acc.task, &threads[slot].task) {
                acc.task = Arc::clone(&threads[slot].task);
                acc.places.clear();
            }
        }
        let acc = &mut self.accs[slot];
        match interval.state {
            State::Running => acc.on = acc.on.saturating_add(interval.len()),
            State::Sleeping(_) | State::Waiting(_) | State::Throttled => {
                acc.off = acc.off.saturating_add(interval.len())
            }
            State::Unknown => acc.unknown |= !interval.is_empty(),
        }
        if matches!(interval.end, End::Died | End::Stop) {
            self.finish(slot, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use systape_format::model::{RunState, Task};

    use super::*;
    use crate::derive::runs::targets::Followed;
    use crate::derive::runs::tracker::{Change, RunCoverage, Tracker};

    #[test]
    fn a_call_is_on_and_off_the_cpu() {
        let plan = Plan::mode(crate::derive::summary::mode::SummaryMode::Total);
        let sink = CpuSink { plan: &plan, accs: Vec::new(), sums: CpuTimes::default() };
        let all = RunCoverage { open: 0, followed: Followed::All, every_cpu: true, cpus: 0, hides_calls: false };
        let mut tracker = Tracker::new(all, u64::MAX, sink);
        let task = Arc::new(Task { tid: 1, utid: 1, ..Task::default() });
        let a = tracker.slot(&task, Some(0)).unwrap();
        tracker.begin(a, &RunState { on_cpu: true, state: b'R', ..RunState::default() });
        let read = |start, row| InCall { start, counted: true, row: Some((0, row)), ..InCall::default() };
        tracker.enter(a, read(10, 0));
        tracker.leave(15, a, 0);
        tracker.enter(a, read(20, 1));
        tracker.switch(Change { ts: 25, cpu: 0, prev: Some(a), letter: b'S', ..Change::default() });
        tracker.wakeup(70, None, a, false);
        tracker.switch(Change { ts: 80, cpu: 0, next: Some(a), letter: b'R', ..Change::default() });
        tracker.leave(84, a, 0);
        tracker.enter(a, read(90, 2));
        tracker.finish(100);
        let sums: Vec<_> = tracker.sink.sums.into_sums().map(|(_, sum)| sum).collect();
        assert_eq!(sums, [CpuTime { calls: 2, on: 5 + 5 + 4, off: 55, unknown: 1 }]);
    }
}
