//! Sleeps of threads that the subject waited for: what keeps it is that they do nothing, as their code asks.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use super::traced::Traced;
use crate::derive::critical::log::Logged;
use crate::derive::critical::walk::Handover;
use crate::derive::runs::keys::Place;
use crate::derive::why::finding::{Class, Finding, Who};
use crate::derive::why::floor::Floor;
use crate::reports::path::Found;
use crate::reports::path::cause::Cause;
use crate::values::words::escaped;

/// Name of the rule.
pub(super) const RULE: &str = "waited-for";

/// Part of the subject's time that a single sleep must take to be worth a line, when the thread was not waited for again and again: one
/// that sleeps between things to do, and is only waited for at its end, is made so.
const OF_ALL: u64 = 10;
/// So many waits are again and again.
const AGAIN: usize = 3;

/// Whose sleeps, in which call.
type Key = (Vec<u8>, u32, String);

/// Such sleeps.
#[derive(Clone, Debug, Default)]
struct Sleeps {
    count: u64,
    ns: u64,
    max: u64,
    span: Option<(u64, u64)>,
    /// Who waited, in which call, and how long.
    waiters: BTreeMap<(Vec<u8>, String), u64>,
    /// The waits that were not for the end of a process or thread.
    waits: FxHashSet<u32>,
}

/// Name of the threads that waited most, and their call.
pub(super) type Waiter = (Vec<u8>, String);

/// Those worth a line, each with who waited.
pub(super) fn find(traced: &Traced, threads: &[Logged], floor: Floor) -> Vec<(Finding, Option<Waiter>)> {
    let total = traced.found.iter().fold(0, |sum, found| sum + found.ns());
    let mut sleeps: BTreeMap<Key, Sleeps> = BTreeMap::new();
    for found in &traced.found {
        if let Some((key, wait)) = sleep(traced, threads, found) {
            add(sleeps.entry(key).or_default(), found, wait, traced, threads);
        }
    }
    let worth =
        |sleeps: &Sleeps| floor.passes(sleeps.ns) && (sleeps.waits.len() >= AGAIN || sleeps.max >= total / OF_ALL);
    sleeps.into_iter().filter(|(_, sleeps)| worth(sleeps)).map(|(key, sleeps)| finding(key, sleeps)).collect()
}

/// Whose sleep `found` is, and the wait that it is in; None: it is no sleep that anybody waits for.
fn sleep<'t>(traced: &'t Traced, threads: &[Logged], found: &Found) -> Option<(Key, &'t Handover)> {
    let wait = &traced.path.handovers[found.part.handover? as usize];
    let asked = found.cause == Cause::Sleep;
    let Place::Call(call) = found.spent.most()?.place else { return None };
    let task = threads.get(found.part.thread as usize)?.task_at(found.part.from)?;
    asked.then(|| ((task.comm.clone(), task.pid, traced.calls[&call].clone()), wait))
}

fn add(sleeps: &mut Sleeps, found: &Found, wait: &Handover, traced: &Traced, threads: &[Logged]) {
    let (from, to) = (found.part.from, found.part.to);
    sleeps.count += 1;
    sleeps.ns += to - from;
    sleeps.max = sleeps.max.max(to - from);
    let (first, last) = sleeps.span.unwrap_or((from, to));
    sleeps.span = Some((first.min(from), last.max(to)));
    let at = found.part.handover.unwrap_or(0) as usize;
    let in_call = traced.waits[at].most().map_or(Place::Unknown, |most| most.place);
    let call = if let Place::Call(call) = in_call { traced.calls[&call].clone() } else { String::new() };
    let task = threads.get(wait.thread as usize).and_then(|thread| thread.task_at(wait.from));
    // who made a thread did not wait for it
    if !wait.made && !matches!(call.as_str(), "wait4" | "waitid" | "waitpid") {
        sleeps.waits.insert(at as u32);
    }
    if let (false, Some(task)) = (wait.made, task) {
        *sleeps.waiters.entry((task.comm.clone(), call)).or_default() += to - from;
    }
}

fn finding((comm, pid, call): Key, sleeps: Sleeps) -> (Finding, Option<Waiter>) {
    let waiter = sleeps.waiters.into_iter().max_by_key(|(who, ns)| (*ns, std::cmp::Reverse(who.clone())));
    let waiter = waiter.map(|(waiter, _)| waiter);
    let who = waiter.as_ref().map(|(comm, call)| format!(", while {} waited for it in {call}", escaped(comm)));
    let who_waits = who.unwrap_or_default();
    let finding = Finding {
        rule: RULE,
        class: Class::Time,
        cost: Some(sleeps.ns),
        processes: 1,
        count: sleeps.count,
        max: Some(sleeps.max),
        span: sleeps.span,
        text: format!("slept {{count}} times in {call}, the longest {{max}}{who_waits}"),
        command: format!("-e {call} -p {pid}"),
        who: Who { comm, pid: Some(pid) },
        call,
        ..Finding::default()
    };
    (finding, waiter)
}
