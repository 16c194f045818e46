//! Processes that could run and had used up the CPU quota of their cgroup.

use std::collections::BTreeMap;

use super::super::finding::{Finding, Severity, Who, wall};
use super::super::limits::Limits;
use super::{Inputs, WhyRule, command};

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "throttled",
    finds: "time in which the CPU quota of a cgroup was used up",
    limits: "its sum is above the floor",
    needs: &[systape_format::model::Family::Sched],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let mut groups: BTreeMap<u64, Vec<&super::Ran>> = BTreeMap::new();
    for ran in inputs.ran.iter().filter(|ran| ran.asked && ran.throttled > 0) {
        groups.entry(ran.cgroup).or_default().push(ran);
    }
    let found = groups.into_values().filter_map(|of| finding(&of, &inputs.limits));
    found.filter(|finding| inputs.floor.passes(finding.cost.unwrap_or(0))).collect()
}

/// The processes of one cgroup.
fn finding(of: &[&super::Ran], limits: &Limits) -> Option<Finding> {
    let pids: Vec<u32> = of.iter().map(|ran| ran.pid).collect();
    let quota = limits.quota(&pids).unwrap_or_else(|| "its cgroup was used up".to_owned());
    let ns = of.iter().fold(0_u64, |sum, ran| sum.saturating_add(ran.throttled));
    let span = of.iter().filter_map(|ran| ran.throttled_span).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let first = of.iter().max_by_key(|ran| (ran.throttled, std::cmp::Reverse(ran.pid)))?;
    let who = match of {
        [one] => Who { comm: one.comm.clone(), pid: Some(one.pid) },
        _ => Who { comm: first.comm.clone(), pid: None },
    };
    Some(Finding {
        rule: RULE.name,
        class: Severity::Time,
        cost: Some(wall(ns, span)),
        processes: of.len() as u64,
        count: of.iter().fold(0, |sum, ran| sum + ran.throttlings),
        max: of.iter().map(|ran| ran.throttled_max).max(),
        span,
        text: format!("throttled {{count}} times, as the CPU quota of {quota}, the longest {{max}}"),
        command: format!("states --by tid,state {}", command::task(&who)),
        who,
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::Ran;
    use super::*;

    #[test]
    fn time_without_quota_is_found_by_cgroup() {
        let ran = |pid, cgroup, throttled| Ran {
            comm: b"app".to_vec(),
            pid,
            asked: true,
            throttled,
            throttlings: 3,
            throttled_max: 90,
            throttled_span: Some((0, 1_000_000_000)),
            cgroup,
            ..Ran::default()
        };
        let inputs =
            Inputs { ran: vec![ran(1, 7, 400_000_000), ran(2, 7, 100_000_000), ran(3, 8, 9)], ..Inputs::none() };
        let found = judge(&inputs);
        assert_eq!((found.len(), found[0].cost, found[0].count, found[0].who.pid), (1, Some(500_000_000), 6, None));
        assert_eq!(
            found[0].text,
            "throttled {count} times, as the CPU quota of its cgroup was used up, the longest {max}"
        );
    }
}
