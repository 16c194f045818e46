//! Threads and processes that wait for a lock: futexes that are locks, and locks of files.

use super::super::calls::takes_lock;
use super::super::finding::{Class, Finding, wall};
use super::super::rank::{Sum, roll};
use super::slow_calls::{cost, finding};
use super::{Inputs, Rule, command};

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "lock",
    finds: "waits for one lock: a futex of a process (threads that waited for it woke others too, or the wait is that of a lock), a lock of a file, with who gave it up in the end",
    limits: "their sum is above the floor",
    needs: &[systape_format::model::Family::Syscall],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let files: Vec<Sum> =
        inputs.calls.iter().filter(|sum| takes_lock(&sum.call) && sum.work.slow > 0).cloned().collect();
    let files = roll(&files, |work| inputs.floor.passes(cost(work)), false);
    let mut found: Vec<Finding> = files.into_iter().map(|row| finding(RULE.name, "waiting ", row)).collect();
    for waits in inputs.futexes.iter().filter(|waits| waits.futex.is_lock()) {
        let futex = &waits.futex;
        let cost = wall(futex.ns, futex.span);
        if !inputs.floor.passes(cost) {
            continue;
        }
        let threads = futex.waiters.len();
        let s = if threads == 1 { "" } else { "s" };
        found.push(Finding {
            rule: RULE.name,
            class: Class::Time,
            cost: Some(cost),
            time: Vec::new(),
            short: futex.open,
            who: waits.who.clone(),
            processes: 1,
            call: "futex".into(),
            object: format!("{:#x}", waits.address).into_bytes(),
            errno: 0,
            by: None,
            count: futex.waits,
            max: Some(futex.max),
            span: futex.span,
            text: format!(
                "{{mark}}{threads} thread{s} waited {{count}} times for the lock at {:#x}, the longest {{max}}",
                waits.address
            ),
            command: format!("-s --by tid,syscall -e futex {}", command::task(&waits.who)),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Who;
    use super::super::Waits;
    use super::*;
    use crate::derive::futexes::Futex;

    #[test]
    fn waits_for_a_lock_are_found_and_idle_threads_are_not() {
        let waits = |wakers: &[u32]| Waits {
            who: Who { comm: b"app".to_vec(), pid: Some(7) },
            address: 0x1000,
            futex: Futex {
                waits: 40,
                ns: 3_000_000_000,
                max: 9,
                span: Some((0, 900_000_000)),
                waiters: vec![1, 2, 3],
                wakers: wakers.to_vec(),
                ..Futex::default()
            },
        };
        let found = |waits| judge(&Inputs { futexes: vec![waits], ..Inputs::none() });
        let lock = found(waits(&[1]));
        assert_eq!(lock[0].cost, Some(900_000_000), "of three threads at the same time");
        assert_eq!(lock[0].text, "{mark}3 threads waited {count} times for the lock at 0x1000, the longest {max}");
        assert_eq!(found(waits(&[9])), []);
    }
}
