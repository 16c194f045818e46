//! Names that were looked up: questions to port 53, and calls of getaddrinfo and gethostbyname.

use super::super::finding::{Finding, Severity, wall};
use super::super::lookups::Lookups;
use super::super::talk::For;
use super::super::talk::together::{Talked, Together, is_dns, peer, together};
use super::{Inputs, WhyRule, command};
use systape_events::values::words::escaped;

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "dns",
    finds: "time until names were looked up: waits for answers of port 53, by server; with `record --probe dns` the calls of getaddrinfo and gethostbyname, by process",
    limits: "waits and look-ups of 1 ms; their sum is above the floor",
    needs: &[],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let rows = together(&inputs.talked, server);
    let asked = rows.into_iter().filter(|(_, row)| inputs.floor.passes(wall(row.waited.ns, row.waited.span)));
    // the look-up has the waits in it
    let whole = |pids: &[u32]| pids.iter().all(|pid| inputs.lookups.iter().any(|one| one.who.pid == Some(*pid)));
    let asked = asked.filter(|(_, row)| !whole(&row.pids));
    let mut found: Vec<Finding> = asked.map(|(waited, row)| waits(waited, &row)).collect();
    let lookups = inputs.lookups.iter().filter(|one| inputs.floor.passes(wall(one.ns, one.span)));
    found.extend(lookups.map(probed));
    found
}

/// The name server that is to answer.
fn server(one: &Talked) -> Option<Vec<u8>> {
    let For::Answer(name) = &one.what else { return None };
    peer(name).filter(|peer| is_dns(peer)).map(<[u8]>::to_vec)
}

fn waits(waited: (Vec<u8>, String, Vec<u8>), row: &Together) -> Finding {
    let found = super::waited(&RULE, waited, row);
    let (call, server) = (&found.call, escaped(&found.object));
    Finding {
        text: format!("waited {{count}} times in {call} for the name server {server}, the longest {{max}}"),
        command: format!("-e {call} {}", command::task(&found.who)),
        ..found
    }
}

fn probed(of: &Lookups) -> Finding {
    let name = if of.slowest.is_empty() { String::new() } else { format!(" of {}", escaped(&of.slowest)) };
    Finding {
        rule: RULE.name,
        class: Severity::Time,
        cost: Some(wall(of.ns, of.span)),
        who: of.who.clone(),
        processes: 1,
        object: of.slowest.clone(),
        count: of.count,
        max: Some(of.max),
        span: of.span,
        text: format!("looked up {{count}} names, the longest{name} {{max}}"),
        command: format!("-e 'dns:*' {}", command::task(&of.who)),
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Who;
    use super::super::super::talk::together::talked;
    use super::*;

    #[test]
    fn waits_for_name_servers_and_look_ups_are_found() {
        let to = |name: &str| For::Answer(name.as_bytes().into());
        let waits = || vec![talked("poll", to("UDP:[10.0.0.1:5000->8.8.8.8:53]"), 6, 1_860_000_000)];
        let found = judge(&Inputs { talked: waits(), ..Inputs::none() });
        assert_eq!(found[0].text, "waited {count} times in poll for the name server 8.8.8.8:53, the longest {max}");
        let lookups = |pid| {
            let who = Who { comm: b"app".to_vec(), pid: Some(pid) };
            let span = Some((0, 3_000_000_000));
            vec![Lookups { who, count: 6, ns: 1_860_000_000, max: 327_000_000, slowest: b"db.lan".to_vec(), span }]
        };
        let both = judge(&Inputs { talked: waits(), lookups: lookups(7), ..Inputs::none() });
        assert_eq!((both.len(), both[0].cost), (1, Some(1_860_000_000)), "once");
        assert_eq!(both[0].text, "looked up {count} names, the longest of db.lan {max}");
        assert_eq!(judge(&Inputs { talked: waits(), lookups: lookups(8), ..Inputs::none() }).len(), 2);
        let http = vec![talked("poll", to("TCP:[10.0.0.1:5000->8.8.8.8:80]"), 6, 1_860_000_000)];
        assert_eq!(judge(&Inputs { talked: http, ..Inputs::none() }), []);
    }
}
