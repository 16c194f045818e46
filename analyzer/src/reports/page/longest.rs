//! The rows with the greatest values of many.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::answers::Row;

/// Keeps some of many rows.
pub(super) struct Longest {
    most: usize,
    /// Least value first; of equal ones the last that came.
    heap: BinaryHeap<Reverse<(u64, Reverse<u64>)>>,
    rows: FxHashMap<u64, Row>,
    count: u64,
}

impl Longest {
    /// Keeps `most` rows.
    pub(super) fn new(most: usize) -> Self {
        Self { most, heap: BinaryHeap::new(), rows: FxHashMap::default(), count: 0 }
    }

    /// A row with its value.
    pub(super) fn push(&mut self, value: u64, row: Row) {
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

    /// How many there were.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Those kept, the greatest first, equal ones in the order in which they came.
    pub(super) fn rows(mut self) -> Vec<Row> {
        let mut order: Vec<_> = self.heap.into_iter().map(|Reverse(place)| place).collect();
        order.sort_unstable_by(|a, b| b.cmp(a));
        order.into_iter().filter_map(|(_, Reverse(number))| self.rows.remove(&number)).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_greatest_stay() {
        let mut longest = Longest::new(3);
        for (at, value) in [5, 1, 9, 5, 5].into_iter().enumerate() {
            longest.push(value, json!({"at": at}).as_object().unwrap().clone());
        }
        assert_eq!(longest.count(), 5);
        let kept: Vec<_> = longest.rows().iter().map(|row| row["at"].as_u64().unwrap()).collect();
        assert_eq!(kept, [2, 0, 3]);
    }
}
