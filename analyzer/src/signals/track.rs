//! From events to records: which signals are kept, which of them ended their target, which were taken.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use systape_format::model::{ByteStatus, OomMemory, SignalEvent, SignalInfo, SignalKind, Task};

use super::number::{SIGABRT, SIGINT, SIGKILL, SIGQUIT, SIGTERM, SIGXCPU};
use super::oom::{Mark, Marks};
use super::outcome::{self, Explains, Outcome, Taken};
use super::record::{Record, Sent};
use super::via::{Via, via};
use super::{act, stops};
use crate::calls::CallInfo;
use crate::processes::track::key;
use crate::processes::{Ending, Processes};

/// Which signals are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// Those that ended or stopped a process, and any TERM, KILL, INT, QUIT and ABRT.
    #[default]
    Fatal,
    /// These numbers.
    These(Vec<u32>),
    /// All.
    All,
}

impl Choice {
    /// Whether `sig` is wanted whatever came of it.
    fn always(&self, sig: u32) -> bool {
        match self {
            Self::Fatal => matches!(sig, SIGTERM | SIGKILL | SIGINT | SIGQUIT | SIGABRT),
            Self::These(list) => list.contains(&sig),
            Self::All => true,
        }
    }

    /// Whether `sig` is wanted for what it did.
    fn by_effect(&self, sig: u32) -> bool {
        match self {
            Self::Fatal | Self::All => true,
            Self::These(list) => list.contains(&sig),
        }
    }
}

/// Whether a signal sent by the first task (None: nobody) to the second at that time is asked for.
pub type Passes<'a> = Box<dyn Fn(Option<&Task>, &Task, u64) -> bool + 'a>;

/// A signal that may be printed.
#[derive(Debug)]
struct Slot {
    sent: Sent,
    taken: Option<Taken>,
}

/// The best explanation of a death so far.
#[derive(Clone, Copy, Debug)]
struct Best {
    how: Explains,
    sig: u32,
    ts: u64,
    /// The target took the default action.
    taken: bool,
    /// Its slot; None = it is not asked for.
    slot: Option<usize>,
}

/// Takes events in the order of the tape. Memory grows with what is printed.
pub struct Tracker<'a> {
    processes: &'a Processes,
    choice: &'a Choice,
    passes: Passes<'a>,
    slots: Vec<Option<Slot>>,
    /// Process → what best explains its end.
    best: FxHashMap<u64, Best>,
    /// (process, signal) → slots nobody took yet.
    waiting: FxHashMap<(u64, u32), Vec<usize>>,
    marks: Marks,
    /// Processes that had a SIGXCPU of the kernel.
    xcpu: FxHashSet<u64>,
}

impl<'a> Tracker<'a> {
    /// Deaths come from `processes`.
    pub fn new(processes: &'a Processes, choice: &'a Choice, passes: Passes<'a>) -> Self {
        Self {
            processes,
            choice,
            passes,
            slots: Vec::new(),
            best: FxHashMap::default(),
            waiting: FxHashMap::default(),
            marks: Marks::default(),
            xcpu: FxHashSet::default(),
        }
    }

    /// Adds the events of a segment; `tasks` and `calls` are what their indices stand for.
    pub fn segment(&mut self, events: Vec<SignalEvent>, tasks: &[Task], calls: &[Arc<CallInfo>]) {
        for event in events {
            let Some(target) = tasks.get(event.target as usize) else { continue };
            let sender = event.sender.and_then(|sender| tasks.get(sender as usize));
            match event.kind {
                SignalKind::Generate => {
                    let call = event.call.and_then(|call| calls.get(call as usize)).cloned();
                    let after_xcpu = self.xcpu.contains(&key(target));
                    self.generate(Sent { event, sender: sender.cloned(), target: target.clone(), call, after_xcpu });
                }
                SignalKind::Deliver => self.deliver(&event, target),
                SignalKind::OomVictim => self.marks.push(Mark {
                    ts: event.ts,
                    victim: target.clone(),
                    short: sender.cloned(),
                    memory: event.oom,
                }),
            }
        }
    }

    fn generate(&mut self, sent: Sent) {
        let (sig, ts, process) = (sent.event.sig, sent.event.ts, key(&sent.target));
        if sig == SIGXCPU && sent.event.info == SignalInfo::Priv {
            self.xcpu.insert(process);
        }
        let passes = (self.passes)(sent.sender.as_ref(), &sent.target, ts);
        let how = self.explains(&sent);
        let asked = self.choice.always(sig) || (self.choice.by_effect(sig) && (how.is_some() || stops(sig)));
        let slot = (passes && asked).then_some(self.slots.len());
        if let Some(how) = how {
            self.explain(process, Best { how, sig, ts, taken: false, slot });
        }
        if let Some(slot) = slot {
            if outcome::queued(&sent.event) {
                self.waiting.entry((process, sig)).or_default().push(slot);
            }
            self.slots.push(Some(Slot { sent, taken: None }));
        }
    }

    /// How well `sent` explains the end of its target; None = not at all.
    fn explains(&self, sent: &Sent) -> Option<Explains> {
        let end = self.processes.get(&sent.target)?.end()?;
        let fits = end.signal() == Some(sent.event.sig) && sent.event.ts <= end.ts;
        outcome::explains(&sent.event).filter(|_| fits)
    }

    /// The nearest before the end is its cause, among those that could be.
    fn explain(&mut self, process: u64, best: Best) {
        let before = self.best.get(&process).copied();
        if before.is_none_or(|before| (best.how, best.ts) >= (before.how, before.ts)) {
            self.best.insert(process, best);
        }
    }

    fn deliver(&mut self, event: &SignalEvent, target: &Task) {
        if event.ip == 0 {
            if let Some(best) = self.best.get_mut(&key(target)) {
                best.taken |= best.sig == event.sig && best.ts <= event.ts;
            }
        }
        let Some(waiting) = self.waiting.get_mut(&(key(target), event.sig)) else { return };
        for slot in std::mem::take(waiting) {
            if let Some(slot) = &mut self.slots[slot] {
                if slot.sent.event.ts <= event.ts {
                    slot.taken = Some(Taken { ts: event.ts, handler: event.ip });
                }
            }
        }
    }

    /// The records, by time, with the ends that no signal explains.
    pub fn finish(mut self) -> Vec<Record> {
        self.best.retain(|_, best| best.how > Explains::IfTaken || best.taken);
        let mut records = Vec::new();
        for at in 0..self.slots.len() {
            if let Some(slot) = self.slots[at].take() {
                records.extend(self.record(at, slot));
            }
        }
        for process in &self.processes.all {
            let Some(end) = process.end() else { continue };
            let Some(sig) = end.signal() else { continue };
            let wanted = self.choice.always(sig) || self.choice.by_effect(sig);
            if wanted && !self.best.contains_key(&key(&process.task)) && (self.passes)(None, &process.task, end.ts) {
                records.push(unseen(&process.task, sig, end));
            }
        }
        records.sort_by_key(|record| record.sent.event.ts);
        act::number(&mut records);
        records
    }

    fn record(&self, at: usize, slot: Slot) -> Option<Record> {
        let Slot { sent, taken } = slot;
        let event = &sent.event;
        let process = self.processes.get(&sent.target);
        let end = process.and_then(|process| process.end());
        let cause = self.best.get(&key(&sent.target)).is_some_and(|best| best.slot == Some(at));
        let stopped = stops(event.sig) && taken.is_some_and(|taken| taken.handler == 0);
        let via = via(&sent, &self.marks);
        let mark = match (via, &sent.sender) {
            (Via::Oom, _) => self.marks.of_victim(&sent.target, event.ts).cloned(),
            (Via::OomSharedMm, Some(sender)) => self.marks.of_other(sender, &sent.target, event.ts).cloned(),
            _ => None,
        };
        let wanted = self.choice.always(event.sig) || cause || stopped;
        let outcome = Outcome { taken, end, followed: process.is_some_and(|process| process.followed), cause, stopped };
        let record = Record { sent, via, outcome, mark, act: 0, unseen: None };
        // who it is blamed on is known only now
        let passes = (self.passes)(record.sender(), &record.sent.target, record.sent.event.ts);
        (wanted && passes).then_some(record)
    }
}

/// The end of a process by a signal that nobody was seen to send.
fn unseen(target: &Task, sig: u32, end: Ending) -> Record {
    let event = SignalEvent {
        ts: end.ts,
        kind: SignalKind::Generate,
        sig,
        code: 0,
        errno: 0,
        info: SignalInfo::Unknown,
        result: outcome::DELIVERED,
        flags: 0,
        target: 0,
        sender: None,
        call: None,
        call_args: [0; 4],
        call_path: Vec::new(),
        si_pid: 0,
        si_uid: 0,
        addr: 0,
        ip: 0,
        sender_ancestors: Vec::new(),
        target_ancestors: Vec::new(),
        argv: Vec::new(),
        argv_status: ByteStatus::NotResident,
        argv_full: 0,
        oom: OomMemory::default(),
    };
    let sent = Sent { event, sender: None, target: target.clone(), call: None, after_xcpu: false };
    let via = if end.by_seccomp() { Via::Seccomp } else { Via::Unknown };
    let outcome = Outcome { end: Some(end), followed: true, ..Outcome::default() };
    Record { sent, via, outcome, mark: None, act: 0, unseen: Some(end) }
}
