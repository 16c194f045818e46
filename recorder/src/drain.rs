//! Empties the rings: one thread, all rings, every few milliseconds, in batches for the encoder.
//!
//! What waits for the encoder has a bound ([`crate::backlog`]). Beyond it this thread waits, the rings fill, and the BPF
//! side counts what does not fit.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crossbeam_channel::{Receiver, Sender};
use libbpf_rs::RingBufferBuilder;
use systape_bpf::wire::Snap;

use crate::backlog::Backlog;
use crate::clock;
use crate::cpu_buffers::BufferBytes;
use crate::forced::{Checked, Poisoned};
use crate::load::{DropDelta, LostState, Programs};
use crate::order::Batch;
use crate::self_stats::Fills;
use crate::skips::Skipped;
use crate::stacks::feed::{Feed, Raw};
use crate::stacks::taken::Taken;

/// Size at which a batch is passed on.
const BATCH: usize = 256 << 10;
/// A smaller one waits this long for more, and the news that there was nothing this long: who is woken costs more than what there is to do.
const SMALL: usize = 64 << 10;
const WAIT: Duration = Duration::from_millis(20);
const NOTHING: Duration = Duration::from_millis(100);
/// What a pass is to read: much beside what waking up costs, and no more than a cache holds.
const PASS_BYTES: u64 = 512 << 10;
/// And at most this part of a ring.
const PASS_PART: u64 = 16;
/// Time between two passes at least, at most where something may fill up in less, and at most.
const BUSY: Duration = Duration::from_millis(1);
const IDLE: Duration = Duration::from_millis(5);
const QUIET: Duration = Duration::from_millis(20);
/// What a CPU sends in that time at most (1.5 million calls/s): a smaller ring is looked at more often.
const QUIET_BYTES: u64 = 4 << 20;
/// A record may be sent this long after it read its clock before it counts as late: the task was preempted in between.
const SLACK_NS: u64 = 20_000_000;

/// What the drain tells the encoder.
#[derive(Debug)]
pub enum Drained {
    /// Records.
    Batch(Batch),
    /// Every record of a time before `watermark` was sent, as far as anybody can tell.
    Pass {
        /// See there.
        watermark: u64,
        /// What was lost since the last pass.
        drops: Vec<DropDelta>,
        /// Processes that lost a state record.
        lost_state: Vec<LostState>,
        /// Runs of programs that the kernel skipped.
        skipped: Vec<Skipped>,
    },
    /// Stacks that were given up because their unwinding is behind.
    LateStacks(Taken),
    /// The window was closed at this time, and these calls were open then.
    Closed {
        /// When.
        ts: u64,
        /// Every task.
        snaps: Vec<Snap>,
    },
}

/// How the drain is told to stop, and what it tells about itself.
#[derive(Debug, Default)]
pub struct Control {
    /// Set to end the recording.
    pub stop: AtomicBool,
    /// Bytes read from the rings.
    pub bytes: AtomicU64,
    /// Events lost so far; calls that are counted are not among them.
    pub lost: AtomicU64,
    /// Calls so far that found no room and are counted in the ledger.
    pub counted: AtomicU64,
    /// How full the rings were.
    pub fills: Fills,
}

/// Bytes that one pass read from each ring.
struct Reads {
    /// In the order of [`Programs::rings`].
    rings: Vec<Cell<u64>>,
    stacks: Cell<u64>,
    /// All buffers of CPUs together, and the fullest of each kind.
    buffers: Cell<u64>,
    fullest: Cell<BufferBytes>,
}

impl Reads {
    fn of(rings: usize) -> Self {
        Self {
            rings: vec![Cell::new(0); rings],
            stacks: Cell::default(),
            buffers: Cell::default(),
            fullest: Cell::default(),
        }
    }

    /// All of them together, once it is noted how full each ring was.
    fn take(&self, control: &Control) -> u64 {
        let fills = &control.fills;
        let mut all = self.stacks.take();
        fills.stacks.fetch_max(all, Ordering::Relaxed);
        for (ring, read) in self.rings.iter().enumerate() {
            let fill = match ring {
                0 => &fills.process,
                1 => &fills.state,
                _ => &fills.bulk,
            };
            let read = read.take();
            fill.fetch_max(read, Ordering::Relaxed);
            all += read;
        }
        let fullest = self.fullest.take();
        fills.calls.fetch_max(fullest.calls, Ordering::Relaxed);
        fills.sched.fetch_max(fullest.sched, Ordering::Relaxed);
        all += self.buffers.take();
        control.bytes.fetch_add(all, Ordering::Relaxed);
        all
    }
}

/// How long to wait until there is `wanted`, when the last `took` brought `read` bytes.
fn pause(read: u64, took: Duration, wanted: u64, most: Duration) -> Duration {
    let ns = took.as_nanos() * u128::from(wanted) / u128::from(read.max(1));
    Duration::from_nanos(ns.try_into().unwrap_or(u64::MAX)).clamp(BUSY, most)
}

/// What a record takes of its ring: the kernel puts 8 bytes before each, and begins each at a multiple of 8.
fn room(record: &[u8]) -> u64 {
    (record.len() as u64 + 8).next_multiple_of(8)
}

/// Reads the rings until told to stop, then closes the window and reads the rest. The programs are detached at the end.
///
/// # Errors
/// When the rings cannot be read at all; the channel being closed ends the drain without an error.
pub fn run(
    mut programs: Programs,
    control: &Control,
    (out, backlog): (&Sender<Drained>, &Backlog),
    unwinding: Option<Sender<Raw>>,
    sleepers: Option<Receiver<Batch>>,
) -> Result<Option<Checked>> {
    let batch = RefCell::new(Batch::with_capacity(BATCH + 4096));
    let taken = Reads::of(programs.rings().len());
    let feed = unwinding.map(|out| RefCell::new(Feed::new(out)));
    let poisoned = programs.is_poisoned().then(|| Cell::new(Poisoned::default()));
    let look = |record: &[u8]| {
        if let Some(seen) = &poisoned {
            let mut now = seen.get();
            now.look(record);
            seen.set(now);
        }
    };
    let push = |record: &[u8]| {
        look(record);
        let mut batch = batch.borrow_mut();
        batch.push(record);
        if batch.len() >= BATCH {
            let full = std::mem::replace(&mut *batch, Batch::with_capacity(BATCH + 4096));
            backlog.add_records(full.len());
            // a closed channel shows at the next pass
            out.send(Drained::Batch(full)).ok();
        }
    };
    let mut buffers = programs.cpu_buffers()?;
    let rings = {
        let mut builder = RingBufferBuilder::new();
        for (ring, taken) in programs.rings().into_iter().zip(&taken.rings) {
            builder.add(ring, |record| {
                push(record);
                taken.set(taken.get() + room(record));
                0
            })?;
        }
        builder.build().context("cannot read the rings")?
    };
    let stack_ring = match (programs.stack_ring(), &feed) {
        (Some(ring), Some(feed)) => {
            let mut builder = RingBufferBuilder::new();
            builder.add(ring, |record| {
                look(record);
                feed.borrow_mut().push(record);
                taken.stacks.set(taken.stacks.get() + room(record));
                0
            })?;
            Some(builder.build().context("cannot read the ring of stacks")?)
        }
        _ => None,
    };
    let bulk_bytes = programs.rings().iter().skip(2).map(|ring| u64::from(ring.max_entries())).min().unwrap_or(0);
    let walker = programs.walker()?;
    let mut skips = programs.skips();
    let mut sent = Instant::now();
    let mut pass = |programs: &mut Programs, slack: u64, stopping: bool| -> Result<Option<u64>> {
        let started = clock::monotonic();
        let (all, fullest) = buffers.drain(push);
        taken.buffers.set(taken.buffers.get() + all);
        taken.fullest.set(taken.fullest.get().most(fullest));
        // consume, not poll: epoll reports a ring only when a record asked for a wake-up, and none does
        rings.consume().context("cannot read the rings")?;
        programs.looked();
        let dropped = programs.has_drops() || stopping;
        let waiting = batch.borrow().len();
        let wait = if waiting > 0 { WAIT } else { NOTHING };
        // a stack's event is to be known when it comes
        if waiting < SMALL && sent.elapsed() < wait && !dropped && feed.is_none() {
            return Ok(Some(taken.take(control)));
        }
        sent = Instant::now();
        let rest = std::mem::take(&mut *batch.borrow_mut());
        if !rest.is_empty() {
            backlog.add_records(rest.len());
            if out.send(Drained::Batch(rest)).is_err() {
                return Ok(None);
            }
        }
        let watermark = started.saturating_sub(slack);
        if let (Some(ring), Some(feed)) = (&stack_ring, &feed) {
            // after the events: the stack of each of them was sent before it
            ring.consume().context("cannot read the ring of stacks")?;
            let mut feed = feed.borrow_mut();
            // they can wait, so they do not push out stacks of events
            while let Some(batch) = sleepers.as_ref().filter(|_| feed.has_room()).and_then(|rx| rx.try_recv().ok()) {
                batch.records().for_each(|record| feed.push(record));
            }
            let late = feed.pass(watermark, slack == 0);
            drop(feed);
            if let Some(stacks) = late {
                control.lost.fetch_add(stacks.given_up.count, Ordering::Relaxed);
                if out.send(Drained::LateStacks(stacks)).is_err() {
                    return Ok(None);
                }
            }
        }
        let drops = if dropped { programs.take_drops()? } else { Vec::new() };
        let lost_state = if dropped { programs.take_lost_state() } else { Vec::new() };
        let skipped = skips.take(slack == 0, programs.harmless_skips());
        let sum = |counted: bool| -> u64 {
            drops.iter().filter(|d| d.is_loss() && d.is_counted() == counted).map(|d| d.count.count).sum()
        };
        let skips: u64 = skipped.iter().map(|s| s.count).sum();
        control.lost.fetch_add(sum(false) + skips, Ordering::Relaxed);
        control.counted.fetch_add(sum(true), Ordering::Relaxed);
        if out.send(Drained::Pass { watermark, drops, lost_state, skipped }).is_err() {
            return Ok(None);
        }
        Ok(Some(taken.take(control)))
    };

    let most = if stack_ring.is_some() || bulk_bytes < QUIET_BYTES { IDLE } else { QUIET };
    let wanted = PASS_BYTES.min(bulk_bytes / PASS_PART);
    let mut passed = Instant::now();
    while !control.stop.load(Ordering::Acquire) {
        let Some(read) = pass(&mut programs, SLACK_NS, false)? else { return Ok(None) };
        let now = Instant::now();
        thread::sleep(pause(read, now.duration_since(std::mem::replace(&mut passed, now)), wanted, most));
    }
    programs.close_window();
    let ts = clock::monotonic();
    let snaps = walker.open_calls().unwrap_or_default();
    // Programs that had passed the window check when it closed need a moment to send.
    for _ in 0..3 {
        if pass(&mut programs, SLACK_NS, true)?.is_none() {
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(2));
    }
    // when that fails, all that are left count as on their way
    programs.count_unseen_ios().ok();
    if out.send(Drained::Closed { ts, snaps }).is_err() {
        return Ok(None);
    }
    // The last two halves of the drop counters, and all records whatever their time.
    pass(&mut programs, SLACK_NS, true)?;
    pass(&mut programs, 0, true)?;
    Ok(programs.checked(poisoned.as_ref().map(Cell::get).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
