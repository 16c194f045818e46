//! A thread that looks found in one wait all the time until the last of them.

use super::super::finding::{Finding, Severity};
use super::seen_waiting::{finding, place};
use super::{Inputs, WhyRule};
use crate::derive::why::seen::SeenWait;
use systape_events::values::words::span;

/// A shorter one is slow, ns.
const LONG: u64 = 10_000_000_000;

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "seen-hung",
    finds: "a thread that looks found in uninterruptible sleep (D) without a break, until the last of them",
    limits: "10 s",
    needs: &[systape_format::model::Family::Look],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let hung = |wait: &&SeenWait| wait.state == "D" && wait.goes_on && wait.longest >= LONG;
    let of = |wait: &SeenWait| {
        let text = format!("thread {} has been {} for >={}", wait.longest_of.0, place(wait), span(wait.longest));
        let (_, from, to) = wait.longest_of;
        Finding {
            class: Severity::Broken,
            span: Some((from, to)),
            text: format!("{text}, and still was at the last look"),
            ..finding(RULE.name, wait, String::new(), inputs.seen.time)
        }
    };
    inputs.seen.waits.iter().filter(hung).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::why::seen::SeenWaits;

    #[test]
    fn who_hangs_to_the_end_is_broken() {
        let s = 1_000_000_000;
        let found = |state, longest, goes_on| {
            let call = "openat".to_owned();
            let wait = SeenWait { state, call, longest, goes_on, longest_of: (7, 0, 12 * s), ..SeenWait::default() };
            judge(&Inputs { seen: SeenWaits { waits: vec![wait], ..SeenWaits::default() }, ..Inputs::none() })
        };
        let hung = found("D", 12 * s, true);
        assert_eq!(hung[0].class, Severity::Broken);
        assert!(hung[0].text.starts_with("thread 7 has been in openat in uninterruptible sleep (D) for >=12.00 s"));
        assert!(found("D", 12 * s, false).is_empty() && found("S", 12 * s, true).is_empty());
        assert!(found("D", 2 * s, true).is_empty());
    }
}
