//! Calls of functions, also of the kernel's: an entry and a return of the same thread, function and place on the stack become one row. A static probe is one row.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_bpf::{probe, wire};
use systape_format::model::{Family, StackOf};
use systape_format::tables::Field;

use super::rows::Rows;
use super::world::World;
use crate::probes::{Kind, Parameter, Probe, ProbeValues, Static, Value};
use crate::tasks::TaskId;

/// Most entries of a thread without a return so far: the kernel follows 64 itself.
const DEEPEST: usize = 256;

/// An entry without its return so far.
#[derive(Debug)]
struct Open {
    record: wire::Probe,
    strings: Vec<u8>,
}

#[derive(Debug, Default)]
struct ProbedThread {
    /// Number of the last record since there was one of `open`.
    last: u32,
    open: Vec<Open>,
}

/// Probes whose records are stored.
#[derive(Debug)]
pub(super) struct Probes {
    /// By the number of their records, from 1 on.
    probes: Vec<Arc<Probe>>,
    /// The same of static probes.
    places: Vec<Arc<Static>>,
    threads: FxHashMap<TaskId, ProbedThread>,
}

impl Probes {
    pub(super) fn new(probes: Vec<Arc<Probe>>, places: Vec<Arc<Static>>) -> Self {
        Self { probes, places, threads: FxHashMap::default() }
    }

    fn probe(&self, record: &wire::Probe) -> Option<Arc<Probe>> {
        let number = usize::from(record.row.hdr.flags & !probe::RETURNED);
        number.checked_sub(1).and_then(|number| self.probes.get(number)).cloned()
    }

    /// A function was entered or returned.
    pub(super) fn record(&mut self, r: &wire::Probe, strings: &[u8], world: &mut World, rows: &mut Rows) {
        let ts = r.row.ts;
        let Some(probe) = self.probe(r) else { return rows.bad_records(1, ts, ts) };
        let task = world.tasks.meet(&r.row.who);
        if let Some(thread) = self.threads.get_mut(&task) {
            let lost = r.number != thread.last.wrapping_add(1);
            thread.last = r.number;
            if lost {
                // what they were is not known: none of these may be paired
                self.give_up(task, ts, "lost", world, rows);
            }
        }
        if r.row.hdr.flags & probe::RETURNED != 0 {
            return self.returned((task, &probe), r, strings, world, rows);
        }
        if probe.result.is_none() {
            return store((task, &probe), (r, strings), None, world, rows);
        }
        let thread = self.threads.entry(task).or_default();
        thread.last = r.number;
        let oldest = (thread.open.len() >= DEEPEST).then(|| thread.open.remove(0));
        thread.open.push(Open { record: *r, strings: strings.to_vec() });
        if let Some(open) = oldest {
            self.unpaired(task, &open, ts, "entry", world, rows);
        }
    }

    /// A place of a static probe was reached.
    pub(super) fn reached(&self, r: &wire::Static, strings: &[u8], world: &mut World, rows: &mut Rows) {
        let ts = r.row.ts;
        let number = usize::from(r.row.hdr.flags);
        let Some(probe) = number.checked_sub(1).and_then(|number| self.places.get(number)) else {
            return rows.bad_records(1, ts, ts);
        };
        if rows.sheds(Family::Tracepoint, ts) {
            return;
        }
        let task = world.tasks.meet(&r.row.who);
        let mut fields = vec![Field::Task(rows.task(&mut world.tasks, task)), Field::Number(r.row.hdr.cpu.into())];
        let values = ProbeValues::of_static(r, strings);
        fields.extend(probe.kinds.iter().enumerate().map(|(at, kind)| field(values.get(at, *kind))));
        // which were not read, and the stack
        fields.extend([Field::Unknown; 2]);
        let Ok(row) = rows.builder.push_table_row(&probe.def, ts, &fields) else { return rows.bad_records(1, ts, ts) };
        rows.stored(Family::Tracepoint, ts);
        rows.attach_who(&mut world.tasks, (StackOf::Row, row), &r.row.who, ts, true);
    }

    fn returned(
        &mut self,
        (task, probe): (TaskId, &Arc<Probe>),
        r: &wire::Probe,
        strings: &[u8],
        world: &mut World,
        rows: &mut Rows,
    ) {
        let number = r.row.hdr.flags & !probe::RETURNED;
        let is_its = |open: &Open| open.record.row.hdr.flags == number && open.record.sp == r.sp;
        let open = self.threads.get_mut(&task).and_then(|thread| {
            let at = thread.open.iter().rposition(is_its)?;
            Some(thread.open.remove(at))
        });
        self.tidy(task);
        match open {
            Some(open) => {
                store((task, probe), (&open.record, &open.strings), Some((r, strings)), world, rows);
            }
            None => {
                let open = Open { record: *r, strings: strings.to_vec() };
                self.unpaired(task, &open, r.row.ts, "return", world, rows);
            }
        }
    }

    /// The thread runs another program: no entry of the old one returns any more. The kernel goes on.
    pub(super) fn exec(&mut self, task: TaskId, ts: u64, world: &mut World, rows: &mut Rows) {
        let Some(thread) = self.threads.get_mut(&task) else { return };
        let open = std::mem::take(&mut thread.open);
        let is_kernels = |open: &Open| {
            let number = usize::from(open.record.row.hdr.flags);
            self.probes.get(number.wrapping_sub(1)).is_some_and(|probe| probe.kernel.is_some())
        };
        let (kept, gone): (Vec<Open>, Vec<Open>) = open.into_iter().partition(is_kernels);
        thread.open = kept;
        gone.iter().for_each(|open| self.unpaired(task, open, ts, "entry", world, rows));
        self.tidy(task);
    }

    /// Forgets tasks that died before `until`, before their ids are given to others. Functions of the kernel are called by the dead, too.
    pub(super) fn forget(&mut self, until: u64, now: u64, world: &mut World, rows: &mut Rows) {
        if self.threads.is_empty() {
            return;
        }
        let gone: Vec<TaskId> = world.tasks.leaving(until).collect();
        gone.into_iter().for_each(|task| self.end(task, now, world, rows));
    }

    /// Nothing has to be known of a thread that is in no call: lost records tear no pair.
    fn tidy(&mut self, task: TaskId) {
        if self.threads.get(&task).is_some_and(|thread| thread.open.is_empty()) {
            self.threads.remove(&task);
        }
    }

    /// The thread is gone: no entry returns any more.
    pub(super) fn end(&mut self, task: TaskId, ts: u64, world: &mut World, rows: &mut Rows) {
        if self.threads.contains_key(&task) {
            self.give_up(task, ts, "entry", world, rows);
            self.threads.remove(&task);
        }
    }

    /// The recording is over.
    pub(super) fn finish(&mut self, ts: u64, world: &mut World, rows: &mut Rows) {
        let mut tasks: Vec<TaskId> = self.threads.keys().copied().collect();
        tasks.sort_unstable();
        tasks.into_iter().for_each(|task| self.end(task, ts, world, rows));
    }

    fn give_up(&mut self, task: TaskId, ts: u64, end: &str, world: &mut World, rows: &mut Rows) {
        let open = self.threads.get_mut(&task).map(|thread| std::mem::take(&mut thread.open)).unwrap_or_default();
        open.iter().for_each(|open| self.unpaired(task, open, ts, end, world, rows));
    }

    fn unpaired(&self, task: TaskId, open: &Open, ts: u64, end: &str, world: &mut World, rows: &mut Rows) {
        let record = &open.record;
        let Some(probe) = self.probe(record).filter(|_| !rows.sheds(Family::Tracepoint, ts)) else { return };
        let text = probe.text(&ProbeValues::new(record, &open.strings), record.row.hdr.flags & probe::RETURNED != 0);
        let fields = [
            Field::Task(rows.task(&mut world.tasks, task)),
            Field::Number(ts.saturating_sub(record.row.ts)),
            Field::Bytes(end.as_bytes()),
            Field::Bytes(text.as_bytes()),
        ];
        if rows.builder.push_table_row(&probe.unpaired, ts, &fields).is_err() {
            return rows.bad_records(1, ts, ts);
        }
        rows.stored(Family::Tracepoint, ts);
    }
}

fn field(value: Value<'_>) -> Field<'_> {
    match value {
        Value::Number(number) => Field::Number(number),
        Value::Text(text) => text.map_or(Field::Unknown, Field::Bytes),
        Value::Unknown => Field::Unknown,
    }
}

/// Stores a call, by its entry and its return, or an entry alone.
fn store(
    (task, probe): (TaskId, &Arc<Probe>),
    (entry, strings): (&wire::Probe, &[u8]),
    returned: Option<(&wire::Probe, &[u8])>,
    world: &mut World,
    rows: &mut Rows,
) {
    let ts = returned.map_or(entry.row.ts, |(r, _)| r.row.ts);
    if rows.sheds(Family::Tracepoint, ts) {
        return;
    }
    let index = rows.task(&mut world.tasks, task);
    let mut fields = vec![Field::Task(index), Field::Number(entry.row.hdr.cpu.into())];
    if returned.is_some() {
        fields.push(Field::Number(ts.saturating_sub(entry.row.ts)));
    }
    let values = ProbeValues::new(entry, strings);
    let result = returned.as_ref().map(|(r, strings)| ProbeValues::new(r, strings));
    let argument = |(at, parameter): (usize, &Parameter)| match result {
        Some(result) if parameter.behind => result.behind(parameter.kind),
        _ => values.get(at, parameter.kind),
    };
    fields.extend(probe.parameters.iter().enumerate().map(argument).map(field));
    if let (Some(values), Some(kind)) = (result, probe.result.filter(|kind| *kind != Kind::Void)) {
        fields.push(field(values.get(0, kind)));
    }
    // which was not read, and the stack
    let rest = probe.def.columns.len().saturating_sub(fields.len() + 1);
    fields.extend(std::iter::repeat_n(Field::Unknown, rest));
    let Ok(row) = rows.builder.push_table_row(&probe.def, ts, &fields) else { return rows.bad_records(1, ts, ts) };
    rows.stored(Family::Tracepoint, ts);
    rows.attach_who(&mut world.tasks, (StackOf::Row, row), &entry.row.who, ts, true);
}
