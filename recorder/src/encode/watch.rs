//! Triggers on records: makes an [`Event`] of each record that one may be about.

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_bpf::wire::{self, Record, Snap};
use systape_format::model::{CallState, LedgerReason, Task};

use super::calls::Calls;
use super::ledger::in_ledger;
use super::world::World;
use crate::descriptors::names::Name;
use crate::ledger::LedgerWindow;
use crate::tasks::TaskId;
use crate::tasks::effects::{self, split_ret};
use crate::triggers::{AtRest, Event, Fire, Of, RunQueue, Triggers};

/// Most events that wait to be taken.
const MOST: usize = 1 << 16;

/// Triggers, and what they need to know of records.
#[derive(Debug, Default)]
pub(super) struct TriggerWatch {
    triggers: Triggers,
    /// Whether a trigger looks at returns of a call, by ABI and number: most are not looked at.
    calls: FxHashMap<(u8, u32), bool>,
    queue: RunQueue,
    fired: Vec<(Fire, Option<Arc<Task>>)>,
    /// The recorder's pid: writing a tape must not begin the next.
    own_pid: u32,
}

impl TriggerWatch {
    /// Evaluates `triggers`; the I/O of `own_pid`, the recorder, is no event.
    pub(super) fn new(triggers: Triggers, own_pid: u32) -> Self {
        Self { triggers, own_pid, ..Self::default() }
    }

    /// Whether there is a trigger.
    pub(super) fn is_on(&self) -> bool {
        self.triggers.is_on()
    }

    /// Whether calls in flight are to be looked at.
    pub(super) fn want_open_calls(&self) -> bool {
        self.triggers.want_open_calls()
    }

    /// What fired since the last call, in the order in which it was seen.
    pub(super) fn take(&mut self) -> Vec<(Fire, Option<Arc<Task>>)> {
        std::mem::take(&mut self.fired)
    }

    /// A record was encoded.
    pub(super) fn record(&mut self, bytes: &[u8], world: &mut World) {
        if let Ok((s, _)) = wire::syscall(bytes) {
            return self.call(&s, world);
        }
        match wire::parse(bytes) {
            Ok(Record::Exit(e)) if e.group_dead != 0 => {
                let event = Event::Exit { ts: e.ts, status: e.exit_code };
                self.of_task(&e.id, &event, world);
            }
            Ok(Record::Exec(e, path, _)) => {
                let path = path.strip_suffix(&[0]).unwrap_or(path);
                self.of_task(&e.task.id, &Event::Exec { ts: e.task.ts, path }, world);
            }
            Ok(Record::Signal(parts)) if parts.signal.kind == wire::SIGNAL_OOM_VICTIM => {
                self.of_task(&parts.signal.target.id, &Event::Oom { ts: parts.signal.ts }, world);
            }
            Ok(Record::Block(b)) => self.io(&b, world),
            Ok(Record::Wakeup(w)) if self.triggers.want_run_queue() => self.queue.runnable(w.wakee.tid, w.ts),
            Ok(Record::Switch(s)) if self.triggers.want_run_queue() => {
                let stays = s.hdr.flags & wire::SWITCH_PREEMPTED != 0 || s.prev_state == 0;
                if let Some(waited) = self.queue.switch((s.prev.tid, stays), s.next.tid, s.ts) {
                    let next = world.tasks.meet(&s.next);
                    if world.tasks.is_target(next) {
                        self.evaluate(&Event::Ran { ts: s.ts, waited }, Some(next), world);
                    }
                }
            }
            _ => {}
        }
    }

    fn io(&mut self, b: &wire::Block, world: &mut World) {
        if b.has_origin != 0 && b.origin.pid == self.own_pid {
            return;
        }
        let began = if b.queued == 0 { b.issued } else { b.queued };
        let dur = (began != 0).then(|| b.complete.saturating_sub(began));
        let event = Event::Io { ts: b.complete, dur, device: b.dev, failed: b.error != 0 };
        let origin = (b.has_origin != 0).then(|| world.tasks.meet(&b.origin));
        self.evaluate(&event, origin, world);
    }

    fn call(&mut self, s: &wire::Syscall, world: &mut World) {
        let triggers = &self.triggers;
        if !*self.calls.entry((s.abi, s.nr)).or_insert_with(|| triggers.want_call((s.abi, s.nr))) {
            return;
        }
        let counted_there = in_ledger(s) && s.hdr.flags & wire::FILTERED == 0;
        let Some(state) = CallState::from_raw(s.state).filter(|state| state.returned()) else { return };
        if s.hdr.flags & (wire::UNSELECTED | wire::OF_RING) != 0 || counted_there || state == CallState::CloneChild {
            return;
        }
        let (errno, _) = split_ret(s.ret, state);
        let event = Event::Call { ts: s.end, dur: s.end.saturating_sub(s.start), call: (s.abi, s.nr), errno };
        let task = world.tasks.find(&s.id);
        self.evaluate(&event, task, world);
    }

    /// Calls were counted in the kernel.
    pub(super) fn counted(&mut self, window: &LedgerWindow, world: &mut World) {
        for (key, sum) in window.rows.iter().filter(|(key, _)| key.reason != LedgerReason::Behind) {
            let (span, call) = ((sum.first, sum.last), key.call);
            let event = Event::Counted { span, count: sum.count, longest: sum.max, call, errno: key.errno };
            // its first thread stands for it; it may have ended
            let leader = |(pid, start)| wire::Ident { tid: pid, pid, start, leader_start: start };
            let task = key.process.and_then(|process| world.tasks.find(&leader(process)));
            self.evaluate(&event, task, world);
        }
    }

    /// Every task was looked at; calls that began before the recording count from `window_open`.
    pub(super) fn open_calls(&mut self, snaps: &[Snap], calls: &Calls, window_open: u64, world: &mut World) {
        let mut open = HashSet::new();
        for snap in snaps {
            let Some(call) = calls.open_call(snap) else { continue };
            let start = if call.start == 0 { window_open } else { call.start };
            open.insert((snap.task.id.tid, start));
            let task = world.tasks.find(&snap.task.id);
            let which = (call.call.abi, call.call.nr);
            let info = world.call_info(which.0, which.1);
            let fd = info.fd_args[0].and_then(|arg| snap.args.get(usize::from(arg))).map(|arg| *arg as i32);
            let named = |(task, fd)| {
                let rest = |name: &Rc<Name>| AtRest::of(which, snap.state, Some(&name.bytes));
                effects::resolve(&world.tasks, task, &info, start, fd, rest)
            };
            let rest = task.zip(fd).and_then(named).unwrap_or_else(|| AtRest::of(which, snap.state, None));
            let event = Event::Open { ts: snap.task.ts, start, call: which, rest };
            self.evaluate(&event, task, world);
        }
        self.triggers.looked(&open);
    }

    /// Events were lost; `switches`: switches or wake-ups.
    pub(super) fn lost(&mut self, ts: u64, count: u64, switches: bool, world: &World) {
        if switches {
            self.queue.forget();
        }
        self.evaluate(&Event::Lost { ts, count }, None, world);
    }

    fn of_task(&mut self, id: &wire::Ident, event: &Event<'_>, world: &mut World) {
        if let Some(task) = world.tasks.find(id).filter(|task| world.tasks.is_target(*task)) {
            self.evaluate(event, Some(task), world);
        }
    }

    fn evaluate(&mut self, event: &Event<'_>, task: Option<TaskId>, world: &World) {
        let of = task.map_or_else(Of::default, |task| {
            let entry = world.tasks.get(task);
            Of { tid: entry.task.tid, comm: &entry.task.comm, exe: &entry.task.exe }
        });
        let mut fires = Vec::new();
        self.triggers.event(event, &of, &mut fires);
        if fires.is_empty() {
            return;
        }
        // by then its number may be another's
        let task = task.map(|task| Arc::new(world.tasks.on_tape(task).into_owned()));
        for fire in fires {
            // beyond that the encoder is too far behind to take them: they are as good as one
            if self.fired.len() < MOST {
                self.fired.push((fire, task.clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use systape_bpf::wire::{Block, Who};

    use super::*;
    use crate::encode::stacks::tests::encoder;
    use crate::triggers::parse;

    #[test]
    fn writing_a_tape_begins_no_other() {
        let mut world = encoder().world;
        let mut watch = TriggerWatch::new(Triggers::new(&[parse("io>1ms").unwrap()]), 7);
        let origin = |pid: u32| Who { tid: pid + 1, pid, start: 1, ..Who::default() };
        let io =
            |pid| Block { issued: 10, complete: 5_000_010, has_origin: 1, origin: origin(pid), ..Block::default() };
        watch.io(&io(7), &mut world);
        assert_eq!(watch.take().len(), 0);
        watch.io(&io(8), &mut world);
        watch.io(&Block { has_origin: 0, ..io(7) }, &mut world);
        assert_eq!(watch.take().len(), 2, "of another process, and of one that is not known");
    }
}
