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
