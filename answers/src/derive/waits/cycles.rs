//! Threads that wait for each other in a circle: deadlocks.

use rustc_hash::FxHashMap;

use super::sums::Address;

/// Most deadlocks that are told apart.
const CYCLES: usize = 64;
/// Most threads of one.
const LONGEST: usize = 1024;

/// A wait that never ended, for a lock with an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndlessWait {
    /// The thread that waits (utid).
    pub thread: u32,
    /// Address of what it waits for.
    pub address: Address,
    /// Owner of that (utid).
    pub owner: u32,
    /// When the wait began.
    pub since: u64,
    /// When it was last seen to last.
    pub until: u64,
}

/// Threads of which each waits for what the next owns, and the last for what the first owns.
pub type Cycle = Vec<EndlessWait>;

/// The cycles among `waits`, at most one wait a thread, by their first thread.
pub(super) fn cycles(waits: &FxHashMap<u32, EndlessWait>) -> Vec<Cycle> {
    let mut starts: Vec<u32> = waits.keys().copied().collect();
    starts.sort_unstable();
    // threads of which it is known whether they are in a cycle
    let mut done: FxHashMap<u32, ()> = FxHashMap::default();
    let mut found = Vec::new();
    for start in starts {
        let mut way: Cycle = Vec::new();
        let mut at = start;
        while let Some(wait) = waits.get(&at).filter(|_| !done.contains_key(&at)) {
            done.insert(at, ());
            way.push(*wait);
            at = wait.owner;
        }
        let Some(first) = way.iter().position(|wait| wait.thread == at) else { continue };
        let cycle = way.split_off(first);
        if found.len() < CYCLES && cycle.len() <= LONGEST {
            found.push(cycle);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_wait_for_each_other_are_found_once() {
        let wait = |thread, owner| {
            let address = Address { process: 1, address: u64::from(thread) * 16 };
            (thread, EndlessWait { thread, address, owner, since: 5, until: 9 })
        };
        let found = |waits: &[(u32, u32)]| -> Vec<Vec<u32>> {
            let waits = waits.iter().map(|(thread, owner)| wait(*thread, *owner)).collect();
            cycles(&waits).iter().map(|cycle| cycle.iter().map(|held| held.thread).collect()).collect()
        };
        assert_eq!(found(&[(1, 2), (2, 1)]), [[1, 2]]);
        assert_eq!(found(&[(5, 5)]), [[5]], "it locked it twice");
        assert_eq!(found(&[(1, 2), (2, 3), (3, 4)]), Vec::<Vec<u32>>::new(), "the last owner works");
        // a thread behind a deadlock is not part of it
        assert_eq!(found(&[(1, 2), (2, 3), (3, 2), (7, 8), (8, 9), (9, 7)]), [vec![2, 3], vec![7, 8, 9]]);
        let many: Vec<(u32, u32)> = (1..=2 * CYCLES as u32 + 2).map(|at| (at, at)).collect();
        assert_eq!(found(&many).len(), CYCLES);
    }
}
