//! Names of the tasks among keys.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;
use systape_format::model::Task;

use super::plan::Plan;
use systape_events::group::value::{Key, Value};

/// Name of a group.
#[derive(Clone, Debug)]
struct GroupLabel {
    /// (leader of its process, segment, entry): the greatest wins.
    rank: (bool, u32, u32),
    /// The task whose name it is.
    task: Task,
}

/// A task for each [`Plan::whose`]: of several names the newest, of a process its leader's. The order of additions does
/// not matter.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    of: FxHashMap<Key, GroupLabel>,
}

impl Labels {
    /// `task` is in the groups with this [`Plan::whose`]; `place`: its (segment, entry).
    pub fn add(&mut self, whose: Option<Key>, task: &Task, plan: &Plan, place: (u32, u32)) {
        let Some(whose) = whose else { return };
        let rank = (plan.leads(task), place.0, place.1);
        let label = self.of.entry(whose).or_insert_with(|| GroupLabel { rank, task: task.clone() });
        if label.rank < rank {
            label.rank = rank;
            // most tasks are the same in every segment
            if label.task != *task {
                label.task = task.clone();
            }
        }
    }

    /// A task of the group of `key`.
    pub fn get(&self, key: &[Value], plan: &Plan) -> Option<&Task> {
        Some(&self.of.get(&plan.whose(key)?)?.task)
    }

    /// Adds all of `other`, which is empty then and keeps its memory.
    pub fn merge(&mut self, other: &mut Self) {
        for (whose, label) in other.of.drain() {
            match self.of.entry(whose) {
                Entry::Occupied(mut mine) if mine.get().rank < label.rank => _ = mine.insert(label),
                Entry::Occupied(_) => {}
                Entry::Vacant(place) => _ = place.insert(label),
            }
        }
    }
}
