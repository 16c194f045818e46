//! Answers that come 40 ms late because the last of several small writes waits for an ACK that the other end delays.

use super::super::finding::{Finding, Severity, wall};
use super::super::talk::For;
use super::super::talk::together::{peer, together};
use super::{Inputs, WhyRule, command};
use systape_events::values::words::escaped;

/// Fewer may be chance.
const LEAST: u64 = 5;

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "nagle",
    finds: "several writes to one TCP connection, and 40 ms later the first thing that comes back: Nagle's algorithm holds the last write until the other end's delayed ACK",
    limits: "5 times 38 to 60 ms, four in five of such exchanges; their sum is above the floor",
    needs: &[systape_format::model::Family::Syscall],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let rows = together(&inputs.talked, |one| match &one.what {
        For::Ack(name) => peer(name).map(<[u8]>::to_vec),
        _ => None,
    });
    let mut found = Vec::new();
    for ((comm, call, peer), row) in rows {
        let waited = &row.waited;
        let cost = wall(waited.ns, waited.span);
        if waited.count < LEAST || waited.others > waited.count / 4 || !inputs.floor.passes(cost) {
            continue;
        }
        let who = super::whose(comm, &row);
        found.push(Finding {
            rule: RULE.name,
            class: Severity::Time,
            cost: Some(cost),
            processes: row.pids.len() as u64,
            count: waited.count,
            max: Some(waited.max),
            span: waited.span,
            text: format!(
                "{{count}} times the answer of {} came some 40 ms after the last of several writes: Nagle's algorithm with delayed ACKs (TCP_NODELAY, or one write, avoids it)",
                escaped(&peer)
            ),
            command: format!("-e sendto,write,{call} {}", command::task(&who)),
            object: peer,
            who,
            call,
            ..Finding::default()
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::super::talk::TalkWait;
    use super::super::super::talk::together::{Talked, talked};
    use super::*;

    #[test]
    fn the_pattern_is_found_and_slow_servers_are_not() {
        let found = |count, others| {
            let name = b"TCP:[1.1.1.1:50000->2.2.2.2:80]".as_slice().into();
            let one = talked("read", For::Ack(name), count, count * 44_000_000);
            let waited = TalkWait { others, ..one.waited };
            judge(&Inputs { talked: vec![Talked { waited, ..one }], ..Inputs::none() })
        };
        let nagle = found(20, 1);
        assert_eq!((nagle[0].cost, &*nagle[0].object), (Some(880_000_000), &b"2.2.2.2:80"[..]));
        assert_eq!((found(4, 0), found(20, 9)), (vec![], vec![]), "too few; answers that take any time");
    }
}
