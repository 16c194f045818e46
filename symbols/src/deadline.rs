//! Until when answers are waited for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// No end was set.
const NEVER: u64 = u64::MAX;
/// An end moves by what a busy machine costs, up to so many times the time that was given: the whole end of a recording,
/// of which this is the most, has a limit of ten seconds with three given.
const STRETCH: u32 = 2;

/// The time at which an end moves no farther.
fn stretched(time: Duration) -> Duration {
    time.saturating_mul(STRETCH)
}

static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// `time` from now, in nanoseconds since [`ORIGIN`].
fn in_ns(time: Duration) -> u64 {
    u64::try_from(ORIGIN.elapsed().saturating_add(time).as_nanos()).unwrap_or(NEVER - 1)
}

/// The time at which all work for somebody ends, whoever does it: set by one thread, looked at by others.
///
/// It can be set again, and only ever moves nearer; but while those who work wait for a CPU it moves away, up to twice
/// the time that was set.
#[derive(Clone, Debug)]
pub struct Deadline(Vec<Arc<DeadlineTimes>>);

/// Times in nanoseconds since [`ORIGIN`].
#[derive(Debug)]
struct DeadlineTimes {
    ends: AtomicU64,
    /// `ends` moves no farther.
    latest: AtomicU64,
}

impl DeadlineTimes {
    fn new(ends: u64, latest: u64) -> Arc<Self> {
        Arc::new(Self { ends: AtomicU64::new(ends), latest: AtomicU64::new(latest) })
    }
}

impl Default for Deadline {
    /// One that has no end yet.
    fn default() -> Self {
        LazyLock::force(&ORIGIN);
        Self(vec![DeadlineTimes::new(NEVER, NEVER)])
    }
}

impl Deadline {
    /// Ends after `time`, unless it ends sooner.
    pub fn end_in(&self, time: Duration) {
        if let Some(own) = self.0.last() {
            own.latest.fetch_min(in_ns(stretched(time)), Ordering::Relaxed);
            own.ends.fetch_min(in_ns(time), Ordering::Relaxed);
        }
    }

    /// Ends now.
    pub fn end_now(&self) {
        self.end_in(Duration::ZERO);
    }

    /// One that ends with this one, and after `time` at the latest.
    #[must_use]
    pub fn sooner(&self, time: Duration) -> Self {
        let own = DeadlineTimes::new(in_ns(time), in_ns(stretched(time)));
        Self(self.0.iter().cloned().chain([own]).collect())
    }

    /// Whoever works has waited this long for a CPU.
    pub(crate) fn move_by(&self, starved: Duration) {
        let ns = u64::try_from(starved.as_nanos()).unwrap_or(NEVER);
        for one in self.0.iter().filter(|one| one.ends.load(Ordering::Relaxed) != NEVER) {
            // another one may set it nearer at the same time: then `latest` is nearer, too
            let moved = one.ends.load(Ordering::Relaxed).saturating_add(ns);
            one.ends.store(moved.min(one.latest.load(Ordering::Relaxed)), Ordering::Relaxed);
        }
    }

    /// The time left; zero = it is over, None = no end was set.
    pub fn left(&self) -> Option<Duration> {
        let ends = |one: &Arc<DeadlineTimes>| one.ends.load(Ordering::Relaxed).min(one.latest.load(Ordering::Relaxed));
        let first = self.0.iter().map(ends).min().filter(|ends| *ends != NEVER)?;
        Some(Duration::from_nanos(first).saturating_sub(ORIGIN.elapsed()))
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn it_is_set_nearer_only() {
        let deadline = Deadline::default();
        assert_eq!((deadline.left(), deadline.is_over()), (None, false));
        let other = deadline.clone();
        other.end_in(HOUR);
        let left = deadline.left().expect("set");
        assert!(left > HOUR / 2 && !deadline.is_over(), "{left:?}");
        deadline.end_in(Duration::MAX);
        assert!(deadline.left().is_some_and(|now| now <= left));
        deadline.end_now();
        other.end_in(HOUR);
        assert!(other.is_over());
    }

    #[test]
    fn a_part_ends_with_the_whole() {
        let whole = Deadline::default();
        let (part, free) = (whole.sooner(Duration::ZERO), whole.sooner(HOUR));
        assert!(part.is_over() && !whole.is_over() && !free.is_over());
        assert!(part.sooner(HOUR).is_over());
        whole.end_now();
        assert!(free.is_over() && whole.sooner(HOUR).is_over());
    }

    #[test]
    fn a_busy_machine_moves_it_so_far() {
        let whole = Deadline::default();
        whole.move_by(HOUR);
        assert_eq!(whole.left(), None);
        whole.end_in(HOUR);
        let part = whole.sooner(HOUR);
        part.move_by(HOUR / 2);
        for moved in [&whole, &part] {
            let left = moved.left().expect("set");
            assert!(left > HOUR && left <= HOUR * 3 / 2, "{left:?}");
        }
        part.move_by(HOUR * 100);
        assert!(whole.left().is_some_and(|left| left > HOUR * 3 / 2 && left <= HOUR * 2));
        // and not when it was ended
        whole.end_now();
        part.move_by(HOUR);
        assert!(whole.is_over() && part.is_over());
    }
}
