//! Threads of a process that wait for each other's locks for ever.

use super::super::finding::{Finding, Severity, Who};
use super::{Deadlock, Inputs, Stuck, WhyRule};
use systape_events::values::words::escaped;

/// Most threads that a sentence names.
const NAMED: usize = 4;

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "deadlock",
    finds: "threads of which each waits without a time-out for a lock that the next owns, in a circle: none goes on; also of a program that hung before the recording",
    limits: "any; owners are known of mutexes of glibc, of robust and priority-inheriting locks, and of recursive ones of musl",
    needs: &[systape_format::model::Family::Syscall],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    inputs.deadlocks.iter().filter(|deadlock| !deadlock.threads.is_empty()).map(finding).collect()
}

fn finding(deadlock: &Deadlock) -> Finding {
    let threads = &deadlock.threads;
    let name = |thread: &Stuck| format!("{} {}", escaped(&thread.comm), thread.tid);
    let next = |at: usize| name(&threads[(at + 1) % threads.len()]);
    let mut parts: Vec<String> = threads
        .iter()
        .take(NAMED)
        .enumerate()
        .map(|(at, thread)| {
            let whose =
                if threads.len() == 1 { "that it owns itself".to_owned() } else { format!("that {} owns", next(at)) };
            format!("thread {} waits for the lock at {:#x} {whose}", name(thread), thread.address)
        })
        .collect();
    if threads.len() > NAMED {
        parts.push(format!("{} more", threads.len() - NAMED));
    }
    let since = threads.iter().map(|thread| thread.since).max().unwrap_or(0);
    let until = threads.iter().map(|thread| thread.until).max().unwrap_or(since);
    let objects: Vec<String> = threads.iter().take(NAMED).map(|thread| format!("{:#x}", thread.address)).collect();
    let tids: Vec<String> = threads.iter().map(|thread| thread.tid.to_string()).collect();
    Finding {
        rule: RULE.name,
        class: Severity::Broken,
        short: true,
        who: Who { comm: threads[0].comm.clone(), pid: Some(deadlock.pid) },
        processes: 1,
        call: "futex".into(),
        object: objects.join(" ").into_bytes(),
        count: threads.len() as u64,
        max: Some(until.saturating_sub(since)),
        span: Some((since, until)),
        text: format!("deadlock for {{max}}: {}", parts.join("; ")),
        command: format!("-e futex -t {}", tids.join(",")),
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stuck(comm: &str, tid: u32, address: u64, since: u64) -> Stuck {
        Stuck { comm: comm.into(), tid, address, since, until: 2_000 }
    }

    #[test]
    fn both_threads_and_both_locks_are_named() {
        let threads = vec![stuck("pay", 71, 0x1000, 500), stuck("refund", 72, 0x2000, 510)];
        let found = judge(&Inputs { deadlocks: vec![Deadlock { pid: 70, threads }], ..Inputs::none() });
        assert_eq!((found[0].class, found[0].span, found[0].max), (Severity::Broken, Some((510, 2_000)), Some(1_490)));
        assert_eq!(
            found[0].text,
            "deadlock for {max}: thread pay 71 waits for the lock at 0x1000 that refund 72 owns; thread refund 72 waits for the lock at 0x2000 that pay 71 owns"
        );
        assert_eq!((&*found[0].object, &*found[0].command), (&b"0x1000 0x2000"[..], "-e futex -t 71,72"));
    }

    #[test]
    fn one_thread_that_locks_twice_and_long_circles() {
        let text = |threads: Vec<Stuck>| {
            judge(&Inputs { deadlocks: vec![Deadlock { pid: 70, threads }], ..Inputs::none() })[0].text.clone()
        };
        assert!(text(vec![stuck("app", 70, 0x1000, 5)]).ends_with("waits for the lock at 0x1000 that it owns itself"));
        assert!(text((0..9).map(|tid| stuck("app", 70 + tid, 0x1000, 5)).collect()).ends_with("; 5 more"));
    }
}
