//! The sentence of a finding.

use systape_answers::derive::why::finding::{Finding, FindingMember};
use systape_answers::render::mark;
use systape_events::values::num::grouped;
use systape_events::values::words::{escaped, span};

/// Who, and what it was: without the time.
pub(super) fn sentence(finding: &Finding, lost: bool) -> String {
    let who = match (&finding.who.comm, finding.who.pid) {
        (comm, _) if comm.is_empty() => String::new(),
        (comm, Some(pid)) => format!("{} {pid}: ", escaped(comm)),
        (comm, None) => {
            let processes = format!("{}{}", mark::at_least(lost), grouped(finding.processes));
            format!("{} ({processes} processes): ", escaped(comm))
        }
    };
    // a name may hold braces: what is put in comes first, once each
    let mut text = who;
    let mut rest = finding.text.as_str();
    for (word, value) in places(finding, lost) {
        if let Some((before, after)) = rest.split_once(word) {
            text.push_str(before);
            text.push_str(&value);
            rest = after;
        }
    }
    text.push_str(rest);
    text
}

/// `120.5 ms in 3 calls of /srv/a, the longest 50.1 ms`.
pub(super) fn member_sentence(of: &FindingMember, short: bool) -> String {
    let mark = mark::at_least(short);
    let (s, longest) = match of.calls {
        1 if !short => ("", String::new()),
        _ => ("s", format!(", the longest {mark}{}", span(of.max))),
    };
    let object = match of.object.is_empty() {
        true => "an unknown file".to_owned(),
        false => escaped(&of.object),
    };
    format!("{mark}{} in {mark}{} call{s} of {object}{longest}", span(of.ns), grouped(of.calls))
}

/// The figures of a sentence, in the order in which they stand there, with the words around them that depend on them.
fn places(finding: &Finding, lost: bool) -> Vec<(&'static str, String)> {
    let short = lost || finding.short;
    let once = finding.count == 1 && !lost;
    let count = format!("{}{}", mark::at_least(lost), grouped(finding.count));
    let max = format!("{}{}", mark::at_least(short), span(finding.max.unwrap_or(0)));
    let value = |word: &'static str| match word {
        TIMES if once => "once".to_owned(),
        TIMES => format!("{count} times"),
        "{count}" => count.clone(),
        LONGEST if once => format!(", for {max}"),
        LONGEST => format!(", the longest {max}"),
        "{max}" => max.clone(),
        _ => mark::at_least(lost).to_owned(),
    };
    let mut found: Vec<(usize, &'static str)> = Vec::new();
    for word in [TIMES, LONGEST, "{count}", "{max}", "{mark}"] {
        let at = finding.text.match_indices(word).map(|(at, _)| (at, word));
        let new: Vec<_> =
            at.filter(|(at, _)| !found.iter().any(|(of, long)| (*of..of + long.len()).contains(at))).collect();
        found.extend(new);
    }
    found.sort_unstable();
    found.into_iter().map(|(_, word)| (word, value(word))).collect()
}

/// A figure with words that are others for one.
const TIMES: &str = "{count} times";
/// See there.
const LONGEST: &str = ", the longest {max}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_once() {
        let found = |count, text: &str| {
            let text = text.to_owned();
            Finding { count, max: Some(600_000_000), text, ..Finding::default() }
        };
        let held = "was held {count} times, the longest {max}, {mark}2 threads";
        assert_eq!(sentence(&found(1, held), false), "was held once, for 600.0 ms, 2 threads");
        assert_eq!(sentence(&found(1200, held), false), "was held 1,200 times, the longest 600.0 ms, 2 threads");
        assert_eq!(sentence(&found(1, held), true), "was held >=1 times, the longest >=600.0 ms, >=2 threads");
        assert_eq!(sentence(&found(1, "{count} slow fsync call"), false), "1 slow fsync call");
    }

    #[test]
    fn members_have_their_time() {
        let member = |calls| FindingMember { object: b"/srv/a".to_vec(), calls, ns: 120_500_000, max: 50_100_000 };
        assert_eq!(member_sentence(&member(3), false), "120.5 ms in 3 calls of /srv/a, the longest 50.1 ms");
        assert_eq!(member_sentence(&member(1), false), "120.5 ms in 1 call of /srv/a");
        assert_eq!(member_sentence(&member(1), true), ">=120.5 ms in >=1 calls of /srv/a, the longest >=50.1 ms");
    }
}
