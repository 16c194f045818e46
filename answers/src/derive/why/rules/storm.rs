//! Many calls of one kind on one thing: each is fast, all together are not.

use super::super::calls::{CallTime, Object, is_durable};
use super::super::finding::{Finding, wall};
use super::super::rank::{On, roll};
use super::slow_calls::{of, repeated};
use super::{Inputs, WhyRule};

/// Fewer calls on one thing are no storm.
const CALLS: u64 = 1_000;
/// Fewer calls on nothing are no storm.
const CALLS_ON_NOTHING: u64 = 10_000;
/// Fewer in a second are none.
const RATE: u64 = 50;
/// Calls that move more bytes on average do work.
const BYTES: u64 = 512;

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "storm",
    finds: "many calls of one kind on one file or socket, or on nothing",
    limits: "1,000 calls (10,000 on nothing), 50 in a second, at most 512 bytes each; their time is above the floor",
    needs: &[systape_format::model::Family::Syscall],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let worth = |work: &CallTime| {
        let length = work.span.map_or(0, |(first, last)| last.saturating_sub(first)).max(1);
        let rate = u128::from(work.calls) * 1_000_000_000 / u128::from(length);
        work.calls >= CALLS
            && rate >= u128::from(RATE)
            && work.bytes / work.calls <= BYTES
            && inputs.floor.passes(wall(work.ns, work.span))
    };
    let asked = inputs.calls.iter().filter(|sum| !is_durable(&sum.call));
    let rows = roll(asked, worth, false).into_iter().filter(|(_, on, sums)| match on {
        On::One(Object::Named(_)) => true,
        On::In(_) | On::Peer(_) => sums.work.calls / sums.things.max(1) >= CALLS,
        On::One(Object::None) => sums.work.calls >= CALLS_ON_NOTHING,
        _ => false,
    });
    rows.map(|row| {
        let ((_, call, _), on, sums) = &row;
        let text = format!("{{count}} {call} calls{}", of(on, sums.things));
        repeated(RULE.name, row, text, "")
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Who;
    use super::super::super::rank::{Sum, named};
    use super::*;

    #[test]
    fn many_small_calls_are_a_storm_and_large_ones_are_work() {
        let sum = |call: &str, calls, bytes, length| {
            let work = CallTime { calls, bytes, ns: 80_000_000, span: Some((0, length)), ..CallTime::default() };
            let who = Who { comm: b"date".to_vec(), pid: Some(7) };
            Sum { who, call: call.into(), errno: 0, object: named("/etc/localtime"), work }
        };
        let found = |sum| judge(&Inputs { calls: vec![sum], ..Inputs::none() });
        assert_eq!(
            found(sum("newfstatat", 300_000, 0, 1_000_000_000))[0].text,
            "{count} newfstatat calls of /etc/localtime"
        );
        assert_eq!(found(sum("read", 3_000, 3_000, 1_000_000_000)).len(), 1, "a byte each");
        assert_eq!(found(sum("read", 3_000, 3_000 * 4096, 1_000_000_000)), [], "they do work");
        assert_eq!(found(sum("newfstatat", 2_000, 0, 100_000_000_000)), [], "20 in a second");
        assert_eq!(found(sum("newfstatat", 900, 0, 1_000_000_000)), [], "too few");
    }
}
