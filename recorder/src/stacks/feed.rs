//! From the stack ring to the unwinding stage: a bounded queue that never blocks the events.
//!
//! When the unwinding is behind and the queue is full, stacks are dropped: their events continue without, marked and
//! counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crossbeam_channel::{SendTimeoutError, Sender, TrySendError};
use systape_bpf::values::stack_of;
use systape_bpf::wire::{self, StackParts};
use systape_format::model::{StackOf, StackStatus};

use super::taken::{Chain, DroppedStacks, Key, StackBatch, TakenStack};
use crate::rings::records::Records;
use crate::rings::spare::Spare;

/// Bytes of raw stacks in a batch, if there are so many ...
const BATCH: usize = 1 << 20;
/// ... in pieces of this size ...
const PIECE: usize = 64 << 10;
/// ... and most bytes in all, collected while the queue is full, in the queue, and in the unwinding: half of `--buffer`, but at least and
/// at most these.
pub(crate) const MOST: [usize; 2] = [8 << 20, 48 << 20];
/// Buffers of pieces that are kept for the next ones.
const SPARE: usize = 2 * BATCH / PIECE;
/// Most batches in the queue. When the unwinding is behind they grow, so it handles all of them in one go.
pub(crate) const BATCHES: usize = 2;

/// Most dropped stacks that are reported one by one, so that their events have the reason; the rest are only counted.
/// Samples are events of their own: there may be twice as many.
const MAX_LATE: usize = 1 << 15;
/// Most batches of them on their way to the encoder.
const MAX_LATE_BATCHES: usize = 2;

/// How long the end waits for the unwinding, which may hang in a file system.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Input of the unwinding stage.
#[derive(Debug)]
pub(crate) enum UnwindInput {
    /// Records of the stack ring.
    Stacks(Vec<RawStacks>),
    /// Every stack with a time before this was sent.
    Pass(u64),
}

/// Records of the stack ring, counted while they exist.
#[derive(Debug)]
pub(crate) struct RawStacks {
    records: Records,
    held: Arc<AtomicUsize>,
}

impl RawStacks {
    fn new(records: Records, held: &Arc<AtomicUsize>) -> Self {
        held.fetch_add(records.len(), Ordering::Relaxed);
        Self { records, held: Arc::clone(held) }
    }

    /// The records.
    pub(crate) fn records(&self) -> &Records {
        &self.records
    }
}

impl Drop for RawStacks {
    fn drop(&mut self) {
        self.held.fetch_sub(self.records.len(), Ordering::Relaxed);
    }
}

/// The drain's end of the queue.
#[derive(Debug)]
pub(crate) struct StackFeed {
    /// Those that were not passed on, in their order.
    pieces: Vec<Records>,
    /// Their bytes.
    bytes: usize,
    out: Sender<UnwindInput>,
    /// Bytes that were passed on and still exist.
    held: Arc<AtomicUsize>,
    /// Most bytes of both.
    most: usize,
    spare: Spare,
    late: Vec<TakenStack>,
    given_up: DroppedStacks,
    /// Held by each batch of late stacks until the encoder has added it.
    on_the_way: Arc<()>,
    patience: Duration,
}

impl StackFeed {
    /// A feed for `out` that holds at most `most` bytes.
    pub(crate) fn new(out: Sender<UnwindInput>, most: usize) -> Self {
        Self {
            pieces: Vec::new(),
            bytes: 0,
            out,
            held: Arc::default(),
            most,
            spare: Spare::new(PIECE, SPARE),
            late: Vec::new(),
            given_up: DroppedStacks::default(),
            on_the_way: Arc::default(),
            patience: PATIENCE,
        }
    }

    /// Adds a record of the ring. Beyond the limit it is dropped; earlier ones keep the unwinding busy.
    pub(crate) fn push(&mut self, record: &[u8]) {
        if self.all() + record.len() > self.most {
            self.give_up(record);
            return;
        }
        let bytes = Records::bytes_of(record);
        let mut piece = self.pieces.pop_if(|last| last.len() + bytes <= PIECE);
        piece.get_or_insert_with(|| Records::within(self.spare.take())).push(record);
        self.pieces.extend(piece);
        self.bytes += bytes;
        if self.bytes >= BATCH {
            self.try_send();
        }
    }

    /// Bytes in all.
    fn all(&self) -> usize {
        self.held.load(Ordering::Relaxed) + self.bytes
    }

    /// Whether there is room for many more; otherwise callers that can wait do.
    pub(crate) fn has_room(&self) -> bool {
        self.all() < self.most / 2
    }

    fn take(&mut self) -> Vec<RawStacks> {
        self.bytes = 0;
        self.pieces.drain(..).map(|piece| RawStacks::new(piece, &self.held)).collect()
    }

    /// Passes the current batch on; if the queue is full it stays.
    fn try_send(&mut self) {
        if self.out.is_full() {
            return;
        }
        let stacks = self.take();
        // nobody else sends: there is room, unless the unwinding died
        if let Err(
            TrySendError::Full(UnwindInput::Stacks(stacks)) | TrySendError::Disconnected(UnwindInput::Stacks(stacks)),
        ) = self.out.try_send(UnwindInput::Stacks(stacks))
        {
            self.give_up_all(&stacks);
        }
    }

    fn give_up(&mut self, record: &[u8]) {
        let Some(stack) = wire::stack(record).ok().and_then(|parts| without_frames(&parts)) else { return };
        self.given_up.add(stack.ts);
        let most = if stack.key.of == StackOf::Sample { 2 * MAX_LATE } else { MAX_LATE };
        if self.late.len() < most {
            self.late.push(stack);
        }
    }

    fn give_up_all(&mut self, stacks: &[RawStacks]) {
        stacks.iter().flat_map(|piece| piece.records().iter()).for_each(|record| self.give_up(record));
    }

    /// Passes the last batch on, and waits for room up to a limit.
    fn send_last(&mut self, watermark: u64) {
        let rest = self.take();
        match self.out.send_timeout(UnwindInput::Stacks(rest), self.patience) {
            Ok(()) => {
                self.out.send_timeout(UnwindInput::Pass(watermark), self.patience).ok();
            }
            Err(
                SendTimeoutError::Timeout(UnwindInput::Stacks(stacks))
                | SendTimeoutError::Disconnected(UnwindInput::Stacks(stacks)),
            ) => {
                self.give_up_all(&stacks);
            }
            Err(_) => {}
        }
    }

    /// Ends a pass over the rings; `last`: the final one, so it waits for room. Returns the dropped stacks, without
    /// frames.
    pub(crate) fn pass(&mut self, watermark: u64, last: bool) -> Option<StackBatch> {
        if last {
            self.send_last(watermark);
        } else {
            if self.bytes > 0 {
                self.try_send();
            }
            // what stayed is of before the watermark: then the next pass says it
            if self.bytes == 0 {
                self.out.try_send(UnwindInput::Pass(watermark)).ok();
            }
        }
        let many = Arc::strong_count(&self.on_the_way) > MAX_LATE_BATCHES;
        if self.given_up.count == 0 || many && !last {
            return None;
        }
        let stacks = std::mem::take(&mut self.late);
        let given_up = std::mem::take(&mut self.given_up);
        Some(StackBatch { stacks, given_up, _on_the_way: Some(Arc::clone(&self.on_the_way)), ..StackBatch::default() })
    }
}

/// Kind of event of a stack's record; None = unknown to this program.
fn kind(raw: u8) -> Option<StackOf> {
    if raw == stack_of::ROW { Some(StackOf::Row) } else { StackOf::from_raw(raw) }
}

/// A stack without frames, only with its event.
pub(crate) fn without_frames(parts: &StackParts<'_>) -> Option<TakenStack> {
    let s = &parts.stack;
    Some(TakenStack {
        key: Key { of: kind(s.of)?, tid: s.who.tid, time: s.key },
        ts: s.ts,
        cpu: s.hdr.cpu,
        who: s.who,
        in_kernel: s.hdr.flags & wire::STACK_IN_KERNEL != 0,
        state: s.state,
        status: StackStatus::Late,
        user: None,
        kernel: None,
    })
}

/// Makes a batch as [`without_frames`] does, with the result of the unwinding stage.
pub(crate) fn with_frames(
    parts: &StackParts<'_>,
    status: StackStatus,
    user: Option<Chain>,
    kernel: Option<Chain>,
) -> Option<TakenStack> {
    without_frames(parts).map(|stack| TakenStack { status, user, kernel, ..stack })
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};
    use std::thread;

    use crossbeam_channel::{Receiver, bounded};
    use systape_bpf::wire::Stack;

    use super::*;

    /// A stack of the ring, with `user` bytes of copy.
    fn record(ts: u64, user: usize) -> Vec<u8> {
        let mut bytes = vec![0; size_of::<Stack>() + user];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &wire::STACK_KIND.to_ne_bytes());
        put(offset_of!(Stack, ts), &ts.to_ne_bytes());
        put(offset_of!(Stack, key), &(ts - 1).to_ne_bytes());
        put(offset_of!(Stack, user_bytes), &(user as u32).to_ne_bytes());
        put(offset_of!(Stack, of), &[StackOf::Syscall as u8]);
        bytes
    }

    fn times_of(piece: &RawStacks) -> impl Iterator<Item = u64> {
        piece.records().iter().map(|record| wire::stack(record).unwrap().stack.ts)
    }

    /// Times of the stacks and watermarks in the queue.
    fn told(queue: &Receiver<UnwindInput>) -> (Vec<u64>, Vec<u64>) {
        let (mut times, mut passes) = (Vec::new(), Vec::new());
        for raw in queue.try_iter() {
            match raw {
                UnwindInput::Stacks(stacks) => times.extend(stacks.iter().flat_map(times_of)),
                UnwindInput::Pass(watermark) => passes.push(watermark),
            }
        }
        (times, passes)
    }

    #[test]
    fn every_pass_is_told_after_its_stacks() {
        let (out, queue) = bounded(BATCHES);
        let mut feed = StackFeed::new(out, MOST[1]);
        feed.push(&record(10, 64));
        feed.push(&record(5, 64));
        assert!(feed.pass(20, false).is_none());
        assert_eq!(told(&queue), (vec![10, 5], vec![20]));
        assert!(feed.pass(30, false).is_none());
        assert_eq!(told(&queue), (vec![], vec![30]));
    }

    #[test]
    fn a_slow_reader_loses_nothing_while_there_is_room() {
        let (out, queue) = bounded(BATCHES);
        let mut feed = StackFeed::new(out, MOST[1]);
        // far more passes than the queue has places, and more bytes than a batch
        let passes = 200;
        for pass in 1..=passes {
            feed.push(&record(10 * pass + 1, BATCH / 16));
            assert!(feed.pass(10 * pass + 5, false).is_none());
        }
        // no watermark says more than was sent
        let (mut times, watermarks) = told(&queue);
        assert_eq!((&times[..], &watermarks[..]), (&[11][..], &[15][..]));
        assert!(feed.pass(10 * passes + 9, false).is_none());
        let (rest, watermarks) = told(&queue);
        times.extend(rest);
        assert_eq!(times, (1..=passes).map(|pass| 10 * pass + 1).collect::<Vec<_>>());
        assert_eq!(watermarks, [10 * passes + 9]);
    }

    #[test]
    fn what_does_not_fit_is_given_up_by_count() {
        let (out, queue) = bounded(BATCHES);
        let mut feed = StackFeed::new(out, MOST[1]);
        assert!(feed.pass(1, false).is_none());
        assert!(feed.pass(2, false).is_none());
        // the queue is full: as much as may gather, as much again, and one more for which there is room
        let count = (MOST[1] / BATCH) as u64;
        let kept: Vec<u64> = (1..count).map(|i| 1000 - i).collect();
        let times: Vec<u64> = (count..2 * count).map(|i| 1000 - i).collect();
        kept.iter().chain(&times).for_each(|ts| feed.push(&record(*ts, BATCH)));
        feed.push(&record(2000, 64));
        let taken = feed.pass(3000, false).unwrap();
        let given_up = taken.given_up;
        assert_eq!((given_up.count, given_up.first, given_up.last), (count, 1001 - 2 * count, 1000 - count));
        assert_eq!((taken.watermark, taken.codes.len()), (0, 0));
        assert!(taken.stacks.iter().all(|stack| stack.user.is_none() && stack.kernel.is_none()));
        let keys: Vec<_> = taken.stacks.iter().map(|stack| (stack.key.of, stack.key.time, stack.status)).collect();
        let late = |ts: &u64| (StackOf::Syscall, ts - 1, StackStatus::Late);
        assert_eq!(keys, times.iter().map(late).collect::<Vec<_>>());
        // it is told once, and what comes after goes its way
        assert_eq!(told(&queue), (vec![], vec![1, 2]));
        assert!(feed.pass(4000, false).is_none());
        assert_eq!(told(&queue), ([kept, vec![2000]].concat(), vec![4000]));
    }

    #[test]
    fn what_the_unwinding_has_counts_too() {
        let (out, queue) = bounded(BATCHES);
        let mut feed = StackFeed::new(out, MOST[1]);
        let mut unread = Vec::new();
        for ts in 1..MOST[1] as u64 / BATCH as u64 {
            feed.push(&record(ts, BATCH));
            unread.extend(queue.try_iter());
        }
        assert!(feed.pass(1000, false).is_none());
        // there is room in the queue, and no room in memory
        feed.push(&record(2000, BATCH));
        assert_eq!(feed.pass(3000, false).unwrap().given_up, DroppedStacks { count: 1, first: 2000, last: 2000 });
        drop(unread);
        feed.push(&record(4000, BATCH));
        assert!(feed.pass(5000, false).is_none());
    }

    #[test]
    fn what_is_given_up_takes_little_memory_however_slow_the_encoder_is() {
        let (out, queue) = bounded(0);
        let mut feed = StackFeed::new(out, MOST[1]);
        let give_up = |feed: &mut StackFeed, from: u64, count: u64, of: StackOf| {
            for ts in from..from + count {
                let mut bytes = record(ts, 0);
                bytes[offset_of!(Stack, of)] = of as u8;
                feed.give_up(&bytes);
            }
        };
        let mut unread = Vec::new();
        for i in 1..=MAX_LATE_BATCHES as u64 {
            give_up(&mut feed, i, 1, StackOf::Syscall);
            unread.push(feed.pass(100, false).unwrap());
        }
        // as many as may be on their way are: the rest waits, by key as far as there is room
        let most = MAX_LATE as u64;
        give_up(&mut feed, 1000, most + 5, StackOf::Syscall);
        give_up(&mut feed, 10, 7, StackOf::Sample);
        assert!(feed.pass(200, false).is_none());
        unread.pop();
        let taken = feed.pass(300, false).unwrap();
        assert_eq!(taken.given_up, DroppedStacks { count: most + 12, first: 10, last: 1000 + most + 4 });
        let samples = taken.stacks.iter().filter(|stack| stack.key.of == StackOf::Sample).count();
        assert_eq!((taken.stacks.len(), samples), (MAX_LATE + 7, 7));
        // the last is told whatever there is
        give_up(&mut feed, 1, 1, StackOf::Syscall);
        assert!(feed.pass(400, false).is_none());
        drop(queue);
        assert_eq!(feed.pass(500, true).unwrap().given_up.count, 1);
    }

    #[test]
    fn the_last_pass_waits_for_room() {
        let (out, queue) = bounded(1);
        let mut feed = StackFeed::new(out, MOST[1]);
        let record = |ts| record(ts, BATCH / 2);
        [10, 20, 30].iter().for_each(|ts| feed.push(&record(*ts)));
        let reader = thread::spawn(move || {
            let mut all = Vec::new();
            for raw in queue {
                match raw {
                    UnwindInput::Stacks(stacks) => all.extend(stacks.iter().flat_map(times_of)),
                    UnwindInput::Pass(watermark) => all.push(watermark),
                }
            }
            all
        });
        assert!(feed.pass(u64::MAX, true).is_none());
        drop(feed);
        assert_eq!(reader.join().unwrap(), [10, 20, 30, u64::MAX]);
    }

    #[test]
    fn the_last_pass_does_not_wait_for_ever() {
        let (out, queue) = bounded(1);
        let mut feed = StackFeed { patience: Duration::from_millis(20), ..StackFeed::new(out, MOST[1]) };
        feed.push(&record(10, BATCH));
        [20, 30].iter().for_each(|ts| feed.push(&record(*ts, 64)));
        let taken = feed.pass(u64::MAX, true).unwrap();
        assert_eq!(taken.given_up, DroppedStacks { count: 2, first: 20, last: 30 });
        let late = taken.stacks.iter().map(|stack| (stack.key.time, stack.status)).collect::<Vec<_>>();
        assert_eq!(late, [(19, StackStatus::Late), (29, StackStatus::Late)]);
        assert_eq!(told(&queue), (vec![10], vec![]));
    }
}
