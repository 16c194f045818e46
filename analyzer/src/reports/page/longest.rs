//! The rows with the greatest values of many.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

/// Keeps some of many rows.
pub(super) struct Longest<R> {
    most: usize,
    /// Least value first; of equal ones the last that came.
    heap: BinaryHeap<Reverse<(u64, Reverse<u64>)>>,
    rows: FxHashMap<u64, R>,
    count: u64,
}

impl<R> Longest<R> {
    /// Keeps `most` rows.
    pub(super) fn new(most: usize) -> Self {
        Self { most, heap: BinaryHeap::new(), rows: FxHashMap::default(), count: 0 }
    }

    /// A row with its value.
    pub(super) fn push(&mut self, value: u64, row: R) {
        let number = self.count;
        self.count += 1;
        self.heap.push(Reverse((value, Reverse(number))));
        self.rows.insert(number, row);
        if self.heap.len() > self.most
            && let Some(Reverse((_, Reverse(least)))) = self.heap.pop()
        {
            self.rows.remove(&least);
        }
    }

    /// All that `other` keeps, which came later.
    pub(super) fn merge(&mut self, other: Self) {
        other.pairs().into_iter().for_each(|(value, row)| self.push(value, row));
    }

    /// What another row must have at least to stay.
    pub(super) fn needed(&self) -> u64 {
        let least = self.heap.peek().filter(|_| self.heap.len() >= self.most);
        least.map_or(0, |Reverse((least, _))| least.saturating_add(1))
    }

    /// How many there were.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Rows that were kept, the greatest first, equal ones in the order in which they came.
    pub(super) fn rows(self) -> Vec<R> {
        self.pairs().into_iter().map(|(_, row)| row).collect()
    }

    fn pairs(mut self) -> Vec<(u64, R)> {
        let mut order: Vec<_> = self.heap.into_iter().map(|Reverse(place)| place).collect();
        order.sort_unstable_by(|a, b| b.cmp(a));
        let pair = |(value, Reverse(number))| Some((value, self.rows.remove(&number)?));
        order.into_iter().filter_map(pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_stay() {
        let mut longest = Longest::new(3);
        for (at, value) in [5, 1, 9, 5, 5].into_iter().enumerate() {
            longest.push(value, at);
        }
        assert_eq!(longest.count(), 5);
        assert_eq!(longest.needed(), 6);
        let mut more = Longest::new(3);
        [7, 5].into_iter().enumerate().for_each(|(at, value)| more.push(value, 10 + at));
        assert_eq!(more.needed(), 0);
        longest.merge(more);
        assert_eq!(longest.rows(), [2, 10, 0]);
    }
}
