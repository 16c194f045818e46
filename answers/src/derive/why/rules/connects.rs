//! Connections that were long in coming: nobody answers the first packet.

use super::super::finding::{Finding, Severity, wall};
use super::super::talk::For;
use super::super::talk::together::{Together, together};
use super::{Inputs, WhyRule, command};
use systape_events::values::words::escaped;

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "connects",
    finds: "waits in poll and the like until a connection stands (SYN_SENT), by address",
    limits: "waits of 1 ms; their sum is above the floor",
    needs: &[systape_format::model::Family::Syscall],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let rows = together(&inputs.talked, |one| match &one.what {
        For::Connection(to) => Some(to.to_vec()),
        _ => None,
    });
    let dear = rows.into_iter().filter(|(_, row)| inputs.floor.passes(wall(row.waited.ns, row.waited.span)));
    dear.map(|((comm, call, to), row)| finding(comm, call, to, &row)).collect()
}

fn finding(comm: Vec<u8>, call: String, to: Vec<u8>, row: &Together) -> Finding {
    let who = super::whose(comm, row);
    let address = escaped(&to);
    let text =
        format!("waited {{count}} times in {call} for a connection to {address} (SYN_SENT), the longest {{max}}");
    Finding {
        rule: RULE.name,
        class: Severity::Time,
        cost: Some(wall(row.waited.ns, row.waited.span)),
        processes: row.pids.len() as u64,
        count: row.waited.count,
        max: Some(row.waited.max),
        span: row.waited.span,
        text,
        command: format!("-e connect {}", command::task(&who)),
        object: to,
        who,
        call,
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::talk::together::talked;
    use super::*;

    #[test]
    fn silent_servers_are_found() {
        let to = |name: &str| name.as_bytes().into();
        let found = |one| judge(&Inputs { talked: vec![one], ..Inputs::none() });
        let silent = found(talked("poll", For::Connection(to("10.0.0.2:80")), 1, 900_000_000));
        assert!(silent[0].text.contains("in poll for a connection to 10.0.0.2:80 (SYN_SENT)"), "{}", silent[0].text);
        assert_eq!(found(talked("poll", For::Connection(to("10.0.0.2:80")), 1, 9_000_000)), [], "below the floor");
    }
}
