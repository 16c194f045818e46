//! Clients that wait in poll and the like for the answer to what they sent.

use super::super::finding::{Finding, wall};
use super::super::talk::For;
use super::super::talk::together::{Talked, Together, is_dns, peer, together};
use super::{Inputs, WhyRule, command};
use crate::derive::waits;
use systape_events::values::words::escaped;

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "answers",
    finds: "waits of a client in poll, epoll or select for the answer to what it sent, by the other end; on UNIX sockets also in reads. A client connected, or spoke first",
    limits: "waits of 1 ms; their sum is above the floor; not where the process at the other end is on the tape and did nothing for most of that time",
    needs: &[systape_format::model::Family::Syscall],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let rows = together(&inputs.talked, |one| asked(one).filter(|_| !one.rests()));
    let found = rows.into_iter().filter(|(_, row)| inputs.floor.passes(wall(row.waited.ns, row.waited.span)));
    found.map(|(asked, row)| finding(asked, &row)).collect()
}

/// Who is to answer, as far as this rule is about it.
fn asked(one: &Talked) -> Option<Vec<u8>> {
    let For::Answer(name) = &one.what else { return None };
    let unix = name.starts_with(b"UNIX");
    // a socket without an address of its other end: its own name
    let end = if unix { &**name } else { peer(name)? };
    // the reads of other sockets are slow calls
    let here = unix || waits::for_work(&one.call) == Some(waits::Waits::Call);
    // that nobody else is known to be there may as well mean that nobody had to answer
    let sure = !unix || one.other.is_some();
    (here && sure && !is_dns(end)).then(|| end.to_vec())
}

fn finding(asked: (Vec<u8>, String, Vec<u8>), row: &Together) -> Finding {
    let found = super::waited(&RULE, asked, row);
    let (call, end) = (&found.call, escaped(&found.object));
    let of = row
        .other
        .as_ref()
        .map_or_else(|| end.clone(), |other| format!("{}{} ({end})", escaped(&other.comm), super::pid(other)));
    Finding {
        text: format!("waited {{count}} times in {call} for the answer of {of}, the longest {{max}}"),
        command: format!("-e {call} {}", command::task(&found.who)),
        ..found
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Who;
    use super::super::super::talk::together::talked;
    use super::*;

    #[test]
    fn the_other_end_is_named() {
        let found = |talked: Vec<Talked>| judge(&Inputs { talked, ..Inputs::none() });
        let to = |name: &str| For::Answer(name.as_bytes().into());
        let tcp = "TCP:[127.0.0.1:50000->127.0.0.1:80]";
        let far = found(vec![talked("epoll_wait", to(tcp), 3, 300_000_000)]);
        assert_eq!(far[0].text, "waited {count} times in epoll_wait for the answer of 127.0.0.1:80, the longest {max}");
        assert_eq!((far[0].cost, &*far[0].object), (Some(300_000_000), &b"127.0.0.1:80"[..]));
        assert_eq!(found(vec![talked("read", to(tcp), 3, 300_000_000)]), [], "slow calls have it");
        let server = |busy| Some((Who { comm: b"srv".to_vec(), pid: Some(9) }, busy));
        let unix = |busy| Talked { other: server(busy), ..talked("poll", to("UNIX-STREAM:[5->6]"), 3, 300_000_000) };
        let near = found(vec![unix(280_000_000)]);
        assert!(near[0].text.contains("of srv 9 (UNIX-STREAM:[5->6])"), "{}", near[0].text);
        assert_eq!(near[0].by.as_ref().and_then(|by| by.pid), Some(9));
        assert_eq!(found(vec![unix(2_000_000)]), [], "it had nothing to answer");
        assert_eq!(found(vec![talked("poll", to("UNIX-STREAM:[5->6]"), 3, 300_000_000)]), [], "not known");
        assert_eq!(found(vec![talked("poll", to("UDP:[1.1.1.1:5000->8.8.8.8:53]"), 3, 300_000_000)]), [], "dns");
    }
}
