//! What is missing: markers over the time in which it is, and sentences.

use systape_events::loss::{Loss, cut_text, gap_text, hole_text, span};
use systape_events::values::num::counted;
use systape_events::values::words::{shell, span as length};
use systape_format::model::Session;

use super::gathered::GatheredProfile;
use super::markers::{MarkerKind, MarkerRow, NOTHING};
use super::waits::LeftWaits;

/// Most losses that have a marker.
const MOST: usize = 10_000;

/// Adds a marker for the recording and each loss; `end`: of the recording.
pub(super) fn mark(profile: &mut GatheredProfile, loss: &Loss, session: &Session, end: u64) {
    let open = session.window_open;
    let whole = (open, end);
    let when = |first, last| span(first, last, session);
    let mut all = vec![(whole, "recording", format!("{}: {}", session.target, shell(&session.arguments)))];
    for gap in &loss.gaps {
        let time = if gap.last == 0 { whole } else { (gap.first, gap.last) };
        all.push((time, "LOST", gap_text(gap, when)));
    }
    all.extend(loss.holes.iter().map(|hole| ((hole.first, hole.last), "LOST", hole_text(hole, when))));
    all.extend(loss.cut.map(|cut| ((cut, end), "LOST", cut_text(cut, session, loss.being_written))));
    all.extend(loss.findings.iter().map(|finding| (whole, "DAMAGED", finding.clone())));
    for ((first, last), name, what) in all.into_iter().take(MOST) {
        let start = first.max(open);
        let fields = [profile.text(&what), NOTHING, NOTHING, NOTHING];
        let name = profile.text(name);
        let (end, kind, stack) = (Some(last.max(start)), MarkerKind::Tape, NOTHING);
        profile.others.push(MarkerRow { start, end, name, kind, fields, stack });
    }
}

/// What the profile leaves out of what the tape has, as sentences.
pub(super) fn left_out(profile: &GatheredProfile, waits: LeftWaits, signals: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let left = profile.left;
    let kinds = [(left.calls, "call"), (left.blocks, "block I/O"), (signals as u64, "signal")];
    let kinds: Vec<_> = kinds.into_iter().filter(|(count, _)| *count > 0).collect();
    let total = kinds.iter().map(|(count, _)| *count).sum();
    let longest = if left.longest > 0 { format!(", none longer than {}", short(left.longest)) } else { String::new() };
    let mut say = |count: u64, what: String, options: &str| {
        let are = if count == 1 { "is" } else { "are" };
        lines.extend((count > 0).then(|| format!("{what} {are} not in the profile{options}")));
    };
    let events: Vec<String> =
        kinds.into_iter().map(|(number, what)| counted(number, &format!("more {what}"))).collect();
    say(total, events.join(" and "), &format!("{longest}: --duration, --time, -p or -e make it fit"));
    let waits_text = format!("{} off the CPU ({} in all)", counted(waits.count, "more time"), length(waits.ns));
    say(waits.count, waits_text, ": --duration, --time or -p make it fit");
    let samples = counted(profile.left_samples, "later CPU sample");
    say(profile.left_samples, samples, ": --time or -p make it fit");
    let textless = format!("the text of {}", counted(profile.textless, "call"));
    say(u64::from(profile.textless > 0), textless, ", which would be too large: --time, -p or -e make it fit");
    lines
}

/// A duration that may be a short one: `361 ns`, `4.0 us`.
fn short(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        _ => length(ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_said() {
        let mut profile = GatheredProfile::default();
        let none = LeftWaits::default();
        assert!(left_out(&profile, none, 0).is_empty());
        profile.left.calls = 1;
        assert_eq!(
            left_out(&profile, none, 0),
            ["1 more call is not in the profile: --duration, --time, -p or -e make it fit"]
        );
        (profile.left.calls, profile.left.blocks, profile.left.longest) = (7_000_000, 3, 12_000);
        profile.left_samples = 5;
        assert_eq!(
            left_out(&profile, LeftWaits { count: 2, ns: 1_000_000_000 }, 0),
            [
                "7,000,000 more calls and 3 more block I/Os are not in the profile, none longer than 12.0 us: --duration, --time, -p or -e make it fit",
                "2 more times off the CPU (1.00 s in all) are not in the profile: --duration, --time or -p make it fit",
                "5 later CPU samples are not in the profile: --time or -p make it fit"
            ]
        );
    }
}
