//! Threads in uninterruptible sleep, whatever the call.

use super::super::finding::{Finding, Severity, Who};
use super::{Inputs, WhyRule, command};

/// A shorter sleep is that of a disk, ns.
const LONG: u64 = 1_000_000_000;

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "stuck",
    finds: "a thread that was in uninterruptible sleep (D) for long: a hung file system, a page that must be read",
    limits: "1 s without a break, and the floor; not where calls of the process explain it",
    needs: &[systape_format::model::Family::Sched],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let explained = |pid: u32| -> u64 {
        let calls = inputs.calls.iter().filter(|sum| sum.who.pid == Some(pid));
        calls.map(|sum| sum.work.slow_ns).fold(0, u64::saturating_add)
    };
    let worth = |ran: &&super::Ran| {
        let long = ran.stuck_max >= if inputs.floor.asked { 0 } else { LONG };
        ran.asked && !ran.kernel && long && inputs.floor.passes(ran.stuck_max) && explained(ran.pid) < ran.stuck_max / 2
    };
    let finding = |ran: &super::Ran| {
        let who = Who { comm: ran.comm.clone(), pid: Some(ran.pid) };
        Finding {
            rule: RULE.name,
            class: Severity::Time,
            cost: Some(ran.stuck_max),
            short: true,
            processes: 1,
            count: 1,
            max: Some(ran.stuck_max),
            span: ran.stuck_span,
            text: "a thread was in uninterruptible sleep (D)".to_owned(),
            command: format!("states --by tid,state,syscall {}", command::task(&who)),
            who,
            ..Finding::default()
        }
    };
    inputs.ran.iter().filter(worth).map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Ran;
    use super::*;

    #[test]
    fn a_long_sleep_is_found() {
        let ran = |stuck_max| Ran { comm: b"ls".to_vec(), pid: 7, asked: true, stuck_max, ..Ran::default() };
        let found = |stuck| judge(&Inputs { ran: vec![ran(stuck)], ..Inputs::none() }).len();
        assert_eq!((found(2_000_000_000), found(500_000_000)), (1, 0));
    }
}
