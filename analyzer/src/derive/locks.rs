//! Waits for futexes by process and address, with who woke the waiters.
//!
//! Memory is bounded: when there are more sums than [`SUMS`], those with least time are dropped, and the answer says so.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_format::model::{CallState, Task};

use super::futexes::{self, Futex, Role};
use super::paths::feed::{Reader, Waiting};
use super::processes::track::key;
use crate::table::load::Loaded;
use crate::table::question::Question;

/// Most sums that are kept.
const SUMS: usize = 1 << 17;
/// Most threads that woke others of one futex: more are counted together.
const WAKERS: usize = 64;

const EAGAIN: u16 = 11;
const ETIMEDOUT: u16 = 110;

/// A thread, by number and name.
pub(crate) type Named = (u32, Arc<[u8]>);

/// The key of a sum.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Lock {
    /// The process.
    pub process: u64,
    /// The address there.
    pub address: u64,
}

/// Sums of a futex.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    /// The waits themselves.
    pub futex: Futex,
    /// A thread of the process: the first that waited, by time.
    pub whose: Option<(u64, Task)>,
    /// Calls that were not to wait: the value was another by then.
    pub again: u64,
    /// Waits whose time was up.
    pub timeouts: u64,
    /// Threads that were woken or moved to another futex.
    pub woken: u64,
    /// The same by who did it; not all, if there are more than [`WAKERS`].
    pub by: FxHashMap<u32, (Named, u64)>,
    /// There were more.
    pub more_wakers: bool,
}

impl Waits {
    fn add(&mut self, other: Self) {
        self.futex.add(&other.futex);
        let sums =
            [(&mut self.again, other.again), (&mut self.timeouts, other.timeouts), (&mut self.woken, other.woken)];
        sums.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
        self.whose = match (self.whose.take(), other.whose) {
            (Some(one), Some(other)) => Some(if other.0 < one.0 { other } else { one }),
            (one, other) => one.or(other),
        };
        self.more_wakers |= other.more_wakers;
        for (thread, (named, woken)) in other.by {
            if self.by.len() < WAKERS || self.by.contains_key(&thread) {
                let (_, sum) = self.by.entry(thread).or_insert((named, 0));
                *sum = sum.saturating_add(woken);
            } else {
                self.more_wakers = true;
            }
        }
    }

    /// Who woke most: the thread, and how many; None: nobody, or not known.
    pub(crate) fn waker(&self) -> Option<(&Named, u64)> {
        let most = self.by.values().max_by_key(|((tid, _), woken)| (*woken, std::cmp::Reverse(*tid)));
        most.filter(|(_, woken)| *woken > 0 && !self.more_wakers).map(|(named, woken)| (named, *woken))
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    /// By process and address.
    pub sums: FxHashMap<Lock, Waits>,
    /// Some were dropped: each of the others may lack what was dropped before.
    pub cut: bool,
}

impl Locks {
    /// Adds those of a segment.
    pub(crate) fn merge(&mut self, part: Self) {
        for (lock, waits) in part.sums {
            self.sums.entry(lock).or_default().add(waits);
        }
        self.cut |= part.cut;
        if self.sums.len() > SUMS {
            self.cut = true;
            let mut times: Vec<u64> = self.sums.values().map(|waits| waits.futex.ns).collect();
            let (_, middle, _) = times.select_nth_unstable(SUMS / 2);
            let middle = *middle;
            let mut room = SUMS / 2;
            self.sums.retain(|_, waits| {
                let keeps = waits.futex.ns >= middle && room > 0;
                room -= usize::from(keeps);
                keeps
            });
        }
    }
}

/// Reads calls.
pub(crate) struct Calls<'a> {
    /// What is asked.
    pub question: &'a Question<'a>,
}

impl Reader for Calls<'_> {
    type Sum = Locks;
    type Row = ();

    fn wants(&self, segment: usize) -> bool {
        self.question.scope.may_match(&self.question.tape.segments()[segment])
    }

    fn read(&self, segment: &Loaded, range: Range<usize>, _: &mut Vec<Waiting<()>>) -> Locks {
        let filter = self.question.scope.segment(&segment.dict, segment.number);
        let is_one: Vec<bool> = segment.calls.iter().map(|info| futexes::is_one(&info.name)).collect();
        let mut comms: FxHashMap<u32, Arc<[u8]>> = FxHashMap::default();
        let mut locks = Locks::default();
        for row in range {
            let state = segment.core.state[row];
            let timed = !matches!(state, CallState::CloneChild | CallState::Denied | CallState::LostEnter);
            let one = is_one[segment.core.call[row] as usize] && timed;
            if one && filter.core(&segment.core, row) && filter.time(&segment.time, row) {
                let comm = |index: u32| {
                    let name = &segment.dict.tasks[index as usize].comm;
                    Arc::clone(comms.entry(index).or_insert_with(|| Arc::from(&**name)))
                };
                if let Some((lock, waits)) = waits(segment, row, comm) {
                    locks.sums.entry(lock).or_default().add(waits);
                }
            }
        }
        locks
    }
}

/// What the call of `row` adds, to which futex; None: to none.
fn waits(segment: &Loaded, row: usize, comm: impl FnOnce(u32) -> Arc<[u8]>) -> Option<(Lock, Waits)> {
    let core = &segment.core;
    let (address, role) = futexes::role(&segment.call(row).name, segment.args.args.get(row)?)?;
    let index = core.task[row];
    let task = segment.task(row);
    let (from, errno) = (segment.time.start[row], core.errno[row]);
    let mut waits = Waits::default();
    match role {
        Role::Waits { .. } if errno == EAGAIN => waits.again = 1,
        Role::Waits { .. } => {
            let open = matches!(
                core.state[row],
                CallState::InFlight | CallState::Killed | CallState::NoReturn | CallState::BeganBefore
            );
            let dur = core.dur[row];
            waits.futex = Futex::of(role, task.utid, (dur, (from, from.saturating_add(dur)), open));
            waits.timeouts = (errno == ETIMEDOUT).into();
            waits.whose = Some((from, task.clone()));
        }
        Role::Wakes | Role::Unlocks => {
            let ret = segment.args.ret.get(row).copied().filter(|_| errno == 0 && core.state[row].returned())?;
            let woken = if role == Role::Unlocks { 1 } else { u64::try_from(ret).unwrap_or(0) };
            if woken == 0 {
                return None;
            }
            waits.futex = Futex::of(role, task.utid, (0, (0, 0), false));
            waits.woken = woken;
            waits.by.insert(task.utid, ((task.tid, comm(index)), woken));
        }
    }
    Some((Lock { process: key(task), address }, waits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wakes(thread: u32, woken: u64) -> Waits {
        let mut waits = Waits { woken, ..Waits::default() };
        waits.by.insert(thread, ((thread, Arc::from(&b"app"[..])), woken));
        waits
    }

    #[test]
    fn who_woke_most_is_known_unless_there_are_too_many() {
        let mut sum = Waits::default();
        [wakes(7, 2), wakes(8, 3), wakes(7, 4)].into_iter().for_each(|waits| sum.add(waits));
        assert_eq!(sum.waker().map(|((tid, _), woken)| (*tid, woken)), Some((7, 6)));
        (100..200).for_each(|thread| sum.add(wakes(thread, 1)));
        assert!(sum.waker().is_none() && sum.by.len() == WAKERS);
        assert_eq!(sum.woken, 109);
    }

    #[test]
    fn memory_is_bounded_and_the_longest_waits_stay() {
        let mut all = Locks::default();
        for at in 0..SUMS as u64 + 10 {
            let ns = if at == 5 { 900 } else { 1 };
            let futex = Futex { waits: 1, ns, ..Futex::default() };
            let sums = [(Lock { process: 1, address: at }, Waits { futex, ..Waits::default() })];
            all.merge(Locks { sums: sums.into_iter().collect(), cut: false });
        }
        assert!(all.cut && all.sums.len() <= SUMS);
    }
}
