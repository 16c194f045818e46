//! The part of a critical path that is inside of a cause: its own calls, and what others did while a wait in such a call lasted.

use super::pattern::Pattern;
use crate::derive::critical::Id;
use crate::derive::critical::doing::Spent;
use crate::derive::critical::log::Logged;
use crate::derive::critical::walk::{Part, Path};
use crate::derive::runs::keys::Place;
use crate::derive::runs::names::Names;
use crate::table::calls::CallBook;

/// A critical path and what its threads did.
pub(crate) struct Walked<'a> {
    /// The threads.
    pub threads: &'a [Logged],
    /// The path.
    pub path: &'a Path,
    /// Its parts, perhaps split further, and what was done in each.
    pub parts: &'a [(Part, Spent)],
    /// What the threads of the path's waits were in.
    pub waits: &'a [Spent],
    /// Calls.
    pub book: &'a CallBook<'a>,
    /// Files.
    pub names: &'a Names,
}

impl Walked<'_> {
    /// Time of the path inside of each cause, ns.
    pub(crate) fn inside(&self, causes: &[Vec<Pattern>]) -> Vec<u64> {
        causes.iter().map(|patterns| self.of(patterns)).collect()
    }

    fn of(&self, patterns: &[Pattern]) -> u64 {
        let waits: Vec<bool> = self
            .path
            .handovers
            .iter()
            .zip(self.waits)
            .map(|(wait, spent)| {
                let most = spent.most().filter(|_| !wait.made);
                most.is_some_and(|most| self.call(patterns, (wait.thread, wait.from), (most.place, most.file)))
            })
            .collect();
        self.parts.iter().fold(0, |sum, (part, spent)| {
            let mut around = part.handover;
            while let Some(at) = around {
                if waits[at as usize] {
                    return sum + (part.to - part.from);
                }
                around = self.path.handovers[at as usize].within;
            }
            sum + self.own(patterns, part, spent)
        })
    }

    /// Time of a part in which its own thread is in the cause.
    fn own(&self, patterns: &[Pattern], part: &Part, spent: &Spent) -> u64 {
        let of_thread = (part.thread, part.from);
        let so = |pattern: &&Pattern| self.is_of(pattern, of_thread) && pattern.state(part.state);
        if patterns.iter().any(|pattern| so(&pattern)) {
            return part.to - part.from;
        }
        let calls = spent.calls.iter().filter(|of| self.call(patterns, of_thread, (of.place, of.file)));
        calls.fold(0, |sum, of| sum + of.ns)
    }

    fn is_of(&self, pattern: &Pattern, (thread, ts): (Id, u64)) -> bool {
        let task = self.threads.get(thread as usize).and_then(|thread| thread.task_at(ts));
        task.is_some_and(|task| pattern.threads(task))
    }

    fn call(&self, patterns: &[Pattern], of: (Id, u64), (place, file): (Place, u32)) -> bool {
        let Place::Call(call) = place else { return false };
        let name = &self.book.get(call).name;
        patterns.iter().any(|pattern| self.is_of(pattern, of) && pattern.call(name, self.names.name(file)))
    }
}
