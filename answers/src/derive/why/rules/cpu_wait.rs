//! Processes that could run and had no CPU.

use std::cmp::Reverse;

use super::super::finding::{Finding, Severity, Who, wall};
use super::{Inputs, WhyRule, command};

/// Tenths of all waits from which on they are those of one process.
const MOST: u64 = 8;
/// A wait below this part of the time looked at is that of any busy machine: one tenth.
const PART: u64 = 10;

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "cpu-wait",
    finds: "waits for a CPU, of one process or of all, and who ran there meanwhile",
    limits: "a tenth of the time looked at, and the floor",
    needs: &[systape_format::model::Family::Sched],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let least = if inputs.floor.asked { 0 } else { inputs.length / PART };
    let cost = |ran: &super::Ran| wall(ran.waited, ran.span);
    let mut waited: Vec<&super::Ran> =
        inputs.ran.iter().filter(|ran| ran.asked && !ran.kernel && ran.waits > 0).collect();
    waited.sort_by_key(|ran| (Reverse(ran.waited), ran.pid));
    let all = waited.iter().fold(0_u64, |sum, ran| sum.saturating_add(ran.waited));
    let Some(first) = waited.first().copied() else { return Vec::new() };
    let span = waited.iter().filter_map(|ran| ran.span).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let together = wall(all, span);
    if together < least || !inputs.floor.passes(together) {
        return Vec::new();
    }
    if first.waited >= all / 10 * MOST {
        return vec![finding(first, Who { comm: first.comm.clone(), pid: Some(first.pid) }, 1, cost(first))];
    }
    let waits = waited.iter().fold(0, |sum, ran| sum + ran.waits);
    let max = waited.iter().map(|ran| ran.max).max().unwrap_or(0);
    let sum = super::Ran { waited: all, waits, max, span, ..super::Ran::default() };
    vec![finding(&sum, Who::default(), waited.len() as u64, together)]
}

fn finding(ran: &super::Ran, who: Who, processes: u64, cost: u64) -> Finding {
    let whose = if processes == 1 { String::new() } else { format!("{{mark}}{processes} processes ") };
    Finding {
        rule: RULE.name,
        class: Severity::Time,
        cost: Some(cost),
        processes,
        count: ran.waits,
        max: Some(ran.max),
        span: ran.span,
        text: format!("{whose}waited {{count}} times for a CPU, the longest {{max}}"),
        command: match who.pid {
            Some(_) => format!("sched latency {}", command::task(&who)),
            None => "sched latency".to_owned(),
        },
        who,
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Ran;
    use super::*;

    #[test]
    fn one_line_says_who_waited_for_a_cpu() {
        let ran = |pid, waited| Ran {
            comm: b"hog".to_vec(),
            pid,
            asked: true,
            waited,
            waits: 5,
            max: 7,
            span: Some((0, 1_000_000_000)),
            ..Ran::default()
        };
        let found = |all: Vec<Ran>| judge(&Inputs { ran: all, ..Inputs::none() });
        let one = found(vec![ran(1, 500_000_000), ran(2, 9_000_000)]);
        assert_eq!((one.len(), one[0].who.pid, one[0].cost), (1, Some(1), Some(500_000_000)));
        assert_eq!(one[0].text, "waited {count} times for a CPU, the longest {max}");
        let many = found((1..9).map(|pid| ran(pid, 50_000_000)).collect());
        assert_eq!((many.len(), many[0].cost, many[0].count), (1, Some(400_000_000), 40));
        assert_eq!(many[0].text, "{mark}8 processes waited {count} times for a CPU, the longest {max}");
        assert_eq!(found(vec![ran(1, 50_000_000)]), [], "a little is normal");
        assert_eq!(found(vec![Ran { kernel: true, ..ran(1, 500_000_000) }]), []);
    }
}
