//! Waits for threads that did nothing meanwhile, as their code asks: the sleep is what keeps who waits.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashSet;

use crate::reports::traced::Found;
use crate::reports::traced::Traced;
use crate::reports::traced::cause::Cause;
use systape_answers::derive::cost::pattern::{CausePattern, Files, PatternTime};
use systape_answers::derive::critical::Ended;
use systape_answers::derive::critical::log::Logged;
use systape_answers::derive::critical::walk::Handover;
use systape_answers::derive::runs::keys::Place;
use systape_answers::derive::runs::{State, Why};
use systape_answers::derive::why::finding::{Finding, Severity, Who, only};
use systape_answers::derive::why::floor::Floor;
use systape_answers::derive::why::rules::{LastToCome, command};
use systape_events::values::words::{errno_text, escaped};

/// Name of the rule.
pub(super) const RULE: &str = "waited-for";

/// Fewer are none: one that sleeps between things to do, and is only waited for at its end, is made so.
const AGAIN: usize = 3;
/// A first sleep so many times as long as the usual one is another thing.
const START: u64 = 4;
/// A thread that ends so soon after it woke another was waited for to end, ns.
const AT_ITS_END: u64 = 2_000_000;
/// One sleep of a program that was run once is what it was run for; it is named from this part of all the time on, in percent.
const WORTH_ONCE: u64 = 10;
/// A thread is late when it lives longer than others of its maker by this part of its life, in percent.
const LATE: u64 = 20;

/// What makes a sleep one that somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SleepReason {
    /// [`AGAIN`] waits.
    Waits,
    /// [`AGAIN`] sleeps while somebody waits for what comes through a pipe, or at a barrier.
    Sleeps,
    /// One: another program was run, or the last of several threads came late.
    Once,
}

/// Whose sleeps, in which call. Without a pid where the process was run to its end: the next of its name is the same cause.
type SleeperKey = (Vec<u8>, Option<u32>, String);
/// Who waited, in which call, on what; for its end.
type WaiterKey = (Vec<u8>, u32, String, Vec<u8>, bool);

/// A sleep, and who waited for it.
struct Asleep {
    comm: Vec<u8>,
    pid: u32,
    call: String,
    waiter: WaiterKey,
    counts: SleepReason,
    /// The process was run to its end.
    run: bool,
}

/// Sleeps of one thread's name.
#[derive(Clone, Debug, Default)]
struct Sleeps {
    /// From when to when, in order.
    parts: Vec<(u64, u64)>,
    /// The sleeps, by what makes them count.
    sleeps: BTreeMap<SleepReason, usize>,
    /// The processes that slept.
    pids: BTreeSet<u32>,
    /// The waits.
    waits: FxHashSet<u32>,
    /// Rounds of a barrier.
    rounds: u64,
    waiters: BTreeMap<WaiterKey, u64>,
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

    /// Whether they are enough in `all` the time, ns.
    fn are_enough(&self, all: u64) -> bool {
        let sleeps = |counts| self.sleeps.get(&counts).copied().unwrap_or(0);
        let once = self.parts.len() > 1 || self.ns().saturating_mul(100) >= all.saturating_mul(WORTH_ONCE);
        self.waits.len() >= AGAIN || sleeps(SleepReason::Sleeps) >= AGAIN || (sleeps(SleepReason::Once) > 0 && once)
    }
}

/// Sleeps that are worth a line.
pub(super) fn find(traced: &Traced, threads: &[Logged], last: &[LastToCome], floor: Floor) -> Vec<Finding> {
    let mut sleeps: BTreeMap<SleeperKey, Sleeps> = BTreeMap::new();
    for found in &traced.found {
        let asleep = sleep(traced, threads, found).map(|asleep| (asleep, 0));
        if let Some((asleep, rounds)) = asleep.or_else(|| at_barrier(traced, threads, last, found)) {
            let (from, to) = (found.part.from, found.part.to);
            let sleeper = (asleep.comm, (!asleep.run).then_some(asleep.pid), asleep.call);
            let sleeps = sleeps.entry(sleeper).or_default();
            sleeps.pids.insert(asleep.pid);
            sleeps.parts.push((from, to));
            sleeps.rounds = sleeps.rounds.max(rounds);
            sleeps.waits.extend(found.part.handover);
            *sleeps.sleeps.entry(asleep.counts).or_default() += 1;
            *sleeps.waiters.entry(asleep.waiter).or_default() += to - from;
        }
    }
    sleeps.values_mut().for_each(Sleeps::without_start);
    let all = if floor.asked { 0 } else { traced.found.iter().fold(0, |sum, found| sum + found.ns()) };
    let dear = sleeps.into_iter().filter(|(_, sleeps)| floor.passes(sleeps.ns()) && sleeps.are_enough(all));
    dear.filter_map(|(sleeper, sleeps)| finding(sleeper, sleeps)).collect()
}

/// Whose sleep `found` is, and who waited for that thread; None: it is no sleep that anybody waits for.
fn sleep(traced: &Traced, threads: &[Logged], found: &Found) -> Option<Asleep> {
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
        _ if for_a_child => (task.exe != waiter.exe && !task.exe.is_empty()).then_some(SleepReason::Once),
        "read" | "readv" | "splice" if object.starts_with(b"pipe:") => Some(SleepReason::Sleeps),
        _ if ends && is_late(wait, threads) => Some(SleepReason::Once),
        _ => (!ends).then_some(SleepReason::Waits),
    }?;
    let waiter = (waiter.comm.clone(), waiter.pid, waited, object, for_a_child || counts == SleepReason::Once);
    Some(Asleep { comm: task.comm.clone(), pid: task.pid, call: slept, waiter, counts, run: for_a_child })
}

/// The same of a sleep of who comes last to a barrier, with how often they met there: it is never in a wait there, so no wait of the path
/// leads to it.
fn at_barrier(traced: &Traced, threads: &[Logged], last: &[LastToCome], found: &Found) -> Option<(Asleep, u64)> {
    let task = threads.get(found.part.thread as usize)?.task_at(found.part.from)?;
    let at = last.iter().find(|last| (last.thread.tid, last.thread.pid) == (task.tid, task.pid))?;
    let Place::Call(slept) = found.spent.most().filter(|_| found.cause == Cause::Sleep)?.place else { return None };
    let address = format!("{:#x}", at.address).into_bytes();
    let waiter = (at.who.comm.clone(), task.pid, "futex".to_owned(), address, false);
    let (comm, call) = (task.comm.clone(), traced.calls[&slept].clone());
    Some((Asleep { comm, pid: task.pid, call, waiter, counts: SleepReason::Sleeps, run: false }, at.rounds))
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

fn finding((comm, _, slept): SleeperKey, sleeps: Sleeps) -> Option<Finding> {
    let ns = sleeps.ns();
    let pids: BTreeSet<u32> = sleeps.waiters.keys().map(|(_, pid, ..)| *pid).collect();
    let most = sleeps.waiters.into_iter().max_by_key(|(who, ns)| (*ns, std::cmp::Reverse(who.clone())));
    let ((waiter, _, call, object, for_its_end), _) = most?;
    let to_end = if for_its_end { " to end" } else { "" };
    let on = if object.is_empty() { String::new() } else { format!(" of {}", escaped(&object)) };
    let asleep = PatternTime::In { call: slept.clone(), files: Files::Any, loops: false };
    let by = Who { comm, pid: only(&sleeps.pids) };
    let sleeper = match by.pid {
        Some(pid) => format!("{} {pid}", escaped(&by.comm)),
        None => format!("{} ({} processes)", escaped(&by.comm), sleeps.pids.len()),
    };
    Some(Finding {
        rule: RULE,
        class: Severity::Time,
        cost: Some(ns),
        time: vec![CausePattern { comm: by.comm.clone(), pid: by.pid, parent: None, time: asleep, span: None }],
        processes: pids.len() as u64,
        count: sleeps.rounds.max(sleeps.waits.len() as u64),
        max: sleeps.parts.iter().map(|(from, to)| to - from).max(),
        span: sleeps.parts.first().zip(sleeps.parts.last()).map(|(first, last)| (first.0, last.1)),
        text: format!(
            "waited {{count}} times in {call}{on} for {sleeper}{to_end}, which slept in {slept}, the longest {{max}}"
        ),
        command: format!("-e {slept} {}", command::task(&by)),
        who: Who { comm: waiter, pid: only(&pids) },
        by: Some(by),
        object,
        call,
        ..Finding::default()
    })
}

/// Says in `sleeps` what is looked for between the sleeps: the attempts at it are no finding of their own.
pub(super) fn look_for(sleeps: &mut [Finding], candidates: &mut Vec<Finding>) {
    for sleep in sleeps {
        let same = |one: &Finding| one.rule == "retries" && one.who == sleep.who && one.count >= sleep.count / 2;
        let Some(at) = candidates.iter().position(same) else { continue };
        let tried = candidates.remove(at);
        let Finding { call, object, errno, .. } = &tried;
        sleep.text.push_str(&format!("; each time {call} of {} had failed ({})", escaped(object), errno_text(*errno)));
        // who else has to do with it is the cause
        sleep.command = command::file(object);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use systape_format::model::{CPU_NONE, Task};

    use super::*;
    use systape_answers::derive::critical::Stretch;

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
    fn one_sleep_of_a_program_that_was_run_is_told_where_it_is_a_tenth_of_the_time() {
        let enough = |parts: &[(u64, u64)], all| {
            let sleeps = BTreeMap::from([(SleepReason::Once, parts.len())]);
            Sleeps { parts: parts.to_vec(), sleeps, ..Sleeps::default() }.are_enough(all)
        };
        assert!(!enough(&[(0, 99)], 1000) && enough(&[(0, 100)], 1000));
        assert!(enough(&[(0, 40), (50, 90)], 1000), "it comes again");
        assert!(enough(&[(0, 40)], 0), "asked for all");
    }

    #[test]
    fn programs_that_are_run_again_and_again_and_sleep_are_one_line() {
        let sleeps = |pids: &[u32]| Sleeps {
            parts: pids.iter().map(|pid| (u64::from(*pid), u64::from(*pid) + 5)).collect(),
            pids: pids.iter().copied().collect(),
            waits: pids.iter().copied().collect(),
            waiters: BTreeMap::from([((b"sh".to_vec(), 1, "wait4".to_owned(), Vec::new(), true), 5)]),
            ..Sleeps::default()
        };
        let told = |pids: &[u32]| {
            finding((b"sleep".to_vec(), None, "clock_nanosleep".to_owned()), sleeps(pids)).expect("a finding")
        };
        let many = told(&[10, 20, 30]);
        assert_eq!(
            many.text,
            "waited {count} times in wait4 for sleep (3 processes) to end, which slept in clock_nanosleep, the longest {max}"
        );
        assert_eq!((many.count, many.command.as_str()), (3, "-e clock_nanosleep --comm=sleep"));
        assert_eq!((many.who.pid, many.by.and_then(|by| by.pid)), (Some(1), None));
        assert_eq!(told(&[10]).command, "-e clock_nanosleep -p 10");
    }

    #[test]
    fn what_a_script_looks_for_between_its_sleeps_is_said_with_them() {
        let of = |rule, pid| Finding {
            rule,
            who: Who { comm: b"sh".to_vec(), pid: Some(pid) },
            call: "newfstatat".to_owned(),
            object: b"/run/it".to_vec(),
            errno: 2,
            count: 12,
            text: "waited".to_owned(),
            ..Finding::default()
        };
        let (mut sleeps, mut others) = (vec![of(RULE, 1)], vec![of("retries", 2), of("retries", 1), of("storm", 1)]);
        look_for(&mut sleeps, &mut others);
        assert_eq!(sleeps[0].text, "waited; each time newfstatat of /run/it had failed (ENOENT)");
        assert_eq!(sleeps[0].command, "-P /run/it");
        assert_eq!(others, [of("retries", 2), of("storm", 1)], "of another process, and of another rule");
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
