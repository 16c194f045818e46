//! Puts the records of all rings into one order of time.
//!
//! Ring order is not time order, and rings are read one after the other. Records wait here until a *watermark*: a time
//! before which every record has been read. A record later than its watermark (its task was preempted between its clock
//! read and its send) is returned at once, and the caller counts it as late.

use std::collections::VecDeque;
use std::rc::Rc;

use systape_bpf::wire;

use crate::rings::spare::Buffer;

/// Records read from the rings, with their times.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Buffer,
    /// In the order in which they were added; their places are in this batch.
    records: Vec<Waiting>,
    /// Number of those without a time, which are not kept.
    bad: u64,
}

impl Batch {
    /// An empty one in a buffer, which must be empty, with room for `bytes` of records like those of calls.
    pub(crate) fn within(buffer: Buffer, bytes: usize) -> Self {
        Self { bytes: buffer, records: Vec::with_capacity(bytes / wire::PLAIN_SYSCALL), bad: 0 }
    }

    /// Adds a record.
    #[inline]
    pub fn push(&mut self, record: &[u8]) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(record);
        self.note(record, from);
    }

    /// Adds records of the same length that stand one after the other.
    pub(crate) fn push_all(&mut self, records: &[u8], each: usize) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(records);
        let places = (from..).step_by(each);
        records.chunks_exact(each).zip(places).for_each(|(record, from)| self.note(record, from));
    }

    /// Notes the time and the place of a record whose bytes were added.
    #[inline]
    fn note(&mut self, record: &[u8], from: usize) {
        match wire::time(record).zip(Place::new(from, record.len())) {
            Some((ts, place)) => self.records.push(Waiting { ts, place }),
            None => self.bad += 1,
        }
    }

    /// Bytes held.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is no record.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// A record in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending<'a> {
    /// Time it is ordered by.
    pub ts: u64,
    /// The record.
    pub bytes: &'a [u8],
}

/// A waiting record. Many are sorted: it is kept small.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    ts: u64,
    place: Place,
}

/// Place of a record: the batch's number (its low bits), its first byte in it, and its length.
#[derive(Clone, Copy, Debug)]
struct Place(u64);

impl Place {
    /// A batch is [`crate::pipeline::drain`]'s 256 KiB and one record.
    const BITS: u32 = 20;
    const MASK: u64 = (1 << Self::BITS) - 1;
    /// Number of batches that can be distinguished: far more than ever wait.
    const BATCHES: u64 = 1 << (64 - 2 * Self::BITS);

    /// In the batch of number 0; None when the batch is larger than possible.
    #[inline]
    fn new(from: usize, len: usize) -> Option<Self> {
        let (from, len) = (from as u64, len as u64);
        (from.max(len) <= Self::MASK).then_some(Self(from << Self::BITS | len))
    }

    /// The same place in the batch of that number.
    fn in_batch(self, batch: u64) -> Self {
        Self(self.0 | (batch % Self::BATCHES) << (2 * Self::BITS))
    }

    fn len(self) -> usize {
        (self.0 & Self::MASK) as usize
    }

    fn from(self) -> usize {
        (self.0 >> Self::BITS & Self::MASK) as usize
    }

    /// How many batches after that of number `first` this one's is.
    fn batch_after(self, first: u64) -> usize {
        ((self.0 >> (2 * Self::BITS)).wrapping_sub(first) % Self::BATCHES) as usize
    }
}

/// The batches that records wait in.
#[derive(Clone, Debug, Default)]
struct Batches {
    all: VecDeque<Rc<Batch>>,
    /// Number of the first of them.
    first: u64,
}

impl Batches {
    fn pending(&self, waiting: &Waiting) -> Pending<'_> {
        let Waiting { ts, place } = *waiting;
        let batch = &self.all[place.batch_after(self.first)];
        Pending { ts, bytes: &batch.bytes[place.from()..place.from() + place.len()] }
    }
}

impl Batches {
    /// Lets go of batches in which none of these records is: one that comes late holds no more than its own.
    fn keep(&mut self, waiting: &[Waiting]) {
        let mut wanted = vec![false; self.all.len()];
        waiting.iter().for_each(|waiting| wanted[waiting.place.batch_after(self.first)] = true);
        let done = wanted.iter().position(|wanted| *wanted).unwrap_or(wanted.len());
        self.all.drain(..done);
        self.first += done as u64;
        for (batch, _) in
            self.all.iter_mut().zip(&wanted[done..]).filter(|(batch, wanted)| !**wanted && !batch.is_empty())
        {
            *batch = Rc::default();
        }
    }
}

/// The removed records, in order.
#[derive(Debug)]
pub struct TakenRecords {
    records: Vec<Waiting>,
    batches: Batches,
}

impl TakenRecords {
    /// Each of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Pending<'_>> {
        self.records.iter().map(|waiting| self.batches.pending(waiting))
    }
}

/// Records that wait for the watermark.
#[derive(Debug, Default)]
pub struct Order {
    batches: Batches,
    waiting: Vec<Waiting>,
    sorted: usize,
    bytes: usize,
    bad: u64,
}

impl Order {
    /// Adds a batch, and its number of records that could not be read.
    pub fn add(&mut self, mut batch: Batch) {
        let number = self.batches.first + self.batches.all.len() as u64;
        let records = std::mem::take(&mut batch.records);
        self.bytes += records.iter().map(|waiting| waiting.place.len()).sum::<usize>();
        self.waiting.extend(records.iter().map(|w| Waiting { place: w.place.in_batch(number), ..*w }));
        self.bad += batch.bad;
        self.batches.all.push_back(Rc::new(batch));
    }

    /// Sorts the waiting records for [`Self::before`] and [`Self::take`].
    fn sort(&mut self) {
        if self.sorted < self.waiting.len() {
            // mostly a few ascending runs, which the standard stable sort merges quickly
            self.waiting.sort_by_key(|p| p.ts);
            self.sorted = self.waiting.len();
        }
    }

    /// The waiting records before `watermark`, in order; they stay.
    pub(crate) fn before(&mut self, watermark: u64) -> impl Iterator<Item = Pending<'_>> {
        self.sort();
        let end = self.waiting.partition_point(|p| p.ts < watermark);
        self.waiting[..end].iter().map(|waiting| self.batches.pending(waiting))
    }

    /// Removes the records before `watermark`, in order.
    pub fn take(&mut self, watermark: u64) -> TakenRecords {
        self.sort();
        let end = self.waiting.partition_point(|p| p.ts < watermark);
        // whichever are fewer are copied
        let records = if end > self.waiting.len() / 2 {
            // as many will come again
            let mut rest = Vec::with_capacity(self.waiting.len());
            rest.extend_from_slice(&self.waiting[end..]);
            let mut records = std::mem::replace(&mut self.waiting, rest);
            records.truncate(end);
            records
        } else {
            self.waiting.drain(..end).collect()
        };
        self.sorted = self.waiting.len();
        let sum = |some: &[Waiting]| some.iter().map(|waiting| waiting.place.len()).sum::<usize>();
        // and counted
        self.bytes = if end > self.waiting.len() { sum(&self.waiting) } else { self.bytes - sum(&records) };
        let taken = TakenRecords { records, batches: self.batches.clone() };
        self.batches.keep(&self.waiting);
        taken
    }

    /// The watermark that leaves at most `most` bytes waiting; 0 = there are no more.
    pub(crate) fn excess(&mut self, most: usize) -> u64 {
        if self.bytes <= most {
            return 0;
        }
        self.sort();
        let mut left = self.bytes;
        let last = self.waiting.iter().find(|waiting| {
            left -= waiting.place.len();
            left <= most
        });
        last.map_or(0, |waiting| waiting.ts.saturating_add(1))
    }

    /// Records that could not be read since the last call.
    pub(crate) fn take_bad(&mut self) -> u64 {
        std::mem::take(&mut self.bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closing(ts: u64) -> Vec<u8> {
        let mut bytes = vec![0u8; 72];
        bytes[0] = 2;
        bytes[32..40].copy_from_slice(&ts.to_ne_bytes());
        bytes
    }

    #[test]
    fn records_come_out_in_time_order_up_to_the_watermark() {
        let mut order = Order::default();
        let mut a = Batch::default();
        [30, 10, 50].iter().for_each(|&ts| a.push(&closing(ts)));
        let mut b = Batch::default();
        [20, 40].iter().for_each(|&ts| b.push(&closing(ts)));
        b.push(b"junk");
        order.add(a);
        order.add(b);
        let times = |taken: TakenRecords| {
            let ts = |p: Pending<'_>| {
                assert_eq!(p.bytes, closing(p.ts));
                p.ts
            };
            taken.iter().map(ts).collect::<Vec<_>>()
        };
        // records of 72 bytes
        assert_eq!([5 * 72, 4 * 72, 4 * 72 - 1, 0].map(|most| order.excess(most)), [0, 11, 21, 51]);
        assert_eq!(order.before(31).count(), 3);
        assert_eq!(times(order.take(31)), [10, 20, 30]);
        assert_eq!(times(order.take(31)), [0u64; 0]);
        assert_eq!([2 * 72, 72].map(|most| order.excess(most)), [0, 41]);
        assert_eq!(times(order.take(u64::MAX)), [40, 50]);
        assert_eq!((order.take_bad(), order.take_bad()), (1, 0));
    }

    #[test]
    fn a_late_record_holds_its_own_batch_alone() {
        let mut order = Order::default();
        for times in [[10, 90], [20, 30], [40, 91], [50, 60]] {
            let mut batch = Batch::default();
            times.iter().for_each(|&ts| batch.push(&closing(ts)));
            order.add(batch);
        }
        let held = |order: &Order| order.batches.all.iter().map(|batch| batch.len()).collect::<Vec<_>>();
        drop(order.take(41));
        assert_eq!(held(&order), [144, 0, 144, 144]);
        drop(order.take(70));
        assert_eq!(held(&order), [144, 0, 144, 0]);
        let left: Vec<_> = order.take(u64::MAX).iter().map(|pending| pending.bytes.to_vec()).collect();
        assert_eq!((left, held(&order)), (vec![closing(90), closing(91)], vec![]));
    }
}
