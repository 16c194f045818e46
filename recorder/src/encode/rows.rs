//! The segment being filled: its rows, their names, and its losses.

use std::sync::Arc;

use systape_bpf::wire::{self, Who};
use systape_format::model::{CPU_NONE, Call, Checkpoint, Container, Family, Gap, GapCause, StackOf};
use systape_format::segment::{SegmentBuilder, SegmentData};
use systape_format::table::TableDef;
use systape_format::tables::Field;

use super::identities::{self, SegmentIdentities};
use super::shed::Shedding;
use super::stacks::{Event, StackSegment, WaitingStacks};
use super::world::World;
use crate::descriptors::names::{FileKey, Name};
use crate::tasks::effects::CallFacts;
use crate::tasks::{TaskId, Tasks};

/// Pieces to be compressed, in this order.
#[derive(Debug)]
pub enum Piece {
    /// The head of a chunk.
    Checkpoint(Box<Checkpoint>),
    /// A window's events.
    Segment(Box<SegmentData>),
}

/// Events stored, by family.
#[derive(Clone, Debug, Default)]
pub struct Totals(Vec<(Family, u64)>);

impl Totals {
    fn count(&mut self, family: Family) {
        // a handful, the busiest of them early
        match self.0.iter_mut().find(|(of, _)| *of == family) {
            Some((_, count)) => *count += 1,
            None => self.0.push((family, 1)),
        }
    }

    /// All of them.
    pub fn sum(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// Counts of each family, in the order of the families.
    pub(crate) fn by_family(&self) -> Vec<(Family, u64)> {
        let mut all = self.0.clone();
        all.sort_unstable();
        all
    }
}

/// The segment that is being filled.
pub(super) struct Rows {
    /// Takes the rows.
    pub builder: SegmentBuilder,
    /// Number of the segment, to which interned indices belong.
    pub segment: u32,
    pub window_start: u64,
    /// Time of the latest record so far.
    pub latest: u64,
    /// Time of the first row; None = there is none.
    pub first_row: Option<u64>,
    pub totals: Totals,
    pub shedding: Shedding,
    pub stacks: WaitingStacks,
    /// Pieces ready to be compressed.
    pub pieces: Vec<Piece>,
    /// Segments made aside so far.
    pub asides: u32,
    /// Forks, names and ends of single threads are not stored, only those of processes.
    pub without_threads: bool,
    identities: SegmentIdentities,
}

impl Rows {
    pub(crate) fn new(window_start: u64, stacks: WaitingStacks) -> Self {
        Self {
            builder: SegmentBuilder::new(window_start),
            segment: 0,
            window_start,
            latest: window_start,
            first_row: None,
            totals: Totals::default(),
            shedding: Shedding::default(),
            stacks,
            pieces: Vec::new(),
            asides: 0,
            without_threads: false,
            identities: SegmentIdentities::default(),
        }
    }

    /// The number of a call in this segment.
    pub(crate) fn call(&mut self, world: &mut World, abi: u8, nr: u32, info: &CallFacts) -> u32 {
        if info.interned.0 == self.segment {
            return info.interned.1;
        }
        let index = self.builder.intern_call(Call { abi, nr });
        world.call_is_interned(abi, nr, (self.segment, index));
        index
    }

    /// The number of a task.
    pub(crate) fn task(&mut self, tasks: &mut Tasks, id: TaskId) -> u32 {
        let (segment, index) = tasks.get(id).interned;
        if segment == self.segment {
            return index;
        }
        let index = self.builder.intern_task(&tasks.on_tape(id));
        tasks.get_mut(id).interned = (self.segment, index);
        index
    }

    /// The number of a task that may be known by name only.
    pub(crate) fn who(&mut self, tasks: &mut Tasks, who: &Who) -> u32 {
        let id = tasks.meet(who);
        self.task(tasks, id)
    }

    /// The number of a descriptor's file.
    pub(crate) fn name(&mut self, name: &Name) -> u32 {
        let (segment, index) = name.interned.get();
        if segment == self.segment {
            return index;
        }
        let index = self.builder.intern_fd_name(&name.bytes);
        name.interned.set((self.segment, index));
        if let Some(file) = &name.file {
            self.identify(index, &name.bytes, file);
        }
        index
    }

    /// Says which file had the name `path` that is number `index` in the segment.
    fn identify(&mut self, index: u32, path: &[u8], file: &FileKey) {
        if self.identities.tells(self.segment, index, &file.inode) {
            let (ts, def) = (self.latest, Arc::clone(&self.identities.def));
            let fs = wire::comm(&file.inode.fs);
            self.beside(&def, ts, &identities::fields(ts, path, file, &fs));
        }
    }

    /// A program of this file was executed as `path`.
    pub(crate) fn executed(&mut self, path: &[u8], file: &FileKey) {
        let index = self.builder.intern_fd_name(path);
        self.identify(index, path, file);
    }

    /// An event of `family` at `ts` is about to be stored.
    pub(crate) fn stored(&mut self, family: Family, ts: u64) {
        self.totals.count(family);
        self.first_row.get_or_insert(ts);
    }

    /// Whether an event of `family` at `ts` is dropped; then it is counted.
    pub(crate) fn sheds(&mut self, family: Family, ts: u64) -> bool {
        let sheds = self.shedding.gives_up(family, ts);
        if sheds {
            self.first_row.get_or_insert(ts);
        }
        sheds
    }

    /// Stores a row of a table that a family has beside its events; it is none of these.
    pub(crate) fn beside(&mut self, def: &Arc<TableDef>, ts: u64, fields: &[Field<'_>]) {
        self.first_row.get_or_insert(ts);
        if self.builder.push_table_row(def, ts, fields).is_err() {
            self.bad_records(1, ts, ts);
        }
    }

    /// A cgroup appeared.
    pub(crate) fn cgroup(&mut self, id: u64, path: &[u8], ts: u64) {
        self.first_row.get_or_insert(ts);
        self.builder.push_cgroup(id, path);
    }

    /// What became known of a container at `ts`.
    pub(crate) fn container(&mut self, container: Container, ts: u64) {
        self.first_row.get_or_insert(ts);
        self.builder.push_container(container);
    }

    /// Events are missing.
    pub(crate) fn gap(&mut self, gap: Gap) {
        self.first_row.get_or_insert(gap.last);
        self.builder.push_gap(gap);
    }

    /// Records that could not be read.
    pub(crate) fn bad_records(&mut self, count: u64, first: u64, last: u64) {
        let (cause, family) = (GapCause::BadRecord, Family::Unknown);
        self.gap(Gap { cause, family, cpu: CPU_NONE, count, first, last, pid: 0, ledger: false });
    }

    /// The event was stored: attaches its stack, if there is one. `expected`: there should be one.
    pub(crate) fn attach(&mut self, tasks: &Tasks, event: Event, expected: bool) {
        if self.stacks.takes(event.of) {
            let mut into = StackSegment { builder: &mut self.builder, number: self.segment, tasks };
            self.stacks.attach(event, expected, &mut into);
        }
    }

    /// Attaches the stack of the event `row` at `time` of a task that may be known by name only.
    pub(crate) fn attach_who(
        &mut self,
        tasks: &mut Tasks,
        (of, row): (StackOf, u32),
        who: &Who,
        time: u64,
        expected: bool,
    ) {
        if self.stacks.takes(of) {
            let task = tasks.meet(who);
            let expected = expected && !self.stacks.is_own(who.pid);
            self.attach(tasks, Event { of, row, task, tid: who.tid, time }, expected);
        }
    }

    /// Ends the segment; rows with a later end than `window_end` belong to the next. Its counted calls must have been
    /// added.
    pub(crate) fn close(&mut self, window_end: u64) {
        for gap in self.shedding.take_missing() {
            self.gap(gap);
        }
        self.stacks.give_up(&mut self.builder);
        if self.builder.is_empty() {
            // its time belongs to the next: to a reader a time of no segment is one whose segment is missing
            return;
        }
        let window_end = window_end.max(self.window_start);
        let next = SegmentBuilder::after(&self.builder, window_end);
        let full = std::mem::replace(&mut self.builder, next);
        self.segment += 1;
        self.window_start = window_end;
        self.first_row = None;
        self.pieces.push(Piece::Segment(Box::new(full.finish(window_end))));
    }
}
