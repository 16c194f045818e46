//! The time that is in at least one of many intervals.

/// Disjoint intervals that can still grow together with new ones; older ones are only summed up.
const OPEN: usize = 64;

/// A union of intervals, added in order of their ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Union {
    /// Time of intervals that are no longer open.
    closed: u64,
    open: Vec<(u64, u64)>,
}

impl Union {
    /// Adds an interval. It should end after all before it: of one that does not, only the part behind the end of the last closed one counts.
    pub fn add(&mut self, mut from: u64, mut to: u64) {
        while let Some((first, last)) = self.open.last().copied() {
            if last < from {
                break;
            }
            (from, to) = (from.min(first), to.max(last));
            self.open.pop();
        }
        self.open.push((from, to));
        if self.open.len() > OPEN {
            let (first, last) = self.open.remove(0);
            self.closed += last - first;
        }
    }

    /// Adds those of `ended`, which are in any order, and of which none ended before those added so far.
    pub fn add_all(&mut self, ended: &mut Vec<(u64, u64)>) {
        ended.sort_unstable_by_key(|(_, to)| *to);
        ended.drain(..).for_each(|(from, to)| self.add(from, to));
    }

    /// Length of the union, ns.
    pub fn ns(&self) -> u64 {
        self.open.iter().fold(self.closed, |sum, (from, to)| sum + (to - from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn gaps_do_not_count_and_overlaps_count_once() {
        let mut union = Union::default();
        for (from, to) in [(0, 10), (5, 12), (20, 30), (28, 40), (8, 41)] {
            union.add(from, to);
        }
        assert_eq!(union.ns(), 41);
    }

    proptest! {
        #[test]
        fn same_as_counting_each_moment(mut all in prop::collection::vec((0_u64..200, 1_u64..40), 0..60)) {
            let mut union = Union::default();
            let mut moments = vec![false; 300];
            all.iter().for_each(|(from, len)| moments[*from as usize..(from + len) as usize].fill(true));
            let mut ended = all.drain(..).map(|(from, len)| (from, from + len)).collect();
            union.add_all(&mut ended);
            prop_assert_eq!(union.ns(), moments.iter().filter(|in_it| **in_it).count() as u64);
        }
    }
}
