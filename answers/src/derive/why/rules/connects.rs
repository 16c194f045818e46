//! Connections that were long in coming: nobody answers the first packet.

use super::super::finding::{Finding, wall};
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
    dear.map(|(waited, row)| finding(waited, &row)).collect()
}

fn finding(waited: (Vec<u8>, String, Vec<u8>), row: &Together) -> Finding {
    let found = super::waited(&RULE, waited, row);
    let (call, address) = (&found.call, escaped(&found.object));
    Finding {
        text: format!("waited {{count}} times in {call} for a connection to {address} (SYN_SENT), the longest {{max}}"),
        command: format!("-e connect {}", command::task(&found.who)),
        ..found
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
