//! A program that is started again and again.

use super::super::finding::{Finding, Severity, Who, wall};
use super::{Inputs, WhyRule, command};
use crate::derive::cost::pattern::{CausePattern, Files, PatternTime};
use systape_events::values::words::escaped;

/// Fewer starts are no storm.
const STARTS: u64 = 20;
/// Fewer in a second are none.
const RATE: u64 = 5;
/// Programs that run longer on average do work, ns.
const SHORT: u64 = 100_000_000;
/// Most processes that start it whose time is looked at.
const PARENTS: usize = 16;

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "program-storm",
    finds: "a program that is started again and again, and by whom",
    limits: "20 starts, 5 in a second, shorter than 100 ms on average; from fork to end they take more than the floor",
    needs: &[systape_format::model::Family::Process],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let worth = |program: &&super::ProgramRuns| {
        let length = program.starts_span.map_or(0, |(first, last)| last.saturating_sub(first)).max(1);
        let rate = u128::from(program.starts) * 1_000_000_000 / u128::from(length);
        program.starts >= STARTS
            && rate >= u128::from(RATE)
            && program.lived / program.starts < SHORT
            && inputs.floor.passes(wall(program.lived, program.span))
    };
    inputs.programs.iter().filter(worth).map(finding).collect()
}

fn finding(program: &super::ProgramRuns) -> Finding {
    let by = match program.parents.first() {
        Some((comm, pid, _)) if program.parents.len() == 1 => format!(" by {} {pid}", escaped(comm)),
        Some((comm, pid, starts)) => format!(", {{mark}}{starts} of these by {} {pid}", escaped(comm)),
        None => String::new(),
    };
    let length = program.starts_span.map_or(1, |(first, last)| last.saturating_sub(first)).max(1);
    let rate = program.starts as f64 * 1e9 / length as f64;
    Finding {
        rule: RULE.name,
        class: Severity::Time,
        cost: Some(wall(program.lived, program.span)),
        time: time(program),
        who: Who { comm: program.comm.clone(), pid: None },
        processes: program.starts,
        object: program.path.clone(),
        count: program.starts,
        max: Some(program.max),
        span: program.span,
        text: format!("{} was started {{count}} times, {{mark}}{rate:.0} a second{by}", escaped(&program.path)),
        command: format!("exec {}", command::comm(&program.comm)),
        ..Finding::default()
    }
}

/// The life of its processes but for sleeps as they ask, before they execute it too, and the calls that make them.
fn time(program: &super::ProgramRuns) -> Vec<CausePattern> {
    const MAKES: [&str; 4] = ["clone", "clone3", "fork", "vfork"];
    let mut time = Vec::new();
    for (comm, pid, _) in program.parents.iter().take(PARENTS) {
        for comm in [comm, &program.comm] {
            time.push(CausePattern {
                comm: comm.clone(),
                pid: None,
                parent: Some(*pid),
                time: PatternTime::Busy,
                span: None,
            });
        }
        time.extend(MAKES.map(|call| CausePattern {
            comm: comm.clone(),
            pid: Some(*pid),
            parent: None,
            time: PatternTime::In { call: call.to_owned(), files: Files::Any, loops: false },
            span: None,
        }));
    }
    time
}

#[cfg(test)]
mod tests {
    use super::super::ProgramRuns;
    use super::*;

    #[test]
    fn short_programs_started_often_are_a_storm() {
        let program = |starts: u64, each: u64| ProgramRuns {
            path: b"/usr/bin/date".to_vec(),
            comm: b"date".to_vec(),
            starts,
            lived: starts * each,
            max: each,
            starts_span: Some((0, 2_000_000_000)),
            span: Some((0, 2_000_000_000)),
            parents: vec![(b"watch".to_vec(), 9, starts)],
        };
        let found = |program| judge(&Inputs { programs: vec![program], ..Inputs::none() });
        let storm = found(program(60, 3_000_000));
        assert_eq!(storm[0].text, "/usr/bin/date was started {count} times, {mark}30 a second by watch 9");
        assert_eq!(storm[0].cost, Some(180_000_000));
        assert_eq!(found(program(60, 300_000_000)), [], "they do work");
        assert_eq!((found(program(9, 90_000_000)), found(program(60, 100_000))), (vec![], vec![]));
    }
}
