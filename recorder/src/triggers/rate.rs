//! More than so many within a second.

use std::collections::VecDeque;

const SECOND: u64 = 1_000_000_000;
/// Most counts that are remembered: a second in parts of a millisecond, whatever comes in each.
const PARTS: u64 = 1000;

/// Counts of the last second, by parts of it; a rate that lasts fires once a second.
#[derive(Clone, Debug)]
pub(super) struct Rate {
    over: u64,
    /// Part and count, ascending.
    parts: VecDeque<(u64, u64)>,
    sum: u64,
    /// When it fired last.
    fired: Option<u64>,
}

impl Rate {
    /// Fires on more than `over`.
    pub(super) fn new(over: u64) -> Self {
        Self { over, parts: VecDeque::new(), sum: 0, fired: None }
    }

    /// Number above which it fires.
    pub(super) fn over(&self) -> u64 {
        self.over
    }

    /// Adds `count` events of a span of time; returns how many there were in a second when that is too many. Of a long
    /// span the average second counts: more is not known.
    pub(super) fn add(&mut self, (first, last): (u64, u64), count: u64) -> Option<u64> {
        let span = last.saturating_sub(first);
        let count =
            if span > SECOND { (u128::from(count) * u128::from(SECOND) / u128::from(span)) as u64 } else { count };
        let part = last / (SECOND / PARTS);
        match self.parts.back_mut() {
            // what comes late counts as what came last
            Some((of, sum)) if *of >= part => *sum += count,
            _ => self.parts.push_back((part, count)),
        }
        self.sum = self.sum.saturating_add(count);
        while let Some((_, count)) = self.parts.front().copied().filter(|(of, _)| of + PARTS <= part) {
            self.sum -= count;
            self.parts.pop_front();
        }
        let again = self.fired.is_none_or(|fired| last.saturating_sub(fired) >= SECOND);
        (self.sum > self.over && again).then(|| {
            self.fired = Some(last);
            self.sum
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn as_many_as_allowed_do_not_fire() {
        let mut rate = Rate::new(3);
        let mut at = |ms: u64| rate.add((ms * MS, ms * MS), 1);
        assert_eq!([at(0), at(300), at(600)], [None; 3]);
        assert_eq!(at(1000), None, "the first is a second ago");
        assert_eq!(at(1001), Some(4));
        assert_eq!(at(1002), None, "once a second");
        assert_eq!((1003..1050).find_map(&mut at), None);
        assert_eq!((1900..2100).find_map(&mut at), Some(48 + 102), "it lasts");
        assert_eq!(at(9000), None);
    }

    #[test]
    fn counts_of_a_span_are_those_of_a_second() {
        let mut rate = Rate::new(100);
        assert_eq!(rate.add((0, 5000 * MS), 500), None, "100 a second");
        assert_eq!(rate.add((10_000 * MS, 10_400 * MS), 101), Some(101));
        // late ones, and as many parts as a second has
        assert_eq!(rate.add((9_000 * MS, 9_000 * MS), 1), None);
        for n in 0..100_000 {
            rate.add((0, 20_000 * MS + n * MS / 10), 1);
        }
        assert!(rate.parts.len() <= PARTS as usize);
    }
}
