//! Reads of files that go to the disk again and again, as a cgroup's limit of memory leaves no room for what was read.

use super::super::calls::{CallTime, Object};
use super::super::finding::{Finding, Severity, wall};
use super::super::rank::{On, Sum, roll, who};
use super::slow_calls::{object, of};
use super::{Inputs, WhyRule, command};

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "memory-limit",
    finds: "reads of files by processes whose cgroup reached its limit of memory, so that most of what they read from disks had been read before",
    limits: "their sum is above the floor; half of the bytes that disks read for the process",
    needs: &[systape_format::model::Family::Syscall, systape_format::model::Family::Block],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let limited = |sum: &&Sum| {
        let file = matches!(&sum.object, Object::Named(name) if name.starts_with(b"/"));
        file && reads(&sum.call) && sum.work.bytes > 0 && inputs.limits.memory_limit(&pids(sum)).is_some()
    };
    let asked = inputs.calls.iter().filter(limited);
    let rows = roll(asked, |work| inputs.floor.passes(cost(work)), false);
    let found = rows.into_iter().filter_map(|((comm, call, _), on, sums)| {
        let limit = inputs.limits.memory_limit(&sums.pids)?;
        let who = who(&comm, &sums);
        let text = format!(
            "{{count}} {call} calls{}, much of it from disks, {limit}",
            if on == On::Any { " of files".to_owned() } else { of(&on, sums.things) }
        );
        Some(Finding {
            rule: RULE.name,
            class: Severity::Time,
            cost: Some(cost(&sums.work)),
            short: sums.work.open,
            processes: sums.pids.len() as u64,
            object: object(&on),
            members: sums.members(),
            count: sums.work.calls,
            max: Some(sums.work.max),
            span: sums.work.span,
            text,
            command: command::summary(&who, &call, &on, ""),
            who,
            call,
            ..Finding::default()
        })
    });
    found.collect()
}

fn cost(work: &CallTime) -> u64 {
    wall(work.ns, work.span)
}

fn pids(sum: &Sum) -> Vec<u32> {
    sum.who.pid.into_iter().collect()
}

fn reads(call: &str) -> bool {
    const CALLS: [&str; 7] = ["read", "pread64", "readv", "preadv", "preadv2", "sendfile", "copy_file_range"];
    CALLS.contains(&call)
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Who;
    use super::super::super::limits::Limits;
    use super::super::super::rank::named;
    use super::*;

    #[test]
    fn reads_of_whom_memory_is_short_are_found() {
        let span = Some((0, 1_000_000_000));
        let work = CallTime { calls: 900, ns: 390_000_000, bytes: 1 << 20, span, ..CallTime::default() };
        let sum = |pid| Sum {
            who: Who { comm: b"db".to_vec(), pid: Some(pid) },
            call: "pread64".into(),
            errno: 0,
            object: named("/db/table"),
            work: work.clone(),
        };
        let limits = Limits::short_of_memory(7, "/small", 48 << 20);
        let found = judge(&Inputs { calls: vec![sum(7), sum(8)], limits, ..Inputs::none() });
        assert_eq!((found.len(), found[0].cost, found[0].who.pid), (1, Some(390_000_000), Some(7)));
        assert_eq!(
            found[0].text,
            "{count} pread64 calls of /db/table, much of it from disks, as the memory limit of /small (48.0 MiB) had no room for what was read before"
        );
    }
}
