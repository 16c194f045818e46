//! Kinds of event by name, and which of them `-e` asks for.

use anyhow::{Result, bail};
use systape_abi::EventTerm;
use systape_format::model::{BlockIo, BlockLayer, Family, ProcessKind, SignalKind};

use crate::glob;

/// A kind of event. Names are those of the kernel's tracepoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A CPU went from one task to another.
    Switch,
    /// A task was made runnable.
    Waking,
    /// A new task was made runnable for the first time.
    WakeupNew,
    /// A task was made.
    Fork,
    /// A process became another program.
    Exec,
    /// A task ended.
    Exit,
    /// A task changed its name.
    Rename,
    /// A task changed its user.
    Cred,
    /// A task moved to another cgroup.
    Cgroup,
    /// A task became a target of the recording, or is none any more.
    Target,
    /// A signal was sent.
    Generate,
    /// A signal was taken.
    Deliver,
    /// The OOM killer chose its victim.
    OomVictim,
    /// A request of a block device completed.
    RqComplete,
    /// A bio of a device without requests completed.
    BioComplete,
    /// A socket changed its state.
    SockState,
    /// An io_uring operation was submitted.
    Uring,
}

impl Kind {
    /// Every kind with its name, the families and names it also answers to, and the family of the tape that holds it.
    const ALL: [(Self, &'static str, &'static [&'static str], Family); 17] = [
        (Self::Switch, "sched:sched_switch", &[], Family::Sched),
        (Self::Waking, "sched:sched_waking", &["sched:sched_wakeup"], Family::Sched),
        (Self::WakeupNew, "sched:sched_wakeup_new", &[], Family::Sched),
        (Self::Fork, "sched:sched_process_fork", &["process:fork"], Family::Process),
        (Self::Exec, "sched:sched_process_exec", &["process:exec"], Family::Process),
        (Self::Exit, "sched:sched_process_exit", &["process:exit"], Family::Process),
        (Self::Rename, "task:task_rename", &["process:rename"], Family::Process),
        (Self::Cred, "process:cred", &[], Family::Process),
        (Self::Cgroup, "cgroup:cgroup_attach_task", &["process:cgroup"], Family::Process),
        (Self::Target, "process:target", &[], Family::Process),
        (Self::Generate, "signal:signal_generate", &[], Family::Signal),
        (Self::Deliver, "signal:signal_deliver", &[], Family::Signal),
        (Self::OomVictim, "oom:mark_victim", &[], Family::Signal),
        (Self::RqComplete, "block:block_rq_complete", &[], Family::Block),
        (Self::BioComplete, "block:block_bio_complete", &[], Family::Block),
        (Self::SockState, "sock:inet_sock_set_state", &[], Family::Net),
        (Self::Uring, "io_uring:io_uring_submit_req", &["io_uring:io_uring_submit_sqe"], Family::IoUring),
    ];

    /// The kind's name, `family:event`.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The kind of a process event.
    pub fn of_process(kind: ProcessKind) -> Self {
        match kind {
            ProcessKind::Fork => Self::Fork,
            ProcessKind::Exec => Self::Exec,
            ProcessKind::Exit => Self::Exit,
            ProcessKind::Rename => Self::Rename,
            ProcessKind::Cred => Self::Cred,
            ProcessKind::Cgroup => Self::Cgroup,
            ProcessKind::Target => Self::Target,
        }
    }

    /// The kind of a signal event.
    pub fn of_signal(kind: SignalKind) -> Self {
        match kind {
            SignalKind::Generate => Self::Generate,
            SignalKind::Deliver => Self::Deliver,
            SignalKind::OomVictim => Self::OomVictim,
        }
    }

    /// The kind of a block I/O.
    pub fn of_block(io: &BlockIo) -> Self {
        match io.layer {
            BlockLayer::Request => Self::RqComplete,
            BlockLayer::Bio => Self::BioComplete,
        }
    }
}

/// The kinds asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted(u32);

impl Wanted {
    /// The union of the positive terms without what negated ones name; either part of a term may be a glob.
    pub fn parse(terms: &[EventTerm]) -> Result<Self> {
        let (mut positive, mut negative) = (0, 0);
        for term in terms {
            let pattern = format!("{}:{}", term.family, term.event);
            let mut found = 0;
            for (kind, name, aliases, _) in Kind::ALL {
                let named = |name: &str| glob::matches(pattern.as_bytes(), name.as_bytes());
                if named(name) || aliases.iter().copied().any(named) {
                    found |= 1 << kind as u32;
                }
            }
            if found == 0 {
                let known: Vec<_> = Kind::ALL.iter().map(|(_, name, ..)| *name).collect();
                bail!("-e '{pattern}': no such event; there are {}", known.join(", "));
            }
            *(if term.negated { &mut negative } else { &mut positive }) |= found;
        }
        Ok(Self(positive & !negative))
    }

    /// Whether none is.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether `kind` is.
    pub fn has(self, kind: Kind) -> bool {
        self.0 & 1 << kind as u32 != 0
    }

    /// Whether one of `family` is.
    pub fn of_family(self, family: Family) -> bool {
        Kind::ALL.iter().any(|(kind, _, _, of)| *of == family && self.has(*kind))
    }

    /// The families of the tape that hold those asked for, each once.
    pub fn families(self) -> Vec<Family> {
        let mut families: Vec<_> =
            Kind::ALL.iter().filter(|(kind, ..)| self.has(*kind)).map(|(_, _, _, family)| *family).collect();
        families.dedup();
        families
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systape_abi::Selection;

    fn wanted(text: &str) -> Result<Vec<&'static str>> {
        let wanted = Wanted::parse(Selection::parse(&[text]).unwrap().other_events())?;
        Ok(Kind::ALL.iter().filter(|(kind, ..)| wanted.has(*kind)).map(|(kind, ..)| kind.name()).collect())
    }

    #[test]
    fn the_table_is_in_order() {
        for (at, (kind, ..)) in Kind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, at);
        }
    }

    #[test]
    fn terms_add_up() {
        assert_eq!(wanted("sched:sched_switch,read").unwrap(), ["sched:sched_switch"]);
        assert_eq!(
            wanted("sched:*,!sched:sched_[x],!sched:sched_process*").unwrap_err().to_string().lines().count(),
            1
        );
        assert_eq!(
            wanted("sched:*,!sched:sched_process*").unwrap(),
            ["sched:sched_switch", "sched:sched_waking", "sched:sched_wakeup_new"]
        );
        assert_eq!(wanted("process:*").unwrap().len(), 7);
        assert_eq!(wanted("*:signal_d*").unwrap(), ["signal:signal_deliver"]);
        assert_eq!(wanted("!signal:*").unwrap(), [""; 0]);
        assert_eq!(
            Wanted::parse(Selection::parse(&["sched:*,io_uring:*"]).unwrap().other_events()).unwrap().families(),
            [Family::Sched, Family::Process, Family::IoUring]
        );
    }
}
