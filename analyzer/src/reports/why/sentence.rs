//! The sentence of a finding.

use crate::derive::why::finding::Finding;
use crate::render::mark;
use crate::values::num::grouped;
use crate::values::words::{escaped, span};

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

/// The figures of a sentence, in the order in which they stand there.
fn places(finding: &Finding, lost: bool) -> Vec<(&'static str, String)> {
    let short = lost || finding.short;
    let value = |word: &'static str| match word {
        "{count}" => format!("{}{}", mark::at_least(lost), grouped(finding.count)),
        "{max}" => format!("{}{}", mark::at_least(short), span(finding.max.unwrap_or(0))),
        _ => mark::at_least(lost).to_owned(),
    };
    let mut found: Vec<(usize, &'static str)> = Vec::new();
    for word in ["{count}", "{max}", "{mark}"] {
        found.extend(finding.text.match_indices(word).map(|(at, _)| (at, word)));
    }
    found.sort_unstable();
    found.into_iter().map(|(_, word)| (word, value(word))).collect()
}
