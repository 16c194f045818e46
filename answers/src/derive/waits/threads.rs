//! Threads by number and name, as waits name them.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_format::model::Task;

use super::super::processes::track::key;

/// Most threads that are known.
const THREADS: usize = 1 << 18;

/// A thread, as a report prints it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    /// Tid in the initial pid namespace.
    pub tid: u32,
    /// Process of the thread.
    pub pid: u32,
    /// Name of the thread.
    pub comm: Arc<[u8]>,
}

/// A thread's number is its tid: it has no unique one.
const BY_TID: u32 = 1 << 31;

/// What identifies the thread of `task`: its utid, or its tid on a tape without.
pub(super) fn thread(task: &Task) -> u32 {
    if task.utid == 0 { BY_TID | task.tid } else { task.utid }
}

/// Threads by their unique number, and by their number in the pid namespace of their process.
#[derive(Clone, Debug, Default)]
pub struct Threads {
    by_utid: FxHashMap<u32, Named>,
    /// (process, tid there) → utid of the latest thread of that number.
    by_own: FxHashMap<(u64, u32), u32>,
}

impl Threads {
    /// Adds the thread of `task`; of more than [`THREADS`] the rest has no names.
    pub fn add(&mut self, task: &Task) {
        let thread = thread(task);
        if task.tid == 0 || (self.by_utid.len() >= THREADS && !self.by_utid.contains_key(&thread)) {
            return;
        }
        let named = || Named { tid: task.tid, pid: task.pid, comm: Arc::from(&*task.comm) };
        match self.by_utid.get_mut(&thread) {
            Some(known) if *known.comm == *task.comm => {}
            Some(known) => *known = named(),
            None => drop(self.by_utid.insert(thread, named())),
        }
        // a thread of the initial namespace on an old tape has its number there only
        let own = if task.ns_tid == 0 { task.tid } else { task.ns_tid };
        let latest = self.by_own.entry((key(task), own)).or_insert(thread);
        *latest = (*latest).max(thread);
    }

    /// Adds those of a part of the tape.
    pub fn merge(&mut self, part: Self) {
        for (utid, named) in part.by_utid {
            if self.by_utid.len() < THREADS || self.by_utid.contains_key(&utid) {
                self.by_utid.insert(utid, named);
            }
        }
        for (own, utid) in part.by_own {
            if self.by_utid.contains_key(&utid) {
                let latest = self.by_own.entry(own).or_insert(utid);
                *latest = (*latest).max(utid);
            }
        }
    }

    /// The thread of `process` that has the number `tid` in its pid namespace; None: there is none, as far as the tape says.
    pub fn own(&self, process: u64, tid: u32) -> Option<u32> {
        self.by_own.get(&(process, tid)).copied()
    }

    /// The thread `utid`.
    pub fn named(&self, utid: u32) -> Option<&Named> {
        self.by_utid.get(&utid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_found_by_their_number_in_their_namespace() {
        let task =
            |utid, tid, ns_tid| Task { utid, tid, ns_tid, pid: 3484, upid: 7, comm: b"w".to_vec(), ..Task::default() };
        let (mut all, mut part) = (Threads::default(), Threads::default());
        all.add(&task(1, 3484, 1));
        part.add(&task(2, 3485, 2));
        part.add(&task(9, 3490, 2));
        all.merge(part);
        assert_eq!((all.own(7, 1), all.own(7, 2), all.own(7, 3485), all.own(8, 1)), (Some(1), Some(9), None, None));
        assert_eq!(all.named(9).map(|named| named.tid), Some(3490));
        let mut old = Threads::default();
        old.add(&task(1, 3484, 0));
        assert_eq!(old.own(7, 3484), Some(1));
    }
}
