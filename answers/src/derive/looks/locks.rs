//! Locks that looks found threads waiting for, by process and address.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use systape_events::question::Question;
use systape_events::scan::Coverage;
use systape_format::model::Task;

use super::presence::Presence;
use super::stored::StoredStay;
use super::walk::{Covered, RunSample, TakesLooks, asked, walk};

/// Threads of a lock that are told apart.
const MOST: usize = 1 << 12;

/// Waits for one lock of a process.
#[derive(Debug, Default)]
pub struct SeenLock {
    /// A thread that waited; of several the first.
    pub task: Option<Task>,
    /// Address in the process.
    pub address: u64,
    /// Time that threads waited for it.
    pub presence: Presence,
    /// Threads that waited, with the looks that found them.
    pub waiters: BTreeMap<u32, u64>,
    /// Threads that looks found to hold it, with these looks; 0 = it was not noted.
    pub owners: BTreeMap<u64, u64>,
}

impl SeenLock {
    /// Who held it in most looks, in the process's pid namespace, and the part of the looks; None: nobody is noted.
    pub fn holder(&self) -> Option<(u64, f64)> {
        let all = self.owners.values().fold(0_u64, |all, looks| all.saturating_add(*looks));
        let (owner, looks) = self.owners.iter().filter(|(owner, _)| **owner != 0).max_by_key(|(_, looks)| **looks)?;
        Some((*owner, *looks as f64 / all.max(1) as f64))
    }
}

/// Adds looks, of which a tape may claim any number.
fn count(sum: &mut u64, looks: u64) {
    *sum = sum.saturating_add(looks);
}

/// Locks, and names of threads of their processes.
#[derive(Debug, Default)]
pub struct SeenLocks {
    /// By process and address.
    locks: BTreeMap<(u32, u64), SeenLock>,
    /// Names by process and thread.
    names: FxHashMap<(u32, u32), Vec<u8>>,
}

impl SeenLocks {
    /// Locks of the time that `question` asks for.
    pub fn read(question: &Question<'_>) -> (Self, Covered, Coverage) {
        let mut locks = Self::default();
        let (covered, coverage) = walk(question, asked(question), &mut locks);
        (locks, covered, coverage)
    }

    /// All of them, most time first.
    pub fn ranked(&self) -> Vec<&SeenLock> {
        let mut all: Vec<&SeenLock> = self.locks.values().collect();
        all.sort_by_key(|lock| (std::cmp::Reverse(lock.presence.nanos()), lock.address));
        all
    }

    /// Name of the thread `tid` of the process of `lock`: in another pid namespace it has another number, and no name here.
    pub fn name(&self, lock: &SeenLock, tid: u64) -> Option<&[u8]> {
        let pid = lock.task.as_ref()?.pid;
        self.names.get(&(pid, u32::try_from(tid).ok()?)).map(|name| &**name)
    }
}

impl TakesLooks for SeenLocks {
    fn stay(&mut self, row: &StoredStay<'_>, _segment: usize) {
        if let Some((_, task)) = row.task {
            self.names.entry((task.pid, task.tid)).or_insert_with(|| task.comm.clone());
        }
        let Some(address) = row.lock else { return };
        let process = row.task.map_or(0, |(_, task)| if task.upid == 0 { task.pid } else { task.upid });
        let lock = self.locks.entry((process, address)).or_default();
        lock.address = address;
        lock.presence.add(&row.seen);
        if lock.task.is_none() {
            lock.task = row.task.map(|(_, task)| task.clone());
        }
        let tid = row.task.map_or(0, |(_, task)| task.tid);
        if lock.waiters.len() < MOST || lock.waiters.contains_key(&tid) {
            count(lock.waiters.entry(tid).or_default(), row.seen.looks);
        }
        let owner = row.owner.unwrap_or(0);
        if lock.owners.len() < MOST || lock.owners.contains_key(&owner) {
            count(lock.owners.entry(owner).or_default(), row.seen.looks);
        }
    }

    fn sample(&mut self, sample: &RunSample<'_>, _segment: usize) {
        let (_, task) = sample.task;
        self.names.entry((task.pid, task.tid)).or_insert_with(|| task.comm.clone());
    }
}
