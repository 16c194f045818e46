//! Processes that were stopped by a signal, by a debugger, or by the freezer of their control group.

use super::super::cpu::Halt;
use super::super::finding::{Finding, Severity, Who};
use super::{Inputs, WhyRule, command};
use systape_events::values::words::escaped;

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "stopped",
    finds: "a process that was stopped (SIGSTOP and the like), held by a tracer (ptrace), or by the freezer of its control group (a paused container)",
    limits: "the time in which one or more of its threads were is above the floor",
    needs: &[systape_format::model::Family::Sched],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let asked = inputs.ran.iter().filter(|ran| ran.asked && !ran.kernel);
    let found = asked.flat_map(|ran| {
        let sender = inputs.stopped_by.get(&ran.pid).cloned();
        let sent = named(", sent by ", sender.as_ref());
        // a tracer lets its tracee go on; who kills it ends that too
        let killed = inputs.deaths.iter().any(|death| death.who.pid == Some(ran.pid) && death.sig == SIGKILL);
        let tracer = ran.traced.ended_by.clone().filter(|_| !killed);
        let let_go = named(", until it was let go by ", tracer.as_ref());
        let thawed = named(", until it was thawed by ", ran.frozen.ended_by.as_ref());
        [
            finding(
                ran,
                &ran.stopped,
                sender,
                format!("was stopped by a signal {{count}} times{sent}, the longest {{max}}"),
            ),
            finding(
                ran,
                &ran.traced,
                tracer,
                format!("was held by a tracer {{count}} times, the longest {{max}}{let_go}"),
            ),
            finding(
                ran,
                &ran.frozen,
                ran.frozen.ended_by.clone(),
                format!("was frozen with its control group {{count}} times, the longest {{max}}{thawed}"),
            ),
        ]
    });
    found.filter(|finding| inputs.floor.passes(finding.cost.unwrap_or(0))).collect()
}

/// Its number.
const SIGKILL: u32 = 9;

/// `words` and the name; nothing of nobody.
fn named(words: &str, who: Option<&Who>) -> String {
    who.map_or_else(String::new, |who| format!("{words}{}{}", escaped(&who.comm), super::pid(who)))
}

fn finding(ran: &super::Ran, halt: &Halt, by: Option<Who>, text: String) -> Finding {
    let who = Who { comm: ran.comm.clone(), pid: Some(ran.pid) };
    Finding {
        rule: RULE.name,
        class: Severity::Time,
        cost: Some(halt.ns),
        short: halt.open,
        processes: 1,
        by,
        count: halt.count,
        max: Some(halt.max),
        span: halt.span,
        text,
        command: format!("states --by tid,state {}", command::task(&who)),
        who,
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Death, Ran};
    use super::*;

    #[test]
    fn who_was_stopped_is_found() {
        let gdb = || Some(Who { comm: b"gdb".to_vec(), pid: Some(4) });
        let halt = |ns| Halt { count: 1, ns, max: ns, span: Some((5, 5 + ns)), open: false, ended_by: gdb() };
        let found = |stopped, traced| {
            let ran = Ran { comm: b"app".to_vec(), pid: 7, asked: true, stopped, traced, ..Ran::default() };
            judge(&Inputs { ran: vec![ran], ..Inputs::none() })
        };
        let stopped = found(halt(700_000_000), Halt::default());
        assert_eq!((stopped.len(), stopped[0].cost, stopped[0].span), (1, Some(700_000_000), Some((5, 700_000_005))));
        assert_eq!(stopped[0].text, "was stopped by a signal {count} times, the longest {max}");
        let traced = found(Halt::default(), halt(700_000_000));
        assert_eq!(
            traced[0].text,
            "was held by a tracer {count} times, the longest {max}, until it was let go by gdb 4"
        );
        assert_eq!(traced[0].by, gdb());
        let who = Who { comm: b"app".to_vec(), pid: Some(7) };
        let frozen = Ran { comm: b"app".to_vec(), pid: 7, asked: true, frozen: halt(700_000_000), ..Ran::default() };
        let found_frozen = judge(&Inputs { ran: vec![frozen], ..Inputs::none() });
        assert_eq!(
            found_frozen[0].text,
            "was frozen with its control group {count} times, the longest {max}, until it was thawed by gdb 4"
        );
        let killed = Death { who, sig: SIGKILL, ..Death::default() };
        let ran = Ran { comm: b"app".to_vec(), pid: 7, asked: true, traced: halt(700_000_000), ..Ran::default() };
        let found_killed = judge(&Inputs { ran: vec![ran], deaths: vec![killed], ..Inputs::none() });
        assert_eq!(found_killed[0].by, None, "who killed it need not be the tracer");
        assert_eq!(found(halt(7_000), Halt::default()), [], "below the floor");
    }
}
