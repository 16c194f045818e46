//! Threads and processes that wait for a lock: futexes that are locks, and locks of files.

use super::super::calls::takes_lock;
use super::super::finding::{Class, Finding, wall};
use super::super::rank::{Sum, roll};
use super::slow_calls::{cost, finding};
use super::{Inputs, Rule, Waits, command};
use crate::derive::waits::Kind;
use crate::values::words::escaped;

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "lock",
    finds: "waits for one lock: a futex of a process (a wait names its owner, or threads that came back from a wait held it before they woke the next), a lock of a file, with who gave it up in the end",
    limits: "their sum is above the floor",
    needs: &[systape_format::model::Family::Syscall],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let files: Vec<Sum> =
        inputs.calls.iter().filter(|sum| takes_lock(&sum.call) && sum.work.slow > 0).cloned().collect();
    let files = roll(&files, |work| inputs.floor.passes(cost(work)), false);
    let mut found: Vec<Finding> = files.into_iter().map(|row| finding(RULE.name, "waiting ", row)).collect();
    let locks = inputs.futexes.iter().filter(|waits| waits.kind == Kind::Lock);
    found.extend(locks.filter(|waits| inputs.floor.passes(wall(waits.ns, waits.span))).map(futex));
    found
}

/// The finding of a futex that is a lock.
fn futex(waits: &Waits) -> Finding {
    let s = if waits.waiters == 1 { "" } else { "s" };
    let owner = waits.thread.as_ref().map_or_else(String::new, |owner| {
        format!(", owned most of that time by thread {} {}", escaped(&owner.comm), owner.tid)
    });
    // an interpreter's lock is asked for again and again, until its holder gives it on
    let again = if waits.timeouts > waits.waits / 4 { ", asked for again after each time-out" } else { "" };
    Finding {
        rule: RULE.name,
        class: Class::Time,
        cost: Some(wall(waits.ns, waits.span)),
        short: waits.open,
        who: waits.who.clone(),
        processes: 1,
        call: "futex".into(),
        object: format!("{:#x}", waits.address).into_bytes(),
        count: waits.waits,
        max: Some(waits.max),
        span: waits.span,
        text: format!(
            "{{mark}}{} thread{s} waited {{count}} times for the lock at {:#x}, the longest {{max}}{owner}{again}",
            waits.waiters, waits.address
        ),
        command: format!("-s --by tid,syscall -e futex {}", command::task(&waits.who)),
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::super::finding::Who;
    use super::*;
    use crate::derive::waits::Named;

    fn waits(kind: Kind) -> Waits {
        Waits {
            who: Who { comm: b"app".to_vec(), pid: Some(7) },
            address: 0x1000,
            kind,
            thread: None,
            waits: 40,
            ns: 3_000_000_000,
            max: 9,
            span: Some((0, 900_000_000)),
            waiters: 3,
            timeouts: 0,
            open: false,
        }
    }

    #[test]
    fn waits_for_a_lock_are_found_and_other_waits_are_not() {
        let found = |waits| judge(&Inputs { futexes: vec![waits], ..Inputs::none() });
        let lock = found(waits(Kind::Lock));
        assert_eq!(lock[0].cost, Some(900_000_000), "of three threads at the same time");
        assert_eq!(lock[0].text, "{mark}3 threads waited {count} times for the lock at 0x1000, the longest {max}");
        for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Lock) {
            assert_eq!(found(waits(kind)), [], "{}", kind.name());
        }
    }

    #[test]
    fn owners_and_time_outs_are_said() {
        let owner = Named { tid: 9, pid: 7, comm: Arc::from(&b"main"[..]) };
        let found = judge(&Inputs {
            futexes: vec![Waits { thread: Some(owner), timeouts: 30, ..waits(Kind::Lock) }],
            ..Inputs::none()
        });
        let end = "the longest {max}, owned most of that time by thread main 9, asked for again after each time-out";
        assert!(found[0].text.ends_with(end), "{}", found[0].text);
    }
}
