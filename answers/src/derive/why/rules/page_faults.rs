//! CPU time of page faults without I/O in processes that give memory back and take it again. Faults of memory that is used once are no
//! cause of anything: each program has them.

use super::super::finding::{Finding, Severity, Who};
use super::{Grew, Inputs, Ran, WhyRule, command};
use crate::derive::cost::pattern::{CausePattern, PatternTime};

/// Fewer are those of any start.
const FAULTS: u64 = 30_000;
/// So many times the most memory that the process had at once must have been filled.
const TIMES: u64 = 4;
/// Bytes that a fault fills at least.
const PAGE: u64 = 4096;
/// What one may take, ns: less is no fault's time, more is something else of the kernel.
const EACH: std::ops::RangeInclusive<u64> = 100..=500_000;

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "page-faults",
    finds: "processes that give memory back and take it again, by the CPU time of their page faults without I/O: about the kernel's time for them without that of calls",
    limits: "30,000 faults that fill four times the most memory that it had, of a process that began and ended in the recording; their time is above the floor; only if every call is on the tape",
    needs: &[
        systape_format::model::Family::Syscall,
        systape_format::model::Family::Sched,
        systape_format::model::Family::Process,
    ],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    // without one of the calls its time would be taken for that of faults
    // of one that was there before, the time before is in the counts
    let many = |grew: &&Grew| grew.minor_faults.is_some_and(|(faults, _)| faults >= FAULTS) && grew.first.is_none();
    let grew = inputs.memory.iter().filter(|_| inputs.whole).filter(many);
    let found = grew.filter_map(|grew| {
        let ran = inputs.ran.iter().find(|ran| ran.asked && (ran.pid, &ran.comm) == (grew.pid, &grew.comm))?;
        finding(grew, ran)
    });
    found.filter(|finding| inputs.floor.passes(finding.cost.unwrap_or(0))).collect()
}

fn finding(grew: &Grew, ran: &Ran) -> Option<Finding> {
    let (faults, system) = grew.minor_faults?;
    let ns = system.saturating_sub(ran.ran.saturating_sub(ran.own_code)).min(ran.own_code);
    let most = grew.most.map(|(_, most)| most).filter(|most| *most > 0)?;
    let times = faults.saturating_mul(PAGE) / most;
    (times >= TIMES && EACH.contains(&(ns / faults))).then_some(())?;
    let who = Who { comm: grew.comm.clone(), pid: Some(grew.pid) };
    let pattern = CausePattern { comm: Vec::new(), pid: who.pid, parent: None, time: PatternTime::OwnCode, span: None };
    Some(Finding {
        rule: RULE.name,
        class: Severity::Time,
        cost: Some(ns),
        time: vec![pattern],
        share: Some((ns, ran.own_code)),
        processes: 1,
        count: faults,
        text: format!(
            "{{count}} page faults without I/O, about {:.1} us each: {times} times the most memory that it had was given back and taken again",
            ns as f64 / 1e3 / faults as f64
        ),
        command: format!("-e process:usage {}", command::task(&who)),
        who,
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(grew: Grew) -> Inputs {
        let ran = Ran {
            comm: b"app".to_vec(),
            pid: 7,
            asked: true,
            ran: 610_000_000,
            own_code: 545_000_000,
            ..Ran::default()
        };
        Inputs { memory: vec![grew], ran: vec![ran], ..Inputs::none() }
    }

    #[test]
    fn time_of_the_kernel_that_calls_do_not_explain_is_that_of_faults() {
        let minor_faults = Some((229_000, 392_000_000));
        let grew = Grew { comm: b"app".to_vec(), pid: 7, minor_faults, most: Some((9, 68 << 20)), ..Grew::default() };
        let found = judge(&inputs(grew.clone()));
        assert_eq!((found.len(), found[0].cost, found[0].count), (1, Some(327_000_000), 229_000));
        assert_eq!(found[0].share, Some((327_000_000, 545_000_000)));
        assert_eq!(
            found[0].text,
            "{count} page faults without I/O, about 1.4 us each: 13 times the most memory that it had was given back and taken again"
        );
        let none = |grew: Grew| assert_eq!(judge(&inputs(grew)), []);
        none(Grew { most: Some((9, 680 << 20)), ..grew.clone() });
        none(Grew { first: Some((1, 1)), ..grew.clone() });
        none(Grew { minor_faults: Some((9_000, 392_000_000)), ..grew.clone() });
        none(Grew { minor_faults: Some((229_000, 70_000_000)), ..grew.clone() });
        assert_eq!(judge(&Inputs { whole: false, ..inputs(grew) }), [], "calls may be missing");
    }
}
