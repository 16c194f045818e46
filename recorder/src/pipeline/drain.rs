//! Empties the rings: one thread, all rings, every few milliseconds, in batches for the encoder.
//!
//! Records that wait for the encoder have a bound ([`crate::rings::backlog`]). Beyond it this thread waits, the rings fill,
//! and the BPF side counts what does not fit.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crossbeam_channel::{Receiver, Sender};
use libbpf_rs::{RingBuffer, RingBufferBuilder};
use systape_bpf::wire::{self, Snap};

use crate::calls::memory::{self, CallMemory, Wanted};
use crate::kernel::skips::{Skipped, Skips};
use crate::load::{DropDelta, LostState, Programs, Walker};
use crate::looks::LookBatch;
use crate::own::clock;
use crate::own::forced::{CheckedLedger, Poisoned};
use crate::own::say::say;
use crate::rings::backlog::Backlog;
use crate::rings::cpu_buffers::{BufferBytes, CpuBuffers};
use crate::rings::lock_buffers::LockBuffers;
use crate::rings::order::Batch;
use crate::rings::records::Records;
use crate::rings::sizes::Fills;
use crate::rings::spare::{Buffer, Spare};
use crate::stacks::feed::{self, StackFeed, UnwindInput};
use crate::stacks::taken::StackBatch;

/// Size at which a batch is full.
const BATCH: usize = 256 << 10;
/// Buffers of batches that are kept for the next ones.
const SPARE: usize = 16;
/// Full batches that are passed on before the end of a pass, so that the encoder does not wait for all of a long one.
const AT_ONCE: usize = 8;
/// A smaller batch waits this long for more, and so does the message that there was nothing: a wake-up costs more than
/// the work for it.
const SMALL: usize = 64 << 10;
const WAIT: Duration = Duration::from_millis(20);
const NOTHING: Duration = Duration::from_millis(100);
/// Target size of a pass: large compared with the cost of waking up, but within a cache.
const PASS_BYTES: u64 = 1 << 20;
/// And at most this part of a ring.
const PASS_PART: u64 = 16;
/// Least time between two passes, greatest time if a ring may fill up sooner, and greatest time.
const BUSY: Duration = Duration::from_millis(1);
const IDLE: Duration = Duration::from_millis(5);
const QUIET: Duration = Duration::from_millis(20);
/// Greatest time of a recording without calls, switches and I/O, whose rings fill in minutes.
const RARE: Duration = Duration::from_millis(250);
/// Most bytes a CPU sends in that time (1.5 million calls/s): smaller rings are polled more often.
const QUIET_BYTES: u64 = 4 << 20;
/// Most bytes of all rings that are read before the encoder is told how far they are read: until then it can encode none of
/// them, and rings that filled up while it was behind have more than may wait: an eighth of `--buffer`, at least and at most these.
const SLICE: [usize; 2] = [1 << 20, 8 << 20];
/// I/Os that ended unseen are counted this often: a tape of the ring ends before the recording does.
const CHECK_IOS: Duration = Duration::from_secs(1);
/// A record may be sent this long after it read its clock before it counts as late, because its task may be preempted
/// in between.
const SLACK_NS: u64 = 20_000_000;

/// Messages from the drain to the encoder.
#[derive(Debug)]
pub(crate) enum Drained {
    /// Records of one pass.
    Batches(Vec<Batch>),
    /// Every record with a time before `watermark` was sent, as far as is known: in earlier messages, or with this one.
    Pass {
        /// Records.
        batches: Vec<Batch>,
        /// See there.
        watermark: u64,
        /// Losses since the last pass.
        drops: Vec<DropDelta>,
        /// Processes that lost a state record.
        lost_state: Vec<LostState>,
        /// Runs of programs that the kernel skipped.
        skipped: Vec<Skipped>,
    },
    /// Stacks that were dropped because their unwinding is behind.
    LateStacks(StackBatch),
    /// The window was closed at this time, and these calls were open then.
    Closed {
        /// When.
        ts: u64,
        /// Every task.
        snaps: Vec<Snap>,
        /// What the arguments of these calls point to.
        memory: Vec<CallMemory>,
    },
}

/// Control of the drain, and its statistics.
#[derive(Debug, Default)]
pub(crate) struct DrainControl {
    /// Set to end the recording.
    pub stop: AtomicBool,
    /// Passes over all rings so far.
    pub passes: AtomicU64,
    /// Bytes read from the rings.
    pub bytes: AtomicU64,
    /// Events lost so far, without calls that are counted.
    pub lost: AtomicU64,
    /// Calls so far without room that are counted in the ledger.
    pub counted: AtomicU64,
    /// How full the rings were.
    pub fills: Fills,
}

/// What is read of one ring.
#[derive(Debug, Default)]
struct RingRead {
    /// Bytes in this pass, and in this slice of it.
    bytes: Cell<u64>,
    slice: Cell<u64>,
    /// The time of the record at which the slice ended; None = it ended with the ring's last record.
    cut: Cell<Option<u64>>,
    /// The time before which all of the ring was read in this pass; 0 = it was not read yet.
    reached: Cell<u64>,
}

impl RingRead {
    /// Counts a record; after `most` bytes the answer to libbpf is to stop.
    fn add(&self, record: &[u8], most: u64) -> i32 {
        let (bytes, slice) = (room(record), self.slice.get() + room(record));
        self.bytes.set(self.bytes.get() + bytes);
        self.slice.set(slice);
        if slice < most {
            return 0;
        }
        self.cut.set(wire::time(record));
        // one without a time says nothing of those behind it
        if self.cut.get().is_some() { -libc::EAGAIN } else { 0 }
    }

    /// Ends a slice of a pass over what was sent before `until`: what comes behind a record in a ring was sent after it.
    fn end_slice(&self, until: u64) {
        self.slice.set(0);
        self.reached.set(self.cut.take().map_or(until, |ts| ts.min(until)));
    }
}

/// Bytes read from each ring in one pass.
struct RingReads {
    /// In the order of [`Programs::rings`].
    rings: Vec<RingRead>,
    stacks: Cell<u64>,
    /// All buffers of CPUs together, and the fullest of each kind.
    buffers: Cell<u64>,
    fullest: Cell<BufferBytes>,
}

impl RingReads {
    fn of(rings: usize) -> Self {
        Self {
            rings: (0..rings).map(|_| RingRead::default()).collect(),
            stacks: Cell::default(),
            buffers: Cell::default(),
            fullest: Cell::default(),
        }
    }

    /// All of them together, after the fill of each ring is noted.
    fn take(&self, control: &DrainControl) -> u64 {
        let fills = &control.fills;
        let mut all = self.stacks.take();
        fills.stacks.fetch_max(all, Ordering::Relaxed);
        for (ring, read) in self.rings.iter().enumerate() {
            let fill = match ring {
                0 => &fills.process,
                1 => &fills.state,
                _ => &fills.bulk,
            };
            read.reached.set(0);
            let read = read.bytes.take();
            fill.fetch_max(read, Ordering::Relaxed);
            all += read;
        }
        let fullest = self.fullest.take();
        fills.calls.fetch_max(fullest.calls, Ordering::Relaxed);
        fills.sched.fetch_max(fullest.sched, Ordering::Relaxed);
        all += self.buffers.take();
        control.bytes.fetch_add(all, Ordering::Relaxed);
        control.passes.fetch_add(1, Ordering::Relaxed);
        all
    }
}

/// Time until `wanted` bytes are expected, given that `read` bytes came in the last `took`.
fn pause(read: u64, took: Duration, wanted: u64, most: Duration) -> Duration {
    let ns = took.as_nanos() * u128::from(wanted) / u128::from(read.max(1));
    Duration::from_nanos(ns.try_into().unwrap_or(u64::MAX)).clamp(BUSY, most)
}

/// The time before which all of these rings were read in this pass.
fn read_until(rings: &[RingRead]) -> u64 {
    rings.iter().map(|read| read.reached.get()).min().unwrap_or(u64::MAX)
}

/// Bytes of a record in its ring: the kernel puts 8 bytes before each, and begins each at a multiple of 8.
fn room(record: &[u8]) -> u64 {
    (record.len() as u64 + 8).next_multiple_of(8)
}

/// Receivers of the rings' records.
struct RingReceivers<'a> {
    batch: RefCell<Batch>,
    spare: Spare,
    /// Batches that are full.
    full: RefCell<Vec<Batch>>,
    /// Takes them.
    out: &'a Sender<Drained>,
    backlog: &'a Backlog,
    /// Takes stacks; None = not recorded.
    feed: Option<RefCell<StackFeed>>,
    reads: RingReads,
    /// With poison: how much of it is in records.
    poisoned: Option<Cell<Poisoned>>,
}

impl RingReceivers<'_> {
    fn look(&self, record: &[u8]) {
        if let Some(seen) = &self.poisoned {
            let mut now = seen.get();
            now.look(record);
            seen.set(now);
        }
    }

    fn push(&self, record: &[u8]) {
        self.look(record);
        self.batch.borrow_mut().push(record);
        self.pass_full();
    }

    /// Adds records of `each` bytes that stand one after the other.
    fn push_all(&self, mut records: &[u8], each: usize) {
        if self.poisoned.is_some() {
            records.chunks_exact(each).for_each(|record| self.look(record));
        }
        while !records.is_empty() {
            let room = BATCH.saturating_sub(self.batch.borrow().len()) / each + 1;
            let (now, later) = records.split_at(records.len().min(room * each));
            self.batch.borrow_mut().push_all(now, each);
            self.pass_full();
            records = later;
        }
    }

    /// An empty batch, for about so many bytes.
    fn new_batch(&self, bytes: usize) -> Batch {
        // a small one in a buffer of a large one's size would keep many of them, as long as its events wait for stacks
        let buffer = if bytes < BATCH / 2 { Buffer::with_capacity(bytes) } else { self.spare.take() };
        Batch::within(buffer, bytes)
    }

    /// Begins another batch if this one is full.
    fn pass_full(&self) {
        let mut batch = self.batch.borrow_mut();
        if batch.len() < BATCH {
            return;
        }
        let full = std::mem::replace(&mut *batch, self.new_batch(BATCH));
        self.full.borrow_mut().push(full);
        if self.full.borrow().len() >= AT_ONCE {
            // a closed channel shows at the next pass
            self.send();
        }
    }

    /// A stack that came with its event.
    fn push_stack(&self, record: &[u8]) {
        self.look(record);
        if let Some(feed) = &self.feed {
            feed.borrow_mut().push(record);
        }
    }

    /// Passes the full batches on; false = the encoder is gone.
    fn send(&self) -> bool {
        let batches = self.full.take();
        self.backlog.add_records(batches.iter().map(Batch::len).sum());
        batches.is_empty() || self.out.send(Drained::Batches(batches)).is_ok()
    }

    /// All batches, of which the last need not be full.
    fn take_all(&self) -> Vec<Batch> {
        let mut batch = self.batch.borrow_mut();
        if !batch.is_empty() {
            // as much will come again
            let next = self.new_batch((batch.len() + batch.len() / 4).min(BATCH));
            self.full.borrow_mut().push(std::mem::replace(&mut *batch, next));
        }
        let batches = self.full.take();
        self.backlog.add_records(batches.iter().map(Batch::len).sum());
        batches
    }

    /// Reads all rings into this, except the stack ring; in the order of [`Programs::rings`].
    fn rings<'c>(&'c self, programs: &Programs) -> Result<Vec<RingBuffer<'c>>> {
        let rings = programs.rings();
        let most = (self.backlog.part(8, SLICE) / rings.len()).max(BATCH) as u64;
        let one = |(ring, read): (_, &'c RingRead)| {
            let mut builder = RingBufferBuilder::new();
            builder.add(ring, move |record| {
                self.push(record);
                read.add(record, most)
            })?;
            builder.build().context("cannot read the rings")
        };
        rings.into_iter().zip(&self.reads.rings).map(one).collect()
    }

    /// Reads the stack ring, if there is one.
    fn stack_ring<'c>(&'c self, programs: &Programs) -> Result<Option<RingBuffer<'c>>> {
        let (Some(ring), Some(feed)) = (programs.stack_ring(), &self.feed) else { return Ok(None) };
        let mut builder = RingBufferBuilder::new();
        builder.add(ring, |record| {
            self.look(record);
            feed.borrow_mut().push(record);
            self.reads.stacks.set(self.reads.stacks.get() + room(record));
            0
        })?;
        builder.build().context("cannot read the ring of stacks").map(Some)
    }
}

/// One pass after the other over all rings.
struct RingPasses<'a> {
    collected: &'a RingReceivers<'a>,
    control: &'a DrainControl,
    wanted: &'a Wanted,
    programs: Programs,
    rings: Vec<RingBuffer<'a>>,
    stack_ring: Option<RingBuffer<'a>>,
    buffers: CpuBuffers,
    locks: Option<LockBuffers>,
    sleepers: Option<Receiver<Records>>,
    looks: Option<Receiver<LookBatch>>,
    skips: Skips,
    /// When a batch was last passed on.
    sent: Instant,
    /// The last watermark. A slice knows less than the pass before it, which stays true.
    told: u64,
}

impl<'a> RingPasses<'a> {
    fn new(
        collected: &'a RingReceivers<'a>,
        (control, wanted): (&'a DrainControl, &'a Wanted),
        mut programs: Programs,
        (sleepers, looks): (Option<Receiver<Records>>, Option<Receiver<LookBatch>>),
    ) -> Result<Self> {
        let locks = programs.take_locks();
        let (rings, stack_ring) = (collected.rings(&programs)?, collected.stack_ring(&programs)?);
        let (buffers, skips, sent) = (programs.cpu_buffers()?, programs.skips(), Instant::now());
        Ok(Self {
            collected,
            control,
            wanted,
            programs,
            rings,
            stack_ring,
            buffers,
            locks,
            sleepers,
            looks,
            skips,
            sent,
            told: 0,
        })
    }

    /// Reads all that is in the rings, and reports that everything before `slack` ns ago was read. Returns the bytes read;
    /// None = the encoder is gone.
    fn pass(&mut self, slack: u64, stopping: bool) -> Result<Option<u64>> {
        let started = clock::monotonic();
        self.read_buffers();
        while let Some(reached) = self.read_slice(started)? {
            // behind it stand others, of which some read their clock before
            if !self.pass_on((reached.saturating_sub(SLACK_NS), false), stopping)? {
                return Ok(None);
            }
        }
        self.programs.looked();
        let told = self.pass_on((started.saturating_sub(slack), slack == 0), stopping)?;
        Ok(told.then(|| self.collected.reads.take(self.control)))
    }

    /// Reads the buffers of the CPUs.
    fn read_buffers(&mut self) {
        let collected = self.collected;
        let reads = &collected.reads;
        let (all, fullest) = self.buffers.drain(|records, each| collected.push_all(records, each));
        let of_locks = self
            .locks
            .as_mut()
            .map_or(0, |locks| locks.drain(|lock| collected.push(lock), |stack| collected.push_stack(stack)));
        for batch in self.looks.iter().flat_map(Receiver::try_iter) {
            batch.stacks.iter().for_each(|stack| collected.push_stack(stack));
            batch.rows.iter().for_each(|row| collected.push(row));
        }
        reads.buffers.set(reads.buffers.get() + all + of_locks);
        reads.fullest.set(reads.fullest.get().most(fullest));
    }

    /// Reads a part of those rings that are read least far. Returns the time before which all of them are read, None = all that was in
    /// them `until` is.
    fn read_slice(&self, until: u64) -> Result<Option<u64>> {
        let reads = &self.collected.reads.rings;
        // whoever runs ahead would have its records wait for the others, as many as its ring holds
        let behind = read_until(reads);
        for (ring, read) in self.rings.iter().zip(reads).filter(|(_, read)| read.reached.get() == behind) {
            // consume, not poll: epoll reports a ring only when a record asked for a wake-up, and none does
            let consumed = ring.consume();
            if read.cut.get().is_none() {
                consumed.context("cannot read the rings")?;
            }
            read.end_slice(until);
        }
        Ok(Some(read_until(reads)).filter(|reached| *reached < until))
    }

    /// Passes on what was read, and that it is all of before `watermark`; `last`: nothing will follow. Small amounts wait for
    /// more. False = the encoder is gone.
    fn pass_on(&mut self, (watermark, last): (u64, bool), stopping: bool) -> Result<bool> {
        let collected = self.collected;
        self.told = self.told.max(watermark);
        let dropped = self.programs.has_drops() || stopping;
        let waiting = collected.batch.borrow().len() + BATCH * collected.full.borrow().len();
        let wait = if waiting > 0 { WAIT } else { NOTHING };
        // a stack's event is to be known when it comes
        if waiting < SMALL && self.sent.elapsed() < wait && !dropped && collected.feed.is_none() {
            return Ok(true);
        }
        self.sent = Instant::now();
        let mut batches = collected.take_all();
        // stacks come another way: their events are to be known when they arrive
        if collected.feed.is_some() && !batches.is_empty() {
            let batches = std::mem::take(&mut batches);
            if collected.out.send(Drained::Batches(batches)).is_err() {
                return Ok(false);
            }
        }
        Ok(self.pass_stacks(self.told, last)? && self.pass_losses(batches, self.told, dropped, last)?)
    }

    /// Reads the stack ring, if there is one; false = the encoder is gone.
    fn pass_stacks(&mut self, watermark: u64, last: bool) -> Result<bool> {
        let (Some(ring), Some(feed)) = (&self.stack_ring, &self.collected.feed) else { return Ok(true) };
        // after the events: the stack of each of them was sent before it
        ring.consume().context("cannot read the ring of stacks")?;
        let mut feed = feed.borrow_mut();
        // they can wait, so they do not push out stacks of events
        while let Some(batch) = self.sleepers.as_ref().filter(|_| feed.has_room()).and_then(|rx| rx.try_recv().ok()) {
            batch.iter().for_each(|record| feed.push(record));
        }
        let late = feed.pass(watermark, last);
        drop(feed);
        let Some(stacks) = late else { return Ok(true) };
        self.control.lost.fetch_add(stacks.given_up.count, Ordering::Relaxed);
        Ok(self.collected.out.send(Drained::LateStacks(stacks)).is_ok())
    }

    /// Passes records on; reports the losses so far, and that everything before `watermark` was read. One message, since
    /// each may have to wake the encoder. False = the encoder is gone.
    fn pass_losses(&mut self, batches: Vec<Batch>, watermark: u64, dropped: bool, last: bool) -> Result<bool> {
        let drops = if dropped { self.programs.take_drops()? } else { Vec::new() };
        let lost_state = if dropped { self.programs.take_lost_state() } else { Vec::new() };
        let skipped = self.skips.take(last, self.programs.harmless_skips());
        let sum = |counted: bool| -> u64 {
            drops.iter().filter(|d| d.is_loss() && d.is_counted() == counted).map(|d| d.count.count).sum()
        };
        let skips: u64 = skipped.iter().map(|s| s.count).sum();
        self.control.lost.fetch_add(sum(false) + skips, Ordering::Relaxed);
        self.control.counted.fetch_add(sum(true), Ordering::Relaxed);
        Ok(self.collected.out.send(Drained::Pass { batches, watermark, drops, lost_state, skipped }).is_ok())
    }

    /// Passes until told to stop; false = the encoder is gone.
    fn until_stopped(&mut self) -> Result<bool> {
        let rings = self.programs.rings();
        let bulk_bytes = rings.iter().skip(2).map(|ring| u64::from(ring.max_entries())).min().unwrap_or(0);
        let rare = self.programs.are_looks();
        let most = if rare {
            RARE
        } else if self.stack_ring.is_some() || bulk_bytes < QUIET_BYTES {
            IDLE
        } else {
            QUIET
        };
        let wanted = PASS_BYTES.min(bulk_bytes / PASS_PART);
        let mut passed = Instant::now();
        let mut checked = Some(passed);
        while !self.control.stop.load(Ordering::Acquire) {
            let Some(read) = self.pass(SLACK_NS, false)? else { return Ok(false) };
            let now = Instant::now();
            if checked.is_some_and(|checked| now.duration_since(checked) >= CHECK_IOS) {
                // where it cannot be done, the end says so
                checked = self.programs.count_unseen_ios().is_ok().then_some(now);
            }
            thread::sleep(pause(read, now.duration_since(std::mem::replace(&mut passed, now)), wanted, most));
        }
        Ok(true)
    }

    /// Closes the window and reads the rest; false = the encoder is gone.
    fn close(&mut self, walker: &Walker) -> Result<bool> {
        self.programs.close_window();
        let ts = clock::monotonic();
        let snaps = walker.open_calls().unwrap_or_else(|error| {
            say(format_args!("calls in flight at the end are not on the tape: {error:#}"));
            Vec::new()
        });
        let mut memory = self.wanted.read_all(&snaps);
        if !memory.is_empty() {
            memory::keep_those_asleep(&mut memory, &snaps, &walker.walk().unwrap_or_default());
        }
        // what open connections did comes through the rings
        walker.opens();
        // Programs that had passed the window check when it closed need a moment to send.
        for _ in 0..3 {
            if self.pass(SLACK_NS, true)?.is_none() {
                return Ok(false);
            }
            thread::sleep(Duration::from_millis(2));
        }
        // when that fails, all that are left count as on their way
        if let Err(error) = self.programs.count_unseen_ios() {
            say(format_args!("block I/Os that ended unseen are not counted as lost: {error:#}"));
        }
        if self.collected.out.send(Drained::Closed { ts, snaps, memory }).is_err() {
            return Ok(false);
        }
        // The last two halves of the drop counters, and all records whatever their time.
        self.pass(SLACK_NS, true)?;
        self.pass(0, true)?;
        Ok(true)
    }
}

/// Reads the rings until told to stop, then closes the window and reads the rest. The programs are detached at the end.
///
/// # Errors
/// When the rings cannot be read at all; a closed channel ends the drain without an error.
pub(crate) fn run(
    programs: Programs,
    (control, wanted): (&DrainControl, &Wanted),
    (out, backlog): (&Sender<Drained>, &Backlog),
    unwinding: Option<Sender<UnwindInput>>,
    apart: (Option<Receiver<Records>>, Option<Receiver<LookBatch>>),
) -> Result<Option<CheckedLedger>> {
    let spare = Spare::new(BATCH + 4096, SPARE);
    let collected = RingReceivers {
        batch: RefCell::new(Batch::within(spare.take(), BATCH)),
        spare,
        full: RefCell::default(),
        out,
        backlog,
        feed: unwinding.map(|out| RefCell::new(StackFeed::new(out, backlog.part(2, feed::MOST)))),
        reads: RingReads::of(programs.rings().len()),
        poisoned: programs.is_poisoned().then(|| Cell::new(Poisoned::default())),
    };
    let walker = programs.walker()?;
    let mut passes = RingPasses::new(&collected, (control, wanted), programs, apart)?;
    if !passes.until_stopped()? || !passes.close(&walker)? {
        return Ok(None);
    }
    Ok(passes.programs.checked(collected.poisoned.as_ref().map(Cell::get).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of 72 bytes, 80 in a ring.
    fn closing(ts: u64) -> [u8; 72] {
        let mut bytes = [0u8; 72];
        bytes[0] = 2;
        bytes[32..40].copy_from_slice(&ts.to_ne_bytes());
        bytes
    }

    #[test]
    fn a_full_ring_is_read_in_slices_that_say_how_far() {
        let read = RingRead::default();
        let reached = |until| {
            read.end_slice(until);
            read.reached.get()
        };
        let stop = -libc::EAGAIN;
        assert_eq!([10, 30, 20].map(|ts| read.add(&closing(ts), 3 * 80)), [0, 0, stop]);
        assert_eq!(reached(1000), 20, "the one behind it may be of then");
        assert_eq!(reached(1000), 1000, "nothing was in it");
        // one without a time: the next one is the end
        assert_eq!([&[0xff; 72], &closing(40), &closing(50)].map(|record| read.add(record, 80)), [0, stop, stop]);
        assert_eq!(reached(50), 50, "what is behind it was sent since");
        assert_eq!([60, 61].map(|ts| read.add(&closing(ts), 3 * 80)), [0, 0], "each slice begins anew");
        assert_eq!(read.bytes.get(), 8 * 80);
    }

    #[test]
    fn a_pass_has_reached_what_the_ring_that_is_least_far_has() {
        let rings: [RingRead; 3] = Default::default();
        assert_eq!(read_until(&rings), 0, "none is read");
        rings[0].add(&closing(70), 1);
        rings[1].add(&closing(40), 1);
        rings.iter().for_each(|ring| ring.end_slice(100));
        assert_eq!(rings.each_ref().map(|ring| ring.reached.get()), [70, 40, 100]);
        assert_eq!(read_until(&rings), 40);
        assert_eq!(read_until(&[]), u64::MAX);
    }

    #[test]
    fn the_more_comes_the_sooner_it_is_read() {
        let after = |read, ms| pause(read, Duration::from_millis(ms), 512 << 10, QUIET);
        assert_eq!(after(0, 20), QUIET);
        assert_eq!(after(64 << 10, 2), Duration::from_millis(16));
        assert_eq!(after(512 << 10, 5), Duration::from_millis(5));
        assert_eq!(after(2 << 20, 20), Duration::from_millis(5));
        assert_eq!(after(8 << 20, 5), BUSY);
        assert_eq!(after(u64::MAX, 5), BUSY);
        // nothing for a long time
        assert_eq!(after(1, u64::MAX / 1000), QUIET);
        assert_eq!(pause(0, QUIET, 512 << 10, IDLE), IDLE);
    }
}
