//! The wake graph timed anew without a cause: how much earlier each thread would be.
//!
//! For each thread and cause one number is kept: the time saved so far. Time inside of the cause is saved. A sleep that another thread ends
//! begins earlier by what the sleeper saved and ends earlier by what its waker saved, so the sleeper has saved the less of what it can
//! and of what its waker had then. A sleep that a timer or a device ends keeps its length. A new thread has saved what its maker had.
//! Two numbers bound what is not known: whether the wait for a CPU inside of a cause goes with it, and whether a short wait takes away all
//! that was saved before it. A third one is for waits for any child that begin again when the wrong one had ended: whether that child was
//! waited for too is not on the tape.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use systape_format::model::Task;

use super::pattern::{CallName, CausePattern, Causes, MOST, Matcher};
use super::union::Union;
use crate::derive::critical::Id;
use crate::derive::critical::log::Ids;
use crate::derive::runs::decode::ANY_CHILD;
use crate::derive::runs::{Doing, End, Interval, IntervalSink, Slot, State, Thread, Why};

/// A range, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The least.
    pub lo: u64,
    /// The most.
    pub hi: u64,
    /// The most, if of a wait for any child that is begun again at once only the last end was waited for; at least `hi`.
    pub most: u64,
}

impl Range {
    /// Makes a range of one figure.
    pub fn of(ns: u64) -> Self {
        Self { lo: ns, hi: ns, most: ns }
    }

    fn add(&mut self, ns: u64) {
        (self.lo, self.hi, self.most) = (self.lo + ns, self.hi + ns, self.most + ns);
    }
}

/// What would limit [`Range::most`] after a wait for any child, if that wait is not begun again.
#[derive(Debug)]
struct ChildWaitLimit {
    /// When the wait ended, CLOCK_MONOTONIC ns.
    ts: u64,
    /// By cause, ns.
    limits: Vec<u64>,
}

impl ChildWaitLimit {
    fn apply(&self, saved: &mut [Range]) {
        for (range, limit) in saved.iter_mut().zip(&self.limits) {
            range.most = range.most.min(*limit).max(range.hi);
        }
    }
}

/// A wait for any child that begins within this time after the one before goes on with that, ns.
const AGAIN: u64 = 1_000_000;

/// What is known of a thread in a slot.
#[derive(Debug, Default)]
struct Seen {
    task: Arc<Task>,
    matcher: Matcher,
    /// The causes that loop in which its last call was, and own code since then, ns.
    looped: Causes,
    own: u64,
}

/// Threads that one call on a futex woke.
#[derive(Debug, Default)]
struct Round {
    /// When that call began.
    start: u64,
    /// How many.
    woken: u32,
    /// What each may have saved when it came there, the least of all, ns.
    limits: Vec<u64>,
}

/// The sink.
pub struct Saved<'a> {
    patterns: &'a [Vec<CausePattern>],
    name: CallName<'a>,
    ids: Ids,
    /// Threads whose sleeps end at fixed times.
    paced: FxHashSet<Id>,
    subject: Option<Id>,
    span: (u64, u64),
    /// By thread; empty: nothing saved yet.
    saved: Vec<Vec<Range>>,
    seen: Vec<Seen>,
    names: FxHashMap<u32, Box<[u8]>>,
    /// Causes of which own code in between is a part.
    loops: Causes,
    /// By waker: the threads that its last call on a futex woke.
    rounds: FxHashMap<Id, Round>,
    /// Futexes that are barriers, by process and address: `0x7f2029289e70`; and by number of the name.
    barriers: &'a FxHashSet<(u32, Vec<u8>)>,
    /// See `barriers`.
    numbers: FxHashSet<(u32, u32)>,
    /// Numbers of [`ANY_CHILD`].
    any_child: FxHashSet<u32>,
    /// By thread, see there.
    held: FxHashMap<Id, ChildWaitLimit>,
    /// Causes of which a barrier took away what was saved: the path does not know of it.
    pub limited: Causes,
    /// Time by cause in which at least one thread was in it.
    pub unions: Vec<Union>,
    /// By cause, what these do not have yet: intervals do not come in order of their ends.
    ended: Vec<Vec<(u64, u64)>>,
    /// Span by cause: when it began first and ended last.
    pub spans: Vec<Option<(u64, u64)>>,
}

impl<'a> Saved<'a> {
    /// Makes the sums of `subject`, whose time that counts is `span`; threads are numbered by `ids`. Causes beyond [`MOST`] are not measured.
    pub fn new(
        patterns: &'a [Vec<CausePattern>],
        name: CallName<'a>,
        ids: Ids,
        (paced, barriers): (FxHashSet<Id>, &'a FxHashSet<(u32, Vec<u8>)>),
        (subject, span): (Option<Id>, (u64, u64)),
    ) -> Self {
        let causes = patterns.len().min(MOST);
        Self {
            patterns: &patterns[..causes],
            name,
            ids,
            paced,
            subject,
            span,
            saved: Vec::new(),
            seen: Vec::new(),
            names: FxHashMap::default(),
            rounds: FxHashMap::default(),
            barriers,
            numbers: FxHashSet::default(),
            any_child: FxHashSet::default(),
            held: FxHashMap::default(),
            limited: 0,
            loops: (0..causes)
                .filter(|at| patterns[*at].iter().any(CausePattern::loops))
                .fold(0, |bits, at| bits | 1 << at),
            unions: vec![Union::default(); causes],
            ended: vec![Vec::new(); causes],
            spans: vec![None; causes],
        }
    }

    /// What the subject saved, by cause.
    pub fn of_subject(&self) -> Vec<Range> {
        let saved = self.subject.and_then(|id| self.saved.get(id as usize));
        let mut saved = saved.cloned().unwrap_or_default();
        saved.resize(self.patterns.len(), Range::default());
        if let Some(held) = self.subject.and_then(|id| self.held.get(&id)) {
            held.apply(&mut saved);
        }
        saved
    }

    fn causes(&mut self, thread: &Thread, slot: Slot, (state, doing): (State, &Doing), span: (u64, u64)) -> Causes {
        if slot >= self.seen.len() {
            self.seen.resize_with(slot + 1, Seen::default);
        }
        let task = &thread.task;
        let seen = &mut self.seen[slot];
        if !Arc::ptr_eq(&seen.task, task) {
            *seen = Seen { task: Arc::clone(task), matcher: Matcher::new(self.patterns, task), ..Seen::default() };
        }
        let names = &self.names;
        let file = |number: u32| names.get(&number).map(|name| &**name);
        let whenever = seen.matcher.causes(self.patterns, task, (state, doing), self.name, file);
        let mut now = 0;
        each(whenever, |at| {
            now |= Causes::from(self.patterns[at].iter().any(|pattern| pattern.overlaps(span))) << at;
        });
        now
    }

    /// The numbers of a thread, made if there are none.
    fn of(&mut self, id: Id) -> &mut Vec<Range> {
        let (at, causes) = (id as usize, self.patterns.len());
        if at >= self.saved.len() {
            self.saved.resize_with(at + 1, Vec::new);
        }
        let saved = &mut self.saved[at];
        if saved.is_empty() {
            saved.resize(causes, Range::default());
        }
        saved
    }

    /// What the thread in `slot` has saved at `ts`, in the midst of what it does.
    fn at(&mut self, threads: &[Thread], slot: Slot, ts: u64) -> Vec<Range> {
        let thread = &threads[slot];
        let id = self.ids.of(threads, slot);
        let mut saved = self.saved.get(id as usize).cloned().unwrap_or_default();
        saved.resize(self.patterns.len(), Range::default());
        if let Some(held) = self.held.get(&id) {
            held.apply(&mut saved);
        }
        let from = thread.since.max(self.span.0);
        if from < ts && thread.state == State::Running {
            let causes = self.causes(thread, slot, (thread.state, &thread.doing), (from, ts));
            each(causes, |at| saved[at].add(ts - from));
        }
        saved
    }

    /// A sleep at a barrier that one of those who meet there ended: the last to come wakes all, and is itself no earlier than each
    /// of the others.
    fn meet(&mut self, threads: &[Thread], (id, causes): (Id, Causes), interval: &Interval) {
        let (Doing::Call(call), End::Woken(Some(waker))) = (interval.doing, interval.end) else { return };
        let Doing::Call(by) = threads[waker.slot].doing else { return };
        if call.file == 0 || (by.call, by.file) != (call.call, call.file) {
            return;
        }
        if !self.numbers.contains(&(threads[waker.slot].task.pid, call.file)) {
            return;
        }
        let other = self.ids.of(threads, waker.slot);
        let before = self.of(id).clone();
        let len = interval.to - interval.from.max(self.span.0).min(interval.to);
        let round = self.rounds.entry(other).or_default();
        if round.start != by.start {
            *round = Round { start: by.start, woken: 0, limits: vec![u64::MAX; before.len()] };
        }
        round.woken += 1;
        for (at, limit) in round.limits.iter_mut().enumerate().filter(|(at, _)| causes & 1 << at == 0) {
            *limit = (*limit).min(before[at].hi.saturating_add(len));
        }
        if round.woken >= 1 {
            let limits = round.limits.clone();
            let mut limited = 0;
            for (at, (range, limit)) in self.of(other).iter_mut().zip(limits).enumerate() {
                limited |= Causes::from(range.hi > limit) << at;
                (range.lo, range.hi, range.most) = (range.lo.min(limit), range.hi.min(limit), range.most.min(limit));
            }
            self.limited |= limited;
        }
    }

    /// A sleep of `id`, `len` long, outside of `causes`.
    fn slept(&mut self, threads: &[Thread], id: Id, causes: Causes, len: u64, interval: &Interval) {
        let (end, ts) = (interval.end, interval.to.min(self.span.1));
        let waker = match end {
            End::Woken(Some(waker)) => Some(self.at(threads, waker.slot, ts)),
            _ => None,
        };
        let paced = end == End::Woken(None) && self.paced.contains(&id);
        let is_any = self.is_any_child(&interval.doing).is_some();
        let mut held = ChildWaitLimit { ts, limits: vec![u64::MAX; if is_any { self.patterns.len() } else { 0 }] };
        let saved = self.of(id);
        for (at, range) in saved.iter_mut().enumerate() {
            if causes & 1 << at != 0 {
                range.add(len);
                continue;
            }
            match &waker {
                Some(waker) => {
                    range.add(len);
                    let lost = range.hi.saturating_sub(waker[at].hi);
                    range.lo = range.lo.min(waker[at].lo);
                    // a short wait for somebody who would not be earlier: perhaps he goes on only until he is told that it is enough
                    if lost < LOST || lost / 4 < len {
                        range.hi = range.hi.min(waker[at].hi);
                        match held.limits.get_mut(at) {
                            Some(limit) => *limit = waker[at].most,
                            None => range.most = range.most.min(waker[at].most),
                        }
                    }
                    range.most = range.most.max(range.hi);
                }
                // the sleep is longer by what was saved before
                None if paced => *range = Range::default(),
                None => {}
            }
        }
        if is_any && waker.is_some() {
            self.held.insert(id, held);
        }
    }

    /// When the wait for any child began that a thread is in.
    fn is_any_child(&self, doing: &Doing) -> Option<u64> {
        match doing {
            Doing::Call(call) if self.any_child.contains(&call.file) => Some(call.start),
            _ => None,
        }
    }

    /// Whether the wait before `interval` ended for good is known by it: then it limits what was saved, or not.
    fn again(&mut self, id: Id, interval: &Interval) {
        let Some(held) = self.held.get(&id) else { return };
        let began = self.is_any_child(&interval.doing).filter(|_| matches!(interval.state, State::Sleeping(_)));
        if began.is_some_and(|began| began >= held.ts && began - held.ts <= AGAIN) {
            self.held.remove(&id);
        } else if interval.to > held.ts + AGAIN {
            self.ended_for_good(id);
        }
    }

    fn ended_for_good(&mut self, id: Id) {
        if let Some(held) = self.held.remove(&id) {
            held.apply(self.of(id));
        }
    }
}

/// What a wait may take away of what was saved before without being doubted, ns.
const LOST: u64 = 20_000_000;

/// Own code between two calls that takes longer is no part of a loop of calls, ns.
const LOOP: u64 = 50_000;

impl Saved<'_> {
    /// Adds own code between two calls of a cause that loops.
    fn looped(&mut self, slot: Slot, id: Id, (causes, len): (Causes, u64), interval: &Interval) {
        let seen = &mut self.seen[slot];
        match (interval.doing, interval.state) {
            // calls that were counted and not stored are those of the loop
            (Doing::Unknown, State::Running) if seen.looped != 0 => seen.own += len,
            (Doing::User, State::Running) if seen.looped != 0 => {
                seen.own += len;
                if len > LOOP {
                    (seen.looped, seen.own) = (0, 0);
                }
            }
            (Doing::Call(_), State::Running) => {
                let (again, own) = (seen.looped & causes, seen.own);
                (seen.looped, seen.own) = (causes, 0);
                if again != 0 && own > 0 {
                    let saved = self.of(id);
                    each(again, |at| saved[at].add(own));
                }
            }
            _ => {}
        }
    }
}

/// Calls `with` for each of `causes`.
fn each(mut causes: Causes, mut with: impl FnMut(usize)) {
    while causes != 0 {
        with(causes.trailing_zeros() as usize);
        causes &= causes - 1;
    }
}

impl IntervalSink for Saved<'_> {
    fn interval(&mut self, threads: &[Thread], slot: Slot, interval: &Interval) {
        let (from, to) = (interval.from.max(self.span.0), interval.to.min(self.span.1));
        if to <= from || threads[slot].task.pid == 0 {
            return;
        }
        let len = to - from;
        let id = self.ids.of(threads, slot);
        let causes = self.causes(&threads[slot], slot, (interval.state, &interval.doing), (from, to));
        each(causes, |at| {
            self.ended[at].push((from, to));
            let (first, last) = self.spans[at].unwrap_or((from, to));
            self.spans[at] = Some((first.min(from), last.max(to)));
        });
        self.looped(slot, id, (causes & self.loops, len), interval);
        self.again(id, interval);
        match interval.state {
            State::Waiting(Why::Made) => {
                // a new thread: what its number stood for before is gone
                let maker = match interval.end {
                    End::Woken(Some(waker)) => {
                        let by = self.ids.of(threads, waker.slot);
                        self.ended_for_good(by);
                        self.at(threads, waker.slot, to)
                    }
                    _ => Vec::new(),
                };
                self.held.remove(&id);
                if !maker.is_empty() {
                    *self.of(id) = maker;
                }
            }
            State::Running | State::Throttled if causes != 0 => {
                let saved = self.of(id);
                each(causes, |at| saved[at].add(len));
            }
            State::Waiting(_) if causes != 0 => {
                let patterns = self.patterns;
                let saved = self.of(id);
                each(causes, |at| {
                    let asked = patterns[at].iter().any(|pattern| pattern.state(interval.state));
                    (saved[at].hi, saved[at].most) = (saved[at].hi + len, saved[at].most + len);
                    saved[at].lo += if asked { len } else { 0 };
                });
            }
            State::Sleeping(b'Z' | b'X') => {}
            State::Sleeping(_) => {
                self.meet(threads, (id, causes), interval);
                self.slept(threads, id, causes, len, interval);
            }
            State::Running | State::Waiting(_) | State::Throttled | State::Unknown => {}
        }
    }

    fn passed(&mut self) {
        self.unions.iter_mut().zip(&mut self.ended).for_each(|(union, ended)| union.add_all(ended));
    }

    fn file(&mut self, number: u32, name: &[u8]) {
        let barriers = self.barriers.iter().filter(|(_, address)| address == name);
        self.numbers.extend(barriers.map(|(pid, _)| (*pid, number)));
        if name == ANY_CHILD {
            self.any_child.insert(number);
        }
        // what no cause is about need not be told from others
        if self.patterns.iter().flatten().any(|pattern| pattern.about(name)) {
            self.names.insert(number, name.into());
        }
    }
}

#[cfg(test)]
mod tests;
