//! A queue of events that wait for their time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// An event with a time.
pub trait HasTime {
    /// The time, ns, and the order among events of that time: the least comes first.
    fn key(&self) -> (u64, u8);
}

/// Waiting events, in order of their keys; of equal keys the first pushed comes first.
#[derive(Debug)]
pub struct Later<T> {
    heap: BinaryHeap<Reverse<Waiting<T>>>,
    pushed: u64,
}

#[derive(Debug)]
struct Waiting<T> {
    key: ((u64, u8), u64),
    what: T,
}

impl<T> PartialEq for Waiting<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<T> Eq for Waiting<T> {}

impl<T> PartialOrd for Waiting<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Waiting<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl<T: HasTime> Later<T> {
    /// Adds these.
    pub fn new(what: impl IntoIterator<Item = T>) -> Self {
        let mut later = Self { heap: BinaryHeap::new(), pushed: 0 };
        what.into_iter().for_each(|what| later.push(what));
        later
    }

    /// Adds `what`.
    pub fn push(&mut self, what: T) {
        self.pushed += 1;
        self.heap.push(Reverse(Waiting { key: (what.key(), self.pushed), what }));
    }

    /// The next one, if its key is below `key`.
    pub(crate) fn next_before(&mut self, key: (u64, u8)) -> Option<T> {
        if self.heap.peek().is_none_or(|Reverse(next)| next.key.0 >= key) {
            return None;
        }
        self.pop()
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// The next one.
    pub fn pop(&mut self) -> Option<T> {
        self.heap.pop().map(|Reverse(next)| next.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl HasTime for (u64, u8, char) {
        fn key(&self) -> (u64, u8) {
            (self.0, self.1)
        }
    }

    #[test]
    fn what_waits_comes_by_time_then_order_then_as_pushed() {
        let mut later = Later::new([(5, 1, 'c'), (5, 0, 'b'), (9, 0, 'e'), (5, 1, 'd')]);
        later.push((2, 7, 'a'));
        let mut until =
            |key: (u64, u8)| std::iter::from_fn(|| later.next_before(key)).map(|what| what.2).collect::<String>();
        assert_eq!(until((5, 1)), "ab");
        assert_eq!(until((9, 0)), "cd");
        assert_eq!(later.pop().map(|what| what.2), Some('e'));
        assert!(later.pop().is_none());
    }
}
