//! Which rows of a segment stay in a cut.

use super::Plan;
use super::survey::{Early, Survey};
use crate::families::{
    BLOCK_FILE, CGROUP_LIMIT, CGROUP_MEMBER, EXEC_INTERPRETER, FILE_IDENTITY, IO_URING_DESCRIPTOR, LOOK_SECOND,
    LOOK_STAY, PROCESS_MEMORY, PROCESS_THREAD, PROCESS_USAGE, RECORD_TRIGGER, SOCKET_ERROR, SOCKET_NAME,
    SOCKET_RETRANSMIT, SOCKET_TCP,
};
use crate::header::BlockKind;
use crate::model::{CallState, Core, Dict, Family, LedgerRow, ProcessKind, SignalEvent, SignalKind, Task};
use crate::rows::{Picks, Row};
use crate::table::{TableDef, Type};
use crate::tables::TableRows;

/// What of one segment stays.
pub(super) struct SegmentCut<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) survey: &'a Survey,
    /// What was picked of the segment's rows before the window.
    pub(super) early: Option<&'a Early>,
    /// The segment reaches into the window.
    pub(super) reaches: bool,
}

impl Picks for SegmentCut<'_> {
    fn stays(&mut self, dict: &Dict, row: Row<'_>) -> bool {
        let window = self.plan.window;
        let task = |task: u32| dict.tasks.get(task as usize);
        let takes = |kind: BlockKind| kind.family().is_none_or(|family| self.plan.family(family));
        let inside = |ts: u64, whose: u32| window.has(ts) && self.chosen(task(whose));
        match row {
            Row::Gap(gap) => self.plan.family(gap.family),
            Row::Call(core, row, span) => takes(BlockKind::SyscallsCore) && self.call(dict, core, row, span),
            Row::Process(event) => {
                // a child need not be chosen as its parent is
                let forks = event.kind == ProcessKind::Fork && window.has(event.ts);
                self.matters(task(event.task)) || (forks && self.chosen(task(event.parent)))
            }
            Row::Switch(event, row) => {
                let late = |whose: u32| self.survey.keeps_late(task(whose), event.ts);
                let picked = self.early.is_some_and(|early| early.switches.contains(&row));
                let early = event.ts < window.from && (picked || self.survey.keeps_switch(event.ts));
                let stays = early || window.has(event.ts) || late(event.prev) || late(event.next);
                takes(BlockKind::Sched) && stays && (self.chosen(task(event.prev)) || self.chosen(task(event.next)))
            }
            Row::Wakeup(event, row) => {
                let picked = self.early.is_some_and(|early| early.wakeups.contains(&row));
                let whole = self.survey.keeps_switch(event.ts) && self.matters(task(event.wakee));
                let early = event.ts < window.from && (picked || whole);
                let late = self.survey.keeps_late(task(event.wakee), event.ts);
                let whose = self.any_chosen([event.waker, Some(event.wakee)].map(|whose| whose.and_then(task)));
                takes(BlockKind::Wakeups) && whose && (early || late || window.has(event.ts))
            }
            Row::Signal(event) => {
                let whose = self.any_chosen([event.sender, Some(event.target)].map(|whose| whose.and_then(task)));
                takes(BlockKind::Signals) && whose && self.signal(event, task(event.target))
            }
            // whose a connection is may be known from another of its changes, so -p does not choose among them
            Row::Net(event) => takes(BlockKind::Net) && self.survey.socket(event.socket),
            Row::Block(io) => {
                let whose = self.any_chosen([io.owner, io.origin].map(|whose| whose.and_then(task)));
                let charged = io.owner.is_none() && (self.plan.choice.cgroup)(io.cgroup_id);
                takes(BlockKind::Blocks) && (whose || charged) && window.has(io.complete)
            }
            Row::Uring(op) => takes(BlockKind::Uring) && inside(op.ts, op.task),
            Row::Sample(sample) => takes(BlockKind::Samples) && inside(sample.ts, sample.task),
            Row::Sleeper(sleeper) => self.chosen(task(sleeper.task)) && self.matters(task(sleeper.task)),
            Row::Ledger(counted, row) => self.plan.family(Family::Syscall) && self.ledger(dict, counted, row),
            Row::Table(table, row) => self.table(dict, table, row),
        }
    }

    fn names(&self, start: u64) -> bool {
        self.plan.window.has(start)
    }

    fn task(&self, task: &Task) -> Task {
        self.plan.task(task)
    }

    /// Before the window one that has nothing to do with it: nothing else would tell of its end.
    fn idles(&self, task: &Task, ts: u64) -> bool {
        ts < self.plan.window.from && task.tid != 0 && !self.survey.lives.matters(task)
    }
}

impl SegmentCut<'_> {
    fn chosen(&self, task: Option<&Task>) -> bool {
        self.plan.all_tasks() || task.is_some_and(|task| self.plan.has(task))
    }

    /// Whether one of those is chosen; without any an event is everyone's.
    fn any_chosen(&self, tasks: [Option<&Task>; 2]) -> bool {
        self.plan.all_tasks() || tasks.into_iter().flatten().any(|task| self.plan.has(task))
    }

    fn matters(&self, task: Option<&Task>) -> bool {
        task.is_some_and(|task| task.tid == 0 || self.survey.lives.matters(task))
    }

    fn call(&self, dict: &Dict, core: &Core, row: usize, (start, end): (u64, u64)) -> bool {
        let window = self.plan.window;
        if start >= window.to {
            return false;
        }
        let task = dict.tasks.get(core.task[row] as usize);
        if self.chosen(task) && (start >= window.from || end >= window.from) {
            return true;
        }
        // where a process is may be due to the one it was forked from, which need not be chosen
        let call = dict.calls.get(core.call[row] as usize);
        let outlasts = || call.is_some_and(|call| (self.plan.choice.outlasts)(*call));
        let last = || self.early.is_some_and(|early| early.calls.contains(&(row as u32)));
        (self.chosen(task) && last()) || (self.matters(task) && outlasts())
    }

    fn signal(&self, event: &SignalEvent, target: Option<&Task>) -> bool {
        let matters = match event.kind {
            SignalKind::OomVictim => self.matters(target),
            SignalKind::Generate | SignalKind::Deliver => target.is_some_and(|task| self.survey.is_target(task)),
        };
        matters || self.plan.window.has(event.ts)
    }

    /// Counted calls that may have begun in the window, or whose effects outlast them.
    fn ledger(&self, dict: &Dict, counted: &LedgerRow, row: u32) -> bool {
        let window = self.plan.window;
        let began = if counted.state == CallState::LostEnter { 0 } else { counted.first.saturating_sub(counted.max) };
        let picked = self.early.is_some_and(|early| early.ledger.contains(&row));
        let task = counted.task.and_then(|task| dict.tasks.get(task as usize));
        let call = dict.calls.get(counted.call as usize);
        let outlasts = call.is_some_and(|call| (self.plan.choice.outlasts)(*call))
            && task.is_none_or(|task| self.matters(Some(task)));
        let may = (counted.last >= window.from && began < window.to) || picked;
        outlasts || (may && task.is_none_or(|task| self.chosen(Some(task))))
    }

    fn table(&self, dict: &Dict, table: &TableRows, row: usize) -> bool {
        let (name, window) = (&*table.def.name, self.plan.window);
        if !self.plan.family(Family::of_table(name)) {
            return false;
        }
        let is = |defs: &[&'static TableDef]| defs.iter().any(|def| def.name == name);
        let socket = || table.column("socket").and_then(|sockets| sockets.get(row).copied());
        let mut columns = table.def.columns.iter().skip(1).zip(&table.columns);
        let owner =
            columns.find(|(column, _)| column.ty == Type::Task).and_then(|(_, tasks)| dict.task_of(*tasks.get(row)?));
        let Some(ts) = table.ts.get(row).copied() else { return false };
        if is(&[&SOCKET_NAME, &SOCKET_TCP]) {
            return socket().is_none_or(|socket| self.survey.socket(socket));
        }
        if is(&[&CGROUP_LIMIT]) {
            // counts from before and after the time say what came of a limit in it
            return true;
        }
        if is(&[&PROCESS_USAGE, &PROCESS_THREAD, &PROCESS_MEMORY, &CGROUP_MEMBER, &EXEC_INTERPRETER]) {
            return self.chosen(owner) && self.matters(owner);
        }
        if is(&[&IO_URING_DESCRIPTOR]) {
            // what was opened before the time is open in it
            return ts < window.to && self.matters(owner);
        }
        if is(&[&LOOK_STAY, &LOOK_SECOND]) {
            // it is about the time before it was stored, up to some minutes
            let number = |name: &str| table.column(name).and_then(|column| column.get(row)).copied().unwrap_or(0);
            let last = ts.saturating_sub(number("ago"));
            let begin = last.saturating_sub(number("seen")).saturating_sub(number("span"));
            let is_about = begin < window.to && last >= window.from;
            return (is_about || window.has(ts)) && self.any_chosen([owner, None]);
        }
        if is(&[&RECORD_TRIGGER]) {
            // why the tape was written is no event of a time
            return self.any_chosen([owner, None]);
        }
        if is(&[&BLOCK_FILE, &FILE_IDENTITY]) {
            // files of I/Os and names of this segment that are left out are few
            return self.reaches || window.has(ts);
        }
        let shared = is(&[&SOCKET_RETRANSMIT, &SOCKET_ERROR]);
        window.has(ts) && (shared || self.any_chosen([owner, None]))
    }
}
