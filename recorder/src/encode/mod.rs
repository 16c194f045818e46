//! Turns wire records, in time order, into segments and checkpoints.
//!
//! One thread does this, because it keeps the state that must be tracked in order: tasks and descriptors ([`world`]).
//! Each family's module makes rows of its records and keeps its own state. [`Assembler`] passes each record to its
//! family by its kind. Sorting inside a segment, column building and compression happen elsewhere.
//!
//! A new family: a module with a `record` function, and its arm in [`Assembler::take`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use systape_abi::Selection;
use systape_bpf::wire::{self, Record, Snap};
use systape_format::model::{Family, Gap, StackSettings, Task};

use crate::calls::filter::CallFilter;
use crate::calls::memory::CallMemory;
use crate::ledger::LedgerWindow;
use crate::load::FirstDescriptors;
use crate::machine::cgroup_limits::Limits;
use crate::machine::environ::EnvironKeys;
use crate::machine::lock_names::LockNames;
use crate::probes::{Probe, Static};
use crate::rings::backlog::Shed;
use crate::rings::order::{Batch, Order, Pending};
use crate::stacks::forgot::Forgot;
use crate::stacks::name_queue::NameQueue;
use crate::stacks::taken::StackBatch;
use crate::tasks::Tasks;
use crate::tasks::snapshot;
use crate::tasks::targets::Targets;
use crate::tracepoints::Tracepoint;
use crate::triggers::{Fire, TriggerSpec, Triggers};
use calls::Calls;
use ledger::StoredCounts;
use rows::Rows;
use samples::WaitingSamples;
use stacks::WaitingStacks;
use world::World;

mod aside;
mod begin;
mod block;
mod calls;
mod cgroup_limits;
mod checkpoint;
mod disks;
mod faults;
mod files;
mod identities;
mod interpreters;
mod ledger;
mod life;
mod locks;
mod looks;
mod lookups;
mod names;
mod net;
mod operations;
mod paths;
mod polls;
mod probes;
mod recent;
mod rows;
mod samples;
mod sched;
mod shed;
mod signals;
mod stacks;
#[cfg(test)]
mod tests;
mod touched;
mod tracepoints;
mod uring;
mod usage;
mod watch;
mod world;

pub(crate) use aside::TriggerRow;
pub use rows::{Piece, Totals};
pub use shed::DroppedEvents;

/// Bytes of records after which the encoder checks whether the segment is full: a few rows do not fill what was not.
const LOOK_AT: usize = 4096;

/// Longest wait for the limits of cgroups at the end. They take milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// Settings of the recording.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The selected calls.
    pub selection: Selection,
    /// Which of them are stored.
    pub stores: CallFilter,
    /// Start of the recording.
    pub window_open: u64,
    /// Longest life of a segment.
    pub flush: Duration,
    /// Looks are stored instead of calls, switches and I/O.
    pub looks: bool,
    /// Stacks that are recorded.
    pub stacks: StackSettings,
    /// Environment variables to keep.
    pub env: Arc<EnvironKeys>,
    /// Which tasks are targets.
    pub targets: Targets,
    /// Tracepoints by the number of their records, from 1 on.
    pub tracepoints: Vec<Arc<Tracepoint>>,
    /// Functions, in the order of the numbers of their records.
    pub probes: Vec<Arc<Probe>>,
    /// Static probes of --usdt.
    pub static_probes: Vec<Arc<Static>>,
    /// The block devices of the session, as major << 20 | minor.
    pub devices: Vec<u32>,
    /// Variables of the kernel that are locks.
    pub lock_names: Arc<LockNames>,
    /// What begins a tape of a flight recorder.
    pub triggers: Vec<TriggerSpec>,
    /// Tapes may begin with any chunk.
    pub chunks_stand_alone: bool,
    /// The recorder's pid on the machine.
    pub own_pid: u32,
    /// The recorder is in another pid namespace than the machine's first: ids in /proc differ from those in records.
    pub nested: bool,
    /// Operations of io_uring that make and close descriptors are recorded, so tables of open files stay known.
    pub follows_rings: bool,
}

/// The state at the start.
#[derive(Debug)]
pub(crate) struct Start {
    /// Every task.
    pub snaps: Vec<Snap>,
    /// Recorded processes.
    pub processes: Vec<snapshot::ProcessReading>,
    /// What their descriptors stand for.
    pub opens: FirstDescriptors,
    /// What the arguments of calls in flight point to.
    pub memory: Vec<CallMemory>,
    /// Limits of cgroups.
    pub limits: Limits,
    /// Processes that could not be fully read in time.
    pub unread: Vec<UnreadProcess>,
    /// When the last of it was read.
    pub done: u64,
}

/// A recorded process that could not be read in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnreadProcess {
    /// Pid of the process on the machine.
    pub pid: u32,
    /// Name of its main thread.
    pub comm: Vec<u8>,
    /// Whether its executable, directory and open files are unknown.
    pub files: bool,
    /// Whether its arguments are unknown.
    pub argv: bool,
}

/// The encoder: wire records in, segments out.
pub struct Assembler {
    window_open: u64,
    /// Longest life of a segment, ns.
    flush: u64,
    order: Order,
    world: World,
    rows: Rows,
    calls: Calls,
    ledger: StoredCounts,
    sockets: net::TrackedSockets,
    samples: WaitingSamples,
    tracepoints: tracepoints::TracepointRows,
    names: names::Names,
    files: files::Files,
    disks: disks::RecordedDisks,
    paths: paths::OpenFilePaths,
    faults: faults::Faults,
    operations: operations::Operations,
    uring: uring::RingDescriptors,
    locks: locks::LockPairs,
    looks: looks::LookRows,
    probes: probes::Probes,
    usage: usage::Usage,
    cgroup_limits: cgroup_limits::CgroupLimits,
    watch: watch::TriggerWatch,
    chunks_stand_alone: bool,
}

impl Assembler {
    /// Begins with the given settings.
    pub fn new(settings: Settings) -> Self {
        let window_open = settings.window_open;
        let mut names = names::Names::default();
        if settings.chunks_stand_alone {
            names.keep();
        }
        let calls = Calls::new(&settings);
        let mut rows = Rows::new(window_open, WaitingStacks::new(settings.stacks.clone(), settings.own_pid));
        rows.without_threads = settings.looks;
        let mut world = World::new(Tasks::new(settings.nested, settings.targets), settings.env);
        world.tasks.follows_rings = settings.follows_rings;
        Self {
            window_open,
            flush: settings.flush.as_nanos() as u64,
            order: Order::default(),
            calls,
            world,
            rows,
            ledger: StoredCounts::new(window_open),
            sockets: net::TrackedSockets::default(),
            samples: WaitingSamples::default(),
            names,
            watch: watch::TriggerWatch::new(Triggers::new(&settings.triggers), settings.own_pid),
            chunks_stand_alone: settings.chunks_stand_alone,
            files: files::Files::default(),
            disks: disks::RecordedDisks::new(settings.devices),
            paths: paths::OpenFilePaths::default(),
            faults: faults::Faults::default(),
            operations: operations::Operations::default(),
            uring: uring::RingDescriptors::default(),
            locks: locks::LockPairs::new(settings.lock_names),
            looks: looks::LookRows::default(),
            probes: probes::Probes::new(settings.probes, settings.static_probes),
            usage: usage::Usage::default(),
            cgroup_limits: cgroup_limits::CgroupLimits::default(),
            tracepoints: tracepoints::TracepointRows::new(settings.tracepoints),
        }
    }

    /// Adds records; they wait until [`Self::advance`].
    pub fn add(&mut self, batch: Batch) {
        self.order.add(batch);
    }

    /// Adds stacks; their events come later. Samples and sleepers are rows of their own.
    pub(crate) fn add_stacks(&mut self, taken: StackBatch) {
        self.samples.add(taken, &self.world, &mut self.rows);
    }

    /// Adds the state at the start. Every record up to `start.done` must have been added.
    pub(crate) fn begin(&mut self, mut start: Start) {
        begin::begin(&mut start, self.window_open, &mut self.order, &mut self.world, &mut self.rows, &mut self.calls);
        if self.calls.names_files() {
            aside::open_files(&self.world, &mut self.rows);
        }
        self.usage.memory(&start.snaps, u64::MAX, &mut self.world, &mut self.rows);
        self.cgroup_limits.begin(start.limits, self.window_open, &mut self.world, &mut self.rows);
        self.name_sockets();
    }

    /// The watermark that leaves at most `bytes` of records waiting; 0 = there are no more.
    pub(crate) fn excess(&mut self, bytes: usize) -> u64 {
        self.order.excess(bytes)
    }

    /// Encodes every record before `watermark`; u64::MAX stands for all.
    pub fn advance(&mut self, watermark: u64) {
        let taken = self.order.take(watermark);
        let mut call = wire::Syscall::default();
        let mut unchecked = LOOK_AT;
        for pending in taken.iter() {
            self.rows.latest = self.rows.latest.max(pending.ts);
            self.world.apply_losses(pending.ts);
            self.encode(pending, &mut call);
            if self.watch.is_on() {
                self.watch.record(pending.bytes, &mut self.world);
            }
            self.name_sockets();
            unchecked += pending.bytes.len();
            if unchecked < LOOK_AT && !self.rows.stacks.are_on() {
                continue;
            }
            unchecked = 0;
            if self.rows.builder.is_full() {
                // a later record may carry the same time: it belongs to this window's end all the same
                self.close_segment(pending.ts.saturating_add(1));
            }
        }
        self.encode_samples(watermark);
        let watermark = if watermark == u64::MAX { self.rows.latest.saturating_add(1) } else { watermark };
        let bad = self.order.take_bad();
        if bad > 0 {
            self.rows.bad_records(bad, self.rows.window_start, watermark);
        }
        self.world.apply_losses(watermark);
        self.world.take_lookups();
        std::mem::take(&mut self.world.containers)
            .into_iter()
            .for_each(|container| self.rows.container(container, watermark));
        let found = std::mem::take(&mut self.world.devices);
        found.into_iter().for_each(|late| self.disks.found(late, watermark, &mut self.rows));
        self.store_limits(watermark);
        self.calls.interpreters.store((watermark, watermark), &mut self.world.tasks, &mut self.rows);
        self.world.apply_rereads(watermark);
        // what was counted of the dead may still come
        let until = watermark.min(self.ledger.until());
        self.probes.forget(until, watermark, &mut self.world, &mut self.rows);
        self.rows.stacks.part_from(&self.world.tasks, until, &mut self.rows.builder);
        self.world.tasks.sweep(until);
        self.rows.stacks.sweep(watermark);
        let is_old = self.rows.first_row.is_some_and(|first| watermark.saturating_sub(first) >= self.flush);
        // without room for anything the segment goes on: its counts take no more for it
        if is_old && !self.rows.shedding.is_all() {
            self.close_segment(watermark);
        }
    }

    /// Stores what was read of cgroups.
    fn store_limits(&mut self, ts: u64) {
        let values = std::mem::take(&mut self.world.limits);
        self.cgroup_limits.store(&values, ts, &mut self.rows);
    }

    /// Stores the names that sockets got.
    fn name_sockets(&mut self) {
        if !self.world.renamed.is_empty() {
            self.names.record(&mut self.sockets, &mut self.world, &mut self.rows);
        }
    }

    /// Passes a record to its family; `call` is room for that of a call.
    fn encode(&mut self, Pending { ts, bytes }: Pending<'_>, call: &mut wire::Syscall) {
        let (world, rows) = (&mut self.world, &mut self.rows);
        // most are one of these: without the copies of the others' largest
        if let Ok(data) = wire::syscall_into(bytes, call) {
            self.calls.record(call, data, world, rows, &mut self.ledger);
            if call.hdr.flags & wire::OF_RING != 0 {
                self.uring.changed(call, world, rows);
            }
            return;
        }
        if let Some(closing) = wire::fixed_record(bytes) {
            return self.closes(&closing);
        }
        if let Some(switch) = wire::fixed_record(bytes) {
            return sched::switch(&switch, world, rows);
        }
        if let Some(wakeup) = wire::fixed_record(bytes) {
            return sched::wakeup(&wakeup, world, rows);
        }
        match wire::parse(bytes) {
            Ok(record) => self.take(record),
            Err(_) => self.rows.bad_records(1, ts, ts),
        }
    }

    /// A call that closes descriptors was entered, or an operation of io_uring submitted.
    fn closes(&mut self, c: &wire::Closing) {
        match c.hdr.flags & wire::OF_RING {
            0 => calls::closing(c, &mut self.world),
            _ => self.uring.closing(c, &mut self.world, &mut self.rows),
        }
    }

    /// Passes a record to its family.
    fn take(&mut self, record: Record<'_>) {
        let (world, rows) = (&mut self.world, &mut self.rows);
        match record {
            Record::Syscall(s, data) => self.calls.record(&s, data, world, rows, &mut self.ledger),
            Record::Closing(c) => self.closes(&c),
            Record::Task(t) => life::task(&t, world, rows),
            Record::Fork(f) => {
                life::fork(&f, world, rows);
                self.cgroup_limits.fork(&f, world, rows);
            }
            Record::Exec(e, path, argv) => {
                // what was counted of it was another program's
                if world.tasks.find(&e.task.id).is_some() {
                    self.ledger.flush_of((e.task.id.pid, e.task.id.leader_start), world, rows);
                }
                if let Some(old) = world.tasks.find(&wire::Ident { tid: e.old_tid, ..e.task.id }) {
                    self.probes.exec(old, e.task.ts, world, rows);
                }
                life::exec(&e, path, argv, world, rows);
            }
            Record::Exit(e) => {
                if let Some(task) = world.tasks.find(&e.id) {
                    self.probes.end(task, e.ts, world, rows);
                }
                life::exit(&e, world, rows);
                self.cgroup_limits.exit(&e);
            }
            // of many at once, not all of them can be told
            Record::Cgroup(c, path) if rows.shedding.is_all() || path.is_empty() => _ = c,
            Record::Cgroup(c, path) if c.hdr.flags & wire::CGROUP_JOINED != 0 => {
                self.cgroup_limits.came(&c, path, world, rows);
            }
            Record::Cgroup(c, path) => {
                rows.cgroup(c.id, path, c.ts);
                world.look_up_container(path);
            }
            Record::Environ(e, bytes) => life::environ(&e, bytes, world),
            Record::Usage(u) => self.usage.record(&u, world, rows),
            Record::Switch(s) => sched::switch(&s, world, rows),
            Record::Wakeup(w) => sched::wakeup(&w, world, rows),
            Record::Block(b) => block::record(&b, (&mut self.files, &mut self.disks), world, rows),
            Record::File(f, name) if f.hdr.flags & wire::FILE_WHOLE != 0 => self.paths.name(&f, name),
            Record::File(f, name) => self.files.name(&f, name),
            Record::Fault(f) => self.faults.record(&f, &mut self.paths, world, rows),
            Record::Lock(l) => self.locks.record(&l, world, rows),
            Record::Stay(s, file, path) => self.looks.stay(&s, (file, path), world, rows),
            Record::Escalation(e, texts) => self.looks.escalation(&e, texts, world, rows),
            Record::LookSums(s) => self.looks.second(&s, rows),
            Record::IdleThreads(i) => self.looks.idle(&i, rows),
            Record::Signal(s) => signals::record(&s, world, rows),
            Record::Net(n) => self.sockets.record(&n, world, rows),
            Record::Tcp(t) => self.sockets.tcp(&t, world, rows),
            Record::Segment(s) => self.sockets.segment(&s, rows),
            Record::Incident(i) => self.sockets.incident(&i, world, rows),
            Record::Operation(w) => self.operations.record(&w, &mut self.paths, world, rows),
            Record::Probe(r, strings) => self.probes.record(&r, strings, world, rows),
            Record::Static(r, strings) => self.probes.reached(&r, strings, world, rows),
            Record::Tracepoint(r, socket, data) => {
                self.tracepoints.record(&r.row, (socket.as_deref(), data), world, rows)
            }
        }
    }

    /// Samples and sleepers before `watermark` become rows.
    fn encode_samples(&mut self, watermark: u64) {
        for (sample, stack) in self.samples.take(watermark) {
            samples::record(&sample, &stack, &mut self.world, &mut self.rows);
            if self.rows.builder.is_full() {
                self.close_segment(sample.ts.saturating_add(1));
            }
        }
    }

    /// Stores the counts up to a time before which every record is encoded.
    pub(crate) fn counted(&mut self, window: LedgerWindow) {
        if self.watch.is_on() {
            self.watch.counted(&window, &mut self.world);
        }
        self.ledger.store(window, &mut self.world, &mut self.rows);
    }

    /// Calls that were counted because of an option of record.
    pub(crate) fn filtered(&self) -> u64 {
        self.ledger.filtered()
    }

    /// Events are missing.
    pub(crate) fn gap(&mut self, gap: Gap) {
        self.rows.gap(gap);
    }

    /// State records of `pid` (0: of any process) were lost: one at `first`, perhaps others, the last before `last`. To
    /// be called before [`Self::advance`] passes `first`; it takes effect in the order of events, because the process
    /// may not be known yet.
    pub(crate) fn lost_state(&mut self, pid: u32, first: u64, last: u64) {
        self.world.lost_state(pid, first, last);
    }

    /// What to drop from here on.
    pub(crate) fn shed(&mut self, level: Shed) {
        self.rows.shedding.set(level);
    }

    /// Events dropped since the last call.
    pub(crate) fn take_given_up(&mut self) -> DroppedEvents {
        self.rows.shedding.take_given_up()
    }

    /// The recording ended at `ts`: calls that end from here on were not in flight.
    pub(crate) fn closing(&mut self, ts: u64) {
        self.calls.closing(ts);
    }

    /// Calls open at the end, from the task iterator at [`Self::closing`]'s time.
    pub(crate) fn in_flight(&mut self, snaps: &[Snap], memory: Vec<CallMemory>) {
        self.calls.know(memory);
        self.calls.in_flight(snaps, &mut self.world, &mut self.rows, &mut self.ledger);
        let latest = self.rows.latest;
        self.probes.finish(latest, &mut self.world, &mut self.rows);
        self.locks.finish(latest, &mut self.world, &mut self.rows);
        self.operations.finish(latest, &mut self.paths, &mut self.world, &mut self.rows);
        if let Some(end) = self.calls.closed() {
            self.calls.interpreters.wait(Instant::now() + PATIENCE);
            self.calls.interpreters.store((u64::MAX, end), &mut self.world.tasks, &mut self.rows);
            self.usage.memory(snaps, end, &mut self.world, &mut self.rows);
            if self.cgroup_limits.ask(&mut self.world) {
                self.world.wait_for_limits(Instant::now() + PATIENCE);
                self.store_limits(end);
            }
        }
    }

    /// Ends the segment; rows with a later end than `window_end` belong to the next.
    pub(crate) fn close_segment(&mut self, window_end: u64) {
        self.ledger.flush(&mut self.world, &mut self.rows);
        self.rows.close(window_end);
    }

    /// Where the segment that is being filled begins.
    pub(crate) fn segment_start(&self) -> u64 {
        self.rows.window_start
    }

    /// Begins a new chunk with the full state, when everything before was encoded.
    pub(crate) fn new_chunk(&mut self, ts: u64, snaps: &[Snap]) {
        self.close_segment(ts);
        let checkpoint = checkpoint::of(&mut self.world, &self.calls, ts, snaps, "tracked");
        self.rows.pieces.push(Piece::Checkpoint(Box::new(checkpoint)));
        self.usage.memory(snaps, u64::MAX, &mut self.world, &mut self.rows);
        self.cgroup_limits.checkpoint(ts, &mut self.world, &mut self.rows);
        if self.chunks_stand_alone {
            self.rows.stacks.chunk_ends();
        }
    }

    /// What fired since the last call.
    pub(crate) fn take_fired(&mut self) -> Vec<(Fire, Option<Arc<Task>>)> {
        self.watch.take()
    }

    /// Whether [`Self::watch_open_calls`] is wanted now and then.
    pub(crate) fn wants_open_calls(&self) -> bool {
        self.watch.want_open_calls()
    }

    /// Every task, for triggers on calls in flight.
    pub(crate) fn watch_open_calls(&mut self, snaps: &[Snap]) {
        self.watch.open_calls(snaps, &self.calls, self.window_open, &mut self.world);
    }

    /// Events of `family` were lost, for triggers.
    pub(crate) fn watch_lost(&mut self, ts: u64, family: Family, count: u64) {
        if self.watch.is_on() {
            self.watch.lost(ts, count, family == Family::Sched, &self.world);
        }
    }

    /// Places in code are passed on anew when their names were forgotten.
    pub(crate) fn may_forget_names(&mut self, forgot: Forgot) {
        self.rows.stacks.may_forget(forgot);
    }

    /// Pieces ready to be compressed.
    pub(crate) fn take_pieces(&mut self) -> Vec<Piece> {
        std::mem::take(&mut self.rows.pieces)
    }

    /// Events so far.
    pub fn totals(&self) -> &Totals {
        &self.rows.totals
    }

    /// `names` gets places in code made at run time.
    pub(crate) fn tell_names(&mut self, names: NameQueue) {
        self.rows.stacks.tell_names(names);
    }

    /// No more places will come: `names` looks up the known ones.
    pub(crate) fn end_names(&self) {
        self.rows.stacks.end_names();
    }

    /// Events so far without an expected stack.
    pub(crate) fn missed_stacks(&self) -> u64 {
        self.rows.stacks.missed()
    }
}

impl std::fmt::Debug for Assembler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Rows { segment, totals, .. } = &self.rows;
        f.debug_struct("Assembler").field("segment", segment).field("totals", totals).finish_non_exhaustive()
    }
}
