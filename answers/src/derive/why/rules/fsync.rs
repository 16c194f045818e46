//! Time in which data is made durable: fsync and the like, where journals and slow disks are felt.

use super::super::calls::is_durable;
use super::super::finding::Finding;
use super::super::rank::roll;
use super::slow_calls::{cost, finding, held_back};
use super::{Inputs, WhyRule};

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "fsync",
    finds: "fsync, fdatasync, sync, syncfs, sync_file_range and msync of one file or directory",
    limits: "their sum is above the floor",
    needs: &[systape_format::model::Family::Syscall],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let asked = inputs.calls.iter().filter(|sum| is_durable(&sum.call));
    let rows = roll(asked, |work| inputs.floor.passes(cost(work)), false);
    rows.into_iter().map(|row| held_back(finding(RULE.name, "", row.clone()), &row, &inputs.limits)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::calls::CallTime;
    use super::super::super::finding::Who;
    use super::super::super::rank::{Sum, named};
    use super::*;

    #[test]
    fn many_short_ones_count() {
        let span = Some((0, 1_000_000_000));
        let work =
            CallTime { calls: 900, slow: 900, slow_ns: 90_000_000, span, slow_span: span, ..CallTime::default() };
        let who = Who { comm: b"db".to_vec(), pid: Some(7) };
        let calls = vec![Sum { who, call: "fdatasync".into(), errno: 0, object: named("/db/wal"), work }];
        let found = judge(&Inputs { calls, ..Inputs::none() });
        assert_eq!((found.len(), found[0].cost, found[0].rule), (1, Some(90_000_000), "fsync"));
    }
}
