//! The first pass of a cut: what rows outside of the window tell of it.
//!
//! Before the window these are, of each thread, the last switch to a CPU, the last one from it, the last wake-up and
//! the last call; of each CPU the last switch. Where switches were lost, all later ones are kept.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::Plan;
use super::lives::Lives;
use crate::families::{SOCKET_NAME, SOCKET_TCP};
use crate::model::{Dict, Family, Gap, GapCause, LedgerReason, LedgerRow, SignalKind, Task, Window};
use crate::reader::{Segment, Tape};
use crate::tables::TableRows;

/// TCP_CLOSE of include/net/tcp_states.h.
const CLOSED: u8 = 7;
/// TCP_SYN_SENT, TCP_SYN_RECV and TCP_LISTEN: the states that a connection begins with.
const BEGINNINGS: [u8; 3] = [2, 3, 10];

/// Rows of a segment that stay although they are before the window, by position.
#[derive(Debug, Default)]
pub(super) struct Early {
    pub(super) calls: BTreeSet<u32>,
    pub(super) switches: BTreeSet<u32>,
    pub(super) wakeups: BTreeSet<u32>,
    pub(super) ledger: BTreeSet<u32>,
}

/// First and last event of a socket; last is u64::MAX while it is open.
type Span = (u64, u64);

/// What was found out.
#[derive(Debug)]
pub(super) struct Survey {
    /// Lives of processes.
    pub(super) lives: Lives,
    /// By position of the segment.
    early: HashMap<usize, Early>,
    sockets: HashMap<u64, Span>,
    /// Processes whose signals matter, wherever they are.
    targets: HashSet<u32>,
    /// From here on every switch before the window stays, because some were lost.
    switches_from: u64,
    /// Threads with a call that began in the window and ended after it: when. Their switches until then stay.
    busy: HashMap<u64, u64>,
    window: Window,
}

/// A thread or CPU, as a key: tids of tasks without a unique number may repeat.
fn thread(task: &Task) -> u64 {
    if task.utid == 0 { 1 << 32 | u64::from(task.tid) } else { u64::from(task.utid) }
}

/// The last row of each key so far: (segment, row, process).
type Last = HashMap<u64, (usize, u32, u32)>;

/// See [`Survey`].
#[derive(Default)]
struct Reader {
    lives: Lives,
    calls: Last,
    switched_in: Last,
    switched_out: Last,
    on_cpu: Last,
    woken: Last,
    sockets: HashMap<u64, Span>,
    sent_to: HashSet<u32>,
    /// Processes that changes of a socket name, and that sent a signal to another.
    owners: HashSet<(u64, u32)>,
    senders: HashSet<(u32, u32)>,
    /// Who woke each thread last.
    wakers: HashMap<u64, u32>,
    /// Where the earliest call began that was lost and counted: its start, segment, row and process.
    counted: Option<(u64, usize, u32, u32)>,
    switches_from: Option<u64>,
    busy: HashMap<u64, u64>,
}

impl Survey {
    /// Reads `tape`. What cannot be read is left out: the second pass tells of it. `progress` as in
    /// [`crate::repair::holes`].
    pub(super) fn of(tape: &Tape, plan: &Plan<'_>, progress: &dyn Fn(u64)) -> Self {
        let mut reader = Reader::default();
        if let Ok(checkpoint) = tape.checkpoint(0) {
            reader.lives.checkpoint(&checkpoint, |task| plan.has(task));
        }
        for at in 0..tape.segments.len() {
            reader.segment(at, tape.segment(at), plan);
            progress(tape.blocks[at].places.first().map_or(0, |place| place.offset) / 2);
        }
        reader.finish(plan.window)
    }

    /// What stays of the segment at position `at` before the window.
    pub(super) fn early(&self, at: usize) -> Option<&Early> {
        self.early.get(&at)
    }

    /// Whether the switch at `ts`, before the window, stays although nothing picked it.
    pub(super) fn keeps_switch(&self, ts: u64) -> bool {
        ts >= self.switches_from
    }

    /// Whether what the thread `task` did at `ts`, after the window, tells of a call of the window.
    pub(super) fn keeps_late(&self, task: Option<&Task>, ts: u64) -> bool {
        ts >= self.window.to && task.is_some_and(|task| self.busy.get(&thread(task)).is_some_and(|end| ts <= *end))
    }

    /// Whether a connection was open in the window; one of which nothing is known may have been.
    pub(super) fn socket(&self, socket: u64) -> bool {
        self.sockets.get(&socket).is_none_or(|(first, last)| *first < self.window.to && *last >= self.window.from)
    }

    /// Whether signals to the process of `task` matter.
    pub(super) fn is_target(&self, task: &Task) -> bool {
        self.targets.contains(&task.upid)
    }
}

impl Reader {
    fn segment(&mut self, at: usize, segment: Segment<'_>, plan: &Plan<'_>) {
        if let Ok(gaps) = segment.gaps() {
            gaps.iter().for_each(|gap| self.gap(gap, plan.window));
        }
        let Ok(dict) = segment.dict() else { return };
        let Window { from, to } = plan.window;
        let inside = segment.info().touches(from, to) || (dict.window_end > from && dict.window_start < to);
        self.lives.table(at, &dict.tasks, |task| plan.has(task), inside);
        for event in segment.processes(&dict).unwrap_or_default() {
            self.lives.event(&event, &dict.tasks);
        }
        let upid = |task: u32| dict.tasks.get(task as usize).map_or(0, |task| task.upid);
        for event in segment.nets(&dict).unwrap_or_default() {
            // one whose first change is no beginning was there before
            let begins = BEGINNINGS.contains(&event.new_state);
            let span = self.sockets.entry(event.socket).or_insert((if begins { event.ts } else { 0 }, u64::MAX));
            span.1 = if event.new_state == CLOSED { event.ts } else { u64::MAX };
            self.owners.extend([event.task, event.sender].into_iter().flatten().map(|task| (event.socket, upid(task))));
        }
        for table in segment.tables(&dict).unwrap_or_default() {
            self.table(&table, upid);
        }
        for event in segment.signals(&dict).unwrap_or_default() {
            if event.kind == SignalKind::Generate && plan.window.has(event.ts) {
                self.sent_to.insert(upid(event.target));
            }
            self.senders.extend(event.sender.map(|sender| (upid(event.target), upid(sender))));
        }
        for (row, counted) in segment.ledger(&dict).unwrap_or_default().iter().enumerate() {
            self.ledger((at, row as u32, counted.task.map_or(0, upid)), counted);
        }
        if dict.window_end >= to && dict.window_start < to
            || segment.info().carry_rows > 0 && segment.info().carry_start_min < to
        {
            self.open_calls(&segment, &dict, plan.window);
        }
        if dict.window_start >= from {
            return;
        }
        let place = |task: &Task, row: usize| (at, row as u32, task.upid);
        for (row, switch) in segment.switches(&dict).unwrap_or_default().iter().enumerate() {
            let (Some(prev), Some(next)) = (dict.tasks.get(switch.prev as usize), dict.tasks.get(switch.next as usize))
            else {
                continue;
            };
            if switch.ts >= from {
                continue;
            }
            self.on_cpu.insert(u64::from(switch.cpu), (at, row as u32, 0));
            // the idle task of all CPUs is one
            if prev.tid != 0 {
                self.switched_out.insert(thread(prev), place(prev, row));
            }
            if next.tid != 0 {
                self.switched_in.insert(thread(next), place(next, row));
            }
        }
        for (row, wakeup) in segment.wakeups(&dict).unwrap_or_default().iter().enumerate() {
            if let Some(wakee) = dict.tasks.get(wakeup.wakee as usize).filter(|_| wakeup.ts < from) {
                self.woken.insert(thread(wakee), place(wakee, row));
                self.wakers.insert(thread(wakee), wakeup.waker.map_or(0, upid));
            }
        }
        let Ok(core) = segment.core(&dict) else { return };
        let Ok(time) = segment.time(&dict, &core) else { return };
        for (row, task) in core.task.iter().enumerate() {
            let end = time.start.get(row).copied().unwrap_or(0).saturating_add(core.dur[row]);
            if let Some(task) = dict.tasks.get(*task as usize).filter(|_| end < from) {
                self.calls.insert(thread(task), place(task, row));
            }
        }
    }

    /// The calls that began in the window and ended after it.
    fn open_calls(&mut self, segment: &Segment<'_>, dict: &Dict, window: Window) {
        let Ok(core) = segment.core(dict) else { return };
        let Ok(time) = segment.time(dict, &core) else { return };
        for (row, task) in core.task.iter().enumerate() {
            let start = time.start.get(row).copied().unwrap_or(0);
            let end = start.saturating_add(core.dur[row]);
            if let Some(task) = dict.tasks.get(*task as usize).filter(|_| window.has(start) && end >= window.to) {
                let until = self.busy.entry(thread(task)).or_default();
                *until = end.max(*until);
            }
        }
    }

    /// A loss after which states are made out anew.
    fn gap(&mut self, gap: &Gap, window: Window) {
        let whose = matches!(gap.family, Family::Sched | Family::Unknown | Family::Process);
        let none = matches!(gap.cause, GapCause::NotRead | GapCause::StringFault | GapCause::DetailDamaged);
        if whose && !none && gap.first < window.from {
            self.switches_from = Some(self.switches_from.map_or(gap.first, |first| first.min(gap.first)));
        }
    }

    /// A connection from before the recording, or one that ended with its first change, is known from these tables alone.
    fn table(&mut self, table: &TableRows, upid: impl Fn(u32) -> u32) {
        if ![&*SOCKET_TCP.name, &*SOCKET_NAME.name].contains(&&*table.def.name) {
            return;
        }
        for socket in table.column("socket").unwrap_or_default().iter().filter(|socket| **socket != 0) {
            self.sockets.entry(*socket).or_insert((0, u64::MAX));
        }
        let tasks = table.column("task").unwrap_or_default();
        for (socket, task) in table.column("socket").unwrap_or_default().iter().zip(tasks) {
            self.owners.extend(u32::try_from(*task).ok().and_then(|task| Some((*socket, upid(task.checked_sub(1)?)))));
        }
    }

    fn ledger(&mut self, (at, row, upid): (usize, u32, u32), counted: &LedgerRow) {
        if matches!(counted.reason, LedgerReason::Filtered | LedgerReason::Checked) {
            return;
        }
        let began = counted.first.saturating_sub(counted.max);
        if self.counted.is_none_or(|(first, ..)| began < first) {
            self.counted = Some((began, at, row, upid));
        }
    }

    fn finish(mut self, window: Window) -> Survey {
        let lives = &mut self.lives;
        lives.settle(window);
        let mut targets = self.sent_to;
        targets.extend(lives.ended(window));
        let open = |socket: &u64| {
            self.sockets.get(socket).is_none_or(|(first, last)| *first < window.to && *last >= window.from)
        };
        // nobody wakes those that ended before
        let there = |lives: &Lives, upid: u32| lives.upid_matters(upid) && !lives.died_before(upid, window.from);
        let woken: Vec<_> = self.woken.into_iter().filter(|(_, (.., upid))| there(lives, *upid)).collect();
        let wakers = woken.iter().filter_map(|(thread, _)| self.wakers.get(thread).copied());
        let owners = self.owners.iter().filter(|(socket, _)| open(socket)).map(|(_, upid)| *upid);
        let senders = self.senders.iter().filter(|(target, _)| targets.contains(target)).map(|(_, upid)| *upid);
        let counted = self.counted.map(|(.., upid)| upid);
        wakers
            .chain(owners)
            .chain(senders)
            .chain(counted)
            .filter(|upid| *upid != 0)
            .for_each(|upid| lives.mention(upid));
        let mut early: HashMap<usize, Early> = HashMap::new();
        // a thread that has ended may still have to leave its CPU, and be in its last call until then
        let kept = |last: Last| last.into_values().filter(|(.., upid)| lives.upid_matters(*upid));
        for (at, row, _) in kept(self.calls) {
            early.entry(at).or_default().calls.insert(row);
        }
        for (at, row, _) in kept(self.switched_in).chain(kept(self.switched_out)).chain(self.on_cpu.into_values()) {
            early.entry(at).or_default().switches.insert(row);
        }
        for (_, (at, row, _)) in woken {
            early.entry(at).or_default().wakeups.insert(row);
        }
        if let Some((_, at, row, _)) = self.counted {
            early.entry(at).or_default().ledger.insert(row);
        }
        Survey {
            early,
            sockets: self.sockets,
            targets,
            switches_from: self.switches_from.unwrap_or(u64::MAX),
            busy: self.busy,
            lives: self.lives,
            window,
        }
    }
}
