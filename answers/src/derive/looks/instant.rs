//! The picture of one instant, of the looks around it.
//!
//! A stay that a look before found, and a look behind it, was there in between for certain: the thread left no CPU. So it is with one
//! that was first found later and had been so for longer. Of the others the look before the instant says that they were there then.

use rustc_hash::FxHashMap;
use systape_events::question::Question;
use systape_events::scan::Coverage;
use systape_format::model::Task;

use super::stored::{RUNNING, StoredStay};
use super::walk::{Covered, RunSample, TakesLooks, period, walk};
use crate::derive::runs::thread_key;

/// Looks further away than this say nothing of an instant: the interval of the rarest is shorter.
const AROUND: u64 = 10_000_000_000;

/// How well it is known that a thread was so at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// The thread was so.
    Certain,
    /// The look before found it, or the sample: the one behind did not.
    Before,
    /// The look behind found it, and since when it was so is not known.
    Behind,
}

impl Certainty {
    /// Word in rows.
    pub fn word(self) -> &'static str {
        match self {
            Self::Certain => "certain",
            Self::Before => "before",
            Self::Behind => "behind",
        }
    }
}

/// Times of a row of a stay, ns.
#[derive(Clone, Copy, Debug)]
struct StayTimes {
    /// Its first look and its last one.
    looks: (u64, u64),
    /// The look that found it over, or at which the next row begins.
    stored: u64,
    /// How long it had been so at the first look; None: not known.
    since: Option<u64>,
    /// It begins with this row.
    first: bool,
    /// Time between two looks.
    interval: u64,
}

impl StayTimes {
    /// Whether the thread was so at `at`, and for how long then as far as is known; None: it was not.
    fn at(self, at: u64) -> Option<(Certainty, u64)> {
        let (begin, last) = self.looks;
        let since = self.since.unwrap_or(0);
        let lasted = since.saturating_add(at.saturating_sub(begin));
        if at >= self.stored.max(last.saturating_add(1)) {
            return None;
        }
        if at > last {
            return Some((Certainty::Before, since.saturating_add(last - begin)));
        }
        if at >= begin {
            return Some((Certainty::Certain, lasted));
        }
        // it was first found later
        let early = begin - at;
        match self.since {
            Some(since) if since >= early => Some((Certainty::Certain, since - early)),
            // a row that goes on from one before is of a stay that was there at the look before
            _ if !self.first && early <= self.interval => Some((Certainty::Certain, since.saturating_sub(early))),
            Some(_) => None,
            None => (early <= self.interval).then_some((Certainty::Behind, 0)),
        }
    }
}

/// A thread at the instant.
#[derive(Clone, Debug)]
pub struct ThreadAt {
    /// The thread; None: not known.
    pub task: Option<Task>,
    /// D, S, RQ or RUN.
    pub state: &'static str,
    /// Name of the call, of one that runs `[user]` or `[kernel]`; None: in none.
    pub call: Option<Vec<u8>>,
    /// What the call is on, in words.
    pub on: Option<Vec<u8>>,
    /// Thread that holds the lock it waits for, in the pid namespace of this one.
    pub owner: Option<u64>,
    /// The CPU of a sample.
    pub cpu: Option<u32>,
    /// How long it was known to be so, ns; None: it runs.
    pub lasted: Option<u64>,
    /// How well this is known.
    pub certainty: Certainty,
    /// When it was last seen so before the instant, or first behind it.
    seen: u64,
    /// Whether the thread waits for work.
    pub rests: bool,
}

/// Collects who is there.
struct Collecting {
    at: u64,
    period: u64,
    /// By thread; those that are not known one by one.
    threads: FxHashMap<u64, ThreadAt>,
    unknown: Vec<ThreadAt>,
    /// The last sample of each CPU.
    ran: FxHashMap<u32, (u64, ThreadAt)>,
}

/// Threads at the instant `at`, the longest first, those that wait for work behind all others; looks are those around it.
pub fn threads(question: &Question<'_>, at: u64) -> (Vec<ThreadAt>, Covered, Coverage) {
    let period = period(question.tape);
    let mut collecting =
        Collecting { at, period, threads: FxHashMap::default(), unknown: Vec::new(), ran: FxHashMap::default() };
    let span = (at.saturating_sub(AROUND), at.saturating_add(AROUND));
    let (covered, coverage) = walk(question, span, &mut collecting);
    let Collecting { mut threads, mut unknown, ran, .. } = collecting;
    for (thread, found) in ran.into_values() {
        // a wait that is certain leaves no time to run; of two that are not the later one counts
        let waits = |other: &ThreadAt| match other.certainty {
            Certainty::Certain => true,
            Certainty::Before => other.seen > found.seen,
            Certainty::Behind => false,
        };
        if !threads.get(&thread).is_some_and(waits) {
            threads.insert(thread, found);
        }
    }
    unknown.extend(threads.into_values());
    unknown.sort_by_cached_key(|thread| {
        (
            thread.rests,
            std::cmp::Reverse(thread.lasted),
            thread.certainty,
            thread.task.as_ref().map(|task| (task.pid, task.tid)),
        )
    });
    (unknown, covered, coverage)
}

impl TakesLooks for Collecting {
    fn stay(&mut self, row: &StoredStay<'_>, _segment: usize) {
        let times = StayTimes {
            looks: row.looks,
            stored: row.stored,
            since: row.since,
            first: row.seen.first,
            interval: row.seen.interval,
        };
        let Some((certainty, lasted)) = times.at(self.at) else { return };
        let found = ThreadAt {
            task: row.task.map(|(_, task)| task.clone()),
            state: row.state,
            call: row.call.map(|(name, _)| name.to_vec()),
            on: row.on(),
            owner: row.owner,
            cpu: None,
            lasted: Some(lasted),
            certainty,
            seen: if row.looks.0 > self.at { row.looks.0 } else { row.looks.1.min(self.at) },
            rests: row.rests(),
        };
        if row.task.is_none() {
            return self.unknown.push(found);
        }
        match self.threads.get_mut(&row.thread()) {
            Some(other) if other.certainty <= certainty => {}
            Some(other) => *other = found,
            None => _ = self.threads.insert(row.thread(), found),
        }
    }

    fn sample(&mut self, sample: &RunSample<'_>, _segment: usize) {
        let RunSample { task: (_, task), ts, cpu, kernel, .. } = *sample;
        if ts > self.at || self.at - ts >= self.period || self.ran.get(&cpu).is_some_and(|(_, last)| last.seen > ts) {
            return;
        }
        let found = ThreadAt {
            task: Some(task.clone()),
            state: RUNNING,
            call: Some(if kernel { b"[kernel]".to_vec() } else { b"[user]".to_vec() }),
            on: None,
            owner: None,
            cpu: Some(cpu),
            lasted: None,
            certainty: Certainty::Before,
            seen: ts,
            rests: false,
        };
        self.ran.insert(cpu, (thread_key(task), found));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stay_is_there_between_its_looks_and_as_long_before_as_it_says() {
        // looks at 100, 150, 200; the look at 250 found it over
        let times = StayTimes { looks: (100, 200), stored: 250, since: Some(30), first: true, interval: 50 };
        let at = |ts| times.at(ts);
        assert_eq!(at(69), None);
        assert_eq!(at(70), Some((Certainty::Certain, 0)));
        assert_eq!(at(100), Some((Certainty::Certain, 30)));
        assert_eq!(at(200), Some((Certainty::Certain, 130)));
        assert_eq!(at(201), Some((Certainty::Before, 130)), "it may have ended since");
        assert_eq!(at(249), Some((Certainty::Before, 130)));
        assert_eq!(at(250), None, "a look found it over");
    }

    #[test]
    fn where_it_is_not_known_since_when_the_look_behind_says_little() {
        let times = StayTimes { looks: (100, 100), stored: 150, since: None, first: true, interval: 50 };
        assert_eq!(times.at(60), Some((Certainty::Behind, 0)));
        assert_eq!(times.at(49), None);
        let goes_on = StayTimes { first: false, ..times };
        assert_eq!(goes_on.at(60), Some((Certainty::Certain, 0)), "it is of the stay of the row before");
        // the last row of a tape is stored at its end
        let last = StayTimes { stored: 100, ..times };
        assert_eq!((last.at(100), last.at(101)), (Some((Certainty::Certain, 0)), None));
    }
}
