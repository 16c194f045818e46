//! Puts the records of all rings into one order of time.
//!
//! Ring order is not time order, and rings are read one after the other. Records wait here until a *watermark*: a time
//! before which every record has been read. What comes later than its watermark all the same (a task that was
//! preempted between its clock read and its send) is handed out at once and counted by the caller as late.

use std::rc::Rc;

use systape_bpf::wire;

/// Records read from the rings, each behind its length.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
}

impl Batch {
    /// An empty one with room.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes) }
    }

    /// Adds a record. Ring records are far below 4 GiB.
    pub fn push(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(&(record.len() as u32).to_ne_bytes());
        self.bytes.extend_from_slice(record);
    }

    /// Bytes held.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The records.
    pub fn records(&self) -> impl Iterator<Item = &[u8]> {
        self.ranges().map(|(from, to)| &self.bytes[from..to])
    }

    /// The record at one of [`Self::ranges`].
    pub fn get(&self, (from, to): (usize, usize)) -> &[u8] {
        self.bytes.get(from..to).unwrap_or_default()
    }

    /// Where the records stand.
    pub fn ranges(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let len = self.bytes.get(at..at + 4)?.first_chunk::<4>().map(|b| u32::from_ne_bytes(*b))? as usize;
            let range = (at + 4, at + 4 + len);
            at = range.1;
            (range.1 <= self.bytes.len()).then_some(range)
        })
    }
}

/// A record that waits for its turn.
#[derive(Clone, Debug)]
pub struct Pending {
    /// Time it is ordered by.
    pub ts: u64,
    batch: Rc<Batch>,
    from: u32,
    to: u32,
}

impl Pending {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.batch.bytes[self.from as usize..self.to as usize]
    }

    /// How many bytes that are.
    #[expect(clippy::len_without_is_empty, reason = "a record is never empty")]
    pub fn len(&self) -> usize {
        (self.to - self.from) as usize
    }
}

/// Records that wait for the watermark.
#[derive(Debug, Default)]
pub struct Order {
    waiting: Vec<Pending>,
    sorted: usize,
    bytes: usize,
    bad: u64,
}

impl Order {
    /// Adds what was read; bytes that are no record are counted.
    pub fn add(&mut self, batch: Batch) {
        let batch = Rc::new(batch);
        for (from, to) in batch.ranges() {
            match wire::time(&batch.bytes[from..to]) {
                Some(ts) => {
                    self.bytes += to - from;
                    self.waiting.push(Pending { ts, batch: Rc::clone(&batch), from: from as u32, to: to as u32 });
                }
                None => self.bad += 1,
            }
        }
    }

    /// Sorts what waits, so that [`Self::before`] and [`Self::take`] see it in order.
    fn sort(&mut self) {
        if self.sorted < self.waiting.len() {
            // mostly a few ascending runs, which the standard stable sort merges quickly
            self.waiting.sort_by_key(|p| p.ts);
            self.sorted = self.waiting.len();
        }
    }

    /// What waits and lies before `watermark`, in order; it stays.
    pub fn before(&mut self, watermark: u64) -> &[Pending] {
        self.sort();
        let end = self.waiting.partition_point(|p| p.ts < watermark);
        &self.waiting[..end]
    }

    /// Takes out what lies before `watermark`, in order.
    pub fn take(&mut self, watermark: u64) -> Vec<Pending> {
        self.sort();
        let end = self.waiting.partition_point(|p| p.ts < watermark);
        let rest = self.waiting.split_off(end);
        self.sorted = rest.len();
        let taken = std::mem::replace(&mut self.waiting, rest);
        self.bytes -= taken.iter().map(Pending::len).sum::<usize>();
        taken
    }

    /// The watermark that leaves at most `most` bytes waiting; 0 = there are no more.
    pub fn excess(&mut self, most: usize) -> u64 {
        if self.bytes <= most {
            return 0;
        }
        self.sort();
        let mut left = self.bytes;
        let last = self.waiting.iter().find(|pending| {
            left -= pending.len();
            left <= most
        });
        last.map_or(0, |pending| pending.ts.saturating_add(1))
    }

    /// Records that could not be read since the last call.
    pub fn take_bad(&mut self) -> u64 {
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
        let times = |v: Vec<Pending>| v.iter().map(|p| p.ts).collect::<Vec<_>>();
        // records of 72 bytes
        assert_eq!([5 * 72, 4 * 72, 4 * 72 - 1, 0].map(|most| order.excess(most)), [0, 11, 21, 51]);
        assert_eq!(order.before(31).len(), 3);
        assert_eq!(times(order.take(31)), [10, 20, 30]);
        assert_eq!(times(order.take(31)), [0u64; 0]);
        assert_eq!([2 * 72, 72].map(|most| order.excess(most)), [0, 41]);
        assert_eq!(times(order.take(u64::MAX)), [40, 50]);
        assert_eq!((order.take_bad(), order.take_bad()), (1, 0));
    }
}
