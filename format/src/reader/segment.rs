//! One segment: decodes a column group on request.

use super::open::header_at;
use super::{Blocks, Tape};
use crate::error::{Error, Result};
use crate::header::{BlockKind, Header};
use crate::message;
use crate::model::{
    Args, BlockIo, Captured, Core, Dict, Fds, Gap, LedgerRow, NetState, ProcessEvent, Sample, SegmentInfo, SignalEvent,
    Sleeper, StackOf, Stacks, Switch, Time, UringOp, Wakeup,
};
use crate::order::PickedRows;
use crate::payload::{self, Message};
use crate::tables::TableRows;

/// The group whose rows a stack's row counts.
pub(crate) fn kind_of(of: StackOf) -> BlockKind {
    match of {
        StackOf::Syscall => BlockKind::SyscallsCore,
        StackOf::Switch => BlockKind::Sched,
        StackOf::Wakeup => BlockKind::Wakeups,
        StackOf::Block => BlockKind::Blocks,
        StackOf::Signal => BlockKind::Signals,
        StackOf::Sample => BlockKind::Samples,
        StackOf::Asleep => BlockKind::Sleepers,
        StackOf::Row => BlockKind::Tables,
    }
}

/// A segment of a tape.
///
/// Each getter reads one block. A group that was not written gives an empty value ("not recorded"). One that was
/// written but is damaged, missing or of a later format gives an error: the caller counts a hole and continues.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    tape: &'a Tape,
    info: &'a SegmentInfo,
    blocks: &'a Blocks,
}

impl<'a> Segment<'a> {
    pub(super) fn new(tape: &'a Tape, info: &'a SegmentInfo, blocks: &'a Blocks) -> Self {
        Self { tape, info, blocks }
    }

    /// Facts about it from the index or the headers.
    pub fn info(&self) -> &'a SegmentInfo {
        self.info
    }

    /// Whether the segment was written with this group; it may be damaged now.
    pub fn has(&self, kind: BlockKind) -> bool {
        self.blocks.groups & kind.group_bit() != 0 || self.blocks.places.iter().any(|p| p.kind == kind)
    }

    /// Bytes the group's block takes in the tape without header; 0 when there is none.
    pub fn stored_len(&self, kind: BlockKind) -> u64 {
        self.blocks.places.iter().filter(|p| p.kind == kind).map(|p| u64::from(p.stored_len)).sum()
    }

    /// The kinds that were written but are not in the file.
    pub fn missing(&self) -> Vec<BlockKind> {
        let here = |kind| self.blocks.places.iter().any(|p| p.kind == kind);
        BlockKind::of_segment().filter(|&kind| self.has(kind) && !here(kind)).collect()
    }

    fn read<R>(&self, kind: BlockKind, f: impl FnOnce(&Header, &Message<'_>) -> Result<R>) -> Result<Option<R>> {
        let read = match self.blocks.places.iter().find(|p| p.kind == kind) {
            // nobody sees the answer
            _ if self.tape.misses.is_given_up() => Err(self.lost(kind)),
            Some(place) => payload::read(&self.tape.source, place, &self.tape.tape_id, self.info.segment, f).map(Some),
            None if self.has(kind) => Err(self.lost(kind)),
            None => Ok(None),
        };
        self.note(kind, read)
    }

    /// Passes a result on; the tape notes blocks that could not be read.
    fn note<T>(&self, kind: BlockKind, result: Result<T>) -> Result<T> {
        self.tape.misses.note(kind, self.info.segment, result)
    }

    /// Reads a group whose rows point into the tasks of `dict`.
    fn rows<T>(
        &self,
        kind: BlockKind,
        dict: &Dict,
        f: impl FnOnce(&Header, &Message<'_>, usize) -> Result<Vec<T>>,
    ) -> Result<Vec<T>> {
        Ok(self.read(kind, |header, message| f(header, message, dict.tasks.len()))?.unwrap_or_default())
    }

    fn lost(&self, kind: BlockKind) -> Error {
        Error::Missing { what: kind.name(), segment: self.info.segment }
    }

    /// Task and call tables. Every segment has them.
    ///
    /// # Errors
    /// The block is damaged, or gone from the tape.
    pub fn dict(&self) -> Result<Dict> {
        let dict = self.read(BlockKind::Dict, message::read_dict)?.ok_or_else(|| self.lost(BlockKind::Dict));
        self.note(BlockKind::Dict, dict)
    }

    /// The columns of calls for a summary; `task` and `call` are inside `dict`'s tables.
    ///
    /// # Errors
    /// The block is damaged, or gone from the tape.
    pub fn core(&self, dict: &Dict) -> Result<Core> {
        let mut core = Core::default();
        self.core_into(dict, &mut core)?;
        Ok(core)
    }

    /// Reads what [`Self::core`] does, reusing the buffers of `core`, for scans of many segments. After an error its content is
    /// meaningless.
    ///
    /// # Errors
    /// The block is damaged, or gone from the tape.
    pub fn core_into(&self, dict: &Dict, core: &mut Core) -> Result<()> {
        let read =
            self.read(BlockKind::SyscallsCore, |header, message| message::read_core(header, message, dict, core))?;
        if read.is_none() {
            *core = Core::default();
        }
        Ok(())
    }

    /// Starts and CPUs of the rows of `core`. A call's end is start + dur.
    ///
    /// # Errors
    /// The block is damaged, or gone from the tape.
    pub fn time(&self, dict: &Dict, core: &Core) -> Result<Time> {
        let read =
            self.read(BlockKind::SyscallsTime, |header, message| message::read_time(header, message, dict, core))?;
        match read {
            Some(time) => Ok(time),
            None if core.dur.is_empty() => Ok(Time::default()),
            None => self.note(BlockKind::SyscallsTime, Err(self.lost(BlockKind::SyscallsTime))),
        }
    }

    /// Return values and arguments of the rows of `core`; empty = not recorded.
    ///
    /// # Errors
    /// The block is damaged, or gone from the tape.
    pub fn args(&self, core: &Core) -> Result<Args> {
        self.args_of(core, &PickedRows::all(core))
    }

    /// Arguments of the rows that are `picked`; the others have 0, which means nothing. The whole block is checked.
    ///
    /// # Errors
    /// The block is damaged, or gone from the tape.
    pub fn args_of(&self, core: &Core, picked: &PickedRows) -> Result<Args> {
        let read = |header: &Header, message: &Message<'_>| message::read_args(header, message, core, picked);
        Ok(self.read(BlockKind::SyscallsArgs, read)?.unwrap_or_default())
    }

    /// Files of fd arguments; empty = not recorded, or no call of the segment has one.
    ///
    /// # Errors
    /// The block is damaged, or gone from the tape.
    pub fn fds(&self, core: &Core) -> Result<Fds> {
        self.fds_of(core, &PickedRows::all(core))
    }

    /// Descriptors' files of the rows that are `picked`; the others have none, which means nothing. The whole block is checked.
    ///
    /// # Errors
    /// The block is damaged, or gone from the tape.
    pub fn fds_of(&self, core: &Core, picked: &PickedRows) -> Result<Fds> {
        let read = |header: &Header, message: &Message<'_>| message::read_fds(header, message, core, picked);
        Ok(self.read(BlockKind::SyscallsFds, read)?.unwrap_or_default())
    }

    /// Captured user memory, sorted by (row, arg).
    ///
    /// # Errors
    /// The block is damaged, or gone from the tape.
    pub fn captured(&self, core: &Core) -> Result<Vec<Captured>> {
        self.captured_of(core, None)
    }

    /// Captured values of the rows that are `picked`. The whole block is checked.
    ///
    /// # Errors
    /// The block is damaged, or gone from the tape.
    pub fn captured_of(&self, core: &Core, picked: Option<&PickedRows>) -> Result<Vec<Captured>> {
        let rows = core.dur.len();
        let read = |header: &Header, message: &Message<'_>| message::read_bytes(header, message, rows, picked);
        Ok(self.read(BlockKind::SyscallsBytes, read)?.unwrap_or_default())
    }

    /// Events of process life, sorted by ts; `task` and `parent` are inside `dict`'s tasks.
    ///
    /// # Errors
    /// The block is damaged, or gone from the tape.
    pub fn processes(&self, dict: &Dict) -> Result<Vec<ProcessEvent>> {
        self.rows(BlockKind::Processes, dict, message::read_processes)
    }

    /// Switches, sorted by ts; tasks are inside `dict`'s, here and below. Empty = none, or not recorded.
    ///
    /// # Errors
    /// The block is damaged, or gone from the tape.
    pub fn switches(&self, dict: &Dict) -> Result<Vec<Switch>> {
        self.rows(BlockKind::Sched, dict, message::read_switches)
    }

    /// Wake-ups, sorted by ts.
    ///
    /// # Errors
    /// The block is damaged, or gone from the tape.
    pub fn wakeups(&self, dict: &Dict) -> Result<Vec<Wakeup>> {
        self.rows(BlockKind::Wakeups, dict, message::read_wakeups)
    }

    /// Block I/Os, sorted by completion.
    ///
    /// # Errors
    /// The block is damaged, or gone from the tape.
    pub fn blocks(&self, dict: &Dict) -> Result<Vec<BlockIo>> {
        self.rows(BlockKind::Blocks, dict, message::read_blocks)
    }

    /// Signals, sorted by ts; `call` is inside `dict`'s calls.
    ///
    /// # Errors
    /// The block is damaged, or gone from the tape.
    pub fn signals(&self, dict: &Dict) -> Result<Vec<SignalEvent>> {
        let calls = dict.calls.len();
        self.rows(BlockKind::Signals, dict, |header, message, tasks| {
            message::read_signals(header, message, tasks, calls)
        })
    }

    /// Changes of sockets' states, sorted by ts.
    ///
    /// # Errors
    /// The block is damaged, or gone from the tape.
    pub fn nets(&self, dict: &Dict) -> Result<Vec<NetState>> {
        self.rows(BlockKind::Net, dict, message::read_nets)
    }

    /// io_uring operations, sorted by ts.
    ///
    /// # Errors
    /// The block is damaged, or gone from the tape.
    pub fn urings(&self, dict: &Dict) -> Result<Vec<UringOp>> {
        self.rows(BlockKind::Uring, dict, message::read_urings)
    }

    /// CPU samples, sorted by ts.
    ///
    /// # Errors
    /// The block is damaged, or gone from the tape.
    pub fn samples(&self, dict: &Dict) -> Result<Vec<Sample>> {
        self.rows(BlockKind::Samples, dict, message::read_samples)
    }

    /// Threads that slept when the recording began, sorted by ts.
    ///
    /// # Errors
    /// The block is damaged, or gone from the tape.
    pub fn sleepers(&self, dict: &Dict) -> Result<Vec<Sleeper>> {
        self.rows(BlockKind::Sleepers, dict, message::read_sleepers)
    }

    /// Stacks of the segment's events; empty = none were recorded.
    ///
    /// Each belongs to an event of the segment. If a group's block is lost, its number of events is unknown: its stacks
    /// are returned without that check.
    ///
    /// # Errors
    /// The block is damaged, or gone from the tape.
    pub fn stacks(&self) -> Result<Stacks> {
        let stacks = self.read(BlockKind::Stacks, message::read_stacks)?.unwrap_or_default();
        for of in StackOf::ALL {
            // Sorted: the last one of a kind has the greatest row.
            let end = stacks.attached.partition_point(|a| a.of <= of);
            let last = end.checked_sub(1).and_then(|last| stacks.attached.get(last)).filter(|a| a.of == of);
            if let Some(last) = last
                && let kind = kind_of(of)
                && let Some(rows) = self.rows_by_header(kind)
                && last.row >= rows
            {
                let why = format!("a stack of row {} of {}, which has {rows}", last.row, kind.name());
                return self.note(BlockKind::Stacks, Err(Error::invalid(BlockKind::Stacks.name(), why)));
            }
        }
        Ok(stacks)
    }

    /// Rows of a group by its block's header; None = its block is lost.
    fn rows_by_header(&self, kind: BlockKind) -> Option<u32> {
        if !self.has(kind) {
            return Some(0);
        }
        let place = self.blocks.places.iter().find(|p| p.kind == kind)?;
        let header = header_at(&self.tape.source, place.offset).ok()?;
        place.mismatch(&header, &self.tape.tape_id, self.info.segment).is_none().then_some(header.rows)
    }

    /// Calls that were counted instead of stored, sorted by first; tasks and calls are inside `dict`'s.
    ///
    /// # Errors
    /// The block is damaged, or gone from the tape.
    pub fn ledger(&self, dict: &Dict) -> Result<Vec<LedgerRow>> {
        let calls = dict.calls.len();
        self.rows(BlockKind::Ledger, dict, |header, message, tasks| message::read_ledger(header, message, tasks, calls))
    }

    /// Rows of tables that the tape defines, each table's sorted by ts; tasks are inside `dict`'s, stacks inside [`Self::stacks`], unless
    /// these are lost.
    ///
    /// # Errors
    /// The block is damaged, or no copy of a definition is left.
    pub fn tables(&self, dict: &Dict) -> Result<Vec<TableRows>> {
        let defs = || self.tape.table_defs();
        let tables = self.rows(BlockKind::Tables, dict, |header, message, tasks| {
            message::read_tables(header, message, tasks, defs())
        })?;
        let last = tables.iter().map(TableRows::last_stack).max().unwrap_or(0);
        match if last > 0 { self.distinct_stacks() } else { None } {
            Some(there) if last > there => {
                let why = format!("a row has stack {last} of {there}");
                self.note(BlockKind::Tables, Err(Error::invalid(BlockKind::Tables.name(), why)))
            }
            _ => Ok(tables),
        }
    }

    /// Number of distinct stacks; None = their block is lost or damaged (reported to callers that read stacks), or a
    /// repair left it out.
    fn distinct_stacks(&self) -> Option<u64> {
        let place = self.blocks.places.iter().find(|p| p.kind == BlockKind::Stacks)?;
        let (source, id) = (&self.tape.source, &self.tape.tape_id);
        let stacks = payload::read(source, place, id, self.info.segment, message::read_stacks).ok()?;
        Some(stacks.distinct.len() as u64)
    }

    /// Losses, with their causes.
    ///
    /// # Errors
    /// The block is damaged, or gone from the tape.
    pub fn gaps(&self) -> Result<Vec<Gap>> {
        Ok(self.read(BlockKind::Gaps, message::read_gaps)?.unwrap_or_default())
    }
}
