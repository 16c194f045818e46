//! Processes that were stopped by a signal, or by a debugger.

use super::super::finding::{Class, Finding, Who};
use super::{Inputs, Rule, command};
use crate::values::words::escaped;

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "stopped",
    finds: "a process that was stopped (SIGSTOP and the like), or held by a tracer (ptrace)",
    limits: "the time in which one or more of its threads were is above the floor",
    needs: &[systape_format::model::Family::Sched],
    judge,
};

/// Of a signal.
const STOPPED: &str = "was stopped by a signal";

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let halts = inputs.ran.iter().filter(|ran| ran.asked && !ran.kernel).flat_map(|ran| {
        let who = Who { comm: ran.comm.clone(), pid: Some(ran.pid) };
        let both = [(ran.stopped, STOPPED), (ran.traced, "was held by a tracer")];
        both.map(|(halt, text)| (who.clone(), halt, text))
    });
    let dear = halts.filter(|(_, halt, _)| inputs.floor.passes(halt.ns));
    dear.map(|(who, halt, text)| {
        let by = who.pid.and_then(|pid| inputs.stopped_by.get(&pid)).filter(|_| text == STOPPED).cloned();
        let sent =
            by.as_ref().map(|by| format!(", sent by {}{}", escaped(&by.comm), super::pid(by))).unwrap_or_default();
        Finding {
            rule: RULE.name,
            class: Class::Time,
            cost: Some(halt.ns),
            short: halt.open,
            processes: 1,
            by,
            count: halt.count,
            max: Some(halt.max),
            span: halt.span,
            text: format!("{text} {{count}} times{sent}, the longest {{max}}"),
            command: format!("states --by tid,state {}", command::task(&who)),
            who,
            ..Finding::default()
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::cpu::Halt;
    use super::super::Ran;
    use super::*;

    #[test]
    fn who_was_stopped_is_found() {
        let halt = |ns| Halt { count: 1, ns, max: ns, span: Some((5, 5 + ns)), open: false };
        let found = |stopped, traced| {
            let ran = Ran { comm: b"app".to_vec(), pid: 7, asked: true, stopped, traced, ..Ran::default() };
            judge(&Inputs { ran: vec![ran], ..Inputs::none() })
        };
        let stopped = found(halt(700_000_000), Halt::default());
        assert_eq!((stopped.len(), stopped[0].cost, stopped[0].span), (1, Some(700_000_000), Some((5, 700_000_005))));
        assert_eq!(stopped[0].text, "was stopped by a signal {count} times, the longest {max}");
        assert!(found(Halt::default(), halt(700_000_000))[0].text.starts_with("was held by a tracer"));
        assert_eq!(found(halt(7_000), Halt::default()), [], "below the floor");
    }
}
