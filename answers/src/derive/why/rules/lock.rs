//! Threads and processes that wait for a lock: futexes that are locks, and locks of files.

use super::super::calls::takes_lock;
use super::super::finding::{Finding, Severity, Who, wall};
use super::super::rank::roll;
use super::slow_calls::{cost, finding};
use super::{Inputs, Waits, WhyRule, command};
use crate::derive::cost::pattern::{CausePattern, Files, PatternTime};
use crate::derive::waits::{Kind, other_word};
use systape_events::values::words::escaped;

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "lock",
    finds: "waits for one lock: a futex of a process (a wait names its owner, or threads that came back from a wait held it before they woke the next), a lock of a file, with who held it last",
    limits: "their sum is above the floor",
    needs: &[systape_format::model::Family::Syscall],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let files = inputs.calls.iter().filter(|sum| takes_lock(&sum.call) && sum.work.slow > 0);
    let files = roll(files, |work| inputs.floor.passes(cost(work)), false);
    let mut found: Vec<Finding> = files.into_iter().map(|row| finding(RULE.name, "waiting ", row)).collect();
    let locks = inputs.futexes.iter().filter(|waits| waits.kind == Kind::Lock);
    found.extend(locks.filter(|waits| inputs.floor.passes(wall(waits.ns, waits.span))).map(futex));
    found
}

/// The finding of a futex that is a lock.
fn futex(waits: &Waits) -> Finding {
    let s = if waits.waiters == 1 { "" } else { "s" };
    let by = waits.thread.as_ref().map(|owner| ("owned", owner));
    let by = by.or(waits.holder.as_ref().map(|holder| ("held", holder)));
    let owner = by.map_or_else(String::new, |(how, thread)| {
        format!(", {how} most of that time by thread {} {}", escaped(&thread.comm), thread.tid)
    });
    let again = match waits.timeouts > waits.waits / 4 {
        // until its holder gives it on
        true if waits.thread.is_none() => ", asked for again after each time-out, as an interpreter's lock is (GIL)",
        true => ", asked for again after each time-out",
        false => "",
    };
    let one = |address: u64| CausePattern {
        comm: Vec::new(),
        pid: waits.who.pid,
        parent: None,
        time: PatternTime::In {
            call: "futex".into(),
            files: Files::Named(format!("{address:#x}").into_bytes()),
            loops: false,
        },
        span: None,
    };
    let time = if waits.of_two { vec![one(waits.address), one(other_word(waits.address))] } else { Vec::new() };
    Finding {
        rule: RULE.name,
        class: Severity::Time,
        cost: Some(wall(waits.ns, waits.span)),
        short: waits.open,
        by_outsider: waits.by_outsider,
        who: waits.who.clone(),
        by: by.map(|(_, thread)| Who { comm: thread.comm.to_vec(), pid: Some(thread.pid) }),
        time,
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

    use super::*;
    use crate::derive::waits::Named;

    fn waits(kind: Kind) -> Waits {
        Waits {
            who: Who { comm: b"app".to_vec(), pid: Some(7) },
            address: 0x1000,
            kind,
            thread: None,
            holder: None,
            by_outsider: false,
            of_two: false,
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
        assert_eq!(found[0].by, Some(Who { comm: b"main".to_vec(), pid: Some(7) }));
    }

    #[test]
    fn two_words_of_a_condition_are_one_lock_with_its_holder() {
        let holder = |comm: &[u8]| Some(Named { tid: 9, pid: 7, comm: Arc::from(comm) });
        let word = |address, comm: &[u8]| Waits { address, holder: holder(comm), timeouts: 30, ..waits(Kind::Lock) };
        let joined = Waits::join_words([word(0x1000, b"busy"), word(0x1004, b"busy"), waits(Kind::Idle)].into_iter());
        assert_eq!((joined.len(), joined[0].waits, joined[0].of_two), (2, 80, true));
        let found = judge(&Inputs { futexes: joined, ..Inputs::none() });
        assert_eq!(found[0].by, Some(Who { comm: b"busy".to_vec(), pid: Some(7) }));
        assert_eq!(found[0].patterns().len(), 2, "the waits of both are its time");
        let end = ", held most of that time by thread busy 9, asked for again after each time-out, as an interpreter's lock is (GIL)";
        assert!(found[0].text.ends_with(end), "{}", found[0].text);
        let of_two = Waits::join_words([word(0x1000, b"a"), word(0x1004, b"b")].into_iter());
        assert_eq!(of_two[0].holder, None, "another one held each");
    }
}
