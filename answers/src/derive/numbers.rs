//! Numbers of events added up: how many, their sum, the greatest, and how often they were how large.

use crate::render::loghist::LogHist;
use systape_events::group::Add;
use systape_events::values::spill::{Stored, put_number, take_u64};

/// Numbers of the events of one key.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    /// Number of events.
    pub count: u64,
    /// Number of events whose number is known.
    pub known: u64,
    /// Sum of the known numbers.
    pub total: u64,
    max: u64,
    /// The known numbers by their power of two.
    pub hist: LogHist,
}

impl Numbers {
    /// Adds an event.
    pub fn add_one(&mut self, number: Option<u64>) {
        self.count += 1;
        let Some(number) = number else { return };
        self.known += 1;
        self.total = self.total.saturating_add(number);
        self.max = self.max.max(number);
        self.hist.add(number);
    }

    /// Events whose number is not known.
    pub fn unknown(&self) -> u64 {
        self.count - self.known
    }

    /// Mean of the known numbers; None: there are none.
    pub fn avg(&self) -> Option<f64> {
        (self.known > 0).then(|| self.total as f64 / self.known as f64)
    }

    /// The greatest; None: there are none.
    pub fn max(&self) -> Option<u64> {
        (self.known > 0).then_some(self.max)
    }
}

impl Add for Numbers {
    fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.known = self.known.saturating_add(other.known);
        self.total = self.total.saturating_add(other.total);
        self.max = self.max.max(other.max);
        self.hist.merge(&other.hist);
    }
}

impl Stored for Numbers {
    fn put(&self, out: &mut Vec<u8>) {
        let Self { count, known, total, max, hist } = self;
        [*count, *known, *total, *max].into_iter().for_each(|number| put_number(number.into(), out));
        put_number(hist.counts().len() as u128, out);
        hist.counts().iter().for_each(|count| put_number((*count).into(), out));
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let [count, known, total, max, buckets] = [(); 5].map(|()| take_u64(from));
        let counts = (0..buckets?).map(|_| take_u64(from)).collect::<Option<Vec<u64>>>()?;
        Some(Self { count: count?, known: known?, total: total?, max: max?, hist: LogHist::of(counts) })
    }

    fn heap(&self) -> usize {
        size_of_val(self.hist.counts())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_counts_and_adds_nothing() {
        let (mut numbers, mut more) = (Numbers::default(), Numbers::default());
        assert_eq!((numbers.avg(), numbers.max()), (None, None));
        [Some(3), None, Some(0)].into_iter().for_each(|number| numbers.add_one(number));
        more.add_one(Some(9));
        numbers.add(&more);
        assert_eq!((numbers.count, numbers.known, numbers.unknown(), numbers.total), (4, 3, 1, 12));
        assert_eq!((numbers.avg(), numbers.max(), numbers.hist.total()), (Some(4.0), Some(9), 3));
    }
}
