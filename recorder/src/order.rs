//! Puts the records of all rings into one order of time.
//!
//! Ring order is not time order, and rings are read one after the other. Records wait here until a *watermark*: a time
//! before which every record has been read. A record later than its watermark (its task was preempted between its clock
//! read and its send) is returned at once, and the caller counts it as late.

use std::collections::VecDeque;
use std::rc::Rc;

use systape_bpf::wire;

/// Records read from the rings, each after its length.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
}

impl Batch {
    /// An empty one with room.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes) }
    }

    /// Adds a record. Ring records are far below 4 GiB.
    pub fn push(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(&(record.len() as u32).to_ne_bytes());
        self.bytes.extend_from_slice(record);
    }

    /// Bytes held.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is no record.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The records.
    pub(crate) fn records(&self) -> impl Iterator<Item = &[u8]> {
        self.ranges().map(|(from, to)| &self.bytes[from..to])
    }

    /// The record at one of [`Self::ranges`].
    pub(crate) fn get(&self, (from, to): (usize, usize)) -> &[u8] {
        self.bytes.get(from..to).unwrap_or_default()
    }

    /// Ranges of the records.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let len = self.bytes.get(at..at + 4)?.first_chunk::<4>().map(|b| u32::from_ne_bytes(*b))? as usize;
            let range = (at + 4, at + 4 + len);
            at = range.1;
            (range.1 <= self.bytes.len()).then_some(range)
        })
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
    /// A batch is [`crate::drain`]'s 256 KiB and one record.
    const BITS: u32 = 20;
    const MASK: u64 = (1 << Self::BITS) - 1;
    /// Number of batches that can be distinguished: far more than ever wait.
    const BATCHES: u64 = 1 << (64 - 2 * Self::BITS);

    /// None when the batch is larger than possible.
    fn new(batch: u64, (from, to): (usize, usize)) -> Option<Self> {
        let (from, len) = (from as u64, (to - from) as u64);
        (from.max(len) <= Self::MASK)
            .then_some(Self((batch % Self::BATCHES) << (2 * Self::BITS) | from << Self::BITS | len))
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

/// The removed records, in order.
#[derive(Debug)]
pub struct Taken {
    records: Vec<Waiting>,
    batches: Batches,
}

impl Taken {
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
    /// Adds a batch; counts bytes that are no record.
    pub fn add(&mut self, batch: Batch) {
        let number = self.batches.first + self.batches.all.len() as u64;
        for range in batch.ranges() {
            match wire::time(batch.get(range)).zip(Place::new(number, range)) {
                Some((ts, place)) => {
                    self.bytes += place.len();
                    self.waiting.push(Waiting { ts, place });
                }
                None => self.bad += 1,
            }
        }
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
    pub fn take(&mut self, watermark: u64) -> Taken {
        self.sort();
        let end = self.waiting.partition_point(|p| p.ts < watermark);
        // as many will come again
        let mut rest = Vec::with_capacity(self.waiting.len());
        rest.extend_from_slice(&self.waiting[end..]);
        self.sorted = rest.len();
        let mut records = std::mem::replace(&mut self.waiting, rest);
        records.truncate(end);
        self.bytes -= records.iter().map(|waiting| waiting.place.len()).sum::<usize>();
        let taken = Taken { records, batches: self.batches.clone() };
        let first = self.batches.first;
        let done = self.waiting.iter().map(|waiting| waiting.place.batch_after(first)).min();
        let done = done.unwrap_or(self.batches.all.len());
        self.batches.all.drain(..done);
        self.batches.first += done as u64;
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
        let times = |taken: Taken| {
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
}
