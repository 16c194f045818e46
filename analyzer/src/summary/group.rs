//! Sums by key, and what the tasks among their keys are called.

use rustc_hash::FxHashMap;
use systape_format::model::{LedgerRow, Task};

use super::plan::Plan;
use super::stats::Stats;
use crate::group::value::{Key, Value};
use crate::group::{Add, Groups};

impl Add for Stats {
    fn add(&mut self, other: &Self) {
        self.merge(other);
    }
}

/// What a group is called; of several names the newest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// (leader of its process, segment, entry): the greatest wins.
    rank: (bool, u32, u32),
    /// The task it was taken from.
    pub task: Task,
}

/// Sums so far.
#[derive(Debug, Default)]
pub struct Sums {
    /// One for each key.
    pub groups: Groups<Stats>,
    /// A task for each [`Plan::whose`].
    pub labels: FxHashMap<Key, Label>,
}

impl Sums {
    /// Adds a row of the ledger.
    pub(super) fn add_counted(&mut self, key: &[Value], row: &LedgerRow, timeless: bool) {
        self.groups.of(key).add_counted(row, timeless);
    }

    /// `task` is one of the group of `key`; `place`: (segment, entry) it was found at.
    pub(super) fn label(&mut self, key: &[Value], task: &Task, plan: &Plan, place: (u32, u32)) {
        let Some(whose) = plan.whose(key) else { return };
        let rank = (plan.leads(task), place.0, place.1);
        let label = self.labels.entry(whose).or_insert_with(|| Label { rank, task: task.clone() });
        if label.rank < rank {
            *label = Label { rank, task: task.clone() };
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.groups.merge(other.groups);
        for (whose, label) in other.labels {
            let mine = self.labels.entry(whose).or_insert_with(|| label.clone());
            if mine.rank < label.rank {
                *mine = label;
            }
        }
    }
}
