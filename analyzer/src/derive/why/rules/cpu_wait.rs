//! Processes that could run and had no CPU.

use std::cmp::Reverse;

use super::super::finding::{Class, Finding, Who, wall};
use super::{Inputs, Rule, command};
use crate::values::words::escaped;

/// Most processes with a line each.
const LINES: usize = 3;
/// A wait below this part of the time looked at is that of any busy machine: one tenth.
const PART: u64 = 10;

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "cpu-wait",
    finds: "the processes that waited longest for a CPU, and who was on one most",
    limits: "a tenth of the time looked at, and the floor; three processes",
    needs: &[systape_format::model::Family::Sched],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let least = if inputs.floor.asked { 0 } else { inputs.length / PART };
    let worth = |ran: &&super::Ran| {
        let cost = wall(ran.waited, ran.span);
        ran.asked && !ran.kernel && cost >= least && inputs.floor.passes(cost)
    };
    let mut waited: Vec<&super::Ran> = inputs.ran.iter().filter(worth).collect();
    waited.sort_by_key(|ran| (Reverse(ran.waited), ran.pid));
    waited.truncate(LINES);
    waited.into_iter().map(|ran| finding(ran, inputs)).collect()
}

fn finding(ran: &super::Ran, inputs: &Inputs) -> Finding {
    let others = inputs.ran.iter().filter(|other| other.pid != ran.pid);
    let busiest = others.max_by_key(|other| (other.ran, Reverse(other.pid)));
    let on = busiest.filter(|other| other.ran > 0).map_or_else(String::new, |other| {
        let share = 100.0 * other.ran as f64 / inputs.length.max(1) as f64;
        format!("; on a CPU most: {} {} ({{mark}}{share:.0}% of one)", escaped(&other.comm), other.pid)
    });
    let who = Who { comm: ran.comm.clone(), pid: Some(ran.pid) };
    Finding {
        rule: RULE.name,
        class: Class::Time,
        cost: Some(wall(ran.waited, ran.span)),
        short: false,
        processes: 1,
        call: String::new(),
        object: Vec::new(),
        errno: 0,
        by: None,
        count: ran.waits,
        max: Some(ran.max),
        span: ran.span,
        text: format!("waited {{count}} times for a CPU, the longest {{max}}{on}"),
        command: format!("sched latency {}", command::task(&who)),
        who,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Ran;
    use super::*;

    #[test]
    fn who_waits_is_told_who_ran() {
        let ran = |pid, waited, ran| Ran {
            comm: b"hog".to_vec(),
            pid,
            asked: true,
            ran,
            waited,
            waits: 5,
            max: 7,
            span: Some((0, 1_000_000_000)),
            ..Ran::default()
        };
        let found = |all: Vec<Ran>| judge(&Inputs { ran: all, ..Inputs::none() });
        let all = found(vec![ran(1, 500_000_000, 90), ran(2, 90_000_000, 800_000_000)]);
        assert_eq!(all.len(), 1, "a little is normal");
        assert_eq!(
            all[0].text,
            "waited {count} times for a CPU, the longest {max}; on a CPU most: hog 2 ({mark}80% of one)"
        );
        assert_eq!(found(vec![Ran { kernel: true, ..ran(1, 500_000_000, 90) }]), []);
        assert_eq!(found((1..9).map(|pid| ran(pid, 500_000_000, 90)).collect()).len(), LINES);
    }
}
