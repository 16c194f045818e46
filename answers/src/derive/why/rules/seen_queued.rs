//! Threads that looks found ready to run, and on no CPU.

use super::super::finding::Finding;
use super::seen_waiting::{cost, finding};
use super::{Inputs, WhyRule, command};
use crate::derive::why::seen::SeenWait;
use systape_events::values::words::escaped;

/// A wait below this part of the time looked at is that of any busy machine: one tenth.
const PART: u64 = 10;
/// Names of those that ran.
const RAN: usize = 3;

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "seen-queued",
    finds: "a process that looks found waiting for a CPU, and who ran meanwhile by samples; an estimate with its bounds",
    limits: "a tenth of the time looked at, and the floor",
    needs: &[systape_format::model::Family::Look],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let seen = &inputs.seen;
    let least = if inputs.floor.asked { 0 } else { seen.time / PART };
    let worth = |wait: &&SeenWait| {
        let cost = cost(wait).0;
        cost >= least && inputs.floor.passes(cost)
    };
    let all = seen.ran.iter().fold(0_u64, |all, (_, ns)| all.saturating_add(*ns)).max(1);
    let ran = seen.ran.iter().take(RAN);
    let ran: Vec<String> =
        ran.map(|(comm, ns)| format!("{} {:.0} %", escaped(comm), 100.0 * *ns as f64 / all as f64)).collect();
    let meanwhile = if ran.is_empty() { String::new() } else { format!("; on CPUs were {}", ran.join(", ")) };
    let of = |wait: &SeenWait| {
        let found = finding(RULE.name, wait, "waited for a CPU".to_owned(), seen.time);
        let command = format!("stays --by tid,state {}", command::task(&wait.who));
        Finding { text: format!("{}{meanwhile}", found.text), command, ..found }
    };
    seen.queues.iter().filter(worth).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::looks::presence::Estimate;
    use crate::derive::why::seen::SeenWaits;

    #[test]
    fn who_waits_for_a_cpu_is_told_with_who_ran() {
        let ms = 1_000_000;
        let found = |time: u64| {
            let time = (time * ms) as f64;
            let estimate = Estimate { time, low: time, high: time };
            let wait = SeenWait { state: "RQ", estimate, looks: 10, span: (0, 900 * ms), ..SeenWait::default() };
            let ran = vec![(b"cc1".to_vec(), 750), (b"sh".to_vec(), 250)];
            let seen = SeenWaits { queues: vec![wait], ran, time: 1000 * ms, ..SeenWaits::default() };
            judge(&Inputs { seen, ..Inputs::none() })
        };
        assert!(found(500)[0].text.ends_with("; on CPUs were cc1 75 %, sh 25 %"), "{}", found(500)[0].text);
        assert!(found(90).is_empty(), "below a tenth");
    }
}
