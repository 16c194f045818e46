//! The CPU-heavy half of writing: sorts a segment's rows, narrows columns, builds messages and compresses them.
//!
//! An [`Encoder`] belongs to one worker thread. Its blocks have no numbers yet (chunk, segment, seq): the
//! [`crate::writer::Writer`] assigns them in the order in which segments arrive there.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::header::{
    BlockKind, FLAG_CONTINUED, FLAG_CONTINUES, INCOMPAT_BEHIND, INCOMPAT_BLOCK_CAUSES, INCOMPAT_SLEEPERS,
    INCOMPAT_SOFTIRQ, INCOMPAT_UNKNOWN_ARGS, MAX_RAW, MAX_ROWS,
};
use crate::info::{add_content, block_start, from_headers, listed_calls, listed_pids};
use crate::message::{self, CapturedValues, Columns};
use crate::model::{
    Appeared, BESIDE, Checkpoint, Ends, FD_FIRST, FD_NONE, Gap, LedgerReason, NEEDS, SECOND_VALUE, SegmentInfo,
    StackOf, Stacks, Symbols,
};
use crate::order::{column_order, row_order};
use crate::payload::{Block, Packer};
use crate::segment::SegmentData;
use crate::table::{TableDef, Type};
use crate::tables::TableRows;
use crate::tree;
use capnp::message::{Builder, HeapAllocator};

/// Most parts of a checkpoint: bounds the memory of a reader.
pub(crate) const MAX_PARTS: usize = 32;

/// Turns collected windows into blocks.
pub struct Encoder {
    packer: Packer,
}

/// A segment's blocks, compressed.
#[derive(Clone, Debug)]
pub struct EncodedSegment {
    pub(crate) blocks: Vec<Block>,
    pub(crate) info: SegmentInfo,
    /// The definitions of its tables.
    pub(crate) defs: Vec<Arc<TableDef>>,
    /// Cgroups that appeared.
    pub(crate) appeared: Box<Appeared>,
}

impl EncodedSegment {
    /// Cgroups and containers that appeared in it.
    pub fn appeared(&self) -> &Appeared {
        &self.appeared
    }

    /// Bytes the blocks will take in the tape, headers included.
    pub fn stored_bytes(&self) -> u64 {
        stored_bytes(&self.blocks)
    }
}

/// A checkpoint's blocks, compressed.
#[derive(Clone, Debug)]
pub struct EncodedCheckpoint {
    pub(crate) blocks: Vec<Block>,
}

impl EncodedCheckpoint {
    /// Bytes the blocks will take in the tape, headers included. A chunk is worth closing at 16 times this.
    pub fn stored_bytes(&self) -> u64 {
        stored_bytes(&self.blocks)
    }
}

/// Names of code, compressed.
#[derive(Clone, Debug)]
pub struct EncodedSymbols {
    pub(crate) blocks: Vec<Block>,
}

impl EncodedSymbols {
    /// Bytes the blocks will take in the tape, headers included.
    pub fn stored_bytes(&self) -> u64 {
        stored_bytes(&self.blocks)
    }
}

/// Bytes that blocks take in a tape, headers included.
fn stored_bytes(blocks: &[Block]) -> u64 {
    blocks.iter().map(|b| b.header.span()).sum()
}

impl Encoder {
    /// `level` is zstd's, usually 1 to 9.
    pub fn new(level: i32) -> Self {
        Self { packer: Packer::new(level) }
    }

    /// Sorts and compresses a window.
    ///
    /// # Errors
    /// A row's index is outside the builder's tables (a caller's mistake), or a block would exceed 8 MiB (the caller did not
    /// stop at [`crate::segment::SegmentBuilder::is_full`]).
    pub fn segment(&mut self, mut data: SegmentData) -> Result<EncodedSegment> {
        check(&data)?;
        let window = (data.window_start, data.window_end);
        let (columns, ids) = in_row_order(&data);
        let n = ids.len();
        let mut blocks = Vec::with_capacity(8);

        let mut dict = self.packer.pack(BlockKind::Dict, &message::write_dict(&data.tasks, &data.calls, window))?;
        dict.header.rows = data.tasks.len() as u32;
        (dict.header.start_min, dict.header.end_min, dict.header.end_max) = (window.0, window.0, window.1);
        blocks.push(dict);

        let end_min = columns.end.iter().min().copied().unwrap_or(0);
        let end_max = columns.end.iter().max().copied().unwrap_or(0);
        let start_min = columns.start.iter().min().copied().unwrap_or(0);
        let mut push = |mut block: Block, rows: usize, carry_rows: usize| {
            let h = &mut block.header;
            (h.rows, h.carry_rows) = (rows as u32, carry_rows as u32);
            (h.end_min, h.end_max, h.start_min) = (end_min, end_max, start_min);
            blocks.push(block);
        };
        if n > 0 {
            let carry = columns.carry_rows;
            push(self.packer.pack(BlockKind::SyscallsCore, &message::write_core(&columns))?, n, carry);
            push(self.packer.pack(BlockKind::SyscallsTime, &message::write_time(&columns, window.0))?, n, carry);
            let order = column_order(&columns.task, &columns.call);
            let args = message::write_args(&order, &ids, &data.ret, &data.args, &data.unknown);
            let mut block = self.packer.pack(BlockKind::SyscallsArgs, &args)?;
            if data.unknown.iter().any(|&bits| bits != 0) {
                block.header.features_incompat |= INCOMPAT_UNKNOWN_ARGS;
            }
            push(block, n, carry);
            let values = values_in_row_order(&data, &ids);
            if !values.row.is_empty() {
                let bytes = message::write_bytes(&values);
                push(self.packer.pack(BlockKind::SyscallsBytes, &bytes)?, values.row.len(), 0);
            }
            if [&data.fd, &data.fd2].iter().any(|fd| fd.iter().any(|&fd| fd != FD_NONE)) {
                let fds = message::write_fds(&order, &ids, [&data.fd, &data.fd2], &data.fd_names);
                push(self.packer.pack(BlockKind::SyscallsFds, &fds)?, n, carry);
            }
        }
        // Before events are sorted: stacks name them by insertion id.
        let stacks = stacks_in_row_order(&data, &ids);
        let d = &mut data;
        self.events(BlockKind::Processes, &mut d.processes, |e| e.ts, message::write_processes, &mut blocks)?;
        self.events(BlockKind::Sched, &mut d.switches, |e| e.ts, message::write_switches, &mut blocks)?;
        self.events(BlockKind::Wakeups, &mut d.wakeups, |e| e.ts, message::write_wakeups, &mut blocks)?;
        if let (true, Some(block)) = (d.wakeups.iter().any(|e| e.softirq), blocks.last_mut()) {
            block.header.features_incompat |= INCOMPAT_SOFTIRQ;
        }
        self.events(BlockKind::Blocks, &mut d.blocks, |e| e.complete, message::write_blocks, &mut blocks)?;
        if let (Some(start), Some(block)) = (d.blocks.iter().map(block_start).min(), blocks.last_mut()) {
            block.header.start_min = start;
            if d.blocks.iter().any(|io| io.cause.is_new()) {
                block.header.features_incompat |= INCOMPAT_BLOCK_CAUSES;
            }
        }
        self.events(BlockKind::Signals, &mut d.signals, |e| e.ts, message::write_signals, &mut blocks)?;
        self.events(BlockKind::Net, &mut d.nets, |e| e.ts, message::write_nets, &mut blocks)?;
        self.events(BlockKind::Uring, &mut d.urings, |e| e.ts, message::write_urings, &mut blocks)?;
        self.events(BlockKind::Samples, &mut d.samples, |e| e.ts, message::write_samples, &mut blocks)?;
        self.events(BlockKind::Sleepers, &mut d.sleepers, |e| e.ts, message::write_sleepers, &mut blocks)?;
        if !stacks.stacks.distinct.is_empty() {
            blocks.push(self.stacks(&stacks)?);
            // the builder numbered them as they came
            let new = |code: u64| match usize::try_from(code).ok().and_then(|code| code.checked_sub(1)) {
                Some(old) => stacks.renumbered.get(old).map_or(0, |new| u64::from(*new) + 1),
                None => 0,
            };
            data.tables.iter_mut().for_each(|table| table.map_stacks(new));
        }
        if !data.gaps.is_empty() {
            blocks.push(self.gaps(&data.gaps)?);
        }
        let d = &mut data;
        self.events(BlockKind::Ledger, &mut d.ledger, |e| e.first, message::write_ledger, &mut blocks)?;
        if let (Some(last), Some(block)) = (d.ledger.iter().map(|e| e.last).max(), blocks.last_mut()) {
            block.header.end_max = last;
            if d.ledger.iter().any(|row| row.reason == LedgerReason::Behind) {
                block.header.features_incompat |= INCOMPAT_BEHIND;
            }
        }
        let d = &mut data;
        blocks.extend(self.tables(&mut d.tables)?);
        let groups = blocks.iter().fold(0, |bits, b| bits | b.header.kind.group_bit());
        for block in &mut blocks {
            block.header.groups = groups;
        }
        let mut info = from_headers(blocks.iter().map(|b| &b.header));
        add_content(
            &mut info,
            (&columns.dur, &columns.errno, !data.ledger.is_empty()),
            listed_calls(&data.calls),
            listed_pids(&data.tasks, &data.gaps),
        );
        let defs = data.tables.iter().map(|table| Arc::clone(&table.def)).collect();
        Ok(EncodedSegment { blocks, info, defs, appeared: Box::new(data.appeared) })
    }

    /// Sorts rows of tables by their time and compresses them. Without rows there is no block.
    pub(crate) fn tables(&mut self, tables: &mut [TableRows]) -> Result<Option<Block>> {
        for table in &mut *tables {
            let mut order: Vec<u32> = (0..table.ts.len() as u32).collect();
            order.sort_by_key(|&row| table.ts[row as usize]);
            if order.is_sorted() {
                continue;
            }
            for column in table.columns.iter_mut().chain([&mut table.ts]) {
                *column = order.iter().map(|&row| column[row as usize]).collect();
            }
        }
        let rows: usize = tables.iter().map(|table| table.ts.len()).sum();
        if rows == 0 {
            return Ok(None);
        }
        let mut block = self.packer.pack(BlockKind::Tables, &message::write_tables(tables))?;
        let first = tables.iter().filter_map(|table| table.ts.first()).min();
        let last = tables.iter().filter_map(|table| table.ts.last()).max();
        let h = &mut block.header;
        h.rows = rows as u32;
        (h.start_min, h.end_max) = (first.copied().unwrap_or(0), last.copied().unwrap_or(0));
        h.end_min = h.start_min;
        Ok(Some(block))
    }

    /// Sorts events by their time and compresses them. Without events there is no block.
    fn events<T>(
        &mut self,
        kind: BlockKind,
        events: &mut [T],
        ts: impl Fn(&T) -> u64,
        write: impl FnOnce(&[T]) -> Builder<HeapAllocator>,
        blocks: &mut Vec<Block>,
    ) -> Result<()> {
        // Rings are in time order each: the stable sort finds their ascending runs.
        events.sort_by_key(&ts);
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return Ok(()) };
        let mut block = self.packer.pack(kind, &write(events))?;
        let h = &mut block.header;
        h.rows = events.len() as u32;
        (h.start_min, h.end_min, h.end_max) = (ts(first), ts(first), ts(last));
        blocks.push(block);
        Ok(())
    }

    /// Compresses stacks that are in row order.
    fn stacks(&mut self, stacks: &tree::OrderedTree) -> Result<Block> {
        let mut block = self.packer.pack(BlockKind::Stacks, &message::write_stacks(stacks))?;
        block.header.rows = stacks.stacks.attached.len() as u32;
        let new_status = stacks.stacks.distinct.iter().any(|end| end.status.is_new());
        if new_status || stacks.stacks.attached.iter().any(|a| a.of == StackOf::Asleep) {
            block.header.features_incompat |= INCOMPAT_SLEEPERS;
        }
        Ok(block)
    }

    /// Compresses new content for a block: the same rows at the same times.
    pub(crate) fn again(&mut self, block: &Block, message: &Builder<HeapAllocator>) -> Result<Block> {
        let mut new = self.packer.pack(block.header.kind, message)?;
        let (old, h) = (&block.header, &mut new.header);
        (h.rows, h.carry_rows, h.flags) = (old.rows, old.carry_rows, old.flags);
        (h.start_min, h.end_min, h.end_max) = (old.start_min, old.end_min, old.end_max);
        h.features_compat = old.features_compat;
        h.features_incompat |= old.features_incompat;
        Ok(new)
    }

    /// Compresses stacks as a reader gave them.
    pub(crate) fn read_stacks(&mut self, stacks: &Stacks) -> Result<Block> {
        self.stacks(&tree::again(stacks))
    }

    /// Compresses gaps.
    pub(crate) fn gaps(&mut self, gaps: &[Gap]) -> Result<Block> {
        let mut block = self.packer.pack(BlockKind::Gaps, &message::write_gaps(gaps))?;
        let h = &mut block.header;
        h.rows = gaps.len() as u32;
        h.end_min = gaps.iter().map(|g| g.first).min().unwrap_or(0);
        h.end_max = gaps.iter().map(|g| g.last).max().unwrap_or(0);
        h.start_min = h.end_min;
        Ok(block)
    }

    /// Compresses definitions of tables, and names of what appeared.
    pub(crate) fn table_defs(&mut self, defs: &[Arc<TableDef>], appeared: &Appeared) -> Result<Block> {
        let mut block = self.packer.pack(BlockKind::TableDefs, &message::write_table_defs(defs, appeared))?;
        block.header.rows = defs.len() as u32;
        Ok(block)
    }

    /// Compresses names; many names take several blocks.
    ///
    /// Symbols need not be sorted; of two for one place the last is kept. Long names and chains of inlined functions
    /// are cut.
    ///
    /// # Errors
    /// A mapping is not one of the list.
    pub fn symbols(&mut self, symbols: &Symbols) -> Result<EncodedSymbols> {
        let mut blocks = Vec::new();
        for part in message::split_symbols(symbols)? {
            let mut block = self.packer.pack(BlockKind::Symbols, &message::write_symbols(&part))?;
            block.header.rows = part.rows() as u32;
            blocks.push(block);
        }
        Ok(EncodedSymbols { blocks })
    }

    /// Compresses a checkpoint; a large one takes several blocks.
    ///
    /// # Errors
    /// An index is outside of its table (a caller's mistake), or a part is larger than a block may be (8 MiB).
    pub fn checkpoint(&mut self, cp: &Checkpoint) -> Result<EncodedCheckpoint> {
        let parts = message::split_checkpoint(cp);
        if parts.len() > MAX_PARTS {
            let what = "cannot write checkpoint: blocks".to_owned();
            return Err(Error::TooLarge { what, len: parts.len() as u64, limit: MAX_PARTS as u64 });
        }
        let mut blocks = Vec::with_capacity(parts.len());
        for (i, part) in parts.iter().enumerate() {
            let mut block = self.packer.pack(BlockKind::Checkpoint, &message::write_checkpoint_part(cp, part))?;
            let h = &mut block.header;
            h.rows = part.tasks.len() as u32;
            (h.start_min, h.end_min, h.end_max) = (cp.ts, cp.ts, cp.ts);
            h.flags = if i > 0 { FLAG_CONTINUED } else { 0 } | if i + 1 < parts.len() { FLAG_CONTINUES } else { 0 };
            blocks.push(block);
        }
        Ok(EncodedCheckpoint { blocks })
    }
}

/// Checks the limits of the format.
fn check(data: &SegmentData) -> Result<()> {
    let n = data.rows();
    let stacks = &data.stacks;
    let most = data.most_rows().max(stacks.frames.len()).max(stacks.nodes.len());
    if most > MAX_ROWS as usize {
        let what = "cannot write segment: rows".to_owned();
        return Err(Error::TooLarge { what, len: most as u64, limit: u64::from(MAX_ROWS) });
    }
    if data.bytes.len() > MAX_RAW as usize {
        let what = "cannot write segment: captured bytes".to_owned();
        return Err(Error::TooLarge { what, len: data.bytes.len() as u64, limit: u64::from(MAX_RAW) });
    }
    let inside = |what: &str, max: Option<u32>, len: usize| match max {
        Some(max) if max as usize >= len => {
            Err(Error::invalid("segment", format!("{what} {max} was not interned: there are {len}")))
        }
        _ => Ok(()),
    };
    inside("task", data.task.iter().max().copied(), data.tasks.len())?;
    inside("call", data.call.iter().max().copied(), data.calls.len())?;
    for fd in [&data.fd, &data.fd2] {
        inside("fd name", fd.iter().max().copied(), data.fd_names.len() + FD_FIRST as usize)?;
    }
    inside("row of a captured value", data.values.iter().map(|v| v.row).max(), n)?;
    let arguments =
        data.values.iter().filter(|v| ![BESIDE, NEEDS].contains(&v.arg)).map(|v| u32::from(v.arg & !SECOND_VALUE));
    inside("argument of a captured value", arguments.max(), 6)?;
    let tasks = data.tasks.len();
    inside("task of an event", data.processes.iter().map(|e| e.task.max(e.parent)).max(), tasks)?;
    inside("task of a switch", data.switches.iter().map(|e| e.prev.max(e.next)).max(), tasks)?;
    inside("task of a wake-up", data.wakeups.iter().map(|e| e.wakee.max(e.waker.unwrap_or(0))).max(), tasks)?;
    inside("task of a block I/O", data.blocks.iter().filter_map(|e| e.origin.max(e.owner)).max(), tasks)?;
    inside("task of a signal", data.signals.iter().map(|e| e.target.max(e.sender.unwrap_or(0))).max(), tasks)?;
    inside("call of a signal", data.signals.iter().filter_map(|e| e.call).max(), data.calls.len())?;
    inside("task of a socket", data.nets.iter().filter_map(|e| e.task.max(e.sender)).max(), tasks)?;
    inside("task of an io_uring operation", data.urings.iter().map(|e| e.task).max(), tasks)?;
    inside("task of a ledger row", data.ledger.iter().filter_map(|e| e.task).max(), tasks)?;
    inside("call of a ledger row", data.ledger.iter().map(|e| e.call).max(), data.calls.len())?;
    inside("task of a sample", data.samples.iter().map(|e| e.task).max(), tasks)?;
    let of_tables = data.tables.iter().flat_map(|table| {
        let columns = table.def.columns.iter().skip(1).zip(&table.columns);
        columns.filter(|(column, _)| column.ty == Type::Task).filter_map(|(_, values)| values.iter().max())
    });
    // stored as index + 1
    inside("task of a row", of_tables.max().and_then(|&task| u32::try_from(task).ok()?.checked_sub(1)), tasks)?;
    inside("task of a sleeper", data.sleepers.iter().map(|e| e.task).max(), tasks)?;
    for (i, node) in stacks.nodes.iter().enumerate() {
        inside("caller of a node", node.parent, i)?;
    }
    inside("frame of a node", stacks.nodes.iter().map(|n| n.frame).max(), stacks.frames.len())?;
    inside("mapping of a frame", stacks.frames.iter().map(|f| f.mapping).max(), stacks.mappings.len())?;
    if let Some(frame) = stacks.frames.iter().find(|f| f.flags & !message::FRAME_FLAGS != 0) {
        return Err(Error::invalid("segment", format!("unknown flags {:#x} of a frame", frame.flags)));
    }
    let ends = stacks.attached.iter().map(Ends::from).chain(stacks.distinct.iter().copied());
    inside("node of a stack", ends.filter_map(|end| end.user.max(end.kernel)).max(), stacks.nodes.len())?;
    for of in StackOf::ALL {
        let rows = stacks.attached.iter().filter(|a| a.of == of).map(|a| a.row);
        inside("event of a stack", rows.max(), events_of(data, of))?;
    }
    Ok(())
}

/// Core and time columns in row order, and the insertion id of each row.
fn in_row_order(d: &SegmentData) -> (Columns, Vec<u32>) {
    let start: Vec<u64> = d.end.iter().zip(&d.dur).map(|(&end, &dur)| end.saturating_sub(dur)).collect();
    let (ids, carry_rows) = row_order(&start, &d.end, &d.task, d.window_start);
    // rows come in order of time, all but a few
    let runs: Vec<Range<usize>> =
        ids.chunk_by(|&a, &b| b == a.wrapping_add(1)).map(|run| run[0] as usize..run[0] as usize + run.len()).collect();
    fn pick<T: Copy>(runs: &[Range<usize>], column: &[T]) -> Vec<T> {
        let mut picked = Vec::with_capacity(column.len());
        runs.iter().for_each(|run| picked.extend_from_slice(&column[run.clone()]));
        picked
    }
    let columns = Columns {
        carry_rows,
        start: pick(&runs, &start),
        end: pick(&runs, &d.end),
        dur: pick(&runs, &d.dur),
        cpu: pick(&runs, &d.cpu),
        task: pick(&runs, &d.task),
        call: pick(&runs, &d.call),
        errno: pick(&runs, &d.errno),
        state: pick(&runs, &d.state),
    };
    (columns, ids)
}

/// Events of one kind that can have stacks.
fn events_of(d: &SegmentData, of: StackOf) -> usize {
    match of {
        StackOf::Syscall => d.rows(),
        StackOf::Switch => d.switches.len(),
        StackOf::Wakeup => d.wakeups.len(),
        StackOf::Block => d.blocks.len(),
        StackOf::Signal => d.signals.len(),
        StackOf::Sample => d.samples.len(),
        StackOf::Asleep => d.sleepers.len(),
        // the row has it
        StackOf::Row => 0,
    }
}

/// Stacks with rows instead of insertion ids, as they are stored. Rows of calls follow `ids`; rows of events follow the
/// stable sort by their time, which comes later.
fn stacks_in_row_order(d: &SegmentData, ids: &[u32]) -> tree::OrderedTree {
    fn by_time<T>(events: &[T], ts: impl Fn(&T) -> u64) -> Vec<u32> {
        let mut ids: Vec<u32> = (0..events.len() as u32).collect();
        ids.sort_by_key(|&id| ts(&events[id as usize]));
        positions(&ids)
    }
    let rows: Vec<Vec<u32>> = StackOf::ALL
        .into_iter()
        .map(|of| match of {
            _ if d.stacks.attached.iter().all(|a| a.of != of) => Vec::new(),
            StackOf::Syscall => positions(ids),
            StackOf::Switch => by_time(&d.switches, |e| e.ts),
            StackOf::Wakeup => by_time(&d.wakeups, |e| e.ts),
            StackOf::Block => by_time(&d.blocks, |e| e.complete),
            StackOf::Signal => by_time(&d.signals, |e| e.ts),
            StackOf::Sample => by_time(&d.samples, |e| e.ts),
            StackOf::Asleep => by_time(&d.sleepers, |e| e.ts),
            StackOf::Row => Vec::new(),
        })
        .collect();
    tree::order(&d.stacks, |of, id| rows[of as usize - 1][id as usize])
}

/// Position of each insertion id in `ids`.
fn positions(ids: &[u32]) -> Vec<u32> {
    let mut positions = vec![0u32; ids.len()];
    for (position, &id) in ids.iter().enumerate() {
        positions[id as usize] = position as u32;
    }
    positions
}

/// Captured values with rows instead of insertion ids, sorted by (row, arg).
fn values_in_row_order(d: &SegmentData, ids: &[u32]) -> CapturedValues {
    let mut order: Vec<(u32, u8, usize)> = Vec::with_capacity(d.values.len());
    if d.values.is_sorted_by_key(|v| v.row) {
        // those of a row come together: where they begin, by insertion id
        let mut from = Vec::with_capacity(ids.len() + 1);
        let mut next = 0;
        for id in 0..=ids.len() as u32 {
            from.push(next);
            next += d.values[next..].iter().take_while(|v| v.row == id).count();
        }
        for (row, &id) in (0..).zip(ids) {
            let (begin, at) = (order.len(), from[id as usize]..from[id as usize + 1]);
            order.extend(at.map(|i| (row, d.values[i].arg, i)));
            order[begin..].sort_unstable();
        }
    } else {
        let row_of = positions(ids);
        order.extend(d.values.iter().enumerate().map(|(i, v)| (row_of[v.row as usize], v.arg, i)));
        order.sort_unstable();
    }
    let mut out = CapturedValues::with_capacity(order.len(), d.bytes.len());
    for (row, arg, i) in order {
        let v = &d.values[i];
        out.row.push(row);
        out.arg.push(arg);
        out.status.push(v.status as u8);
        out.len.push(v.len as u32);
        out.full.push(v.full);
        out.bytes.extend_from_slice(&d.bytes[v.at..v.at + v.len]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{BlockCause, BlockIo};

    #[test]
    fn a_cause_older_readers_refuse_sets_a_bit_of_that_block_alone() {
        let mut encoder = Encoder::new(1);
        for (cause, bit) in [
            (BlockCause::CgroupOwner, 0),
            (BlockCause::KernelThread, INCOMPAT_BLOCK_CAUSES),
            (BlockCause::Flush, INCOMPAT_BLOCK_CAUSES),
        ] {
            let blocks = vec![
                BlockIo { complete: 5, ..BlockIo::default() },
                BlockIo { complete: 7, cause, ..BlockIo::default() },
            ];
            let data = SegmentData { blocks: blocks.clone(), window_end: 9, ..SegmentData::default() };
            let segment = encoder.segment(data).expect("a segment");
            for block in &segment.blocks {
                let of_causes = block.header.features_incompat & INCOMPAT_BLOCK_CAUSES;
                assert_eq!(of_causes, if block.header.kind == BlockKind::Blocks { bit } else { 0 }, "{cause:?}");
                assert_eq!(block.header.unknown_incompat(), 0, "{cause:?}");
            }
            let block = segment.blocks.iter().find(|b| b.header.kind == BlockKind::Blocks).expect("blocks");
            // and what is written again has it too
            let again = encoder.again(block, &message::write_blocks(&blocks)).expect("a block");
            assert_eq!(again.header.features_incompat, block.header.features_incompat);
        }
    }
}
