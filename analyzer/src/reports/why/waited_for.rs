//! Waits for threads that did nothing meanwhile, as their code asks: the sleep is what keeps who waits.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use super::traced::Traced;
use crate::derive::cost::pattern::{Files, Pattern, Time};
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

/// Fewer waits are none: one that sleeps between things to do, and is only waited for at its end, is made so.
const AGAIN: usize = 3;
/// A thread that ends so soon after it woke another was waited for to end, ns.
const AT_ITS_END: u64 = 2_000_000;

/// Whose sleeps, in which call.
type Sleeper = (Vec<u8>, u32, String);
/// Who waited, in which call, on what.
type Waiter = (Vec<u8>, u32, String, Vec<u8>);

/// Sleeps of one thread's name.
#[derive(Clone, Debug, Default)]
struct Sleeps {
    ns: u64,
    max: u64,
    span: Option<(u64, u64)>,
    /// The waits.
    waits: FxHashSet<u32>,
    waiters: BTreeMap<Waiter, u64>,
}

/// Those worth a line.
pub(super) fn find(traced: &Traced, threads: &[Logged], floor: Floor) -> Vec<Finding> {
    let mut sleeps: BTreeMap<Sleeper, Sleeps> = BTreeMap::new();
    for found in &traced.found {
        if let Some((sleeper, waiter)) = sleep(traced, threads, found) {
            let (from, to) = (found.part.from, found.part.to);
            let sleeps = sleeps.entry(sleeper).or_default();
            sleeps.ns += to - from;
            sleeps.max = sleeps.max.max(to - from);
            let (first, last) = sleeps.span.unwrap_or((from, to));
            sleeps.span = Some((first.min(from), last.max(to)));
            sleeps.waits.extend(found.part.handover);
            *sleeps.waiters.entry(waiter).or_default() += to - from;
        }
    }
    let worth = |sleeps: &Sleeps| floor.passes(sleeps.ns) && sleeps.waits.len() >= AGAIN;
    let dear = sleeps.into_iter().filter(|(_, sleeps)| worth(sleeps));
    dear.filter_map(|(sleeper, sleeps)| finding(sleeper, sleeps)).collect()
}

/// Whose sleep `found` is, and who waited for that thread; None: it is no sleep that anybody waits for, again and again.
fn sleep(traced: &Traced, threads: &[Logged], found: &Found) -> Option<(Sleeper, Waiter)> {
    let at = found.part.handover? as usize;
    let (wait, spent) = (&traced.path.handovers[at], &traced.waits[at]);
    if found.cause != Cause::Sleep || wait.made || ends(wait, threads) {
        return None;
    }
    let task = threads.get(found.part.thread as usize)?.task_at(found.part.from)?;
    let waiter = threads.get(wait.thread as usize)?.task_at(wait.from)?;
    let (asleep, waits) = (found.spent.most()?, spent.most()?);
    let (Place::Call(slept), Place::Call(waited)) = (asleep.place, waits.place) else { return None };
    let (slept, waited) = (traced.calls[&slept].clone(), traced.calls[&waited].clone());
    let object = traced.names.name(waits.file).map(<[u8]>::to_vec).unwrap_or_default();
    let for_its_end = matches!(waited.as_str(), "wait4" | "waitid" | "waitpid");
    (!for_its_end).then(|| ((task.comm.clone(), task.pid, slept), (waiter.comm.clone(), waiter.pid, waited, object)))
}

/// Whether the waker ended with that.
fn ends(wait: &Handover, threads: &[Logged]) -> bool {
    let last = threads.get(wait.by as usize).and_then(|thread| thread.stretches.last());
    last.is_some_and(|last| last.to <= wait.to.saturating_add(AT_ITS_END))
}

fn finding((comm, pid, slept): Sleeper, sleeps: Sleeps) -> Option<Finding> {
    let most = sleeps.waiters.into_iter().max_by_key(|(who, ns)| (*ns, std::cmp::Reverse(who.clone())));
    let ((waiter, waiter_pid, call, object), _) = most?;
    let on = if object.is_empty() { String::new() } else { format!(" of {}", escaped(&object)) };
    let asleep = Time::In { call: slept.clone(), files: Files::Any, loops: false };
    Some(Finding {
        rule: RULE,
        class: Class::Time,
        cost: Some(sleeps.ns),
        time: vec![Pattern { comm: comm.clone(), pid: Some(pid), parent: None, time: asleep }],
        processes: 1,
        count: sleeps.waits.len() as u64,
        max: Some(sleeps.max),
        span: sleeps.span,
        text: format!(
            "waited {{count}} times in {call}{on} for {} {pid}, which slept in {slept}, the longest {{max}}",
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
