//! Which findings of `analyze why` a loss touches: those that are made from events of its family, of its process.

use systape_format::model::Family;

use systape_answers::derive::why::finding::Finding;
use systape_answers::derive::why::rules::{RULES, WhyRule};
use systape_events::loss::Loss;

/// What is lost, for findings of the time up to `until`.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossMarks<'a> {
    loss: &'a Loss,
    until: u64,
}

impl<'a> LossMarks<'a> {
    /// Marks by `loss`, CLOCK_MONOTONIC ns. Who was there follows from what was before the time asked for, so all of it counts.
    pub(super) fn new(loss: &'a Loss, until: u64) -> Self {
        Self { loss, until }
    }

    /// Whether anything is lost.
    pub(super) fn any(self) -> bool {
        !self.loss.complete()
    }

    /// Whether times on the way of the subject may be others: the budget, and what would go away.
    pub(super) fn path(self) -> bool {
        self.any() && self.loss.touches(&[Family::Syscall, Family::Sched, Family::Process], None, (0, self.until))
    }

    /// Whether the figures of `finding` may be more than it says.
    pub(super) fn touch(self, finding: &Finding) -> bool {
        if !self.any() {
            return false;
        }
        let rule = RULES.iter().find(|rule| rule.name == finding.rule);
        rule.is_none_or(|rule| self.loss.touches(&inputs(rule), finding.who.pid, (0, self.until)))
    }
}

/// The families of the events that `rule` is fed: those that place its events count as well.
fn inputs(rule: &WhyRule) -> Vec<Family> {
    let of = |family: &Family| match family {
        // waits for a CPU are taken out of calls; the directory of a relative path follows from forks
        Family::Syscall => vec![Family::Syscall, Family::Sched, Family::Process],
        // who was there
        Family::Sched => vec![Family::Sched, Family::Process],
        family => vec![*family],
    };
    match rule.needs {
        // waits for answers, or what a probe tells
        [] if rule.name == "dns" => vec![Family::Syscall, Family::Sched, Family::Process, Family::Tracepoint],
        // deaths: what signals and ends of processes say, and calls of who sent them
        [] => vec![Family::Process, Family::Signal, Family::Syscall],
        needs => needs.iter().flat_map(of).collect(),
    }
}

#[cfg(test)]
mod tests {
    use systape_format::model::{CPU_NONE, Gap, GapCause};

    use super::*;
    use systape_answers::derive::why::finding::Who;

    fn finding(rule: &'static str, pid: u32) -> Finding {
        Finding { rule, who: Who { comm: b"app".to_vec(), pid: Some(pid) }, count: 1, ..Finding::default() }
    }

    #[test]
    fn lost_block_events_touch_what_is_said_of_disks() {
        let gap = |family, pid| Gap {
            cause: GapCause::Hidden,
            family,
            cpu: CPU_NONE,
            count: 2,
            first: 5,
            last: 6,
            pid,
            ledger: false,
        };
        let touched = |family, pid, rule| {
            let loss = Loss { gaps: vec![gap(family, pid)], ..Loss::default() };
            LossMarks::new(&loss, 100).touch(&finding(rule, 7))
        };
        assert!(touched(Family::Block, 0, "slow-disk"));
        for rule in ["fsync", "lock", "cpu-wait", "death"] {
            assert!(!touched(Family::Block, 0, rule), "{rule}");
        }
        assert!(touched(Family::Syscall, 7, "fsync") && !touched(Family::Syscall, 8, "fsync"));
        assert!(touched(Family::Sched, 0, "fsync"), "the cost is without waits for a CPU");
        assert!(touched(Family::Block, 0, "a rule that nobody knows"));
        assert!(!LossMarks::new(&Loss::default(), 100).touch(&finding("fsync", 7)));
    }
}
