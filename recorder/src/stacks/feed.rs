//! From the stack ring to the unwinding stage: a bounded queue that never holds up the events.
//!
//! When the unwinding is behind and the queue is full, stacks are given up: their events go on without, marked and counted.

use crossbeam_channel::{Sender, TrySendError};
use systape_bpf::wire::{self, StackParts};
use systape_format::model::{StackOf, StackStatus};

use super::taken::{Key, Taken, TakenStack};
use crate::order::Batch;

/// Bytes of raw stacks that are passed on at once, if there are so many ...
const BATCH: usize = 1 << 20;
/// ... and bytes that may gather while there is no room in the queue.
const MOST: usize = 32 << 20;
/// Batches that may wait. When the unwinding is behind they are of up to [`MOST`] bytes, so it works off what there is in one go.
pub const BATCHES: usize = 2;

/// What the unwinding stage is told.
#[derive(Debug)]
pub enum Raw {
    /// Records of the stack ring.
    Stacks(Batch),
    /// Every stack of a time before this was sent.
    Pass(u64),
}

/// Stacks that were given up.
#[derive(Clone, Copy, Debug, Default)]
pub struct GivenUp {
    /// How many.
    pub count: u64,
    /// Time of the first.
    pub first: u64,
    /// Time of the last.
    pub last: u64,
}

/// The drain's end of the queue.
#[derive(Debug)]
pub struct Feed {
    batch: Batch,
    out: Sender<Raw>,
    late: Vec<TakenStack>,
}

impl Feed {
    /// A feed for `out`.
    pub fn new(out: Sender<Raw>) -> Self {
        Self { batch: Batch::with_capacity(BATCH), out, late: Vec::new() }
    }

    /// Adds a record of the ring.
    pub fn push(&mut self, record: &[u8]) {
        self.batch.push(record);
        if self.batch.len() >= BATCH {
            self.try_send();
        }
    }

    fn take(&mut self) -> Raw {
        Raw::Stacks(std::mem::replace(&mut self.batch, Batch::with_capacity(BATCH)))
    }

    /// Passes on what there is; without room it stays, as long as it is not too much.
    fn try_send(&mut self) {
        if self.out.is_full() && self.batch.len() < MOST {
            return;
        }
        let full = self.take();
        let Err(TrySendError::Full(Raw::Stacks(batch))) = self.out.try_send(full) else { return };
        if batch.len() < MOST {
            self.batch = batch;
        } else {
            let stacks = batch.records().filter_map(|record| wire::stack(record).ok());
            self.late.extend(stacks.filter_map(|s| without_frames(&s)));
        }
    }

    /// Ends a pass over the rings; `last`: no other will come, so it waits for room. Gives what was given up, as stacks without frames.
    pub fn pass(&mut self, watermark: u64, last: bool) -> Option<(Taken, GivenUp)> {
        if last {
            // who takes them is gone only when it died, which its thread's end tells
            let rest = self.take();
            self.out.send(rest).ok();
            self.out.send(Raw::Pass(watermark)).ok();
        } else {
            if !self.batch.is_empty() {
                self.try_send();
            }
            // what stayed is of before the watermark: then the next pass says it
            if self.batch.is_empty() {
                self.out.try_send(Raw::Pass(watermark)).ok();
            }
        }
        if self.late.is_empty() {
            return None;
        }
        let stacks = std::mem::take(&mut self.late);
        let times = || stacks.iter().map(|s| s.ts);
        let given_up =
            GivenUp { count: stacks.len() as u64, first: times().min().unwrap_or(0), last: times().max().unwrap_or(0) };
        Some((Taken { stacks, ..Taken::default() }, given_up))
    }
}

/// A stack of which nothing but its event is known.
fn without_frames(parts: &StackParts<'_>) -> Option<TakenStack> {
    let s = &parts.stack;
    Some(TakenStack {
        key: Key { of: StackOf::from_raw(s.of)?, tid: s.who.tid, time: s.key },
        ts: s.ts,
        cpu: s.hdr.cpu,
        who: s.who,
        in_kernel: s.hdr.flags & wire::STACK_IN_KERNEL != 0,
        status: StackStatus::Late,
        user: (0, 0),
        kernel: (0, 0),
    })
}

/// As [`without_frames`], with what the unwinding stage found.
pub fn with_frames(
    parts: &StackParts<'_>,
    status: StackStatus,
    user: (u32, u32),
    kernel: (u32, u32),
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
        put(0, &[13]);
        put(offset_of!(Stack, ts), &ts.to_ne_bytes());
        put(offset_of!(Stack, key), &(ts - 1).to_ne_bytes());
        put(offset_of!(Stack, user_bytes), &(user as u32).to_ne_bytes());
        put(offset_of!(Stack, of), &[StackOf::Syscall as u8]);
        bytes
    }

    /// Times of the stacks and watermarks in the queue.
    fn told(queue: &Receiver<Raw>) -> (Vec<u64>, Vec<u64>) {
        let (mut times, mut passes) = (Vec::new(), Vec::new());
        for raw in queue.try_iter() {
            match raw {
                Raw::Stacks(batch) => times.extend(batch.records().map(|r| wire::stack(r).unwrap().stack.ts)),
                Raw::Pass(watermark) => passes.push(watermark),
            }
        }
        (times, passes)
    }

    #[test]
    fn every_pass_is_told_after_its_stacks() {
        let (out, queue) = bounded(BATCHES);
        let mut feed = Feed::new(out);
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
        let mut feed = Feed::new(out);
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
        let mut feed = Feed::new(out);
        assert!(feed.pass(1, false).is_none());
        assert!(feed.pass(2, false).is_none());
        // the queue is full: as much as may gather, and one more
        let count = (MOST / BATCH) as u64;
        let times: Vec<u64> = (1..=count).map(|i| 1000 - i).collect();
        times.iter().for_each(|ts| feed.push(&record(*ts, BATCH)));
        feed.push(&record(2000, 64));
        let (taken, given_up) = feed.pass(3000, false).unwrap();
        assert_eq!((given_up.count, given_up.first, given_up.last), (count, 1000 - count, 999));
        assert_eq!((taken.watermark, taken.frames.len(), taken.codes.len()), (0, 0, 0));
        let keys: Vec<_> = taken.stacks.iter().map(|stack| (stack.key.of, stack.key.time, stack.status)).collect();
        let late = |ts: &u64| (StackOf::Syscall, ts - 1, StackStatus::Late);
        assert_eq!(keys, times.iter().map(late).collect::<Vec<_>>());
        // it is told once, and what comes after goes its way
        assert_eq!(told(&queue), (vec![], vec![1, 2]));
        assert!(feed.pass(4000, false).is_none());
        assert_eq!(told(&queue), (vec![2000], vec![4000]));
    }

    #[test]
    fn the_last_pass_waits_for_room() {
        let (out, queue) = bounded(1);
        let mut feed = Feed::new(out);
        let record = |ts| record(ts, BATCH / 2);
        [10, 20, 30].iter().for_each(|ts| feed.push(&record(*ts)));
        let reader = thread::spawn(move || {
            let mut all = Vec::new();
            for raw in queue {
                match raw {
                    Raw::Stacks(batch) => all.extend(batch.records().map(|r| wire::stack(r).unwrap().stack.ts)),
                    Raw::Pass(watermark) => all.push(watermark),
                }
            }
            all
        });
        assert!(feed.pass(u64::MAX, true).is_none());
        drop(feed);
        assert_eq!(reader.join().unwrap(), [10, 20, 30, u64::MAX]);
    }
}
