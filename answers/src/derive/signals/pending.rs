//! Signals that may still end their targets, of a tape that comes in parts: those that were not handled, as long as the
//! target lives. Of several of one number and kind the last one is kept, which is the one that would explain the end.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use systape_format::model::{SignalEvent, SignalKind, Task};

use super::ends;
use super::outcome::{self, Explains};
use super::track::Tracker;
use crate::derive::processes::track::key;
use systape_events::calls::CallInfo;
use systape_events::values::order::InOrder as _;

/// Most signals that are kept.
const MOST: usize = 1 << 16;

/// A signal that was sent, with its tasks.
#[derive(Clone, Debug)]
struct Waiting {
    event: SignalEvent,
    /// That it was taken, by the default action.
    taken: Option<SignalEvent>,
    /// Target and sender.
    tasks: Vec<Task>,
    call: Option<Arc<CallInfo>>,
    /// Number of its act; 0: it was not printed.
    act: u32,
}

/// Signals that are pending.
#[derive(Debug, Default)]
pub struct Pending {
    /// By process, number, and how well it would explain the end.
    kept: FxHashMap<(u64, u32, Explains), Waiting>,
    /// Some were left out because there were too many.
    pub crowded: bool,
}

impl Pending {
    /// Passes them to `tracker`, in order of time; returns the number of the act of each, by its place.
    pub fn feed(&self, tracker: &mut Tracker<'_>) -> Vec<u32> {
        let mut all: Vec<&Waiting> = self.kept.values().collect();
        all.order_by_key(|waiting| (waiting.event.ts, waiting.tasks.first().map(|task| task.tid)));
        for (at, waiting) in all.iter().enumerate() {
            let calls: Vec<_> = waiting.call.iter().cloned().collect();
            let events = std::iter::once(waiting.event.clone()).chain(waiting.taken.clone()).collect();
            tracker.segment(at, events, &waiting.tasks, &calls);
        }
        all.iter().map(|waiting| waiting.act).collect()
    }

    /// Adds the signals of a segment; `act` has the numbers of acts of printed ones, by row.
    pub fn add(&mut self, events: &[SignalEvent], tasks: &[Task], calls: &[Arc<CallInfo>], act: &FxHashMap<u32, u32>) {
        for (row, event) in events.iter().enumerate() {
            let Some(target) = tasks.get(event.target as usize) else { continue };
            let process = key(target);
            match (event.kind, outcome::explains(event).filter(|_| ends(event.sig))) {
                (SignalKind::Generate, Some(how)) => {
                    let sender = event.sender.and_then(|sender| tasks.get(sender as usize));
                    let call = event.call.and_then(|call| calls.get(call as usize)).cloned();
                    let own = SignalEvent {
                        target: 0,
                        sender: sender.map(|_| 1),
                        call: call.as_ref().map(|_| 0),
                        ..event.clone()
                    };
                    let tasks = std::iter::once(target).chain(sender).cloned().collect();
                    let act = act.get(&(row as u32)).copied().unwrap_or(0);
                    self.kept.insert((process, event.sig, how), Waiting { event: own, taken: None, tasks, call, act });
                }
                (SignalKind::Deliver, _) => self.deliver(process, event),
                _ => {}
            }
        }
        if self.kept.len() > MOST {
            let mut times: Vec<u64> = self.kept.values().map(|waiting| waiting.event.ts).collect();
            times.sort_unstable();
            let from = times[times.len() / 2];
            self.kept.retain(|_, waiting| waiting.event.ts > from);
            self.crowded = true;
        }
    }

    /// A target took a signal: by a handler, and it is over, or else its end will come.
    fn deliver(&mut self, process: u64, event: &SignalEvent) {
        for how in [Explains::IfTaken, Explains::Later, Explains::AtOnce] {
            let at = (process, event.sig, how);
            let Some(waiting) = self.kept.get_mut(&at).filter(|waiting| waiting.event.ts <= event.ts) else { continue };
            if event.ip == 0 {
                waiting.taken = Some(SignalEvent { target: 0, sender: None, call: None, ..event.clone() });
            } else {
                self.kept.remove(&at);
            }
        }
    }

    /// Leaves out those to processes that ended.
    pub fn forget(&mut self, ended: &FxHashSet<u64>) {
        self.kept.retain(|(process, ..), _| !ended.contains(process));
    }
}

#[cfg(test)]
mod tests {
    use super::super::exercise::{call, event, exit, task};
    use super::super::{EndedTarget, Missing, SignalChoice, SignalLine};
    use super::*;
    use crate::derive::processes::Processes;
    use systape_format::model::{ProcessEvent, SIGNAL_HANDLED};

    /// What is made of signals of the first part when the processes end in the second.
    fn later(events: &[SignalEvent], exits: &[ProcessEvent]) -> Vec<SignalLine> {
        let tasks = [task(10), task(20), task(30), task(40)];
        let mut pending = Pending::default();
        pending.add(events, &tasks, &[call("kill")], &[(0, 7)].into_iter().collect());
        let mut processes = Processes::default();
        for task in &tasks {
            processes.see(task);
        }
        for exit in exits {
            processes.event(exit, &tasks);
        }
        let mut tracker = Tracker::new(&processes, &SignalChoice::Fatal, Box::new(|_, _, _| true));
        let acts = pending.feed(&mut tracker);
        let records = tracker.finish(&Missing::default());
        let acts: Vec<u32> = records.iter().filter_map(|record| record.sent.place).map(|(at, _)| acts[at]).collect();
        assert!(acts.iter().all(|act| [0, 7].contains(act)));
        records
    }

    fn deliver(ts: u64, sig: u32, target: u32, handler: u64) -> SignalEvent {
        SignalEvent { kind: SignalKind::Deliver, sender: None, ip: handler, ..event(ts, sig, 0, target) }
    }

    #[test]
    fn the_last_signal_that_could_is_kept_until_its_target_ends() {
        let records = later(&[event(100, 9, 0, 1), event(200, 9, 2, 1)], &[exit(900, 1, 9)]);
        assert_eq!(records.len(), 1);
        assert_eq!((records[0].sent.event.ts, records[0].outcome.cause), (200, EndedTarget::Yes));
        assert_eq!(records[0].sender().map(|sender| sender.pid), Some(30));
        assert!(records[0].unseen.is_none());
    }

    #[test]
    fn one_that_was_handled_explains_no_later_end() {
        let handled = SignalEvent { flags: SIGNAL_HANDLED, ..event(100, 15, 0, 1) };
        let records = later(&[handled.clone(), deliver(110, 15, 1, 0x5000)], &[exit(900, 1, 15)]);
        assert_eq!(records.len(), 1);
        assert!(records[0].unseen.is_some());
        // its handler was gone
        let records = later(&[handled, deliver(110, 15, 1, 0)], &[exit(900, 1, 15)]);
        assert_eq!((records.len(), records[0].outcome.cause), (1, EndedTarget::Yes));
    }

    #[test]
    fn it_is_bounded() {
        let mut pending = Pending::default();
        for pid in 0..=MOST as u32 {
            pending.add(&[event(pid.into(), 9, 0, 0)], &[task(pid + 1)], &[], &FxHashMap::default());
        }
        assert!(pending.crowded && pending.kept.len() <= MOST / 2 + 1, "{}", pending.kept.len());
        pending.forget(&[key(&task(MOST as u32 + 1))].into_iter().collect());
        assert!(pending.kept.len() <= MOST / 2);
    }
}
