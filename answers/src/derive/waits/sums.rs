//! Sums of the waits for one futex, with what says what the waits are for.

use rustc_hash::FxHashMap;

use super::futex::{Asks, CONTENDED};
use super::hold::Hold;

/// Most threads of a futex that are told apart.
pub(super) const THREADS: usize = 64;
/// Most other waits in which holders of a futex were, and most threads that waits name.
const FEW: usize = 16;

/// Fewer wakes soon after a time-out may be chance: one in ten is.
const OBEYED: u64 = 8;

/// A futex of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    /// The process.
    pub process: u64,
    /// The address there.
    pub address: u64,
}

impl Address {
    /// The process, unique in the tape; None: not known.
    pub fn upid(self) -> Option<u32> {
        u32::try_from(self.process).ok().filter(|upid| *upid != 0)
    }
}

/// What a thread that held a futex waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum HolderWait {
    /// A wait for another futex of its process.
    Futex(u64),
    /// A wait for somebody to connect or for an event of many: as servers rest.
    Rest,
}

/// Times by a few keys, the longest of which are kept.
#[derive(Clone, Debug)]
pub(super) struct LongestFew<K>(Vec<(K, u64)>);

impl<K> Default for LongestFew<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Copy + Ord> LongestFew<K> {
    /// Adds `ns` of `key`.
    pub(super) fn add(&mut self, key: K, ns: u64) {
        if let Some((_, sum)) = self.0.iter_mut().find(|(known, _)| *known == key) {
            *sum = sum.saturating_add(ns);
        } else if self.0.len() < FEW {
            self.0.push((key, ns));
        } else if let Some(least) = self.0.iter_mut().min_by_key(|(_, sum)| *sum).filter(|(_, sum)| *sum < ns) {
            *least = (key, ns);
        }
    }

    /// The key with most, the least of several.
    pub(super) fn most(&self) -> Option<K> {
        self.0.iter().max_by_key(|(key, ns)| (*ns, std::cmp::Reverse(*key))).map(|(key, _)| *key)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (K, u64)> {
        self.0.iter().copied()
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The values that waits for one futex saw, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Vals {
    last: Option<u32>,
    /// One was greater than that before it, and one less.
    rises: bool,
    falls: bool,
    /// The states of a lock: glibc's for reading and writing are up to 3.
    states: bool,
    /// The greatest number that divides all of them; 0: they are 0.
    step: u32,
}

impl Vals {
    /// Adds that of a wait.
    pub(super) fn add(&mut self, asks: Asks) {
        let step = self.last.map_or(0, |last| asks.val.wrapping_sub(last) as i32);
        (self.rises, self.falls) = (self.rises || step > 0, self.falls || step < 0);
        self.states = asks.bitset && asks.val <= 3 && (self.states || self.last.is_none());
        self.step = gcd(self.step, asks.val);
        self.last = Some(asks.val);
    }

    /// Whether each saw a mutex that others wait for, as those of glibc and Rust are then: 2.
    pub(super) fn are_contended(self) -> bool {
        self.last == Some(CONTENDED) && !self.rises && !self.falls
    }

    /// Whether it counts those who came, round by round: glibc's barrier adds their number.
    pub(super) fn counts(self, comers: usize) -> bool {
        self.count_up() && usize::try_from(self.step) == Ok(comers)
    }

    /// Whether it counts rounds.
    pub(super) fn count_up(self) -> bool {
        self.rises && !self.falls && !self.states
    }
}

/// Waits for one futex.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    /// How many waits.
    pub waits: u64,
    /// Time in them, ns, without waits for a CPU where the reader knows them.
    pub ns: u64,
    /// The longest, ns.
    pub max: u64,
    /// When the first began and the last ended.
    pub span: Option<(u64, u64)>,
    /// Threads (utid) that waited, at most 64, in order of their first return.
    pub waiters: Vec<u32>,
    /// One was open at the end, or began before the start: times are lower bounds.
    pub open: bool,
    /// Calls that were not to wait: the value was another by then.
    pub again: u64,
    /// Waits whose time was up.
    pub timeouts: u64,
    /// Waits that were asked again at once after a time-out, and were woken soon.
    pub(super) obeyed: u64,
    /// Threads that were woken or moved to another futex.
    pub woken: u64,
    /// Threads that were woken or moved by who did it (utid), with when it did so last; not all, if there are more than 64.
    pub by: FxHashMap<u32, (u64, u64)>,
    /// There were more.
    pub more_wakers: bool,
    /// Waits that never ended, with a time-out or without.
    pub(super) never: u64,
    /// Waits in FUTEX_LOCK_PI.
    pub(super) pi: u64,
    /// Owners (utid) that waits named, by the waits' time.
    pub(super) owners: LongestFew<u32>,
    /// Threads (utid) whose end was waited for, by the waits' time.
    pub(super) ends: LongestFew<u32>,
    /// Wakes of every waiting thread by one that waited here at another time, and those of others.
    pub(super) rounds: u64,
    /// Wakes of every waiting thread.
    pub(super) alls: u64,
    /// Wakes that were for a number of threads.
    pub(super) single: u64,
    /// The values that waits saw.
    pub(super) vals: Vals,
    /// When it was held by a thread that had waited.
    pub(super) hold: Hold,
    /// Time in which it was held so, of all holders together, ns.
    pub(super) held: u64,
    /// Times by holder (utid).
    pub(super) holders: LongestFew<u32>,
    /// What they waited for themselves in that time.
    pub(super) inside: LongestFew<HolderWait>,
    /// Time from the begins of waits to their ends, ns: what `hold` is a part of.
    pub(super) length: u64,
}

impl Sum {
    /// Whether more threads waited than are told apart.
    pub fn has_more_waiters(&self) -> bool {
        self.waiters.len() >= THREADS
    }

    /// Who woke most: the thread (utid), and how many; None: nobody, or not known.
    pub fn waker(&self) -> Option<(u32, u64)> {
        let most = self.by.iter().max_by_key(|(thread, (woken, _))| (*woken, std::cmp::Reverse(**thread)));
        most.filter(|(_, (woken, _))| *woken > 0 && !self.more_wakers).map(|(thread, (woken, _))| (*thread, *woken))
    }

    /// The thread (utid) that held it for most of the time in which it was held; None: none did for most, or not known.
    pub fn holder(&self) -> Option<u32> {
        let most = self.holders.iter().max_by_key(|(thread, ns)| (*ns, std::cmp::Reverse(*thread)));
        let most = most.filter(|(_, ns)| *ns > self.held / 2).map(|(thread, _)| thread);
        // who gives it up when a time-out asks has held it
        most.or_else(|| {
            self.waker().filter(|(_, woken)| self.is_obeyed() && *woken > self.woken / 2).map(|(thread, _)| thread)
        })
    }

    /// Whether most of those that woke did so because a time-out asked them.
    pub(super) fn is_obeyed(&self) -> bool {
        self.obeyed >= OBEYED && self.obeyed > self.waits.saturating_sub(self.timeouts).saturating_sub(self.never) / 2
    }

    /// Remembers that `thread` woke `woken` others at `ts`.
    pub(super) fn wakes(&mut self, thread: u32, woken: u64, ts: u64) {
        self.woken = self.woken.saturating_add(woken);
        if self.by.len() < THREADS || self.by.contains_key(&thread) {
            let (sum, last) = self.by.entry(thread).or_default();
            (*sum, *last) = (sum.saturating_add(woken), ts.max(*last));
        } else {
            self.more_wakers = true;
        }
    }

    /// Remembers that `thread` waited.
    pub(super) fn waiter(&mut self, thread: u32) {
        if self.waiters.len() < THREADS && !self.waiters.contains(&thread) {
            self.waiters.push(thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_woke_most_is_known_unless_there_are_too_many() {
        let mut sum = Sum::default();
        [(7, 2), (8, 3), (7, 4)].into_iter().for_each(|(thread, woken)| sum.wakes(thread, woken, 5));
        assert_eq!(sum.waker(), Some((7, 6)));
        (100..200).for_each(|thread| sum.wakes(thread, 1, 6));
        assert!(sum.waker().is_none() && sum.by.len() == THREADS);
        assert_eq!(sum.woken, 109);
        (0..100).for_each(|thread| sum.waiter(thread));
        assert!(sum.has_more_waiters() && sum.waiters.len() == THREADS);
    }

    #[test]
    fn values_of_rounds_count_up() {
        let of = |bitset, vals: &[u32]| {
            let mut all = Vals::default();
            vals.iter().for_each(|val| all.add(Asks { val: *val, bitset, ..Asks::default() }));
            all.count_up()
        };
        assert!(of(false, &[0, 0, 4, 4, 8]) && of(true, &[1, 2, 2, 9]) && of(false, &[u32::MAX, 3]));
        let counts = |vals: &[u32], comers| {
            let mut all = Vals::default();
            vals.iter().for_each(|val| all.add(Asks { val: *val, ..Asks::default() }));
            all.counts(comers)
        };
        assert!(counts(&[0, 0, 4, 4, 12], 4) && counts(&[8, 12], 4));
        assert!(!counts(&[0, 0, 4, 4, 12], 3) && !counts(&[0, 3, 4], 4) && !counts(&[0, 0], 4) && !counts(&[4, 0], 4));
        assert!(!of(false, &[2, 2, 2]) && !of(true, &[2, 3]) && !of(true, &[9, 7, 9]) && !of(false, &[]));
    }

    #[test]
    fn the_longest_of_many_stay() {
        let mut few = LongestFew::default();
        (0..100_u32).for_each(|key| few.add(key, u64::from(key)));
        few.add(99, 1);
        assert_eq!((few.most(), few.iter().count()), (Some(99), FEW));
    }
}
