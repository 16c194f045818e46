//! Connections that were long in coming: nobody answers the first packet, or attempts are refused and made again after a sleep.

use super::super::finding::{Class, Finding, wall};
use super::super::talk::For;
use super::super::talk::together::{Talked, Together, together};
use super::{Inputs, Rule, command};
use crate::values::words::escaped;

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "connects",
    finds: "waits in poll and the like until a connection stands (SYN_SENT), and sleeps of a thread between attempts to connect to one address that failed, by address",
    limits: "waits of 1 ms; a thread that sleeps for half of the time between two attempts; their sum is above the floor",
    needs: &[systape_format::model::Family::Syscall],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let connection = |one: &Talked| match &one.what {
        For::Connection(to) => Some(to.to_vec()),
        _ => None,
    };
    let retry = |one: &Talked| match &one.what {
        For::Retry(to) => Some(to.to_vec()),
        _ => None,
    };
    let mut found = Vec::new();
    for (again, rows) in [(false, together(&inputs.talked, connection)), (true, together(&inputs.talked, retry))] {
        let dear = rows.into_iter().filter(|(_, row)| inputs.floor.passes(wall(row.waited.ns, row.waited.span)));
        found.extend(dear.map(|((comm, call, to), row)| finding(comm, call, to, &row, again)));
    }
    found
}

fn finding(comm: Vec<u8>, call: String, to: Vec<u8>, row: &Together, again: bool) -> Finding {
    let who = super::whose(comm, row);
    let address = escaped(&to);
    let text = if again {
        format!("tried {{count}} times again to connect to {address} after a sleep, the longest pause {{max}}")
    } else {
        format!("waited {{count}} times in {call} for a connection to {address} (SYN_SENT), the longest {{max}}")
    };
    Finding {
        rule: RULE.name,
        class: Class::Time,
        cost: Some(wall(row.waited.ns, row.waited.span)),
        time: Vec::new(),
        short: false,
        processes: row.pids.len() as u64,
        errno: 0,
        by: None,
        count: row.waited.count,
        max: Some(row.waited.max),
        span: row.waited.span,
        text,
        command: format!("-e connect {}", command::task(&who)),
        object: to,
        who,
        call,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::talk::together::talked;
    use super::*;

    #[test]
    fn pauses_between_attempts_and_silent_servers_are_found() {
        let to = |name: &str| name.as_bytes().into();
        let found = |one| judge(&Inputs { talked: vec![one], ..Inputs::none() });
        let again = found(talked("connect", For::Retry(to("10.0.0.2:80")), 9, 900_000_000));
        assert_eq!(again[0].cost, Some(900_000_000), "the sleeps are its cost");
        assert_eq!(
            again[0].text,
            "tried {count} times again to connect to 10.0.0.2:80 after a sleep, the longest pause {max}"
        );
        let silent = found(talked("poll", For::Connection(to("10.0.0.2:80")), 1, 900_000_000));
        assert!(silent[0].text.contains("in poll for a connection to 10.0.0.2:80 (SYN_SENT)"), "{}", silent[0].text);
        assert_eq!(found(talked("poll", For::Connection(to("10.0.0.2:80")), 1, 9_000_000)), [], "below the floor");
    }
}
