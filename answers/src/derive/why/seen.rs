//! What looks found threads of a process waiting for, as `why` judges it.

use std::collections::{BTreeMap, BTreeSet};

use systape_events::question::Question;
use systape_events::scan::Coverage;

use super::finding::Who;
use crate::derive::looks::presence::{Estimate, Presence};
use crate::derive::looks::stored::{QUEUED, StoredStay};
use crate::derive::looks::walk::{Covered, RunSample, TakesLooks, asked, walk};

/// Threads that are told apart, of one wait.
const MOST: usize = 1 << 12;

/// Process, name, state, call, and what it is on.
type Place = (u32, Vec<u8>, &'static str, Vec<u8>, Vec<u8>);

/// Waits of a process in one call on one thing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeenWait {
    /// The process, and the name of the thread.
    pub who: Who,
    /// D or S; RQ: for a CPU.
    pub state: &'static str,
    /// The call; empty: in none.
    pub call: String,
    /// What it is on; empty: nothing, or not known.
    pub on: Vec<u8>,
    /// Thread that holds the lock in most looks, as the process's pid namespace has it.
    pub owner: Option<u64>,
    /// Time of all threads together.
    pub estimate: Estimate,
    /// Threads that were in it.
    pub threads: u64,
    /// Looks that found them.
    pub looks: u64,
    /// Stays that began in the time asked for.
    pub stays: u64,
    /// The longest that one stay is known to have been, ns.
    pub longest: u64,
    /// That stay's thread, and its first and last look.
    pub longest_of: (u32, u64, u64),
    /// The longest one went on when it was last looked at.
    pub goes_on: bool,
    /// The first look and the last one.
    pub span: (u64, u64),
}

/// What looks say of the time asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeenWaits {
    /// Waits, most time first: without those for work.
    pub waits: Vec<SeenWait>,
    /// Waits for a CPU by process, most time first.
    pub queues: Vec<SeenWait>,
    /// Names of threads that ran, with the time of their samples, ns.
    pub ran: Vec<(Vec<u8>, u64)>,
    /// Time that the looks stand for, ns.
    pub time: u64,
}

/// A sum of [`Place`].
#[derive(Default)]
struct PlaceSum {
    presence: Presence,
    threads: BTreeSet<u32>,
    owners: BTreeMap<u64, u64>,
    longest: u64,
    longest_of: (u32, u64, u64),
    interval: u64,
    span: Option<(u64, u64)>,
}

#[derive(Default)]
struct PlaceSums {
    places: BTreeMap<Place, PlaceSum>,
    ran: BTreeMap<Vec<u8>, u64>,
    /// The last look that found anything.
    last: u64,
}

impl SeenWaits {
    /// Waits of the time that `question` asks for.
    pub fn read(question: &Question<'_>) -> (Self, Covered, Coverage) {
        let span = asked(question);
        let mut summing = PlaceSums::default();
        let (covered, coverage) = walk(question, span, &mut summing);
        let (mut waits, mut queues) = (Vec::new(), Vec::new());
        let last = summing.last;
        for ((pid, comm, state, call, on), sum) in summing.places {
            let owner = sum.owners.iter().max_by_key(|(_, looks)| **looks).map(|(owner, _)| *owner);
            let list = if state == QUEUED { &mut queues } else { &mut waits };
            list.push(SeenWait {
                who: Who { comm, pid: (pid != 0).then_some(pid) },
                state,
                call: String::from_utf8_lossy(&call).into_owned(),
                on,
                owner,
                estimate: sum.presence.estimate(),
                threads: sum.threads.len() as u64,
                looks: sum.presence.looks,
                stays: sum.presence.stays,
                longest: sum.longest,
                longest_of: sum.longest_of,
                goes_on: sum.longest_of.2 == last && span.1 - last.min(span.1) <= sum.interval.saturating_mul(2),
                span: sum.span.unwrap_or_default(),
            });
        }
        for list in [&mut waits, &mut queues] {
            list.sort_by(|one, other| other.estimate.time.total_cmp(&one.estimate.time));
        }
        let mut ran: Vec<(Vec<u8>, u64)> = summing.ran.into_iter().collect();
        ran.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        (Self { waits, queues, ran, time: covered.time() as u64 }, covered, coverage)
    }
}

impl TakesLooks for PlaceSums {
    fn stay(&mut self, row: &StoredStay<'_>, _segment: usize) {
        self.last = self.last.max(row.span.1);
        if row.rests() {
            return;
        }
        let (pid, comm) = row.task.map_or((0, Vec::new()), |(_, task)| (task.pid, task.comm.clone()));
        let call = row.call.map_or(Vec::new(), |(name, _)| name.to_vec());
        let sum = self.places.entry((pid, comm, row.state, call, row.on().unwrap_or_default())).or_default();
        sum.presence.add(&row.seen);
        let tid = row.task.map_or(0, |(_, task)| task.tid);
        if sum.threads.len() < MOST {
            sum.threads.insert(tid);
        }
        if let Some(owner) = row.owner {
            let looks = sum.owners.entry(owner).or_default();
            *looks = looks.saturating_add(row.seen.looks);
        }
        let (from, last) = row.span;
        sum.span = Some(sum.span.map_or((from, last), |(first, end)| (first.min(from), end.max(last))));
        if row.seen.lasted >= sum.longest {
            sum.longest = row.seen.lasted;
            sum.longest_of = (tid, from.saturating_sub(row.since.unwrap_or(0)), last);
            sum.interval = row.seen.interval;
        }
    }

    fn sample(&mut self, sample: &RunSample<'_>, _segment: usize) {
        let ran = self.ran.entry(sample.task.1.comm.clone()).or_default();
        *ran = ran.saturating_add(sample.seen.interval);
    }
}
