//! Processes whose memory grew, and those that waited for pages from storage.

use super::super::finding::{Finding, Severity, Who};
use super::{Inputs, WhyRule, command};
use systape_events::values::words::bytes;

/// Less growth is normal, bytes: 256 MiB.
const GREW: u64 = 256 << 20;
/// Fewer page faults that read from storage are those of any start.
const FAULTS: u64 = 1_000;

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "memory",
    finds: "a process whose resident memory grew, or that often waited for pages that storage had",
    limits: "256 MiB more than at the first look (of one that began later: than nothing); 1,000 major faults",
    needs: &[systape_format::model::Family::Process],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let mut found = Vec::new();
    for grew in &inputs.memory {
        let who = Who { comm: grew.comm.clone(), pid: Some(grew.pid) };
        let finding = |count, span, text, command| Finding {
            rule: RULE.name,
            class: Severity::Notice,
            who: who.clone(),
            processes: 1,
            count,
            span,
            text,
            command,
            ..Finding::default()
        };
        if let Some((last, most)) = grew.most {
            let (first, before) = grew.first.unwrap_or((last, 0));
            if most.saturating_sub(before) >= GREW {
                let text = format!("its memory grew from {} to {{mark}}{}", bytes(before), bytes(most));
                // a tape has the tables that have rows
                let tables = [("process:memory", grew.first.is_some()), ("process:usage", grew.ended.is_some())];
                let tables: Vec<&str> = tables.into_iter().filter(|(_, is)| *is).map(|(table, _)| table).collect();
                let command = format!("-e {} {}", tables.join(","), command::task(&who));
                found.push(finding(most - before, Some((first.min(last), last)), text, command));
            }
        }
        if let Some(faults) = grew.major_faults.filter(|faults| *faults >= FAULTS) {
            let command = format!("-e process:usage {}", command::task(&who));
            let limit = inputs.limits.memory_limit(&[grew.pid]);
            let why = limit.map_or_else(String::new, |limit| format!(", {limit}"));
            let text = format!("{{count}} page faults read from storage{why}");
            found.push(finding(faults, grew.ended.map(|ts| (ts, ts)), text, command));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::Grew;
    use super::*;

    #[test]
    fn growth_and_major_faults_are_found() {
        let grew = Grew {
            comm: b"leak".to_vec(),
            pid: 7,
            first: Some((1, 10 << 20)),
            most: Some((9, 600 << 20)),
            major_faults: Some(2_000),
            minor_faults: None,
            ended: Some(10),
        };
        let texts = |grew| {
            judge(&Inputs { memory: vec![grew], ..Inputs::none() }).into_iter().map(|f| f.text).collect::<Vec<_>>()
        };
        assert_eq!(
            texts(grew.clone()),
            ["its memory grew from 10.0 MiB to {mark}600.0 MiB", "{count} page faults read from storage"]
        );
        let normal = Grew { most: Some((9, 60 << 20)), major_faults: Some(20), ..grew };
        assert_eq!(texts(normal), [""; 0]);
    }
}
