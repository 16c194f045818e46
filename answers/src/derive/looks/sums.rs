//! Time that threads were in something, by keys, with how far it may be off.

use std::sync::Arc;

use systape_events::group::by::GroupKey;
use systape_events::group::of_file;
use systape_events::group::value::{Key, Value};
use systape_events::group::{Add, Groups};
use systape_events::question::Question;
use systape_format::model::{Call, Task};

use super::presence::Presence;
use super::stored::{RUNNING, StoredStay};
use super::walk::{Covered, RunSample, TakesLooks, asked, parts, walk_part};
use crate::derive::summary::labels::Labels;
use crate::derive::summary::plan::Plan;

/// The keys that sums can have.
pub const KNOWN: [GroupKey; 18] = GroupKey::of_task_and(&[
    GroupKey::State,
    GroupKey::Syscall,
    GroupKey::File,
    GroupKey::Dir,
    GroupKey::Ext,
    GroupKey::Peer,
    GroupKey::Port,
]);

/// A word as a key.
pub fn word(word: &str) -> Value {
    Value::Text(Arc::from(word.as_bytes()))
}

/// A sum by keys.
#[derive(Debug, Default)]
pub struct StaySum {
    /// Time in stays and samples.
    pub presence: Presence,
    /// Samples in it: each would count as a stay.
    samples: u64,
}

impl StaySum {
    /// Number of stays; None: it is of samples alone, which do not say whether two of them found one stay.
    pub fn stays(&self) -> Option<u64> {
        (self.samples < self.presence.looks).then(|| self.presence.stays.saturating_sub(self.samples))
    }
}

impl Add for StaySum {
    fn add(&mut self, other: &Self) {
        self.presence.merge(&other.presence);
        self.samples = self.samples.saturating_add(other.samples);
    }
}

/// Sums by keys and by whether the threads are at rest, which is the last value of each key.
#[derive(Debug, Default)]
pub struct StaySums {
    /// The sums.
    pub groups: Groups<StaySum>,
    /// Names of tasks among the keys.
    pub labels: Labels,
}

/// Makes sums of what it is passed.
struct Summing<'p> {
    sums: StaySums,
    plan: &'p Plan,
}

impl StaySums {
    /// Sums of the time that `question` asks for, by the keys of `plan`; looks in `without` are left out. What could not be read is added to
    /// the losses.
    pub fn read(question: &mut Question<'_>, plan: &Plan, without: &[(u64, u64)]) -> (Self, Covered) {
        let mut summing = Summing { sums: Self::default(), plan };
        let mut covered = Covered::default();
        for part in parts(asked(question), without) {
            let coverage = walk_part(question, part, &mut summing, &mut covered);
            coverage.tell(&mut question.loss);
        }
        (summing.sums, covered)
    }
}

impl Summing<'_> {
    /// The key of a thread: `value` has those that are not the task's.
    fn key(
        &mut self,
        task: Option<(usize, &Task)>,
        segment: usize,
        value: impl Fn(GroupKey) -> Option<Value>,
        rest: bool,
    ) -> Key {
        let plan = self.plan;
        let unknown = || plan.keys().iter().map(|_| Value::Unknown).collect();
        let mut key: Key = task.map_or_else(unknown, |(_, task)| plan.key(task, Call::default()));
        for (by, part) in plan.keys().iter().zip(&mut key) {
            if let Some(value) = value(*by) {
                *part = value;
            }
        }
        if let Some((at, task)) = task {
            self.sums.labels.add(plan.whose_is(task), task, plan, (segment as u32, at as u32));
        }
        key.push(Value::Number(rest.into()));
        key
    }
}

/// The value of `by`, if it is a key that the file says, or the file itself.
fn said_by_file(by: GroupKey, file: &Value) -> Option<Value> {
    match by {
        GroupKey::File => Some(file.clone()),
        _ if GroupKey::OF_FILE.contains(&by) => Some(of_file::value(by, file)),
        _ => None,
    }
}

impl TakesLooks for Summing<'_> {
    fn stay(&mut self, row: &StoredStay<'_>, segment: usize) {
        let none = if row.read { Value::None } else { Value::Unknown };
        let on = row.on().map_or(none, |on| Value::Text(on.into()));
        let value = |by: GroupKey| match by {
            GroupKey::State => Some(word(row.state)),
            GroupKey::Syscall => Some(row.call_value()),
            by => said_by_file(by, &on),
        };
        let key = self.key(row.task, segment, value, row.rests());
        self.sums.groups.of(&key).presence.add(&row.seen);
    }

    fn sample(&mut self, sample: &RunSample<'_>, segment: usize) {
        let value = |by: GroupKey| match by {
            GroupKey::State => Some(word(RUNNING)),
            GroupKey::Syscall => Some(word(if sample.kernel { "[kernel]" } else { "[user]" })),
            by => said_by_file(by, &Value::None),
        };
        let key = self.key(Some(sample.task), segment, value, false);
        let sum = self.sums.groups.of(&key);
        sum.presence.add(&sample.seen);
        sum.samples += 1;
    }
}
