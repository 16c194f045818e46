//! I/Os that a disk took long for.

use super::super::finding::{Finding, Severity, Who, wall};
use super::{Inputs, WhyRule};

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "slow-disk",
    finds: "I/Os of a disk that took long, and who has most of them",
    limits: "I/Os of 20 ms; their sum is above the floor",
    needs: &[systape_format::model::Family::Block],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let slow = inputs.disks.iter().filter(|disk| inputs.floor.passes(wall(disk.slow_ns, disk.slow_span)));
    slow.map(|disk| {
        let (comm, pid) = disk.owner().map_or((Vec::new(), None), |(comm, pid)| (comm.clone(), Some(*pid)));
        Finding {
            rule: RULE.name,
            class: Severity::Time,
            cost: Some(wall(disk.slow_ns, disk.slow_span)),
            who: Who { comm, pid },
            processes: disk.owners.len() as u64,
            object: disk.name.clone().into_bytes(),
            count: disk.slow,
            max: Some(disk.max),
            span: disk.slow_span,
            text: format!("{{count}} slow I/Os of disk {}, the longest {{max}}", disk.name),
            command: "block --duration 20ms".to_owned(),
            ..Finding::default()
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::Disk;
    use super::*;

    #[test]
    fn slow_disks_are_found() {
        let disk = |slow_ns| Disk {
            name: "sda".into(),
            slow: 3,
            slow_ns,
            max: 9,
            slow_span: Some((0, slow_ns)),
            ..Disk::default()
        };
        let found = |ns| judge(&Inputs { disks: vec![disk(ns)], ..Inputs::none() }).len();
        assert_eq!((found(60_000_000), found(20_000_000)), (1, 0));
    }
}
