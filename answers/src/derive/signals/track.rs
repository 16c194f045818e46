//! From events to records: which signals are kept, which ended their target, which were taken.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_format::model::{Ancestor, SIGNAL_HANDLER_UNKNOWN, SignalEvent, SignalKind, Task};

use super::missing::{Lost, Missing};
use super::oom::{self, Mark, Marks};
use super::outcome::{self, EndedTarget, Explains, Outcome, Taken};
use super::record::SignalLine;
use super::sent::Sent;
use super::via::{Via, via};
use super::{act, everyday, stops};
use crate::derive::processes::track::key;
use crate::derive::processes::{Ending, Processes};
use systape_abi::signo::{SIGABRT, SIGINT, SIGKILL, SIGQUIT, SIGSTOP, SIGTERM};
use systape_events::calls::CallInfo;
use systape_events::values::order::InOrder as _;

/// The selected signals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SignalChoice {
    /// Signals that ended or stopped a process, and any TERM, KILL, INT, QUIT and ABRT.
    #[default]
    Fatal,
    /// Signals of these numbers.
    These(Vec<u32>),
    /// All signals.
    All,
}

impl SignalChoice {
    /// Whether `sig` is selected regardless of its outcome.
    fn always(&self, sig: u32) -> bool {
        match self {
            Self::Fatal => matches!(sig, SIGTERM | SIGKILL | SIGINT | SIGQUIT | SIGABRT),
            Self::These(list) => list.contains(&sig),
            Self::All => true,
        }
    }

    /// Whether the loss of signals that end no process (GapCause::Everyday) could change the answer.
    pub fn of_everyday(&self) -> bool {
        match self {
            Self::Fatal => false,
            Self::These(list) => list.iter().copied().any(everyday),
            Self::All => true,
        }
    }

    /// Whether `sig` is selected for its outcome.
    fn by_effect(&self, sig: u32) -> bool {
        match self {
            Self::Fatal | Self::All => true,
            Self::These(list) => list.contains(&sig),
        }
    }
}

/// Whether a signal sent by the first task (None: no task) to the second at that time passes the filters.
pub type Passes<'a> = Box<dyn Fn(Option<&Task>, &Task, u64) -> bool + 'a>;

/// A signal that may be printed.
#[derive(Debug)]
struct SignalSlot {
    sent: Sent,
    taken: Option<Taken>,
}

/// The best explanation of a death so far.
#[derive(Clone, Copy, Debug)]
struct Best {
    how: Explains,
    sig: u32,
    ts: u64,
    /// When the process ended.
    end: u64,
    /// What the target did about a signal of that number since: 0 = the default action, or else a handler.
    taken: Option<u64>,
    /// Its slot; None = it does not pass the filters.
    slot: Option<usize>,
}

impl Best {
    /// Losses between it and the end of its process.
    fn lost(&self, missing: &Missing) -> Option<Lost> {
        missing.between(self.sig, self.ts, self.end)
    }

    /// Whether it may have ended its process: its handler must have been gone when it was taken, which may not be
    /// recorded.
    fn holds(&self, missing: &Missing) -> bool {
        match self.taken {
            _ if self.how > Explains::IfTaken => true,
            Some(handler) => handler == 0,
            None => self.lost(missing).is_some(),
        }
    }
}

/// Takes events in the order of the tape. Memory grows with what is printed.
pub struct Tracker<'a> {
    processes: &'a Processes,
    choice: &'a SignalChoice,
    passes: Passes<'a>,
    slots: Vec<Option<SignalSlot>>,
    /// Process → the best explanation of its end.
    best: FxHashMap<u64, Best>,
    /// (process, signal) → slots that are not taken yet.
    waiting: FxHashMap<(u64, u32), Vec<usize>>,
    marks: Marks,
    /// Process → the processes above it, as last recorded.
    chains: FxHashMap<u64, Arc<[Ancestor]>>,
    /// The tape does not have the calls of senders.
    hides_calls: bool,
}

impl<'a> Tracker<'a> {
    /// Deaths come from `processes`.
    pub fn new(processes: &'a Processes, choice: &'a SignalChoice, passes: Passes<'a>) -> Self {
        Self {
            processes,
            choice,
            passes,
            slots: Vec::new(),
            best: FxHashMap::default(),
            waiting: FxHashMap::default(),
            marks: Marks::default(),
            chains: FxHashMap::default(),
            hides_calls: false,
        }
    }

    /// The tape does not have the calls of senders: [`systape_format::model::Session::registers_unknown`].
    pub fn hiding_calls(self, hides_calls: bool) -> Self {
        Self { hides_calls, ..self }
    }

    /// Adds the events of the segment at index `at`, with its `tasks` and `calls`.
    pub fn segment(&mut self, at: usize, events: Vec<SignalEvent>, tasks: &[Task], calls: &[Arc<CallInfo>]) {
        // a thread has one entry for thousands of signals
        let tasks: Vec<Arc<Task>> = tasks.iter().cloned().map(Arc::new).collect();
        for (row, event) in events.into_iter().enumerate() {
            let Some(target) = tasks.get(event.target as usize) else { continue };
            let sender = event.sender.and_then(|sender| tasks.get(sender as usize));
            match event.kind {
                // of an imported log only this is known: that it was taken, and who sent it
                SignalKind::Deliver if event.flags & SIGNAL_HANDLER_UNKNOWN != 0 => self.generate(Sent {
                    call_unknown: true,
                    event,
                    sender: sender.cloned(),
                    target: Arc::clone(target),
                    call: None,
                    sender_above: Arc::default(),
                    target_above: Arc::default(),
                    place: Some((at, row as u32)),
                }),
                SignalKind::Generate => {
                    let call = event.call.and_then(|call| calls.get(call as usize)).cloned();
                    self.generate(Sent {
                        call_unknown: call.is_none() && self.hides_calls,
                        event,
                        sender: sender.cloned(),
                        target: Arc::clone(target),
                        call,
                        sender_above: Arc::default(),
                        target_above: Arc::default(),
                        place: Some((at, row as u32)),
                    });
                }
                SignalKind::Deliver => self.deliver(&event, target),
                SignalKind::OomVictim => self.marks.push(Mark {
                    ts: event.ts,
                    victim: (**target).clone(),
                    short: sender.map(|sender| (**sender).clone()),
                    memory: event.oom,
                }),
            }
        }
    }

    fn generate(&mut self, mut sent: Sent) {
        let (sig, ts, process) = (sent.event.sig, sent.event.ts, key(&sent.target));
        let passes = (self.passes)(sent.sender.as_deref(), &sent.target, ts);
        let how = self.explains(&sent);
        let asked = self.choice.always(sig) || (self.choice.by_effect(sig) && (how.is_some() || stops(sig)));
        let slot = (passes && asked).then_some(self.slots.len());
        if let Some((how, end)) = how {
            self.explain(process, Best { how, sig, ts, end, taken: None, slot });
        }
        if let Some(slot) = slot {
            if outcome::queued(&sent.event) && !sent.only_taken() {
                self.waiting.entry((process, sig)).or_default().push(slot);
            }
            self.trim(&mut sent);
            self.slots.push(Some(SignalSlot { sent, taken: None }));
        }
    }

    /// Shares equal values of many signals, which are most of their memory: chains of parents, and command lines that
    /// the table of processes has too.
    fn trim(&mut self, sent: &mut Sent) {
        let event = &mut sent.event;
        if let Some(sender) = sent.sender.as_deref() {
            sent.sender_above = self.chain(key(sender), std::mem::take(&mut event.sender_ancestors));
            let known = self.processes.get(sender).and_then(|process| process.command_at(event.ts));
            if known.is_some_and(|known| known.argv == event.argv && known.whole == event.argv_status.is_whole()) {
                event.argv = Vec::new();
            }
        }
        sent.target_above = self.chain(key(&sent.target), std::mem::take(&mut event.target_ancestors));
    }

    /// `chain` of this process, shared with the last one if equal.
    fn chain(&mut self, process: u64, chain: Vec<Ancestor>) -> Arc<[Ancestor]> {
        let last = self.chains.entry(process).or_default();
        if **last != *chain {
            *last = chain.into();
        }
        Arc::clone(last)
    }

    /// How well `sent` explains the end of its target, and the time of that; None = not at all.
    fn explains(&self, sent: &Sent) -> Option<(Explains, u64)> {
        let end = self.processes.get(&sent.target)?.end()?;
        let fits = end.signal() == Some(sent.event.sig) && sent.event.ts <= end.ts;
        outcome::explains(&sent.event).filter(|_| fits).map(|how| (how, end.ts))
    }

    /// The last possible one before the end is its cause.
    fn explain(&mut self, process: u64, best: Best) {
        let before = self.best.get(&process).copied();
        if before.is_none_or(|before| (best.how, best.ts) >= (before.how, before.ts)) {
            self.best.insert(process, best);
        }
    }

    fn deliver(&mut self, event: &SignalEvent, target: &Task) {
        if let Some(best) = self.best.get_mut(&key(target)).filter(|best| best.sig == event.sig && best.ts <= event.ts)
        {
            best.taken = Some(best.taken.map_or(event.ip, |handler| handler.min(event.ip)));
        }
        let Some(waiting) = self.waiting.get_mut(&(key(target), event.sig)) else { return };
        for slot in std::mem::take(waiting) {
            if let Some(slot) = &mut self.slots[slot]
                && slot.sent.event.ts <= event.ts
            {
                slot.taken = Some(Taken { ts: event.ts, handler: event.ip, at_most: false });
            }
        }
    }

    /// The records, by time, with the ends that no signal explains; `missing` has the losses of signals.
    pub fn finish(mut self, missing: &Missing) -> Vec<SignalLine> {
        self.best.retain(|_, best| best.holds(missing));
        let mut records = Vec::new();
        for at in 0..self.slots.len() {
            if let Some(slot) = self.slots[at].take() {
                records.extend(self.record(at, slot, missing));
            }
        }
        for process in &self.processes.all {
            let Some(end) = process.end() else { continue };
            let Some(sig) = end.signal() else { continue };
            let wanted = self.choice.always(sig) || self.choice.by_effect(sig);
            if wanted && !self.best.contains_key(&key(&process.task)) && (self.passes)(None, &process.task, end.ts) {
                records.push(unseen(&process.task, sig, end, missing));
            }
        }
        records.order_by_key(|record| record.sent.event.ts);
        act::number(&mut records);
        records
    }

    fn record(&self, at: usize, slot: SignalSlot, missing: &Missing) -> Option<SignalLine> {
        let SignalSlot { sent, taken } = slot;
        let event = &sent.event;
        let lost = |taken: &Taken| missing.between(event.sig, event.ts, taken.ts).is_some();
        let taken = taken.map(|taken| Taken { at_most: lost(&taken), ..taken });
        let process = self.processes.get(&sent.target);
        let end = process.and_then(|process| process.end());
        let cause = match self.best.get(&key(&sent.target)).filter(|best| best.slot == Some(at)) {
            Some(best) => best.lost(missing).map_or(EndedTarget::Yes, EndedTarget::Maybe),
            None => EndedTarget::No,
        };
        let stopped = stops(event.sig) && taken.is_some_and(|taken| taken.handler == 0)
            || sent.only_taken() && event.sig == SIGSTOP;
        let via = match via(&sent, &self.marks) {
            // the mark of the OOM killer comes behind its signal
            Via::Kernel if sent.event.sig == SIGKILL && self.unmarked(event.ts, missing) => Via::Unknown,
            via => via,
        };
        let mark = match (via, &sent.sender) {
            (Via::Oom, _) => self.marks.of_victim(&sent.target, event.ts).cloned(),
            (Via::OomSharedMm, Some(sender)) => self.marks.of_other(sender, &sent.target, event.ts).cloned(),
            _ => None,
        };
        // one that a handler may have taken, or that stopped it
        let may_stop = sent.only_taken() && stops(event.sig) && self.choice.by_effect(event.sig);
        let wanted = self.choice.always(event.sig) || cause != EndedTarget::No || stopped || may_stop;
        let outcome = Outcome { taken, end, followed: process.is_some_and(|process| process.followed), cause, stopped };
        let record = SignalLine { sent, via, outcome, mark, act: 0, unseen: None };
        // who it is blamed on is known only now
        let passes = (self.passes)(record.sender(), &record.sent.target, record.sent.event.ts);
        (wanted && passes).then_some(record)
    }
}

impl Tracker<'_> {
    /// Whether a mark for a signal sent at `ts` may be missing.
    fn unmarked(&self, ts: u64, missing: &Missing) -> bool {
        missing.between(SIGKILL, ts, ts.saturating_add(oom::APART)).is_some()
    }
}

/// The end of a process by a signal that was not recorded.
fn unseen(target: &Task, sig: u32, end: Ending, missing: &Missing) -> SignalLine {
    let event = SignalEvent { result: outcome::DELIVERED, ..SignalEvent::new(end.ts, SignalKind::Generate, sig, 0) };
    let sent = Sent {
        event,
        sender: None,
        target: Arc::new(target.clone()),
        call: None,
        call_unknown: false,
        sender_above: Arc::default(),
        target_above: Arc::default(),
        place: None,
    };
    // anybody may send SIGSYS
    let sure = end.surely_by_seccomp() || missing.between(sig, 0, end.ts).is_none();
    let via = if end.by_seccomp() && sure { Via::Seccomp } else { Via::Unknown };
    let outcome = Outcome { end: Some(end), followed: true, ..Outcome::default() };
    SignalLine { sent, via, outcome, mark: None, act: 0, unseen: Some(end) }
}

#[cfg(test)]
mod tests {
    use super::super::exercise::{call, event, exit, task};
    use systape_format::model::{OomMemory, SignalInfo};

    use super::*;
    use systape_format::model::{ProcessEvent, SIGNAL_BLOCKED, SIGNAL_HANDLED, SIGNAL_IGNORED};

    /// Processes 10, 20, 30 and 40, which are tasks 0 to 3, and what became of them.
    fn run(exits: &[ProcessEvent], events: Vec<SignalEvent>, choice: &SignalChoice) -> Vec<SignalLine> {
        run_with(exits, events, choice, |_, _, _| true)
    }

    fn run_with(
        exits: &[ProcessEvent],
        events: Vec<SignalEvent>,
        choice: &SignalChoice,
        passes: impl Fn(Option<&Task>, &Task, u64) -> bool,
    ) -> Vec<SignalLine> {
        run_without(exits, events, choice, passes, &Missing::default())
    }

    fn run_without(
        exits: &[ProcessEvent],
        events: Vec<SignalEvent>,
        choice: &SignalChoice,
        passes: impl Fn(Option<&Task>, &Task, u64) -> bool,
        missing: &Missing,
    ) -> Vec<SignalLine> {
        let tasks = [task(10), task(20), task(30), task(40)];
        let mut processes = Processes::new(0);
        for task in &tasks {
            processes.see(task);
        }
        for exit in exits {
            processes.event(exit, &tasks);
        }
        let processes = processes.finish();
        let mut tracker = Tracker::new(&processes, choice, Box::new(passes));
        tracker.segment(0, events, &tasks, &[call("kill"), call("write")]);
        tracker.finish(missing)
    }

    fn deliver(ts: u64, sig: u32, target: u32, handler: u64) -> SignalEvent {
        SignalEvent { kind: SignalKind::Deliver, sender: None, ip: handler, ..event(ts, sig, 0, target) }
    }

    fn causes(records: &[SignalLine]) -> Vec<(u64, bool)> {
        records.iter().map(|record| (record.sent.event.ts, record.outcome.cause == EndedTarget::Yes)).collect()
    }

    /// Causes when all signals from `first` to `last` are missing.
    fn causes_without(
        exit: ProcessEvent,
        events: Vec<SignalEvent>,
        (first, last): (u64, u64),
    ) -> Vec<(u64, Option<EndedTarget>, Via)> {
        let missing = Missing::new(&[], &[(first, last)]);
        let records = run_without(&[exit], events, &SignalChoice::Fatal, |_, _, _| true, &missing);
        let cause = |record: &SignalLine| record.unseen.is_none().then_some(record.outcome.cause);
        records.iter().map(|record| (record.sent.event.ts, cause(record), record.via)).collect()
    }

    #[test]
    fn what_was_lost_in_between_may_be_the_cause() {
        let maybe = Some(EndedTarget::Maybe(Lost { events: None }));
        let first_cause = |events: Vec<SignalEvent>, gap| causes_without(exit(600, 1, 15), events, gap)[0].1;
        let sent = || vec![event(400, 15, 0, 1)];
        assert_eq!(first_cause(sent(), (500, 500)), maybe);
        assert_eq!(first_cause(sent(), (600, 900)), maybe);
        assert_eq!(first_cause(sent(), (100, 399)), Some(EndedTarget::Yes), "it would have died before");
        assert_eq!(first_cause(sent(), (601, 900)), Some(EndedTarget::Yes));
        // with a handler it is the cause only if that was gone, which cannot have been seen
        let handled = || SignalEvent { flags: SIGNAL_HANDLED, ..event(400, 15, 0, 1) };
        assert_eq!(first_cause(vec![handled()], (500, 500)), maybe);
        assert_eq!(first_cause(vec![handled()], (100, 100)), Some(EndedTarget::No));
        let gone = vec![handled(), deliver(410, 15, 1, 0x5000)];
        let seen = causes_without(exit(600, 1, 15), gone, (500, 500));
        assert_eq!(
            seen.iter().map(|(ts, cause, _)| (*ts, *cause)).collect::<Vec<_>>(),
            [(400, Some(EndedTarget::No)), (600, None)]
        );
    }

    #[test]
    fn seccomp_is_not_blamed_for_what_may_be_a_lost_signal() {
        let via = |flags, gap| {
            let exit = ProcessEvent { flags, ..exit(200, 2, 31 | 0x80) };
            causes_without(exit, Vec::new(), gap)[0].2
        };
        assert_eq!(via(2, (300, 400)), Via::Seccomp);
        assert_eq!(via(2, (100, 150)), Via::Unknown);
        assert_eq!(via(3, (100, 150)), Via::Seccomp, "the kernel says so");
    }

    #[test]
    fn the_nearest_that_could_have_is_the_cause() {
        let with = |ts, flags, result| SignalEvent { flags, result, ..event(ts, 15, 0, 1) };
        let events = vec![
            with(100, SIGNAL_BLOCKED, 0),
            with(200, SIGNAL_HANDLED, 0),
            with(300, SIGNAL_IGNORED, 1),
            with(400, 0, 0),
            with(450, 0, 2),
            with(500, 0, 1),
        ];
        let records = run(&[exit(600, 1, 15)], events, &SignalChoice::Fatal);
        assert_eq!(
            causes(&records),
            [(100, false), (200, false), (300, false), (400, true), (450, false), (500, false)]
        );
        assert_eq!(records[3].outcome.end.unwrap().ts, 600);
        let blocked = vec![with(100, SIGNAL_BLOCKED, 0), with(200, SIGNAL_HANDLED, 0)];
        assert_eq!(causes(&run(&[exit(600, 1, 15)], blocked, &SignalChoice::Fatal)), [(100, true), (200, false)]);
        let after = vec![with(700, 0, 1)];
        let records = run(&[exit(600, 1, 15)], after, &SignalChoice::Fatal);
        assert_eq!(causes(&records), [(600, false), (700, false)]);
        assert!(records[0].unseen.is_some(), "a signal to the dead is not what killed them");
    }

    #[test]
    fn a_handler_may_be_gone_when_the_signal_is_taken() {
        let handled = || SignalEvent { flags: SIGNAL_HANDLED, ..event(100, 6, 1, 1) };
        let records = run(&[exit(300, 1, 6)], vec![handled(), deliver(200, 6, 1, 0)], &SignalChoice::Fatal);
        assert_eq!(causes(&records), [(100, true)]);
        let records = run(&[exit(300, 1, 6)], vec![handled(), deliver(200, 6, 1, 0x5000)], &SignalChoice::Fatal);
        assert_eq!(causes(&records), [(100, false), (300, false)]);
        assert_eq!(records[0].outcome.taken, Some(Taken { ts: 200, handler: 0x5000, at_most: false }));
        assert_eq!((records[1].via, records[1].sender()), (Via::Unknown, None));
    }

    #[test]
    fn what_is_chosen() {
        let events = || {
            vec![
                event(100, 15, 0, 1),
                event(200, 17, 1, 0),
                event(300, 10, 0, 2),
                event(400, 19, 0, 3),
                deliver(410, 19, 3, 0),
                event(500, 20, 0, 3),
            ]
        };
        let exits = [exit(310, 2, 10)];
        let numbers =
            |choice| -> Vec<u32> { run(&exits, events(), &choice).iter().map(|r| r.sent.event.sig).collect() };
        assert_eq!(numbers(SignalChoice::Fatal), [15, 10, 19], "TERM, what ended one, what stopped one");
        assert_eq!(numbers(SignalChoice::These(vec![17, 20])), [17, 20]);
        assert_eq!(numbers(SignalChoice::All), [15, 17, 10, 19, 20]);
        let stopped = run(&exits, events(), &SignalChoice::Fatal);
        assert!(stopped[2].outcome.stopped && !stopped[0].outcome.stopped);
    }

    #[test]
    fn a_sender_that_is_not_asked_for_is_still_the_cause() {
        let events = vec![event(100, 9, 0, 1), event(200, 9, 3, 1)];
        let of_10 = |sender: Option<&Task>, _: &Task, _| sender.is_some_and(|sender| sender.pid == 10);
        assert_eq!(causes(&run_with(&[exit(300, 1, 9)], events, &SignalChoice::Fatal, of_10)), [(100, false)]);
    }

    #[test]
    fn deaths_without_a_signal() {
        let strict = ProcessEvent { flags: 1, ..exit(100, 1, 9) };
        let filter = ProcessEvent { flags: 2, ..exit(200, 2, 31 | 0x80) };
        let records = run(&[strict, filter, exit(300, 3, 9)], Vec::new(), &SignalChoice::Fatal);
        assert_eq!(records.iter().map(|r| r.via).collect::<Vec<_>>(), [Via::Seccomp, Via::Seccomp, Via::Unknown]);
        assert!(records[1].outcome.end.unwrap().core_dumped());
        assert!(run(&[exit(100, 1, 3 << 8)], Vec::new(), &SignalChoice::All).is_empty());
    }

    #[test]
    fn one_kill_of_a_group_is_one_act() {
        let group =
            |ts, target| SignalEvent { call: Some(0), call_args: [0xffff_fff6, 15, 0, 0], ..event(ts, 15, 0, target) };
        let one = |ts, target| SignalEvent { call: Some(0), call_args: [20, 15, 0, 0], ..event(ts, 15, 0, target) };
        let acts = |events| -> Vec<u32> { run(&[], events, &SignalChoice::Fatal).iter().map(|r| r.act).collect() };
        assert_eq!(acts(vec![group(100, 1), group(110, 2), one(115, 1), group(120, 3)]), [1, 1, 2, 1]);
        assert_eq!(acts(vec![group(100, 1), group(110, 2), group(120, 1)]), [1, 1, 2], "nobody twice in one act");
        assert_eq!(acts(vec![group(100, 1), group(900_000_000, 2)]), [1, 2]);
        assert_eq!(run(&[], vec![group(100, 1)], &SignalChoice::Fatal)[0].sent.group(), Some(10));
        let path = b"/sys/fs/cgroup/x/cgroup.kill".to_vec();
        let cgroup = |ts, target| SignalEvent {
            info: SignalInfo::NoInfo,
            call: Some(1),
            call_path: path.clone(),
            ..event(ts, 9, 0, target)
        };
        assert_eq!(acts(vec![cgroup(100, 1), cgroup(110, 2)]), [1, 1]);
    }

    #[test]
    fn oom_kills_name_the_one_that_ran_out() {
        let kill = |ts, target| SignalEvent { info: SignalInfo::Priv, ..event(ts, 9, 3, target) };
        let mark = SignalEvent {
            kind: SignalKind::OomVictim,
            oom: OomMemory { anon: 4096, ..OomMemory::default() },
            ..event(140, 0, 3, 1)
        };
        let records = run(&[exit(200, 1, 9)], vec![kill(100, 1), mark, kill(150, 2)], &SignalChoice::Fatal);
        assert_eq!(records.iter().map(|r| r.via).collect::<Vec<_>>(), [Via::Oom, Via::OomSharedMm]);
        assert_eq!(records[0].mark.as_ref().map(|mark| (mark.victim.pid, mark.memory.anon)), Some((20, 4096)));
        assert_eq!(records[0].sender().map(|sender| sender.pid), Some(40));
    }
}
