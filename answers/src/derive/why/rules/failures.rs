//! The same failure again and again: calls of one kind on one path with one error.

use super::super::finding::{Finding, wall};
use super::super::rank::{On, roll};
use super::slow_calls::{of, repeated};
use super::{Inputs, WhyRule};
use systape_events::values::words::errno_text;

/// Fewer failures are no storm.
const FAILURES: u64 = 100;

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "failures",
    finds: "calls of one kind on one path that fail with one error again and again",
    limits: "100 failures; their time is above the floor",
    needs: &[systape_format::model::Family::Syscall],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    // EAGAIN says that there is no work
    let asked = inputs.calls.iter().filter(|sum| !matches!(sum.errno, 0 | 11));
    let rows = roll(asked, |work| work.calls >= FAILURES && inputs.floor.passes(wall(work.ns, work.span)), true);
    // searches in many directories fail a few times at each path
    let one =
        rows.into_iter().filter(|(_, on, sums)| *on != On::Any && sums.work.calls / sums.things.max(1) >= FAILURES);
    one.map(|row| {
        let ((_, call, errno), on, sums) = &row;
        let text = format!("{{count}} failed {call} calls{} ({})", of(on, sums.things), errno_text(*errno));
        repeated(RULE.name, row, text, "--failure ")
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::calls::CallTime;
    use super::super::super::finding::Who;
    use super::super::super::rank::{Sum, named};
    use super::*;

    #[test]
    fn a_storm_of_one_error_is_found() {
        let sum = |errno, calls| {
            let work = CallTime { calls, ns: 80_000_000, span: Some((0, 900_000_000)), ..CallTime::default() };
            let who = Who { comm: b"sh".to_vec(), pid: Some(7) };
            Sum { who, call: "openat".into(), errno, object: named("/nfs/x"), work }
        };
        let found = |calls| judge(&Inputs { calls, ..Inputs::none() });
        let all = found(vec![sum(2, 1_204), sum(0, 5_000), sum(11, 5_000)]);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].text, "{count} failed openat calls of /nfs/x (ENOENT)");
        assert_eq!(all[0].command, "-s --by comm,syscall -e openat -P /nfs/x --failure -p 7");
        assert_eq!(found(vec![sum(2, 99)]), [], "too few");
    }
}
