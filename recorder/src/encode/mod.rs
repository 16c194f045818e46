//! Turns wire records, in time order, into segments and checkpoints.
//!
//! One thread does this, because it keeps the state that must be followed in order: who is who ([`Tasks`]) and what
//! each fd stands for. Sorting inside a segment, column building and compression happen elsewhere.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use rustc_hash::FxHashMap;
use systape_abi::Selection;
use systape_bpf::wire::{self, Record, Snap, Who};
use systape_format::model::{CPU_NONE, Call, Checkpoint, Family, Gap, GapCause, StackSettings};
use systape_format::segment::{SegmentBuilder, SegmentData};

use crate::effects::{self, CallInfo};
use crate::fds::Name;
use crate::filter::CallFilter;
use crate::ledger::Counts;
use crate::order::{Batch, Order, Pending};
use crate::snapshot;
use crate::stacks::taken::TakenStack;
use crate::targets::Targets;
use crate::tasks::{TaskId, Tasks};
use lookups::Lookups;

mod block;
mod calls;
mod known;
mod ledger;
mod life;
mod lookups;
mod net;
mod sched;
mod shed;
mod signals;
mod stacks;

pub use shed::Given;

/// Of records up to this size (bytes) only each of so many makes the encoder look whether the segment is full.
const SMALL_RECORD: usize = 256;
const LOOK_AT: usize = 16;

/// What goes on to be compressed, in this order.
#[derive(Debug)]
pub enum Piece {
    /// The head of a chunk.
    Checkpoint(Box<Checkpoint>),
    /// A window's events.
    Segment(Box<SegmentData>),
}

/// What the encoder needs to know of the recording.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Calls the user asked for.
    pub selection: Selection,
    /// Which of them are stored.
    pub stores: CallFilter,
    /// Start of the recording.
    pub window_open: u64,
    /// Longest life of a segment.
    pub flush: Duration,
    /// Stacks that are taken.
    pub stacks: StackSettings,
    /// Which tasks are targets.
    pub targets: Targets,
    /// The recorder's id on the machine.
    pub own_pid: u32,
    /// The recorder is in another pid namespace than the machine's first: /proc has other ids than records.
    pub nested: bool,
}

/// The state at the start.
#[derive(Debug)]
pub struct Start {
    /// Every task.
    pub snaps: Vec<Snap>,
    /// Processes that are recorded.
    pub processes: Vec<snapshot::Process>,
    /// Processes of which something could not be read in time.
    pub unread: Vec<Unread>,
    /// When the last of it was read.
    pub done: u64,
}

/// A recorded process that could not be read in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Its id on the machine.
    pub pid: u32,
    /// Its name.
    pub comm: Vec<u8>,
    /// Its executable, directory and open files are not known.
    pub files: bool,
    /// Its arguments are not known.
    pub argv: bool,
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

    /// Each family's, in the order of the families.
    pub fn by_family(&self) -> Vec<(Family, u64)> {
        let mut all = self.0.clone();
        all.sort_unstable();
        all
    }
}

/// A reading of /proc that was asked for, and waits until the events of its time are known.
#[derive(Debug)]
struct Reread {
    pid: u32,
    /// None = not read yet.
    process: Option<snapshot::Process>,
    /// Its descriptors that events touched since it was asked for.
    touched: HashSet<i32>,
    /// The directory it went to since; None in it = not known.
    cwd: Option<Option<Vec<u8>>>,
    /// Records were lost since, or the process became another program: it is to be read again.
    stale: bool,
}

/// See the module.
pub struct Encoder {
    settings: Settings,
    order: Order,
    tasks: Tasks,
    calls: FxHashMap<(u8, u32), CallInfo>,
    builder: SegmentBuilder,
    segment: u32,
    window_start: u64,
    /// Time of the latest record so far.
    latest: u64,
    first_row: Option<u64>,
    rereads: Vec<Reread>,
    lookups: Lookups,
    /// Losses of state records that events have not reached: time of the first, process, until when there may have been more.
    losses: BTreeSet<(u64, u32, u64)>,
    /// Calls that ended after the recording did: not in flight.
    ended: HashSet<(TaskId, u64)>,
    close_ts: Option<u64>,
    /// What was counted until then is stored, or was nothing.
    counted_until: u64,
    counts: Counts,
    filtered: u64,
    totals: Totals,
    sockets: net::Sockets,
    shedding: shed::Shedding,
    stacks: stacks::Stacks,
    /// Samples and sleepers that wait for the watermark.
    samples: Vec<(TakenStack, stacks::Waiting)>,
    pieces: Vec<Piece>,
}

impl Encoder {
    /// Begins with what was there before.
    pub fn new(settings: Settings) -> Self {
        let window_start = settings.window_open;
        let stacks = stacks::Stacks::new(settings.stacks.clone(), settings.own_pid);
        let tasks = Tasks::new(settings.nested, settings.targets.clone());
        Self {
            settings,
            order: Order::default(),
            tasks,
            calls: FxHashMap::default(),
            builder: SegmentBuilder::new(window_start),
            segment: 0,
            window_start,
            latest: window_start,
            first_row: None,
            rereads: Vec::new(),
            lookups: Lookups::default(),
            losses: BTreeSet::new(),
            ended: HashSet::new(),
            close_ts: None,
            counted_until: window_start,
            counts: Counts::default(),
            filtered: 0,
            totals: Totals::default(),
            sockets: net::Sockets::default(),
            shedding: shed::Shedding::default(),
            stacks,
            samples: Vec::new(),
            pieces: Vec::new(),
        }
    }

    /// Adds records; nothing is done with them before [`Self::advance`].
    pub fn add(&mut self, batch: Batch) {
        self.order.add(batch);
    }

    /// The watermark that leaves at most `bytes` of records waiting; 0 = there are no more.
    pub fn excess(&mut self, bytes: usize) -> u64 {
        self.order.excess(bytes)
    }

    /// Encodes every record before `watermark`; u64::MAX stands for all there are.
    pub fn advance(&mut self, watermark: u64) {
        let taken = self.order.take(watermark);
        for (n, pending) in taken.iter().enumerate() {
            self.latest = self.latest.max(pending.ts);
            self.apply_losses(pending.ts);
            self.record(pending);
            // a few rows without bytes do not fill what was not full
            let small = pending.bytes.len() <= SMALL_RECORD && !self.stacks.are_on();
            if (!small || n % LOOK_AT == 0) && self.builder.is_full() {
                // a later record may carry the same time: it belongs to this window's end all the same
                self.close_segment(pending.ts.saturating_add(1));
            }
        }
        self.encode_samples(watermark);
        let watermark = if watermark == u64::MAX { self.latest.saturating_add(1) } else { watermark };
        let bad = self.order.take_bad();
        if bad > 0 {
            self.bad_records(bad, self.window_start, watermark);
        }
        self.apply_losses(watermark);
        self.take_lookups();
        self.apply_rereads(watermark);
        // what was counted of the dead may still come
        self.tasks.sweep(watermark.min(self.counted_until));
        self.stacks.sweep(watermark);
        let life = self.settings.flush.as_nanos() as u64;
        // without room for anything the segment goes on: its counts take no more for it
        if self.first_row.is_some_and(|first| watermark.saturating_sub(first) >= life) && !self.sheds_all() {
            self.close_segment(watermark);
        }
    }

    fn record(&mut self, Pending { ts, bytes }: Pending<'_>) {
        // most are: without the copy of the others' largest
        if let Ok((s, data)) = wire::syscall(bytes) {
            return self.syscall(&s, data);
        }
        match wire::parse(bytes) {
            Ok(Record::Syscall(s, data)) => self.syscall(&s, data),
            Ok(Record::Closing(c)) if effects::is_injection(c.nr, &c.args) => self.forget_files(0, c.ts, c.ts),
            Ok(Record::Closing(c)) => {
                let task = self.tasks.find_or_add(&c.id);
                let effect = self.call_info(c.abi, c.nr).effect;
                self.touch(c.id.pid, [c.args[0] as i32, c.args[1] as i32]);
                effects::entered(&mut self.tasks, task, effect, c.ts, &c.args);
            }
            Ok(Record::Task(t)) => self.task(&t),
            Ok(Record::Fork(f)) => self.fork(&f),
            Ok(Record::Exec(e, path, argv)) => self.exec(&e, path, argv),
            Ok(Record::Exit(e)) => self.exit(&e),
            Ok(Record::Switch(s)) => self.switch(&s),
            Ok(Record::Wakeup(w)) => self.wakeup(&w),
            Ok(Record::Block(b)) => self.block(&b),
            Ok(Record::Signal(s)) => self.signal(&s),
            Ok(Record::Net(n)) => self.net(&n),
            Ok(Record::Uring(u)) => self.uring(&u),
            Err(_) => self.bad_records(1, ts, ts),
        }
    }

    fn call_info(&mut self, abi: u8, nr: u32) -> CallInfo {
        *self.calls.entry((abi, nr)).or_insert_with(|| CallInfo::new(abi, nr))
    }

    fn interned_call(&mut self, abi: u8, nr: u32, info: &CallInfo) -> u32 {
        if info.interned.0 == self.segment {
            return info.interned.1;
        }
        let index = self.builder.intern_call(Call { abi, nr });
        if let Some(info) = self.calls.get_mut(&(abi, nr)) {
            info.interned = (self.segment, index);
        }
        index
    }

    fn interned_task(&mut self, id: TaskId) -> u32 {
        let (segment, index) = self.tasks.get(id).interned;
        if segment == self.segment {
            return index;
        }
        let index = self.builder.intern_task(&self.tasks.on_tape(id));
        self.tasks.get_mut(id).interned = (self.segment, index);
        index
    }

    /// A task that is perhaps known by name only, as this segment's tasks have it.
    fn interned_who(&mut self, who: &Who) -> u32 {
        let id = self.tasks.meet(who);
        self.interned_task(id)
    }

    /// An event of `family` at `ts` is about to be stored.
    fn stored(&mut self, family: Family, ts: u64) {
        self.totals.count(family);
        self.first_row.get_or_insert(ts);
    }

    fn interned_name(&mut self, name: &Name) -> u32 {
        let (segment, index) = name.interned.get();
        if segment == self.segment {
            return index;
        }
        let index = self.builder.intern_fd_name(&name.bytes);
        name.interned.set((self.segment, index));
        index
    }

    /// Events are missing.
    pub fn gap(&mut self, gap: Gap) {
        self.first_row.get_or_insert(gap.last);
        self.builder.push_gap(gap);
    }

    /// Records that could not be read.
    fn bad_records(&mut self, count: u64, first: u64, last: u64) {
        let (cause, family) = (GapCause::BadRecord, Family::Unknown);
        self.gap(Gap { cause, family, cpu: CPU_NONE, count, first, last, pid: 0, ledger: false });
    }

    /// The recording ended at `ts`: calls that end from here on were not in flight.
    pub fn closing(&mut self, ts: u64) {
        self.close_ts = Some(ts);
    }

    /// Ends the segment; rows with a later end than `window_end` belong to the next.
    pub fn close_segment(&mut self, window_end: u64) {
        self.counted_here();
        self.tell_shed();
        self.give_up_stacks();
        let window_end = window_end.max(self.window_start);
        let next = SegmentBuilder::after(&self.builder, window_end);
        let full = std::mem::replace(&mut self.builder, next);
        self.segment += 1;
        self.window_start = window_end;
        self.first_row = None;
        if !full.is_empty() {
            self.pieces.push(Piece::Segment(Box::new(full.finish(window_end))));
        }
    }

    /// What is ready to be compressed.
    pub fn take_pieces(&mut self) -> Vec<Piece> {
        std::mem::take(&mut self.pieces)
    }

    /// Events so far.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder").field("segment", &self.segment).field("totals", &self.totals).finish_non_exhaustive()
    }
}
