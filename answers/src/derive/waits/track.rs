//! Follows calls on futexes in order of their ends, and judges what the waits were for.

use rustc_hash::{FxHashMap, FxHashSet};

use super::cycles::{Cycle, EndlessWait, cycles};
use super::futex::{Asks, Names, Role};
use super::sums::{Address, HolderWait, Sum};
use super::threads::Threads;
use super::{Evidence, Kind, kind};

/// Most futexes that are kept: of more the half with less time is dropped.
const SUMS: usize = 1 << 17;
/// Most futexes that a thread may hold at once, as far as is followed.
const HOLDS: usize = 8;
/// Most threads that may hold something.
const HOLDERS: usize = 1 << 17;
/// How often a holder is followed to what it waits for.
const DEPTH: usize = 3;

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// The call returned this.
    With(u64),
    /// The value had changed.
    Again,
    /// The call's time was up.
    TimedOut,
    /// The call failed with another error.
    Failed,
    /// The call did not end, as far as the tape goes.
    Never,
}

/// What a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadAct {
    /// A call on a futex; of a wait, the thread that it names.
    Futex(u64, Role, Option<Names>),
    /// The thread waited as servers rest.
    Rest,
}

/// A call that ended, or did not until the end of the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The process.
    pub process: u64,
    /// The thread (utid).
    pub thread: u32,
    /// What it did.
    pub doing: ThreadAct,
    /// When it began.
    pub from: u64,
    /// When it ended.
    pub to: u64,
    /// Time of the wait, ns, less than between these by waits for a CPU.
    pub ns: u64,
    /// How it ended.
    pub ended: CallEnd,
    /// Whether it began before the recording.
    pub began_before: bool,
}

/// The other word of a condition of glibc.
pub(crate) fn other_word(address: u64) -> u64 {
    address ^ 4
}

/// A futex that a thread came back to.
#[derive(Clone, Debug)]
struct Back {
    address: u64,
    /// The other word of the same condition counts as well.
    of_two: bool,
    /// When.
    since: u64,
    /// How long it had waited until its time was up, ns; 0: it was not.
    in_vain: u64,
    /// What it has waited for since, ns.
    inside: Vec<(HolderWait, u64)>,
}

impl Back {
    /// Whether it is the futex at `address`.
    fn is(&self, address: u64) -> bool {
        self.address == address || (self.of_two && other_word(self.address) == address)
    }

    /// Whether `wait` is the thread's next one, at once, and it was woken soon: its time-out had asked somebody to give up what it waits for. Who
    /// waits for work and looks around at times is woken at any time of the next wait.
    fn obeyed(&self, wait: &Event) -> bool {
        let soon = self.in_vain / 10;
        let (pause, length) = (wait.from.saturating_sub(self.since), wait.to.saturating_sub(wait.from));
        matches!(wait.ended, CallEnd::With(_)) && pause < soon && length < soon
    }

    /// Adds to `sum` that `thread` held it until `to`.
    fn was_held(&self, sum: &mut Sum, thread: u32, to: u64) {
        let ns = to.saturating_sub(self.since);
        sum.hold.held(self.since, to);
        sum.held = sum.held.saturating_add(ns);
        sum.holders.add(thread, ns);
        self.inside.iter().for_each(|(what, ns)| sum.inside.add(*what, *ns));
    }
}

/// The machine.
#[derive(Debug, Default)]
pub struct Tracker {
    sums: FxHashMap<Address, Sum>,
    /// By thread.
    back: FxHashMap<u32, Vec<Back>>,
    /// By thread: a wait that never ended, with the number of the owner it names.
    never: FxHashMap<u32, (Address, u32, u64, u64)>,
    /// Some sums were dropped.
    cut: bool,
}

/// A futex with what its waits are for.
#[derive(Debug)]
pub struct JudgedFutex {
    /// Address of the futex.
    pub at: Address,
    /// Waits for the futex.
    pub sum: Sum,
    /// What they are for.
    pub kind: Kind,
    /// The thread (utid) that is waited for: a lock's owner, the one that is to end, the one that wakes; None: not known, or several.
    pub thread: Option<u32>,
}

impl Tracker {
    /// Adds `event`; ends never go back by more than a call takes to return.
    pub fn add(&mut self, event: &Event) {
        match event.doing {
            ThreadAct::Rest => self.waits_inside(event, HolderWait::Rest),
            ThreadAct::Futex(address, Role::Waits(asks), names) => self.wait(event, address, asks, names),
            ThreadAct::Futex(address, Role::Wakes { all }, _) => self.wake(event, address, all, false),
            ThreadAct::Futex(address, Role::Unlocks, _) => self.wake(event, address, false, true),
        }
    }

    fn sum(&mut self, process: u64, address: u64) -> &mut Sum {
        let at = Address { process, address };
        if self.sums.len() > SUMS && !self.sums.contains_key(&at) {
            self.drop_half();
        }
        self.sums.entry(at).or_default()
    }

    fn wait(&mut self, event: &Event, address: u64, asks: Asks, names: Option<Names>) {
        self.waits_inside(event, HolderWait::Futex(address));
        let backs = self.back.entry(event.thread).or_default();
        let is_obeyed = backs.iter().any(|back| back.is(address) && back.obeyed(event));
        backs.retain(|back| !back.is(address));
        if matches!(event.ended, CallEnd::With(_) | CallEnd::Again | CallEnd::TimedOut) {
            if backs.len() >= HOLDS {
                backs.remove(0);
            }
            let in_vain = if event.ended == CallEnd::TimedOut { event.to.saturating_sub(event.from) } else { 0 };
            backs.push(Back { address, of_two: asks.of_two, since: event.to, in_vain, inside: Vec::new() });
        }
        let at = Address { process: event.process, address };
        match (event.ended, names) {
            (CallEnd::Never, Some(Names::Owner(owner))) if !asks.timed => {
                self.never.insert(event.thread, (at, owner, event.from, event.to));
            }
            _ => drop(self.never.remove(&event.thread)),
        }
        if self.back.len() > HOLDERS {
            self.back.retain(|_, backs| !backs.is_empty());
        }
        if self.back.len() > HOLDERS {
            self.back.clear();
            self.cut = true;
        }
        let sum = self.sum(event.process, address);
        sum.obeyed += u64::from(is_obeyed);
        add_wait(sum, event, asks, names);
    }

    fn wake(&mut self, event: &Event, address: u64, all: bool, unlocks: bool) {
        let back = self.back.get_mut(&event.thread).and_then(|backs| {
            let at = backs.iter().position(|back| back.is(address))?;
            Some(backs.swap_remove(at))
        });
        let woken = match event.ended {
            CallEnd::With(_) if unlocks => 1,
            CallEnd::With(woken) => woken,
            _ => 0,
        };
        let at = Address { process: event.process, address };
        if woken == 0 && back.is_none() && !self.sums.contains_key(&at) {
            return;
        }
        let sum = self.sum(event.process, address);
        if let Some(back) = &back {
            back.was_held(sum, event.thread, event.from);
        }
        if woken > 0 {
            let waits_too = sum.waiters.contains(&event.thread);
            sum.rounds += u64::from(all && waits_too);
            sum.alls += u64::from(all);
            sum.single += u64::from(!all);
            sum.wakes(event.thread, woken, event.from);
        }
        // who unlocks a mutex may lock it again before anybody who was woken does, without a call
        let again = woken > 0 && sum.vals.are_contended() && sum.waiters.len() > 1;
        let other = Address { address: other_word(address), ..at };
        if let Some(back) = back.filter(|back| back.of_two)
            && let Some(sum) = self.sums.get_mut(&other)
        {
            back.was_held(sum, event.thread, event.from);
        }
        if again {
            let backs = self.back.entry(event.thread).or_default();
            if backs.len() >= HOLDS {
                backs.remove(0);
            }
            backs.push(Back { address, of_two: false, since: event.to, in_vain: 0, inside: Vec::new() });
        }
    }

    /// The thread of `event` waited while it may have held other things.
    fn waits_inside(&mut self, event: &Event, what: HolderWait) {
        let Some(backs) = self.back.get_mut(&event.thread) else { return };
        for back in backs.iter_mut().filter(|back| !what.is_of(back) && back.since <= event.from) {
            let ns = event.to.saturating_sub(event.from);
            if let Some((_, sum)) = back.inside.iter_mut().find(|(known, _)| *known == what) {
                *sum = sum.saturating_add(ns);
            } else if back.inside.len() < HOLDS {
                back.inside.push((what, ns));
            }
        }
    }

    /// Keeps the half of the sums with most time.
    fn drop_half(&mut self) {
        self.cut = true;
        let mut times: Vec<u64> = self.sums.values().map(|sum| sum.ns).collect();
        let middle = times.len() / 2;
        let (_, median, _) = times.select_nth_unstable(middle);
        let median = *median;
        let mut room = middle;
        self.sums.retain(|_, sum| {
            let keeps = sum.ns > median || (sum.ns == median && room > 0);
            room -= usize::from(keeps && room > 0);
            keeps
        });
    }

    /// What the waits were for, by process and address, the threads that wait for each other, and whether sums were dropped.
    pub fn judge(self, threads: &Threads) -> (Vec<JudgedFutex>, Vec<Cycle>, bool) {
        let cycles = cycles(&self.held(threads));
        let dead: FxHashSet<Address> = cycles.iter().flatten().map(|held| held.address).collect();
        let judge = SumJudge { sums: &self.sums, threads, dead };
        let mut judged: Vec<(Address, Kind, Option<u32>)> = self
            .sums
            .iter()
            .filter(|(_, sum)| sum.waits > 0)
            .map(|(at, sum)| {
                let kind = judge.kind(*at, sum, DEPTH);
                (*at, kind, judge.thread(*at, sum, kind))
            })
            .collect();
        judged.sort_unstable_by_key(|(at, ..)| *at);
        let mut sums = self.sums;
        let judged = judged.into_iter().filter_map(|(at, kind, thread)| {
            let sum = sums.remove(&at)?;
            Some(JudgedFutex { at, sum, kind, thread })
        });
        (judged.collect(), cycles, self.cut)
    }

    /// The waits that never ended for what has an owner that did not give it up since.
    fn held(&self, threads: &Threads) -> FxHashMap<u32, EndlessWait> {
        let held = self.never.iter().filter_map(|(thread, (at, tid, since, until))| {
            let owner = threads.own(at.process, *tid)?;
            let gave = self.sums.get(at).and_then(|sum| sum.by.get(&owner)).is_some_and(|(_, last)| last >= since);
            (!gave).then_some((
                *thread,
                EndlessWait { thread: *thread, address: *at, owner, since: *since, until: *until },
            ))
        });
        held.collect()
    }
}

impl HolderWait {
    /// Whether it is a wait for the same futex.
    fn is_of(self, back: &Back) -> bool {
        matches!(self, Self::Futex(address) if back.is(address))
    }
}

/// Adds a wait to `sum`.
fn add_wait(sum: &mut Sum, event: &Event, asks: Asks, names: Option<Names>) {
    match names {
        Some(Names::Owner(tid)) => sum.owners.add(tid, event.ns),
        Some(Names::Ends(tid)) => sum.ends.add(tid, event.ns),
        None => {}
    }
    sum.pi += u64::from(asks.pi);
    if event.ended == CallEnd::Again {
        sum.again += 1;
        return;
    }
    sum.vals.add(asks);
    sum.waits = sum.waits.saturating_add(1);
    sum.ns = sum.ns.saturating_add(event.ns);
    sum.max = sum.max.max(event.ns);
    sum.length = sum.length.saturating_add(event.to.saturating_sub(event.from));
    let (from, to) = sum.span.unwrap_or((event.from, event.to));
    sum.span = Some((from.min(event.from), to.max(event.to)));
    sum.waiter(event.thread);
    sum.open |= event.ended == CallEnd::Never || event.began_before;
    sum.never += u64::from(event.ended == CallEnd::Never);
    sum.timeouts += u64::from(event.ended == CallEnd::TimedOut);
    sum.hold.waited(event.from, event.to);
}

/// Judges sums by each other.
struct SumJudge<'a> {
    sums: &'a FxHashMap<Address, Sum>,
    threads: &'a Threads,
    /// Where cycles go through.
    dead: FxHashSet<Address>,
}

impl SumJudge<'_> {
    fn kind(&self, at: Address, sum: &Sum, depth: usize) -> Kind {
        let known = |tid: u32| self.threads.own(at.process, tid).is_some();
        let hold = u128::from(sum.hold.ns()) * 1000 / u128::from(sum.length.max(1));
        let in_turn = sum.rounds > 0 && sum.vals.count_up();
        // who is always the last to come waits never
        let by_one =
            sum.alls > 0 && sum.by.len() == 1 && !sum.has_more_waiters() && sum.vals.counts(sum.waiters.len() + 1);
        let mut evidence = Evidence {
            deadlock: self.dead.contains(&at),
            owned: sum.pi > 0 || sum.owners.iter().any(|(tid, _)| known(tid)),
            ends: sum.ends.iter().any(|(tid, _)| known(tid)),
            rounds: sum.single == 0 && (in_turn || by_one),
            hold: u64::try_from(hold).unwrap_or(u64::MAX).min(1000),
            holder_rests: false,
            obeyed: sum.is_obeyed(),
            waits: sum.waits,
            never: sum.never,
            timeouts: sum.timeouts,
            waiters: sum.waiters.len(),
        };
        // only who is followed for nothing else is worth following
        if kind(&evidence) == Kind::Lock && !evidence.owned && depth > 0 {
            evidence.holder_rests = self.rests(at, sum, depth);
        }
        kind(&evidence)
    }

    /// Whether who held it waited for work itself for most of that time.
    fn rests(&self, at: Address, sum: &Sum, depth: usize) -> bool {
        let rest = sum.inside.iter().filter(|(what, _)| match what {
            HolderWait::Rest => true,
            HolderWait::Futex(address) => {
                let other = Address { process: at.process, address: *address };
                let kind = self.sums.get(&other).map(|sum| self.kind(other, sum, depth - 1));
                matches!(kind, Some(Kind::Condition | Kind::Idle | Kind::Wait))
            }
        });
        rest.map(|(_, ns)| ns).fold(0, u64::saturating_add) > sum.held / 2
    }

    fn thread(&self, at: Address, sum: &Sum, kind: Kind) -> Option<u32> {
        let own = |tid: Option<u32>| self.threads.own(at.process, tid?);
        match kind {
            Kind::Deadlock | Kind::Lock => own(sum.owners.most()),
            Kind::Join => own(sum.ends.most()),
            Kind::Barrier | Kind::Condition => sum.waker().map(|(thread, _)| thread),
            Kind::Wait | Kind::Idle => None,
        }
    }
}

#[cfg(test)]
mod tests;
