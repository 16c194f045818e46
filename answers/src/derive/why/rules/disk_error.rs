//! I/Os that a disk failed.

use super::super::finding::{Finding, Severity, Who};
use super::{Inputs, WhyRule};
use systape_events::values::words::errno_text;

/// The rule.
pub(super) const RULE: WhyRule = WhyRule {
    name: "disk-error",
    finds: "I/Os of a disk that failed",
    limits: "any",
    needs: &[systape_format::model::Family::Block],
    judge,
};

fn judge(inputs: &Inputs) -> Vec<Finding> {
    let failed = inputs.disks.iter().filter(|disk| disk.errors > 0);
    failed
        .map(|disk| {
            let (comm, pid) = disk.owner().map_or((Vec::new(), None), |(comm, pid)| (comm.clone(), Some(*pid)));
            let s = if disk.errors == 1 { "" } else { "s" };
            Finding {
                rule: RULE.name,
                class: Severity::Broken,
                who: Who { comm, pid },
                processes: 1,
                object: disk.name.clone().into_bytes(),
                errno: disk.errno,
                count: disk.errors,
                span: disk.errors_span,
                text: format!("{{count}} I/O{s} of disk {} failed ({})", disk.name, errno_text(disk.errno)),
                command: "block --failure".to_owned(),
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
    fn errors_are_found() {
        let disk = Disk { name: "sda".into(), ios: 9, errors: 2, errno: 5, ..Disk::default() };
        let found = judge(&Inputs { disks: vec![disk, Disk::default()], ..Inputs::none() });
        assert_eq!((found.len(), found[0].text.as_str()), (1, "{count} I/Os of disk sda failed (EIO)"));
    }
}
