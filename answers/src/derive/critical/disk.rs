//! Which block I/O a sleep waited for: the one that ended right before its end.

use systape_events::values::order::InOrder as _;
use systape_format::model::BlockIo;

/// An I/O that ended longer before the end of a sleep did not end it, ns: the interrupt that completes one wakes who waits for it.
const SLACK: u64 = 1_000_000;
/// The same of one that another task caused, as the journal's of an fsync: nothing else says that it belongs there.
const SLACK_OF_OTHERS: u64 = 100_000;

/// A sleep that an I/O may have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// The thread, unique in the tape.
    pub utid: u32,
    /// When it began, CLOCK_MONOTONIC ns.
    pub from: u64,
    /// When it ended.
    pub to: u64,
}

/// The sleeps, and the best I/O of each so far.
#[derive(Debug)]
pub struct Waits<T> {
    /// In order of their ends.
    sleeps: Vec<(Sleep, usize)>,
    found: Vec<Option<(bool, u64, T)>>,
}

impl<T> Waits<T> {
    /// Collects for these sleeps; [`Self::found`] has their order.
    pub fn new(sleeps: &[Sleep]) -> Self {
        let mut sorted: Vec<(Sleep, usize)> = sleeps.iter().copied().zip(0..).collect();
        sorted.order_by_key(|(sleep, _)| sleep.to);
        Self { found: sleeps.iter().map(|_| None).collect(), sleeps: sorted }
    }

    /// An I/O of the threads `of` ended; `make` is asked for it if it is better than another.
    pub fn ended(&mut self, io: &BlockIo, of: [Option<u32>; 2], mut make: impl FnMut() -> T) {
        let first = self.sleeps.partition_point(|(sleep, _)| sleep.to < io.complete);
        let near = self.sleeps[first..].iter().take_while(|(sleep, _)| sleep.to - io.complete <= SLACK);
        for (sleep, at) in near {
            let own = of.contains(&Some(sleep.utid));
            let close = own || sleep.to - io.complete <= SLACK_OF_OTHERS;
            let better = self.found[*at].as_ref().is_none_or(|(of_it, ts, _)| (own, io.complete) >= (*of_it, *ts));
            if io.complete > sleep.from && close && better {
                self.found[*at] = Some((own, io.complete, make()));
            }
        }
    }

    /// The I/O of each sleep; None: none is near its end.
    pub fn found(self) -> Vec<Option<T>> {
        self.found.into_iter().map(|found| found.map(|(.., io)| io)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_own_one_before_the_end_of_a_sleep() {
        let ms = 1_000_000;
        let sleep = |utid, from: u64, to: u64| Sleep { utid, from: from * ms, to: to * ms };
        let mut waits = Waits::new(&[sleep(1, 30, 40), sleep(1, 10, 20), sleep(2, 10, 20), sleep(3, 50, 60)]);
        let mut io = |complete: u64, of: u32, name: &'static str| {
            waits.ended(&BlockIo { complete, ..BlockIo::default() }, [Some(of), None], || name);
        };
        io(15 * ms, 1, "long before");
        io(20 * ms - 50_000, 1, "own");
        io(20 * ms - 20_000, 9, "another's");
        io(20 * ms + 1, 1, "after");
        io(40 * ms - 200_000, 9, "another's, too early");
        io(60 * ms - 900_000, 3, "first");
        io(60 * ms - 800_000, 3, "last");
        assert_eq!(waits.found(), [None, Some("own"), Some("another's"), Some("last")]);
    }
}
