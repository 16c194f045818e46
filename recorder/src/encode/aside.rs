//! Segments that only a flight recorder's tape has: names at its beginning, what fired, and calls in flight at its end.
//! The stream of segments goes on as if they had not been made.

use std::collections::HashSet;
use std::sync::Arc;

use systape_abi::Abi;
use systape_bpf::wire::{self, Snap, Syscall};
use systape_format::families::RECORD_TRIGGER;
use systape_format::model::{CallState, Task};
use systape_format::segment::{SegmentBuilder, SegmentData};
use systape_format::tables::Field;

use super::Assembler;
use super::names::MOST_AT_START;
use super::rows::Rows;
use super::world::World;

/// Numbers of these segments have this bit, so that tasks and names know that they have no number in them.
const ASIDE: u32 = 1 << 31;

/// A row of the table `record:trigger`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TriggerRow {
    /// When it fired.
    pub ts: u64,
    /// Whose event; None = nobody's.
    pub task: Option<Arc<Task>>,
    /// The trigger as typed.
    pub trigger: String,
    /// What happened.
    pub what: String,
    /// Name of a request.
    pub name: Option<String>,
    /// The value.
    pub value: u64,
    /// The tape was begun for it.
    pub began: bool,
    /// Events that the row stands for.
    pub events: u64,
    /// Number of these that fell into a cooldown.
    pub suppressed: u64,
}

impl Rows {
    /// A segment of the moment `ts` with what `fill` stores; its rows count nowhere.
    fn aside(&mut self, ts: u64, fill: impl FnOnce(&mut Self)) -> Box<SegmentData> {
        let builder = std::mem::replace(&mut self.builder, SegmentBuilder::new(ts));
        let (segment, first_row, totals) = (self.segment, self.first_row, self.totals.clone());
        let latest = std::mem::replace(&mut self.latest, ts);
        self.asides = self.asides.wrapping_add(1);
        self.segment = ASIDE | (self.asides % ASIDE);
        fill(self);
        let filled = std::mem::replace(&mut self.builder, builder);
        (self.segment, self.first_row, self.totals, self.latest) = (segment, first_row, totals, latest);
        Box::new(filled.finish(ts))
    }
}

impl Assembler {
    /// A segment with `rows` alone.
    pub(crate) fn trigger_rows(&mut self, ts: u64, rows: &[TriggerRow]) -> Box<SegmentData> {
        self.rows.aside(ts, |into| store(rows, ts, into))
    }

    /// The last segment of a tape that ends at `ts`: its trigger `rows`, and the calls in flight then. Every record
    /// before `ts` was encoded, and every one until `looked` was added; `snaps` is of the time between.
    pub(crate) fn tail(&mut self, (ts, looked): (u64, u64), snaps: &[Snap], rows: &[TriggerRow]) -> Box<SegmentData> {
        let mut open: Vec<Syscall> = Vec::new();
        let mut ended: HashSet<(u32, u64)> = HashSet::new();
        for pending in self.order.before(looked.saturating_add(1)) {
            let Ok((s, _)) = wire::syscall(pending.bytes) else { continue };
            // a call that returned while the tasks were looked at was in flight
            ended.insert((s.id.tid, s.id.start));
            // of other states the start is not known
            use CallState::{BeganBefore, Complete, Killed, NoReturn};
            let lasted = [BeganBefore, Complete, Killed, NoReturn].into_iter().any(|state| s.state == state as u8);
            if lasted && s.start <= ts && s.end >= ts && s.hdr.flags & wire::UNSELECTED == 0 {
                open.push(Syscall { captures: 0, ret: 0, ..s });
            }
        }
        for snap in snaps.iter().filter(|snap| !ended.contains(&(snap.task.id.tid, snap.task.id.start))) {
            let Some(call) = self.calls.open_call(snap) else { continue };
            let start = if call.start == 0 { self.window_open } else { call.start };
            if start <= ts {
                open.push(Syscall {
                    id: snap.task.id,
                    start,
                    args: snap.args,
                    nr: snap.nr,
                    abi: snap.abi,
                    hdr: wire::Header { cpu: snap.task.hdr.cpu, ..wire::Header::default() },
                    ..Syscall::default()
                });
            }
        }
        let Self { world, calls, usage, .. } = self;
        self.rows.aside(ts, |into| {
            for call in &mut open {
                (call.end, call.state) = (ts, CallState::InFlight as u8);
                let dur = ts.saturating_sub(call.start);
                if calls.stores_open(Abi::from_raw(call.abi), call.nr, dur) {
                    calls.in_flight_row(call, world, into);
                }
            }
            usage.memory(snaps, ts, world, into);
            store(rows, ts, into);
        })
    }

    /// What a tape needs that begins with the chunk that begins now: the addresses of sockets that have names, and which files are open. It is of the time at which
    /// the next segment begins, which is earlier where nothing happened before the chunk. None: there is nothing.
    pub(crate) fn prologue(&mut self) -> Option<Box<SegmentData>> {
        let ts = self.segment_start();
        let Self { world, names, sockets, .. } = self;
        let mut any = false;
        let segment = self.rows.aside(ts, |into| {
            any = names.again(ts, sockets, world, into);
            any |= open_files(world, into);
        });
        any.then_some(segment)
    }
}

/// Stores which files the targets have open; false = none is known.
pub(super) fn open_files(world: &World, rows: &mut Rows) -> bool {
    let targets = world.tasks.alive().filter(|(id, _)| world.tasks.is_target(*id));
    let open = targets.flat_map(|(id, _)| world.tasks.files(id).open());
    let files = open.map(|(_, name, _)| name).filter(|name| name.file.is_some());
    let mut any = false;
    for name in files.take(MOST_AT_START) {
        rows.name(&name);
        any = true;
    }
    any
}

fn store(rows: &[TriggerRow], at_most: u64, into: &mut Rows) {
    let def = Arc::new(RECORD_TRIGGER.clone());
    for row in rows {
        let task = row.task.as_ref().map_or(Field::Unknown, |task| Field::Task(into.builder.intern_task(task)));
        let name = row.name.as_ref().map_or(Field::Unknown, |name| Field::Bytes(name.as_bytes()));
        let fields = [
            task,
            Field::Bytes(row.trigger.as_bytes()),
            Field::Bytes(row.what.as_bytes()),
            name,
            Field::Number(row.value),
            Field::Number(row.began.into()),
            Field::Number(row.events),
            Field::Number(row.suppressed),
        ];
        into.beside(&def, row.ts.min(at_most), &fields);
    }
}
