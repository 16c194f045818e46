//! Rows put in order. The standard library's sort is compiled for each type and each comparison, 12 KB of code each time: an eighth of this
//! crate's. Here it is compiled once, for numbers of rows, and the rows are put there afterwards. For what is sorted once an answer.

use std::cmp::Ordering;

/// What can be put in order.
pub trait InOrder<T> {
    /// Orders as [`slice::sort_by`] does: equals stay in their order.
    fn order_by(&mut self, compare: impl Fn(&T, &T) -> Ordering);

    /// Orders as [`slice::sort_by_key`] does.
    fn order_by_key<K: Ord>(&mut self, key: impl Fn(&T) -> K);
}

impl<T> InOrder<T> for [T] {
    fn order_by(&mut self, compare: impl Fn(&T, &T) -> Ordering) {
        let order = ordered(self.len(), &|one, other| compare(&self[one], &self[other]));
        put(self, order);
    }

    fn order_by_key<K: Ord>(&mut self, key: impl Fn(&T) -> K) {
        self.order_by(|one, other| key(one).cmp(&key(other)));
    }
}

/// The numbers below `count` in the order of `compare`.
fn ordered(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|one, other| compare(*one, *other));
    order
}

/// Puts at each place what is at the place that `order` has there.
fn put<T>(items: &mut [T], mut order: Vec<usize>) {
    for first in 0..items.len() {
        let mut at = first;
        loop {
            // a place whose own is there needs no more
            let from = std::mem::replace(&mut order[at], at);
            if from == first || from == at {
                break;
            }
            items.swap(at, from);
            at = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn as_the_standard_library_sorts(items in prop::collection::vec((0_u8..9, any::<u16>()), 0..90)) {
            let (mut own, mut theirs) = (items.clone(), items);
            own.order_by_key(|item| item.0);
            theirs.sort_by_key(|item| item.0);
            prop_assert_eq!(&own, &theirs);
            own.order_by(|one, other| other.cmp(one));
            theirs.sort_by(|one, other| other.cmp(one));
            prop_assert_eq!(own, theirs);
        }
    }
}
