//! Waits outside of calls: nobody falls asleep in its own code but for a page of memory, most often one of a mapped file, or before a call
//! begins that a filter holds up.

use std::collections::BTreeMap;

use crate::reports::traced::cause::Cause;
use crate::reports::traced::{Found, Traced};
use systape_answers::derive::cost::pattern::{CausePattern, PatternTime};
use systape_answers::derive::critical::Id;
use systape_answers::derive::critical::doing::Spent;
use systape_answers::derive::critical::log::Logged;
use systape_answers::derive::critical::walk::Kind;
use systape_answers::derive::runs::State;
use systape_answers::derive::runs::keys::Place;
use systape_answers::derive::why::finding::{Finding, Severity, Who};
use systape_answers::derive::why::floor::Floor;
use systape_answers::derive::why::rules::command;
use systape_events::values::words::escaped;

/// Name of the rule.
const RULE: &str = "fault-waits";

/// Fewer are none: a single one may be a stop that is not on the tape.
const AGAIN: usize = 3;

/// Waits of one process that one other ended.
#[derive(Debug, Default)]
struct Waits {
    /// When each began and ended.
    spans: BTreeMap<u64, u64>,
    /// Their time on the path, ns.
    ns: u64,
}

/// What ended them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum EndedBy {
    /// A disk.
    Disk,
    /// This process.
    Process(Who),
    /// Something else.
    Other,
}

/// Faults of the path, of processes of which `whole` says that no call is missing.
pub(super) fn find(
    traced: &Traced,
    threads: &[Logged],
    floor: Floor,
    whole: impl Fn(u32, (u64, u64)) -> bool,
) -> Vec<Finding> {
    let who = |id: Id, ts: u64| {
        let task = threads.get(id as usize)?.task_at(ts)?;
        Some(Who { comm: task.comm.clone(), pid: Some(task.pid) })
    };
    let outside: Vec<bool> = traced.waits.iter().map(is_outside).collect();
    let mut found: BTreeMap<(Who, EndedBy), Waits> = BTreeMap::new();
    for of in &traced.found {
        let mut around = of.part.handover;
        while let Some(at) = around.filter(|at| !outside[*at as usize] || traced.path.handovers[*at as usize].made) {
            around = traced.path.handovers[at as usize].within;
        }
        let (thread, span, by) = match (around, own(of)) {
            (_, Some(Some(by))) => {
                (of.part.thread, (of.part.from, of.part.to), who(by, of.part.from).map(EndedBy::Process))
            }
            (_, Some(None)) if of.cause == Cause::Disk => {
                (of.part.thread, (of.part.from, of.part.to), Some(EndedBy::Disk))
            }
            (_, Some(None)) => (of.part.thread, (of.part.from, of.part.to), Some(EndedBy::Other)),
            (Some(at), None) => {
                let wait = &traced.path.handovers[at as usize];
                (wait.thread, (wait.from, wait.to), who(wait.by, wait.to).map(EndedBy::Process))
            }
            (None, None) => continue,
        };
        let asleep = threads.get(thread as usize).map_or(&[][..], |thread| &thread.stretches);
        // what it did before the recording is not known
        let begun = asleep.first().is_some_and(|first| first.from < span.0);
        let (Some(waiter), Some(by), true) = (who(thread, span.0), by, begun) else { continue };
        let waits = found.entry((waiter, by)).or_default();
        waits.ns += of.ns();
        let each = asleep.iter().filter(|one| one.from < span.1 && one.to > span.0);
        let each = each.filter(|one| matches!(one.state, State::Sleeping(b'S' | b'D')));
        waits.spans.extend(each.map(|one| (one.from, one.to)));
    }
    let dear = found.into_iter().filter(|((who, _), waits)| {
        let span = waits.spans.first_key_value().zip(waits.spans.values().max()).map(|((from, _), to)| (*from, *to));
        let whole = span.zip(who.pid).is_some_and(|(span, pid)| whole(pid, span));
        floor.passes(waits.ns) && waits.spans.len() >= AGAIN && whole
    });
    dear.map(|((who, by), waits)| finding(who, by, &waits)).collect()
}

/// Whether it was no call that was waited in.
fn is_outside(spent: &Spent) -> bool {
    spent.most().is_none_or(|most| matches!(most.place, Place::User | Place::Unknown))
}

/// Whether `found` is such a wait itself, and which thread ended it that has no time on the tape.
fn own(found: &Found) -> Option<Option<Id>> {
    let sleeps = matches!(found.part.state, State::Sleeping(b'S' | b'D')) && is_outside(&found.spent);
    match found.part.kind {
        Kind::Unseen { by } if sleeps => Some(Some(by)),
        Kind::Interrupt if sleeps => Some(None),
        _ => None,
    }
}

fn finding(who: Who, by: EndedBy, waits: &Waits) -> Finding {
    // who answers for a filter of calls (seccomp) holds them up before they begin
    let (other, by) = match by {
        EndedBy::Disk => (" for a disk, as for pages of a mapped file".to_owned(), None),
        EndedBy::Process(by) => {
            let pid = by.pid.map(|pid| format!(" {pid}")).unwrap_or_default();
            (format!(" for {}{pid} (for a page of memory, or a filter of calls)", escaped(&by.comm)), Some(by))
        }
        EndedBy::Other => (" (for a page of memory, or a filter of calls)".to_owned(), None),
    };
    let time =
        CausePattern { comm: who.comm.clone(), pid: who.pid, parent: None, time: PatternTime::Outside, span: None };
    let first = waits.spans.first_key_value().map(|(from, _)| *from);
    Finding {
        rule: RULE,
        class: Severity::Time,
        cost: Some(waits.ns),
        time: vec![time],
        processes: 1,
        count: waits.spans.len() as u64,
        max: waits.spans.iter().map(|(from, to)| to - from).max(),
        span: first.zip(waits.spans.values().max().copied()),
        text: format!("waited {{count}} times outside of calls{other}, the longest {{max}}"),
        command: format!("states --by tid,state,syscall {}", command::task(&who)),
        who,
        by,
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use systape_format::model::{CPU_NONE, Task};

    use super::*;
    use systape_answers::derive::critical::doing::In;
    use systape_answers::derive::critical::walk::{Handover, Part, Path};
    use systape_answers::derive::critical::{Ended, Stretch};

    /// A thread that ran 10 ns and slept 90 by turns, so many times.
    fn thread(pid: u32, times: u64) -> Logged {
        let stretch = |from, to, state| Stretch { from, to, state, cpu: CPU_NONE, ended: Ended::Interrupt, task: 0 };
        let turn = |at: u64| {
            [
                stretch(at * 100, at * 100 + 10, State::Running),
                stretch(at * 100 + 10, at * 100 + 100, State::Sleeping(b'S')),
            ]
        };
        let task = Task { pid, tid: pid, comm: b"x".to_vec(), ..Task::default() };
        Logged { tasks: vec![task.into()], stretches: (0..times).flat_map(turn).collect() }
    }

    /// What was found of thread 0, whose sleeps, in `place`, thread 1 ended: it is on the tape, or not (`unseen`).
    fn found(times: u64, place: Place, unseen: bool) -> Vec<Finding> {
        let threads = [thread(7, times), thread(8, times)];
        let spent = |ns| Spent { calls: vec![In { place, file: u32::MAX, ns, call: None }], others: 0 };
        let mut traced = Traced {
            found: Vec::new(),
            path: Path::default(),
            waits: Vec::new(),
            wakes: Vec::new(),
            names: Default::default(),
            calls: Default::default(),
            rough: false,
        };
        for at in 0..times {
            let (from, to) = (at * 100 + 10, at * 100 + 100);
            let handover = (!unseen).then_some(at as u32);
            let (thread, kind, state) = if unseen {
                (0, Kind::Unseen { by: 1 }, State::Sleeping(b'S'))
            } else {
                (1, Kind::Runs, State::Running)
            };
            let part = Part { thread, from, to, kind, state, task: 0, handover };
            let cause = if unseen { Cause::NotRecorded } else { Cause::Cpu };
            traced.found.push(Found { part, behind: None, cause, spent: spent(to - from), io: None, limit: None });
            if !unseen {
                let (softirq, made, series, within, depth) = (false, false, false, None, 0);
                let wait = Handover { thread: 0, from, to, by: 1, softirq, made, series, within, depth };
                traced.path.handovers.push(wait);
                traced.waits.push(spent(to - from));
            }
        }
        find(&traced, &threads, Floor { ns: 1, asked: false }, |pid, _| pid == 7)
    }

    #[test]
    fn sleeps_in_no_call_are_told_with_who_ended_them() {
        for unseen in [false, true] {
            let all = found(4, Place::Unknown, unseen);
            let [one] = &all[..] else { panic!("{all:?}") };
            assert_eq!((one.who.pid, one.count, one.max), (Some(7), 4, Some(90)), "unseen: {unseen}");
            assert_eq!(one.by.as_ref().and_then(|by| by.pid), Some(8));
            assert_eq!(one.cost, Some(360));
        }
    }

    #[test]
    fn sleeps_in_calls_and_single_ones_are_none() {
        let call = Place::Call(systape_format::model::Call { abi: 1, nr: 0 });
        assert_eq!(found(4, call, true), []);
        assert_eq!(found(4, call, false), []);
        assert_eq!(found(2, Place::Unknown, true), []);
    }
}
