//! Waits for threads that did nothing meanwhile, as their code asks: the sleep is what keeps who waits.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use crate::derive::cost::pattern::{Files, Pattern, Time};
use crate::derive::critical::Ended;
use crate::derive::critical::log::Logged;
use crate::derive::critical::walk::Handover;
use crate::derive::runs::keys::Place;
use crate::derive::runs::{State, Why};
use crate::derive::why::finding::{Class, Finding, Who};
use crate::derive::why::floor::Floor;
use crate::derive::why::rules::LastToCome;
use crate::reports::traced::Found;
use crate::reports::traced::Traced;
use crate::reports::traced::cause::Cause;
use crate::values::words::escaped;

/// Name of the rule.
pub(super) const RULE: &str = "waited-for";

/// Fewer are none: one that sleeps between things to do, and is only waited for at its end, is made so.
const AGAIN: usize = 3;
/// A first sleep so many times as long as the usual one is another thing.
const START: u64 = 4;
/// A thread that ends so soon after it woke another was waited for to end, ns.
const AT_ITS_END: u64 = 2_000_000;
/// A thread is late when it lives longer than others of its maker by this part of its life, in percent.
const LATE: u64 = 20;

/// What makes a sleep one that somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Counts {
    /// [`AGAIN`] waits.
    Waits,
    /// [`AGAIN`] sleeps while somebody waits for what comes through a pipe, or at a barrier.
    Sleeps,
    /// One: another program was run, or the last of several threads came late.
    Once,
}

/// Whose sleeps, in which call.
type Sleeper = (Vec<u8>, u32, String);
/// Who waited, in which call, on what; for its end.
type Waiter = (Vec<u8>, u32, String, Vec<u8>, bool);

/// Sleeps of one thread's name.
#[derive(Clone, Debug, Default)]
struct Sleeps {
    /// From when to when, in order.
    parts: Vec<(u64, u64)>,
    /// The sleeps, by what makes them count.
    sleeps: BTreeMap<Counts, usize>,
    /// The waits.
    waits: FxHashSet<u32>,
    /// Rounds of a barrier.
    rounds: u64,
    waiters: BTreeMap<Waiter, u64>,
}

impl Sleeps {
    fn ns(&self) -> u64 {
        self.parts.iter().fold(0, |sum, (from, to)| sum + (to - from))
    }

    /// Leaves out the first where it is much longer than those that come again and again: a start is made once.
    fn without_start(&mut self) {
        self.parts.sort_unstable();
        let mut lengths: Vec<u64> = self.parts.iter().map(|(from, to)| to - from).collect();
        lengths.sort_unstable();
        let usual = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
        let starts = |(from, to): &(u64, u64)| (to - from) / START > usual;
        if self.parts.len() > AGAIN && self.parts.first().is_some_and(starts) {
            self.parts.remove(0);
        }
    }

    fn are_enough(&self) -> bool {
        let sleeps = |counts| self.sleeps.get(&counts).copied().unwrap_or(0);
        self.waits.len() >= AGAIN || sleeps(Counts::Sleeps) >= AGAIN || sleeps(Counts::Once) > 0
    }
}

/// Those worth a line.
pub(super) fn find(traced: &Traced, threads: &[Logged], last: &[LastToCome], floor: Floor) -> Vec<Finding> {
    let mut sleeps: BTreeMap<Sleeper, Sleeps> = BTreeMap::new();
    for found in &traced.found {
        let waited_for = sleep(traced, threads, found).map(|of| (of, 0));
        let waited_for = waited_for.or_else(|| at_barrier(traced, threads, last, found));
        if let Some(((sleeper, waiter, counts), rounds)) = waited_for {
            let (from, to) = (found.part.from, found.part.to);
            let sleeps = sleeps.entry(sleeper).or_default();
            sleeps.parts.push((from, to));
            sleeps.rounds = sleeps.rounds.max(rounds);
            sleeps.waits.extend(found.part.handover);
            *sleeps.sleeps.entry(counts).or_default() += 1;
            *sleeps.waiters.entry(waiter).or_default() += to - from;
        }
    }
    sleeps.values_mut().for_each(Sleeps::without_start);
    let dear = sleeps.into_iter().filter(|(_, sleeps)| floor.passes(sleeps.ns()) && sleeps.are_enough());
    dear.filter_map(|(sleeper, sleeps)| finding(sleeper, sleeps)).collect()
}

/// Whose sleep `found` is, and who waited for that thread; None: it is no sleep that anybody waits for.
fn sleep(traced: &Traced, threads: &[Logged], found: &Found) -> Option<(Sleeper, Waiter, Counts)> {
    let at = found.part.handover? as usize;
    let (wait, spent) = (&traced.path.handovers[at], &traced.waits[at]);
    if found.cause != Cause::Sleep || wait.made {
        return None;
    }
    let task = threads.get(found.part.thread as usize)?.task_at(found.part.from)?;
    let waiter = threads.get(wait.thread as usize)?.task_at(wait.from)?;
    let (asleep, waits) = (found.spent.most()?, spent.most()?);
    let (Place::Call(slept), Place::Call(waited)) = (asleep.place, waits.place) else { return None };
    let (slept, waited) = (traced.calls[&slept].clone(), traced.calls[&waited].clone());
    let object = traced.names.name(waits.file).map(<[u8]>::to_vec).unwrap_or_default();
    let for_a_child = matches!(waited.as_str(), "wait4" | "waitid" | "waitpid");
    let ends = ends(wait, threads);
    let counts = match waited.as_str() {
        _ if for_a_child => (task.exe != waiter.exe && !task.exe.is_empty()).then_some(Counts::Once),
        "read" | "readv" | "splice" if object.starts_with(b"pipe:") => Some(Counts::Sleeps),
        _ if ends && is_late(wait, threads) => Some(Counts::Once),
        _ => (!ends).then_some(Counts::Waits),
    }?;
    let waiter = (waiter.comm.clone(), waiter.pid, waited, object, for_a_child || counts == Counts::Once);
    Some(((task.comm.clone(), task.pid, slept), waiter, counts))
}

/// The same of a sleep of who comes last to a barrier, with how often they met there: it is never in a wait there, so no wait of the path
/// leads to it.
fn at_barrier(
    traced: &Traced,
    threads: &[Logged],
    last: &[LastToCome],
    found: &Found,
) -> Option<((Sleeper, Waiter, Counts), u64)> {
    let task = threads.get(found.part.thread as usize)?.task_at(found.part.from)?;
    let at = last.iter().find(|last| (last.thread.tid, last.thread.pid) == (task.tid, task.pid))?;
    let Place::Call(slept) = found.spent.most().filter(|_| found.cause == Cause::Sleep)?.place else { return None };
    let address = format!("{:#x}", at.address).into_bytes();
    let waiter = (at.who.comm.clone(), task.pid, "futex".to_owned(), address, false);
    Some((((task.comm.clone(), task.pid, traced.calls[&slept].clone()), waiter, Counts::Sleeps), at.rounds))
}

/// Whether the waker is one of several threads of one maker in a process, and the others ended long before it.
fn is_late(wait: &Handover, threads: &[Logged]) -> bool {
    let life = |thread: &Logged| {
        let (first, last) = (thread.stretches.first()?, thread.stretches.last()?);
        let by = if let Ended::Woken { by, .. } = first.ended { by } else { return None };
        let made = first.state == State::Waiting(Why::Made);
        made.then(|| (by, thread.tasks.last().map(|task| task.pid), first.from, last.to))
    };
    let Some((maker, pid, from, to)) = threads.get(wait.by as usize).and_then(life) else { return false };
    let slack = (to - from) / 100 * LATE;
    let others = threads.iter().filter_map(life).filter(|(by, of, born, _)| (*by, *of) == (maker, pid) && *born < to);
    // itself too
    let (mut count, mut last) = (0, 0);
    for (.., ended) in others.filter(|(.., ended)| *ended != to) {
        (count, last) = (count + 1, last.max(ended));
    }
    count >= 2 && last >= from && last.saturating_add(slack) <= to
}

/// Whether the waker ended with that.
fn ends(wait: &Handover, threads: &[Logged]) -> bool {
    let last = threads.get(wait.by as usize).and_then(|thread| thread.stretches.last());
    last.is_some_and(|last| last.to <= wait.to.saturating_add(AT_ITS_END))
}

fn finding((comm, pid, slept): Sleeper, sleeps: Sleeps) -> Option<Finding> {
    let ns = sleeps.ns();
    let most = sleeps.waiters.into_iter().max_by_key(|(who, ns)| (*ns, std::cmp::Reverse(who.clone())));
    let ((waiter, waiter_pid, call, object, for_its_end), _) = most?;
    let to_end = if for_its_end { " to end" } else { "" };
    let on = if object.is_empty() { String::new() } else { format!(" of {}", escaped(&object)) };
    let asleep = Time::In { call: slept.clone(), files: Files::Any, loops: false };
    Some(Finding {
        rule: RULE,
        class: Class::Time,
        cost: Some(ns),
        time: vec![Pattern { comm: comm.clone(), pid: Some(pid), parent: None, time: asleep, span: None }],
        processes: 1,
        count: sleeps.rounds.max(sleeps.waits.len() as u64),
        max: sleeps.parts.iter().map(|(from, to)| to - from).max(),
        span: sleeps.parts.first().zip(sleeps.parts.last()).map(|(first, last)| (first.0, last.1)),
        text: format!(
            "waited {{count}} times in {call}{on} for {} {pid}{to_end}, which slept in {slept}, the longest {{max}}",
            escaped(&comm)
        ),
        command: format!("-e {slept} -p {pid}"),
        who: Who { comm: waiter, pid: Some(waiter_pid) },
        by: Some(Who { comm, pid: Some(pid) }),
        object,
        call,
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use systape_format::model::{CPU_NONE, Task};

    use super::*;
    use crate::derive::critical::Stretch;

    /// A thread of process 7 that thread 0 made at `from`, and that sleeps until `to`.
    fn thread(from: u64, to: u64) -> Logged {
        let stretch = |from, to, state, ended| Stretch { from, to, state, cpu: CPU_NONE, ended, task: 0 };
        let made = Ended::Woken { by: 0, softirq: false };
        let stretches = vec![
            stretch(from, from + 1, State::Waiting(Why::Made), made),
            stretch(from + 1, to, State::Sleeping(b'S'), Ended::Interrupt),
        ];
        Logged { tasks: vec![Arc::new(Task { pid: 7, ..Task::default() })], stretches }
    }

    #[test]
    fn a_long_sleep_before_those_that_come_again_is_no_part_of_them() {
        let left = |parts: &[(u64, u64)]| {
            let mut sleeps = Sleeps { parts: parts.to_vec(), ..Sleeps::default() };
            sleeps.without_start();
            sleeps.ns()
        };
        assert_eq!(left(&[(0, 250), (300, 320), (340, 361), (380, 400)]), 61);
        assert_eq!(left(&[(0, 80), (300, 320), (340, 361), (380, 400)]), 141, "not so much longer");
        assert_eq!(left(&[(0, 250), (300, 320), (340, 361)]), 291, "too few to say what is usual");
    }

    #[test]
    fn the_last_of_several_threads_is_late_when_the_others_ended_long_before() {
        let late = |others: &[(u64, u64)]| {
            let mut threads = vec![Logged::default(), thread(0, 900)];
            threads.extend(others.iter().map(|(from, to)| thread(*from, *to)));
            let (thread, by, softirq, made, series, within, depth) = (0, 1, false, false, false, None, 0);
            let wait = Handover { thread, from: 0, to: 900, by, softirq, made, series, within, depth };
            is_late(&wait, &threads)
        };
        assert!(late(&[(0, 400), (5, 410)]));
        assert!(!late(&[(0, 850), (5, 860)]), "they end together");
        assert!(!late(&[(0, 400)]), "one other is not several");
        assert!(!late(&[]));
    }
}
