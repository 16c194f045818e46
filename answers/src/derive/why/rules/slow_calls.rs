//! Calls that took long, on one file or peer.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::super::calls::{CallTime, Object, is_durable, takes_lock};
use super::super::finding::{Finding, Severity, wall};
use super::super::limits::Limits;
use super::super::patterns::TO;
use super::super::rank::{On, Row, Sum, roll, who};
use super::super::talk::together::{is_dns, peer};
use super::{Inputs, WhyRule, command};
use systape_events::values::words::escaped;

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "slow-calls",
    finds: "calls on one file, socket or directory that took long",
    limits: "calls longer than 2 ms + 20 ns per byte, not counting time waiting for a CPU, when they add up to the floor",
    needs: &[systape_format::model::Family::Syscall],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let asked = inputs.calls.iter().filter(|sum| sum.work.slow > 0 && !of_others(sum));
    let rows = roll(asked, |work| inputs.floor.passes(cost(work)), false);
    let joined = across(rows).into_iter();
    joined
        .map(|(row, calls)| held_back(several(finding(RULE.name, "slow ", row.clone()), &calls), &row, &inputs.limits))
        .collect()
}

/// Rows of calls of several kinds on the same thing, joined where together they explain more than the one that explains most; with the names of
/// the kinds.
fn across(rows: Vec<Row>) -> Vec<(Row, Vec<String>)> {
    let mut groups: BTreeMap<(Vec<u8>, On), Vec<Row>> = BTreeMap::new();
    for row in rows {
        groups.entry((row.0.0.clone(), row.1.clone())).or_default().push(row);
    }
    let mut joined = Vec::new();
    for ((comm, on), mut rows) in groups {
        rows.sort_by_key(|(.., sums)| Reverse(cost(&sums.work)));
        let mut all = rows[0].2.clone();
        rows[1..].iter().for_each(|(.., sums)| all.join(sums));
        let largest = cost(&rows[0].2.work);
        if on == On::Any || rows.len() < 2 || cost(&all.work) < largest.saturating_add(largest / 2) {
            joined.extend(rows.into_iter().map(|row| (row, Vec::new())));
            continue;
        }
        let calls = rows.iter().map(|((_, call, _), ..)| call.clone()).collect();
        joined.push((((comm, String::new(), 0), on, all), calls));
    }
    joined
}

/// The finding with the limit that held the calls of `row` back, if one did.
pub(super) fn held_back(mut finding: Finding, (_, on, sums): &Row, limits: &Limits) -> Finding {
    let by_io =
        limits.io_limit(&sums.pids, &object(on), cost(&sums.work)).map(|limit| format!(", held back by {limit}"));
    finding.text += &by_io.unwrap_or_default();
    finding
}

/// A finding about `calls` of several kinds; none: it is about its own.
fn several(mut finding: Finding, calls: &[String]) -> Finding {
    if calls.is_empty() {
        return finding;
    }
    finding.text = finding.text.replacen("slow  calls", &format!("slow calls ({})", calls.join(", ")), 1);
    let pattern = |call: &String| Finding { call: call.clone(), ..finding.clone() }.patterns();
    finding.time = calls.iter().flat_map(pattern).collect();
    finding.command = finding.command.replacen("-e  ", &format!("-e {} ", calls.join(",")), 1);
    // the one that explains most
    finding.call.clone_from(&calls[0]);
    finding
}

/// Those that have rules of their own.
fn of_others(sum: &Sum) -> bool {
    let asks_name = |name: &[u8]| peer(name).is_some_and(is_dns);
    let dns = matches!(&sum.object, Object::Named(name) if asks_name(name));
    is_durable(&sum.call) || takes_lock(&sum.call) || dns
}

/// The wall time of slow calls.
pub(super) fn cost(work: &CallTime) -> u64 {
    wall(work.slow_ns, work.slow_span)
}

/// ` of /etc/passwd`.
pub(super) fn of(on: &On, things: u64) -> String {
    match on {
        On::One(Object::Named(name)) => format!(" of {}", escaped(name)),
        On::One(Object::Unknown) => " of an unknown file".to_owned(),
        On::One(Object::None) => String::new(),
        On::In(dir) => format!(" of {{mark}}{things} files in {}", escaped(dir)),
        On::Peer(end) => format!(" of {{mark}}{things} connections to {}", escaped(end)),
        On::Any => format!(" of {{mark}}{things} files"),
    }
}

/// What a row is on, as bytes.
pub(super) fn object(on: &On) -> Vec<u8> {
    match on {
        On::One(Object::Named(name)) => name.to_vec(),
        On::In(dir) => [dir, &b"/*"[..]].concat(),
        On::Peer(end) => [TO, end].concat(),
        _ => Vec::new(),
    }
}

/// The finding of a row about slow calls.
pub(super) fn finding(rule: &'static str, which: &str, ((comm, call, _), on, sums): Row) -> Finding {
    let who = who(&comm, &sums);
    let work = &sums.work;
    let open = if work.open { ", not all of it recorded" } else { "" };
    let by = work.by.as_ref().map(|by| by.1.clone());
    let held = by.as_ref().map_or_else(String::new, |who| {
        let pid = who.pid.map(|pid| format!(" {pid}")).unwrap_or_default();
        format!(", held by {}{pid}", escaped(&who.comm))
    });
    let calls = if work.slow == 1 && !call.is_empty() { "call" } else { "calls" };
    Finding {
        rule,
        class: Severity::Time,
        cost: Some(cost(work)),
        short: work.open,
        processes: sums.pids.len() as u64,
        object: object(&on),
        members: sums.members(),
        by,
        count: work.slow,
        max: Some(work.max),
        span: work.slow_span,
        text: format!("{{count}} {which}{call} {calls}{}, the longest {{max}}{held}{open}", of(&on, sums.things)),
        command: command::summary(&who, &call, &on, ""),
        who,
        call,
        ..Finding::default()
    }
}

/// The finding of a row about calls that are dear because there are many; `more`: options of the command that shows them.
pub(super) fn repeated(rule: &'static str, ((comm, call, errno), on, sums): Row, text: String, more: &str) -> Finding {
    let who = who(&comm, &sums);
    Finding {
        rule,
        class: Severity::Time,
        cost: Some(wall(sums.work.ns, sums.work.span)),
        short: sums.work.open,
        processes: sums.pids.len() as u64,
        object: object(&on),
        members: sums.members(),
        errno,
        count: sums.work.calls,
        max: Some(sums.work.max),
        span: sums.work.span,
        text,
        command: command::summary(&who, &call, &on, more),
        who,
        call,
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Who;
    use super::super::super::rank::named;
    use super::*;

    fn sum(call: &str, slow_ns: u64) -> Sum {
        let span = Some((0, 2_000_000_000));
        let work = CallTime {
            calls: 9,
            ns: slow_ns,
            slow: 7,
            slow_ns,
            max: 9_000_000,
            span,
            slow_span: span,
            ..CallTime::default()
        };
        let who = Who { comm: b"sh".to_vec(), pid: Some(7) };
        Sum { who, call: call.into(), errno: 0, object: named("/nfs/x"), work }
    }

    #[test]
    fn slow_calls_on_a_file_are_found() {
        let inputs = |calls| Inputs { calls, ..Inputs::none() };
        let found = judge(&inputs(vec![sum("openat", 70_000_000)]));
        assert_eq!((found[0].cost, found[0].count), (Some(70_000_000), 7));
        assert_eq!(found[0].text, "{count} slow openat calls of /nfs/x, the longest {max}");
        assert_eq!(found[0].command, "-s --by comm,syscall -e openat -P /nfs/x -p 7");
        assert_eq!(judge(&inputs(vec![sum("openat", 7_000_000)])), [], "below the floor");
        let both = judge(&inputs(vec![sum("openat", 70_000_000), sum("statx", 80_000_000), sum("read", 31_000_000)]));
        assert_eq!((both.len(), both[0].cost, both[0].time.len()), (1, Some(181_000_000), 3));
        assert_eq!(both[0].text, "{count} slow calls (statx, openat, read) of /nfs/x, the longest {max}");
        assert_eq!(both[0].command, "-s --by comm,syscall -e statx,openat,read -P /nfs/x -p 7");
        assert_eq!(judge(&inputs(vec![sum("fsync", 70_000_000), sum("flock", 70_000_000)])), [], "rules of their own");
    }
}
