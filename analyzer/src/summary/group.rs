//! Sums by group and call: what they are keyed and called by, and how they are merged.

use rustc_hash::FxHashMap;
use systape_format::model::{Call, LedgerRow, Task};

use super::mode::SummaryMode;
use super::stats::Stats;

/// Identifies a group: a thread, a process, a cgroup, or everything (0).
pub type GroupKey = u64;

/// Marks keys of tasks without a unique id: their numbers may be reused, which then cannot be told.
const BY_NUMBER: u64 = 1 << 63;

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
    /// Position in `stats` of each group and call.
    index: FxHashMap<(GroupKey, Call), u32>,
    /// One for each (group, call).
    pub stats: Vec<((GroupKey, Call), Stats)>,
    /// A task of each group.
    pub labels: FxHashMap<GroupKey, Label>,
}

/// The group of `task`.
pub fn group_key(task: &Task, mode: SummaryMode) -> GroupKey {
    match mode {
        SummaryMode::Total => 0,
        SummaryMode::Cgroup => task.cgroup_id,
        SummaryMode::Thread if task.utid == 0 => BY_NUMBER | u64::from(task.tid),
        SummaryMode::Thread => u64::from(task.utid),
        SummaryMode::Process if task.upid == 0 => BY_NUMBER | u64::from(task.pid),
        SummaryMode::Process => u64::from(task.upid),
    }
}

impl Sums {
    /// Adds a row of the ledger.
    pub(super) fn add_counted(&mut self, key: (GroupKey, Call), row: &LedgerRow, timeless: bool) {
        let at = self.place(key) as usize;
        self.stats[at].1.add_counted(row, timeless);
    }

    /// Where the sum of `key` is in `stats`.
    pub(super) fn place(&mut self, key: (GroupKey, Call)) -> u32 {
        let stats = &mut self.stats;
        *self.index.entry(key).or_insert_with(|| {
            stats.push((key, Stats::default()));
            stats.len() as u32 - 1
        })
    }

    pub(super) fn label(&mut self, group: GroupKey, task: &Task, mode: SummaryMode, place: (u32, u32)) {
        // a process is called what its leader is; a group of many has no name to choose
        let leads = mode != SummaryMode::Process || task.tid == task.pid;
        let rank = (leads, place.0, place.1);
        let label = self.labels.entry(group).or_insert_with(|| Label { rank, task: task.clone() });
        if label.rank < rank {
            *label = Label { rank, task: task.clone() };
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        if self.stats.is_empty() {
            (self.index, self.stats) = (other.index, other.stats);
        } else {
            for (key, stats) in other.stats {
                let at = self.place(key) as usize;
                self.stats[at].1.merge(&stats);
            }
        }
        for (group, label) in other.labels {
            let mine = self.labels.entry(group).or_insert_with(|| label.clone());
            if mine.rank < label.rank {
                *mine = label;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums of one call each for these groups.
    fn sums(groups: std::ops::Range<u64>) -> Sums {
        let mut sums = Sums::default();
        for group in groups {
            let at = sums.place((group, Call { abi: 1, nr: 0 })) as usize;
            sums.stats[at].1.add_ok(group);
        }
        sums
    }

    #[test]
    fn sums_shared_early_are_those_shared_late() {
        let mut all = Sums::default();
        [sums(0..5), sums(3..9), sums(0..1)].into_iter().for_each(|part| all.merge(part));
        let calls: Vec<_> =
            (0..9).map(|group| all.stats[all.index[&(group, Call { abi: 1, nr: 0 })] as usize].1.calls).collect();
        assert_eq!(calls, [2, 1, 1, 2, 2, 1, 1, 1, 1]);
        assert_eq!(all.stats.len(), 9);
    }
}
