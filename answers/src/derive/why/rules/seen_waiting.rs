//! What looks found threads waiting for: a file, a lock, an answer.

use super::super::finding::{Finding, Severity, wall};
use super::{Inputs, WhyRule, command};
use crate::derive::why::seen::SeenWait;
use systape_events::values::words::{escaped, span};

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "seen-waiting",
    finds: "what looks (`record --sample`) found threads of a process waiting for: a file, a lock and who holds it, an answer; an estimate with its bounds",
    limits: "the floor; not calls that wait for work",
    needs: &[systape_format::model::Family::Look],
    judge,
};

/// The cost of `wait` in wall time, and its bounds: threads that wait at the same time cost that time once.
pub(super) fn cost(wait: &SeenWait) -> (u64, (u64, u64)) {
    let ns = |time: f64| time.max(0.0) as u64;
    let capped = |time: f64| {
        let (first, last) = wait.span;
        // the looks at both ends stand for their intervals
        let interval = ns(wait.estimate.time) / wait.looks.max(1);
        wall(ns(time), Some((first, last.saturating_add(interval))))
    };
    let (time, low) = (capped(wait.estimate.time), capped(wait.estimate.low));
    (time, (low, if wait.threads > 1 { time.max(capped(wait.estimate.high)) } else { ns(wait.estimate.high) }))
}

/// `-p 17 --time 1.2,3.4` is put behind it where the finding is printed.
pub(super) fn finding(rule: &'static str, wait: &SeenWait, text: String, length: u64) -> Finding {
    let (cost, bars) = cost(wait);
    let average = |time: f64| time / length.max(1) as f64;
    let threads = if wait.threads == 1 {
        String::new()
    } else {
        let (low, high) = (average(wait.estimate.low), average(wait.estimate.high));
        format!(
            ", {} threads, {:.2} at once on average ({low:.2} to {high:.2})",
            wait.threads,
            average(wait.estimate.time)
        )
    };
    Finding {
        rule,
        class: Severity::Time,
        cost: Some(cost),
        bars: Some(bars),
        processes: 1,
        count: wait.stays.max(1),
        max: Some(wait.longest),
        span: Some(wait.span),
        call: wait.call.clone(),
        object: wait.on.clone(),
        text: format!("{text}{threads}, one for >={} without a break", span(wait.longest)),
        command: format!("stays {}", command::task(&wait.who)),
        who: wait.who.clone(),
        ..Finding::default()
    }
}

/// Words for what a thread waits in: `in fsync on /var/db/journal`.
pub(super) fn place(wait: &SeenWait) -> String {
    let call =
        if wait.call.is_empty() { "in no call".to_owned() } else { format!("in {}", escaped(wait.call.as_bytes())) };
    let on = if wait.on.is_empty() { String::new() } else { format!(" on {}", escaped(&wait.on)) };
    let owner = wait.owner.map_or_else(String::new, |owner| format!(" that thread {owner} holds"));
    let state = if wait.state == "D" { " in uninterruptible sleep (D)" } else { "" };
    format!("{call}{on}{owner}{state}")
}

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let seen = &inputs.seen;
    let worth = |wait: &&SeenWait| inputs.floor.passes(cost(wait).0);
    let finding = |wait: &SeenWait| finding(RULE.name, wait, format!("waited {}", place(wait)), seen.time);
    seen.waits.iter().filter(worth).map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::looks::presence::Estimate;
    use crate::derive::why::finding::Who;
    use crate::derive::why::seen::SeenWaits;

    #[test]
    fn waits_have_bounds_and_cost_no_more_than_their_time() {
        let ms = 1_000_000;
        let wait = |threads: u64, time: u64| SeenWait {
            who: Who { comm: b"app".to_vec(), pid: Some(7) },
            state: "S",
            call: "futex".into(),
            on: b"[lock 0x10 of 7]".to_vec(),
            owner: Some(9),
            estimate: Estimate { time: (time * ms) as f64, low: (time * ms / 2) as f64, high: (time * ms * 2) as f64 },
            threads,
            looks: time / 50,
            stays: 3,
            longest: 70 * ms,
            span: (1000 * ms, 1150 * ms),
            ..SeenWait::default()
        };
        let found = |wait: SeenWait| {
            let seen = SeenWaits { waits: vec![wait], time: 1000 * ms, ..SeenWaits::default() };
            judge(&Inputs { seen, ..Inputs::none() })
        };
        let one = &found(wait(1, 200))[0];
        assert_eq!((one.cost, one.bars, one.max), (Some(200 * ms), Some((100 * ms, 400 * ms)), Some(70 * ms)));
        assert_eq!(
            one.text,
            "waited in futex on [lock 0x10 of 7] that thread 9 holds, one for >=70.0 ms without a break"
        );
        let many = &found(wait(8, 800))[0];
        assert_eq!((many.cost, many.bars), (Some(200 * ms), Some((200 * ms, 200 * ms))), "together");
        assert!(many.text.contains(", 8 threads, 0.80 at once on average (0.40 to 1.60)"), "{}", many.text);
        assert!(found(wait(1, 10)).is_empty(), "below the floor");
    }
}
