//! Collects the events of one window of time until they fill a segment.
//!
//! Pushing is cheap (a few vectors); [`crate::encode::Encoder`] sorts, narrows and compresses, possibly on another
//! thread. Rows may come in any order of time, because rings are drained one after the other.

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use indexmap::IndexSet;

use crate::error::{Error, Result};
use crate::message::{
    ATTACHED_BYTES, BLOCK_BYTES, FRAME_BYTES, MAX_ADDRESS, NODE_BYTES, SAMPLE_BYTES, SLEEPER_BYTES, SWITCH_BYTES,
    URING_BYTES, WAKEUP_BYTES, mapping_bytes,
};
use crate::model::{
    Appeared, Attached, BlockIo, ByteStatus, Call, Container, Ends, FD_FIRST, Frame, Gap, LedgerRow, MAX_VALUE,
    Mapping, NetState, Node, ProcessEvent, Sample, SignalEvent, Sleeper, StackOf, Stacks, Switch, SyscallRow, Task,
    UringOp, Wakeup, cut_mapping,
};

use crate::strings::{StringSet, Strings};
use crate::table::{ColumnDef, TableDef, Type};
use crate::tables::{Field, MAX_CELLS, MAX_TABLES, TableRows, fault};

/// Rows of any kind at which a segment is full.
pub const FULL_ROWS: usize = 64 << 10;
/// Estimated bytes of one block at which a segment is full: half of a block's limit.
pub(crate) const FULL_BYTES: usize = 4 << 20;
/// Ancestors kept of a signal's sender and target: more than any sane process tree is deep.
pub(crate) const MAX_ANCESTORS: usize = 256;
/// Bytes kept of an ancestor's comm; the kernel's are shorter.
const MAX_COMM: usize = 64;
/// Estimated bytes of stacks at which a segment is full. Less than [`FULL_BYTES`]: one stack of 1,000 frames, each in a
/// mapping of its own with a path of 4 KiB, must still fit.
const FULL_STACKS: usize = 3 << 20;
/// A bit for each argument.
const ARGUMENTS: u8 = 0x3f;
/// ABIs and numbers below these are looked up in a table, the rest in a map.
const TABLE: (u8, u32) = (8, 1024);

/// A captured value whose row has no final position yet.
#[derive(Debug)]
pub(crate) struct PendingValue {
    pub(crate) row: u32,
    pub(crate) arg: u8,
    pub(crate) status: ByteStatus,
    pub(crate) full: u64,
    /// Range in `SegmentData::bytes`.
    pub(crate) at: usize,
    pub(crate) len: usize,
}

/// Everything pushed to a [`SegmentBuilder`], ready to be encoded on any thread.
#[derive(Debug, Default)]
pub struct SegmentData {
    pub(crate) window_start: u64,
    pub(crate) window_end: u64,
    pub(crate) tasks: Vec<Task>,
    pub(crate) calls: Vec<Call>,
    pub(crate) fd_names: Strings,
    pub(crate) end: Vec<u64>,
    pub(crate) dur: Vec<u64>,
    pub(crate) cpu: Vec<u32>,
    pub(crate) task: Vec<u32>,
    pub(crate) call: Vec<u32>,
    pub(crate) ret: Vec<i64>,
    pub(crate) errno: Vec<u16>,
    /// Low 4 bits: state; bit 4: unselected.
    pub(crate) state: Vec<u8>,
    pub(crate) args: Vec<[u64; 6]>,
    pub(crate) unknown: Vec<u8>,
    pub(crate) fd: Vec<u32>,
    pub(crate) fd2: Vec<u32>,
    pub(crate) values: Vec<PendingValue>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) processes: Vec<ProcessEvent>,
    pub(crate) switches: Vec<Switch>,
    pub(crate) wakeups: Vec<Wakeup>,
    pub(crate) blocks: Vec<BlockIo>,
    pub(crate) signals: Vec<SignalEvent>,
    pub(crate) nets: Vec<NetState>,
    pub(crate) urings: Vec<UringOp>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) sleepers: Vec<Sleeper>,
    pub(crate) stacks: Stacks,
    pub(crate) gaps: Vec<Gap>,
    pub(crate) ledger: Vec<LedgerRow>,
    /// Rows of tables, in the order in which they were pushed.
    pub(crate) tables: Vec<TableRows>,
    pub(crate) appeared: Appeared,
}

impl SegmentData {
    /// Syscall rows.
    pub fn rows(&self) -> usize {
        self.end.len()
    }

    /// Distinct calls, in order of first use.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// Stacks, in the order in which they were pushed.
    pub fn stacks(&self) -> &Stacks {
        &self.stacks
    }

    /// CPU samples.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Rows of tables, one entry for each table.
    pub fn tables(&self) -> &[TableRows] {
        &self.tables
    }

    /// Losses of the segment.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Number of rows of the largest group.
    pub(crate) fn most_rows(&self) -> usize {
        [
            self.rows(),
            self.switches.len(),
            self.wakeups.len(),
            self.blocks.len(),
            self.signals.len(),
            self.nets.len(),
            self.urings.len(),
            self.samples.len(),
            self.sleepers.len(),
            self.stacks.attached.len(),
            self.stacks.distinct.len(),
            self.ledger.len(),
            self.tables.iter().map(|table| table.ts.len()).max().unwrap_or(0),
        ]
        .into_iter()
        .max()
        .unwrap_or(0)
    }
}

/// Collects one window.
#[derive(Debug)]
pub struct SegmentBuilder {
    data: SegmentData,
    task_ids: HashMap<Task, u32>,
    /// The latest entry of each thread: almost always the one requested.
    latest: std::collections::HashMap<u32, u32, BuildHasherDefault<UtidHasher>>,
    call_table: Vec<u32>,
    call_ids: HashMap<Call, u32>,
    fd_names: StringSet,
    mapping_ids: HashMap<Mapping, u32>,
    frame_ids: HashMap<Frame, u32>,
    node_ids: HashMap<Node, u32>,
    stack_ids: HashMap<Ends, u32>,
    dict_bytes: usize,
    fd_bytes: usize,
    process_bytes: usize,
    signal_bytes: usize,
    net_bytes: usize,
    mapping_bytes: usize,
    ledger_bytes: usize,
    table_bytes: usize,
    table_cells: usize,
    /// Strings of each of `data.tables`.
    table_strings: Vec<IndexSet<Vec<u8>, foldhash::fast::RandomState>>,
}

impl SegmentBuilder {
    /// A builder for a window from `window_start` on.
    pub fn new(window_start: u64) -> Self {
        Self {
            data: SegmentData { window_start, ..SegmentData::default() },
            task_ids: HashMap::new(),
            latest: std::collections::HashMap::default(),
            call_table: vec![0; usize::from(TABLE.0) * TABLE.1 as usize],
            call_ids: HashMap::new(),
            fd_names: StringSet::default(),
            mapping_ids: HashMap::new(),
            frame_ids: HashMap::new(),
            node_ids: HashMap::new(),
            stack_ids: HashMap::new(),
            dict_bytes: 0,
            fd_bytes: 0,
            process_bytes: 0,
            signal_bytes: 0,
            net_bytes: 0,
            mapping_bytes: 0,
            ledger_bytes: 0,
            table_bytes: 0,
            table_cells: 0,
            table_strings: Vec::new(),
        }
    }

    /// Makes one as [`Self::new`] does, with room for as many rows as `before` had.
    pub fn after(before: &Self, window_start: u64) -> Self {
        let had = &before.data;
        let mut next = Self::new(window_start);
        let d = &mut next.data;
        let rows = had.rows();
        d.end.reserve(rows);
        d.dur.reserve(rows);
        d.cpu.reserve(rows);
        d.task.reserve(rows);
        d.call.reserve(rows);
        d.ret.reserve(rows);
        d.errno.reserve(rows);
        d.state.reserve(rows);
        d.args.reserve(rows);
        d.unknown.reserve(rows);
        d.fd.reserve(rows);
        d.fd2.reserve(rows);
        d.values.reserve(had.values.len());
        d.bytes.reserve(had.bytes.len());
        d.switches.reserve(had.switches.len());
        d.wakeups.reserve(had.wakeups.len());
        next
    }

    /// Index of `t` in this segment's tasks. Tasks are equal when every field is: a changed comm makes a new entry.
    pub fn intern_task(&mut self, t: &Task) -> u32 {
        if let Some(&id) = self.latest.get(&t.utid)
            && self.data.tasks.get(id as usize).is_some_and(|known| same(known, t))
        {
            return id;
        }
        let id = match self.task_ids.get(t) {
            Some(&id) => id,
            None => {
                let id = self.data.tasks.len() as u32;
                self.data.tasks.push(t.clone());
                self.task_ids.insert(t.clone(), id);
                self.dict_bytes += crate::message::task_bytes(t);
                id
            }
        };
        self.latest.insert(t.utid, id);
        id
    }

    /// Index of `c` in this segment's calls.
    pub fn intern_call(&mut self, c: Call) -> u32 {
        let calls = &mut self.data.calls;
        let mut add = || {
            calls.push(c);
            calls.len() as u32 - 1
        };
        if c.abi < TABLE.0 && c.nr < TABLE.1 {
            // 0 = not seen, else the index + 1.
            let slot = &mut self.call_table[usize::from(c.abi) * TABLE.1 as usize + c.nr as usize];
            if *slot == 0 {
                *slot = add() + 1;
            }
            return *slot - 1;
        }
        *self.call_ids.entry(c).or_insert_with(add)
    }

    /// Value of [`SyscallRow::fd`] for `name`.
    pub fn intern_fd_name(&mut self, name: &[u8]) -> u32 {
        let (index, is_new) = self.fd_names.insert(name);
        self.fd_bytes += if is_new { 16 + name.len() } else { 0 };
        index + FD_FIRST
    }

    /// Adds a call; its `task`, `call` and `fd` come from this builder's intern functions. Returns its insertion id for
    /// [`Self::push_captured`].
    pub fn push_syscall(&mut self, row: SyscallRow) -> u32 {
        let d = &mut self.data;
        let id = d.end.len() as u32;
        d.end.push(row.end);
        d.dur.push(row.dur);
        d.cpu.push(row.cpu);
        d.task.push(row.task);
        d.call.push(row.call);
        d.ret.push(row.ret);
        d.errno.push(row.errno);
        d.state.push(row.state as u8 | u8::from(row.unselected) << 4);
        d.args.push(row.args);
        d.unknown.push(row.unknown & ARGUMENTS);
        d.fd.push(row.fd);
        d.fd2.push(row.fd2);
        id
    }

    /// Says which file the call with insertion id `row` opened or removed, by the number of its name; the call must have no second fd argument.
    pub fn opened(&mut self, row: u32, name: u32) {
        if let Some(fd2) = self.data.fd2.get_mut(row as usize) {
            *fd2 = name;
        }
    }

    /// Adds captured user memory of the call with insertion id `row`; `arg` is 0..5, bit 3 set for the argument's
    /// second value. `full` is the full size of the value, 0 when that is not known.
    pub fn push_captured(&mut self, row: u32, arg: u8, status: ByteStatus, full: u64, bytes: &[u8]) {
        let (bytes, status, full) = cut(bytes, status, full);
        let (at, len) = (self.data.bytes.len(), bytes.len());
        self.data.bytes.extend_from_slice(bytes);
        self.data.values.push(PendingValue { row, arg, status, full, at, len });
    }

    /// Adds an event of process life; its `task` and `parent` come from [`Self::intern_task`].
    pub fn push_process(&mut self, mut ev: ProcessEvent) {
        let (argv, status, full) = cut(&ev.argv, ev.argv_status, ev.argv_full);
        if argv.len() < ev.argv.len() {
            (ev.argv_status, ev.argv_full) = (status, full);
            ev.argv.truncate(MAX_VALUE);
        }
        ev.path.truncate(MAX_VALUE);
        ev.comm.truncate(MAX_VALUE);
        self.process_bytes += 128 + ev.path.len() + ev.argv.len() + ev.comm.len();
        self.data.processes.push(ev);
    }

    /// Adds a switch (in any order of time: the encoder sorts); its tasks come from [`Self::intern_task`], here and
    /// below. Returns its insertion id for [`Self::push_stack`].
    pub fn push_switch(&mut self, switch: Switch) -> u32 {
        self.data.switches.push(switch);
        self.data.switches.len() as u32 - 1
    }

    /// Adds a wake-up.
    pub fn push_wakeup(&mut self, wakeup: Wakeup) -> u32 {
        self.data.wakeups.push(wakeup);
        self.data.wakeups.len() as u32 - 1
    }

    /// Adds a block I/O.
    pub fn push_block(&mut self, io: BlockIo) -> u32 {
        self.data.blocks.push(io);
        self.data.blocks.len() as u32 - 1
    }

    /// Adds a signal; its call comes from [`Self::intern_call`]. Of ancestors the first [`MAX_ANCESTORS`] are kept.
    pub fn push_signal(&mut self, mut signal: SignalEvent) -> u32 {
        let (argv, status, full) = cut(&signal.argv, signal.argv_status, signal.argv_full);
        if argv.len() < signal.argv.len() {
            (signal.argv_status, signal.argv_full) = (status, full);
            signal.argv.truncate(MAX_VALUE);
        }
        signal.call_path.truncate(MAX_VALUE);
        for ancestors in [&mut signal.sender_ancestors, &mut signal.target_ancestors] {
            ancestors.truncate(MAX_ANCESTORS);
            ancestors.iter_mut().for_each(|a| a.comm.truncate(MAX_COMM));
        }
        self.signal_bytes += crate::message::signal_bytes(&signal);
        self.data.signals.push(signal);
        self.data.signals.len() as u32 - 1
    }

    /// Adds a socket's change of state. Of an address the first 16 bytes are kept.
    pub fn push_net(&mut self, mut net: NetState) {
        net.saddr.truncate(MAX_ADDRESS);
        net.daddr.truncate(MAX_ADDRESS);
        self.net_bytes += crate::message::net_bytes(&net);
        self.data.nets.push(net);
    }

    /// Adds calls that were counted; `task` and `call` come from the intern functions.
    pub fn push_ledger(&mut self, row: LedgerRow) {
        self.ledger_bytes += crate::message::ledger_bytes(&row);
        self.data.ledger.push(row);
    }

    /// Adds a row of the table that `def` defines: its time, then a value for each further column. Values of a str
    /// column are cut at [`MAX_VALUE`]. Returns its insertion id for [`Self::push_stack`] with [`StackOf::Row`]: the
    /// stack goes into the table's first stack column.
    ///
    /// # Errors
    /// A tape cannot hold the definition, it is one table too many for a segment, or the values do not match it.
    pub fn push_table_row(&mut self, def: &Arc<TableDef>, ts: u64, values: &[Field<'_>]) -> Result<u32> {
        let at = match self.data.tables.iter().position(|table| Arc::ptr_eq(&table.def, def) || table.def == *def) {
            Some(at) => at,
            None => self.new_table(def)?,
        };
        let wrong = |why: String| Err(Error::invalid("row", format!("table '{}': {why}", def.name)));
        if values.len() + 1 != def.columns.len() {
            return wrong(format!("{} values for {} columns", values.len() + 1, def.columns.len()));
        }
        for (column, value) in def.columns.iter().skip(1).zip(values) {
            let unread = def.unread_column().is_some();
            let fits = match (column.ty, value) {
                (Type::Unread, value) => *value == Field::Unknown,
                (Type::Str, Field::Bytes(_))
                | (Type::Task, Field::Task(_))
                | (Type::Str | Type::Task | Type::Stack, Field::Unknown) => true,
                (Type::Flag, Field::Number(n)) => *n <= 1,
                (Type::Str | Type::Task | Type::Stack, _) | (_, Field::Bytes(_) | Field::Task(_)) => false,
                (_, Field::Unknown) => unread,
                (_, Field::Number(_)) => true,
            };
            if !fits {
                return wrong(format!("column '{}' cannot be {value:?}", column.name));
            }
        }
        let (table, strings) = (&mut self.data.tables[at], &mut self.table_strings[at]);
        table.ts.push(ts);
        for (to, value) in table.columns.iter_mut().zip(values) {
            to.push(match value {
                Field::Number(number) => *number,
                Field::Task(task) => u64::from(*task) + 1,
                Field::Unknown => 0,
                Field::Bytes(bytes) => {
                    let bytes = &bytes[..bytes.len().min(MAX_VALUE)];
                    match strings.get_index_of(bytes) {
                        Some(known) => known as u64 + 1,
                        None => {
                            self.table_bytes += 16 + bytes.len();
                            strings.insert_full(bytes.to_vec()).0 as u64 + 1
                        }
                    }
                }
            });
        }
        if let Some(at) = def.unread_column() {
            let is_unread =
                |(column, value): (&ColumnDef, &Field<'_>)| column.ty.is_number() && *value == Field::Unknown;
            let bits = def.columns.iter().skip(1).zip(values).map(is_unread).take(64).enumerate();
            let bits = bits.fold(0, |bits, (at, unread)| bits | u64::from(unread) << at);
            let last = table.columns.get_mut(at - 1).and_then(|column| column.last_mut());
            last.into_iter().for_each(|last| *last = bits);
        }
        self.table_bytes += 8 * def.columns.len() + 8;
        self.table_cells += def.columns.len();
        Ok(row_id(at, table.ts.len() - 1))
    }

    fn new_table(&mut self, def: &Arc<TableDef>) -> Result<usize> {
        let why = match fault(def) {
            None if self.data.tables.len() < MAX_TABLES => None,
            None => Some(format!("more than {MAX_TABLES} tables")),
            Some(why) => Some(why),
        };
        if let Some(why) = why {
            return Err(Error::invalid("row", why));
        }
        let columns = vec![Vec::new(); def.columns.len() - 1];
        self.data.tables.push(TableRows { def: Arc::clone(def), ts: Vec::new(), columns, strings: Vec::new() });
        self.table_strings.push(IndexSet::default());
        self.table_bytes += 256;
        Ok(self.data.tables.len() - 1)
    }

    /// A cgroup appeared, with its number as in [`Task`] and its path.
    pub fn push_cgroup(&mut self, id: u64, path: &[u8]) {
        self.table_bytes += 32 + path.len();
        self.data.appeared.cgroups.push((id, path.to_vec()));
    }

    /// What is known of a container, once.
    pub fn push_container(&mut self, container: Container) {
        let Container { id, name, image, pod, namespace } = &container;
        self.table_bytes += 64 + [id, name, image, pod, namespace].map(Vec::len).iter().sum::<usize>();
        self.data.appeared.containers.push(container);
    }

    /// Adds an io_uring operation.
    pub fn push_uring(&mut self, op: UringOp) {
        self.data.urings.push(op);
    }

    /// Adds a CPU sample.
    pub fn push_sample(&mut self, sample: Sample) -> u32 {
        self.data.samples.push(sample);
        self.data.samples.len() as u32 - 1
    }

    /// Adds a thread that sleeps.
    pub fn push_sleeper(&mut self, sleeper: Sleeper) -> u32 {
        self.data.sleepers.push(sleeper);
        self.data.sleepers.len() as u32 - 1
    }

    /// Index of `mapping` in this segment's mappings. Of path and build id the first [`MAX_PATH`] bytes are kept.
    pub fn intern_mapping(&mut self, mapping: &Mapping) -> u32 {
        if let Some(&id) = self.mapping_ids.get(mapping) {
            return id;
        }
        let cut = cut_mapping(mapping);
        let mappings = &mut self.data.stacks.mappings;
        let bytes = &mut self.mapping_bytes;
        *self.mapping_ids.entry(cut).or_insert_with_key(|cut| {
            *bytes += mapping_bytes(cut);
            mappings.push(cut.clone());
            mappings.len() as u32 - 1
        })
    }

    /// Index of `frame` in this segment's frames; its mapping comes from [`Self::intern_mapping`].
    pub fn intern_frame(&mut self, frame: Frame) -> u32 {
        let frames = &mut self.data.stacks.frames;
        *self.frame_ids.entry(frame).or_insert_with(|| {
            frames.push(frame);
            frames.len() as u32 - 1
        })
    }

    /// Index of `node` in this segment's tree; its frame and parent come from [`Self::intern_frame`] and this function.
    pub fn intern_node(&mut self, node: Node) -> u32 {
        let nodes = &mut self.data.stacks.nodes;
        *self.node_ids.entry(node).or_insert_with(|| {
            nodes.push(node);
            nodes.len() as u32 - 1
        })
    }

    /// Adds the stack of an event: `row` comes from the event's push, the nodes from [`Self::intern_node`]. The first
    /// of several for one event is kept.
    pub fn push_stack(&mut self, stack: Attached) {
        if stack.of != StackOf::Row {
            return self.data.stacks.attached.push(stack);
        }
        let (table, row) = row_of(stack.row);
        let Some(table) = self.data.tables.get_mut(table) else { return };
        let cell = table.def.stack_column().and_then(|at| table.columns.get_mut(at.checked_sub(1)?)?.get_mut(row));
        if let Some(cell) = cell.filter(|cell| **cell == 0) {
            let distinct = &mut self.data.stacks.distinct;
            *cell = 1 + u64::from(*self.stack_ids.entry(Ends::from(&stack)).or_insert_with_key(|ends| {
                distinct.push(*ends);
                distinct.len() as u32 - 1
            }));
        }
    }

    /// Adds a loss.
    pub fn push_gap(&mut self, gap: Gap) {
        self.data.gaps.push(gap);
    }

    /// Upper estimate of the largest block's bytes before compression.
    pub(crate) fn raw_bytes(&self) -> usize {
        let d = &self.data;
        let args = d.end.len() * 56;
        let fds = d.end.len() * 8 + self.fd_bytes;
        let bytes = d.values.len() * 24 + d.bytes.len();
        let gaps = d.gaps.len() * 48;
        let dict = self.dict_bytes + d.calls.len() * 8;
        let columns = [
            d.switches.len() * SWITCH_BYTES,
            d.wakeups.len() * WAKEUP_BYTES,
            d.blocks.len() * BLOCK_BYTES,
            d.urings.len() * URING_BYTES,
            d.samples.len() * SAMPLE_BYTES,
            d.sleepers.len() * SLEEPER_BYTES,
            self.stack_bytes(),
            self.table_bytes,
        ];
        let lists =
            [args, fds, bytes, gaps, dict, self.process_bytes, self.signal_bytes, self.net_bytes, self.ledger_bytes];
        lists.into_iter().chain(columns).max().unwrap_or(0)
    }

    /// Upper estimate of the bytes of the stacks' block.
    fn stack_bytes(&self) -> usize {
        let s = &self.data.stacks;
        let columns = s.frames.len() * FRAME_BYTES
            + s.nodes.len() * NODE_BYTES
            + (s.attached.len() + s.distinct.len()) * ATTACHED_BYTES;
        self.mapping_bytes + columns
    }

    /// Number of rows of the largest group.
    pub(crate) fn rows(&self) -> usize {
        self.data.most_rows()
    }

    /// Whether nothing was pushed. Interned tasks, calls, names and nodes alone do not count.
    pub fn is_empty(&self) -> bool {
        let SegmentData { processes, gaps, appeared, .. } = &self.data;
        self.data.most_rows() == 0 && processes.is_empty() && gaps.is_empty() && appeared.is_empty()
    }

    /// Whether it is time to [`Self::finish`]. Check after each push: a segment that grows past this may become too
    /// large for a block, which [`crate::encode::Encoder::segment`] refuses.
    pub fn is_full(&self) -> bool {
        self.data.most_rows() >= FULL_ROWS
            || self.raw_bytes() >= FULL_BYTES
            || self.stack_bytes() >= FULL_STACKS
            || self.table_cells >= MAX_CELLS / 2
    }

    /// Closes the window: later events belong to the next segment, which begins at `window_end`.
    pub fn finish(self, window_end: u64) -> SegmentData {
        let mut data = self.data;
        for (table, strings) in data.tables.iter_mut().zip(self.table_strings) {
            table.strings = strings.into_iter().collect();
        }
        SegmentData { window_end, fd_names: self.fd_names.into_strings(), ..data }
    }
}

/// Bits of the row in an insertion id of a table's row: a segment is full before they overflow.
const ROW_BITS: u32 = 24;

/// The insertion id of a row of the table at `table`.
fn row_id(table: usize, row: usize) -> u32 {
    (table as u32) << ROW_BITS | row as u32 & ((1 << ROW_BITS) - 1)
}

/// Undoes [`row_id`].
fn row_of(id: u32) -> (usize, usize) {
    ((id >> ROW_BITS) as usize, (id & ((1 << ROW_BITS) - 1)) as usize)
}

/// Hashes a utid. The recorder counts utids up, so an attacker cannot make them collide.
#[derive(Debug, Default)]
struct UtidHasher(u64);

impl Hasher for UtidHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u32(b.into()));
    }

    fn write_u32(&mut self, utid: u32) {
        // 2^64 / golden ratio spreads neighbours over the high bits, which the table takes its tags from.
        self.0 = (self.0 ^ u64::from(utid)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// `a == b`, without calling memcmp for empty bytes: glibc's AVX-512 one loads masked from Rust's dangling pointer, and
/// that takes over 100 ns (measured: 164 ns for an intern_task with an empty exe, 2026-11, glibc 2.36).
fn same(a: &Task, b: &Task) -> bool {
    let bytes = |a: &[u8], b: &[u8]| a.len() == b.len() && (a.is_empty() || a == b);
    let Task {
        tid,
        pid,
        start_ns,
        leader_start_ns,
        comm,
        exe,
        uid,
        cgroup_id,
        utid,
        upid,
        ns_tid,
        ns_pid,
        ppid,
        recorded,
        env,
    } = a;
    (*tid, *pid, *start_ns, *leader_start_ns) == (b.tid, b.pid, b.start_ns, b.leader_start_ns)
        && (*uid, *cgroup_id, *utid, *upid) == (b.uid, b.cgroup_id, b.utid, b.upid)
        && (*ns_tid, *ns_pid, *ppid, *recorded) == (b.ns_tid, b.ns_pid, b.ppid, b.recorded)
        && bytes(comm, &b.comm)
        && bytes(exe, &b.exe)
        && bytes(env, &b.env)
}

/// Cuts a value to [`MAX_VALUE`] and marks its status.
fn cut(bytes: &[u8], status: ByteStatus, full: u64) -> (&[u8], ByteStatus, u64) {
    let Some(head) = bytes.get(..MAX_VALUE).filter(|_| bytes.len() > MAX_VALUE) else {
        return (bytes, status, full);
    };
    let status = match status {
        ByteStatus::Whole => ByteStatus::Truncated,
        ByteStatus::Late => ByteStatus::LateTruncated,
        other => other,
    };
    (head, status, full.max(bytes.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Ancestor, MAX_PATH, SignalKind};

    #[test]
    fn interning_gives_each_value_one_number() {
        let mut b = SegmentBuilder::new(0);
        let (x, far) = (Call { abi: 1, nr: 0 }, Call { abi: 200, nr: u32::MAX });
        assert_eq!((b.intern_call(x), b.intern_call(far), b.intern_call(x), b.intern_call(far)), (0, 1, 0, 1));
        let t = Task { tid: 1, comm: b"dd".to_vec(), ..Task::default() };
        let renamed = Task { comm: b"cp".to_vec(), ..t.clone() };
        assert_eq!((b.intern_task(&t), b.intern_task(&renamed), b.intern_task(&t)), (0, 1, 0));
        assert_eq!((b.intern_fd_name(b"/a"), b.intern_fd_name(b"\xff"), b.intern_fd_name(b"/a")), (2, 3, 2));
        assert_eq!((b.intern_mapping(&Mapping::default()), b.intern_mapping(&Mapping::default())), (0, 0));
        let frame = |offset| Frame { offset, ..Frame::default() };
        assert_eq!((b.intern_frame(frame(5)), b.intern_frame(frame(6)), b.intern_frame(frame(5))), (0, 1, 0));
        let node = |parent| Node { parent, frame: 1 };
        assert_eq!((b.intern_node(node(None)), b.intern_node(node(Some(0))), b.intern_node(node(None))), (0, 1, 0));
        assert!(b.is_empty(), "names alone are nothing");
    }

    #[test]
    fn fills_by_rows_and_by_bytes() {
        let mut b = SegmentBuilder::new(0);
        for _ in 0..FULL_ROWS - 1 {
            b.push_syscall(SyscallRow::default());
        }
        assert!(!b.is_full());
        b.push_syscall(SyscallRow::default());
        assert!(b.is_full());

        let mut b = SegmentBuilder::new(0);
        let row = b.push_syscall(SyscallRow::default());
        for arg in 0..4 {
            assert!(!b.is_full());
            b.push_captured(row, arg, ByteStatus::Whole, 0, &vec![7; 2 << 20]);
        }
        assert!(b.is_full());
        let data = b.finish(1);
        assert_eq!(data.values[0].status, ByteStatus::Truncated);
        assert_eq!(data.values[0].full, 2 << 20);
        assert_eq!(data.values[0].len, MAX_VALUE);
    }

    fn signal() -> SignalEvent {
        let empty = SignalEvent::new(0, SignalKind::Generate, 9, 0);
        SignalEvent { call_args: [1; 4], argv_status: ByteStatus::Whole, ..empty }
    }

    /// Pushes until it is full; the largest block must be within the estimate, and that within a block.
    fn fill(what: &str, mut push: impl FnMut(&mut SegmentBuilder, u64)) {
        let mut b = SegmentBuilder::new(0);
        assert_eq!(b.intern_task(&Task::default()), 0);
        assert!(b.is_empty());
        // Bits without a pattern: no column can be narrow.
        let mut noise = 0x9e37_79b9_7f4a_7c15u64;
        let mut n = 0;
        while !b.is_full() {
            noise = noise.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            push(&mut b, noise ^ noise >> 29);
            assert!(!b.is_empty(), "{what}");
            n += 1;
        }
        assert!(n <= FULL_ROWS, "{what}: {n} rows");
        let estimate = b.raw_bytes();
        let segment = crate::Encoder::new(1).segment(b.finish(u64::MAX)).expect("fits blocks");
        let raw = segment.blocks.iter().map(|b| b.header.raw_len as usize).max().unwrap_or(0);
        // The head of a message, and of each column, comes on top.
        assert!(raw <= estimate + 1024, "{what}: {raw} bytes, estimated {estimate}");
    }

    #[test]
    fn each_kind_fills_a_segment_before_a_block_is_too_large() {
        let half = |r: u64| r as u32;
        fill("switches", |b, r| {
            let prev_state = half(r >> 7);
            b.push_switch(Switch { ts: r, cpu: half(r >> 3), prev_state, preempted: true, ..Switch::default() });
        });
        fill("wakeups", |b, r| {
            b.push_wakeup(Wakeup {
                ts: r,
                cpu: half(r),
                target_cpu: half(r >> 9),
                new: r & 1 != 0,
                softirq: r & 2 != 0,
                ..Wakeup::default()
            });
        });
        fill("blocks", |b, r| {
            b.push_block(BlockIo {
                complete: r,
                queued: r.rotate_left(7),
                issued: r.rotate_left(17),
                dev: half(r),
                sector: r.rotate_left(27),
                bytes: half(r >> 5),
                flags: half(r >> 11),
                errno: r as u16,
                requeues: (r >> 13) as u16,
                merged: (r >> 23) as u16,
                cgroup_id: r.rotate_left(37),
                inode: r.rotate_left(47),
                ..BlockIo::default()
            });
        });
        fill("urings", |b, r| b.push_uring(UringOp { ts: r, task: 0, op: r as u8 }));
        fill("samples", |b, r| _ = b.push_sample(Sample { ts: r, cpu: half(r), task: 0, kernel: r & 1 != 0 }));
        fill("nets", |b, r| {
            b.push_net(NetState { ts: r, saddr: vec![1; 40], daddr: vec![2; 16], ..NetState::default() });
        });
        fill("signals", |b, r| _ = b.push_signal(SignalEvent { ts: r, ..signal() }));
        let ancestors = vec![Ancestor { comm: vec![b'x'; 3000], ..Ancestor::default() }; 300];
        fill("long signals", |b, r| {
            let (sender_ancestors, target_ancestors) = (ancestors.clone(), ancestors.clone());
            let argv = vec![b'a'; MAX_VALUE + 5];
            let call_path = argv.clone();
            b.push_signal(SignalEvent { ts: r, argv, call_path, sender_ancestors, target_ancestors, ..signal() });
            let kept = b.data.signals.last().expect("pushed");
            assert_eq!((kept.argv.len(), kept.argv_status), (MAX_VALUE, ByteStatus::Truncated));
            assert_eq!(kept.argv_full, MAX_VALUE as u64 + 5);
            assert_eq!((kept.call_path.len(), kept.sender_ancestors.len()), (MAX_VALUE, MAX_ANCESTORS));
        });
    }

    /// A sample with a stack of `depth` frames, each with bits without a pattern.
    fn push_deep(b: &mut SegmentBuilder, r: u64, depth: u64, mut mapping: impl FnMut(u64) -> Mapping) {
        let mut leaf = |of: u64| {
            (0..depth).fold(None, |parent, i| {
                let offset = (r ^ i ^ of << 11).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let mapping = b.intern_mapping(&mapping(offset));
                let frame = b.intern_frame(Frame { mapping, offset, flags: offset as u8 & 7 });
                Some(b.intern_node(Node { parent, frame }))
            })
        };
        let (user, kernel) = (leaf(0), leaf(1));
        let row = b.push_sample(Sample { ts: r, cpu: r as u32, ..Sample::default() });
        let status = crate::model::StackStatus::ALL[r as usize % 15];
        b.push_stack(Attached { of: StackOf::Sample, row, user, kernel, status });
    }

    #[test]
    fn stacks_fill_a_segment_before_their_block_is_too_large() {
        let small = |_| Mapping { upid: 7, ..Mapping::default() };
        fill("deep unique stacks", |b, r| push_deep(b, r, 1024, small));
        fill("short unique stacks", |b, r| push_deep(b, r, 3, small));
        fill("stacks without frames", |b, r| push_deep(b, r, 0, small));
        // As bad as one push can be: each frame in a file of its own with the longest path.
        fill("deep stacks of many files", |b, r| {
            let mut i = 0;
            let path = move |offset: u64| {
                i += 1;
                let mut path = vec![b'/'; if i > 1024 { 64 } else { 2 * MAX_PATH }];
                path[..8].copy_from_slice(&offset.to_le_bytes());
                Mapping { path, build_id: vec![1; 20], ..Mapping::default() }
            };
            push_deep(b, r, 1024, path);
            assert_eq!(b.data.stacks.mappings[0].path.len(), MAX_PATH);
        });
    }
}
