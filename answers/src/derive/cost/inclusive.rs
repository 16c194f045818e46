//! The part of a critical path that is inside of a cause: its own calls, and what others did while a wait in such a call lasted.

use super::pattern::{CausePattern, PatternTime};
use crate::derive::critical::Id;
use crate::derive::critical::doing::Spent;
use crate::derive::critical::log::Logged;
use crate::derive::critical::walk::{Part, Path};
use crate::derive::runs::State;
use crate::derive::runs::keys::Place;
use crate::derive::runs::names::Names;
use systape_events::calls::CallBook;

/// A critical path and what its threads did.
pub struct Walked<'a> {
    /// The threads.
    pub threads: &'a [Logged],
    /// The path.
    pub path: &'a Path,
    /// Parts of the path, perhaps split further, and what was done in each.
    pub parts: &'a [(Part, Spent)],
    /// What the threads of the path's waits were in.
    pub waits: &'a [Spent],
    /// Names of calls.
    pub book: &'a CallBook<'a>,
    /// Names of files.
    pub names: &'a Names,
}

/// Time of a path inside of a cause, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    /// All of it.
    pub ns: u64,
    /// The part in waits for the ends of several, of which the path follows only the last to end.
    pub in_series: u64,
}

impl Walked<'_> {
    /// Time of the path inside of each cause.
    pub fn inside(&self, causes: &[Vec<CausePattern>]) -> Vec<Inside> {
        causes.iter().map(|patterns| self.of(patterns)).collect()
    }

    fn of(&self, patterns: &[CausePattern]) -> Inside {
        let waits: Vec<bool> = self
            .path
            .handovers
            .iter()
            .zip(self.waits)
            .map(|(wait, spent)| {
                let most = spent.most().filter(|_| !wait.made);
                let of_wait = (wait.thread, (wait.from, wait.to));
                most.is_some_and(|most| {
                    self.call(patterns, of_wait, (most.place, most.file)) || self.outside(patterns, of_wait, most.place)
                })
            })
            .collect();
        let mut inside = Inside::default();
        for (part, spent) in self.parts {
            let around = std::iter::successors(part.handover, |at| self.path.handovers[*at as usize].within);
            let waits = around.clone().any(|at| waits[at as usize]);
            let ns = if waits { part.to - part.from } else { self.own(patterns, part, spent) };
            inside.ns += ns;
            inside.in_series += if around.clone().any(|at| self.path.handovers[at as usize].series) { ns } else { 0 };
        }
        inside
    }

    /// Time of a part in which its own thread is in the cause.
    fn own(&self, patterns: &[CausePattern], part: &Part, spent: &Spent) -> u64 {
        let (of_thread, span) = ((part.thread, part.from), (part.from, part.to));
        let so = |pattern: &&CausePattern| {
            self.is_of(pattern, of_thread) && pattern.state(part.state) && pattern.overlaps(span)
        };
        if patterns.iter().any(|pattern| so(&pattern)) {
            return part.to - part.from;
        }
        let own_code = patterns
            .iter()
            .any(|pattern| self.is_of(pattern, of_thread) && pattern.own_code(part.state) && pattern.overlaps(span));
        let asleep = matches!(part.state, State::Sleeping(_));
        let calls = spent.calls.iter().filter(|of| {
            // what is slept in is not known where it is no call
            let in_none = of.place == Place::User || (asleep && of.place == Place::Unknown);
            (own_code && in_none) || self.call(patterns, (of_thread.0, span), (of.place, of.file))
        });
        calls.fold(0, |sum, of| sum + of.ns)
    }

    fn is_of(&self, pattern: &CausePattern, (thread, ts): (Id, u64)) -> bool {
        let task = self.threads.get(thread as usize).and_then(|thread| thread.task_at(ts));
        task.is_some_and(|task| pattern.threads(task))
    }

    /// Whether a wait in `place` is one outside of calls, and the cause's.
    fn outside(&self, patterns: &[CausePattern], (thread, span): (Id, (u64, u64)), place: Place) -> bool {
        let so = |pattern: &CausePattern| pattern.time == PatternTime::Outside && pattern.overlaps(span);
        let mut patterns = patterns.iter().filter(|pattern| so(pattern) && self.is_of(pattern, (thread, span.0)));
        matches!(place, Place::User | Place::Unknown) && patterns.next().is_some()
    }

    fn call(&self, patterns: &[CausePattern], (thread, span): (Id, (u64, u64)), (place, file): (Place, u32)) -> bool {
        let Place::Call(call) = place else { return false };
        let name = &self.book.get(call).name;
        let so = |pattern: &CausePattern| pattern.overlaps(span) && pattern.call(name, self.names.name(file));
        patterns.iter().any(|pattern| self.is_of(pattern, (thread, span.0)) && so(pattern))
    }
}
