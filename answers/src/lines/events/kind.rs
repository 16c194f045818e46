//! Kinds of event by name, and the selection of `-e`.

use anyhow::{Result, bail};
use systape_abi::EventTerm;
use systape_format::families::{OWN, RECORDED};
use systape_format::model::{BlockIo, BlockLayer, Family, ProcessKind, SignalKind};

use crate::values::bad_usage::BadUsage;
use systape_events::values::glob;

/// A kind of event. Names are those of the kernel's tracepoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A CPU switched from one task to another.
    Switch,
    /// A task was made runnable.
    Waking,
    /// A new task was made runnable for the first time.
    WakeupNew,
    /// A task was created.
    Fork,
    /// A process executed another program.
    Exec,
    /// A task ended.
    Exit,
    /// A task changed its name.
    Rename,
    /// A task changed its user.
    Cred,
    /// A task moved to another cgroup.
    Cgroup,
    /// A task became a target of the recording, or ceased to be one.
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
    /// A socket's state changed.
    SockState,
    /// An io_uring operation was submitted.
    Uring,
    /// A CPU's timer ticked, and this task ran on it.
    Sample,
}

impl Kind {
    /// Every kind with its name, its aliases, and its family in the tape.
    const ALL: [(Self, &'static str, &'static [&'static str], Family); 18] = [
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
        (Self::Sample, "sample:cpu-clock", &["perf:cpu-clock"], Family::Sample),
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
    pub(crate) fn of_signal(kind: SignalKind) -> Self {
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

/// One `family:event` of `-e`; either part may be a glob.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    pattern: String,
    negated: bool,
    /// It names a kind, or a table, that this program knows.
    built_in: bool,
    /// A filter stood behind it.
    filtered: bool,
}

impl Term {
    fn names(&self, name: &str) -> bool {
        glob::matches(self.pattern.as_bytes(), name.as_bytes())
    }

    /// Whether it names the table called `name`, by its name or an alias.
    fn names_table(&self, name: &str) -> bool {
        self.names(name) || RECORDED.iter().any(|table| table.def.name == name && self.names(&table.alias()))
    }
}

/// The selected kinds, and the tables that a tape may define.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// A bit for each kind: the union of the positive terms without the negated ones.
    kinds: u32,
    terms: Vec<Term>,
}

impl Wanted {
    /// The selection of these terms. [`Self::check`] tests whether the terms without a kind name a table of the tape.
    pub fn new(terms: &[EventTerm]) -> Self {
        let (mut positive, mut negative) = (0, 0);
        let mut all = Vec::new();
        for term in terms {
            let pattern = format!("{}:{}", term.family, term.event);
            let mut term = Term { pattern, negated: term.negated, built_in: false, filtered: term.filter.is_some() };
            let mut found = 0;
            for (kind, name, aliases, _) in Kind::ALL {
                if term.names(name) || aliases.iter().any(|name| term.names(name)) {
                    found |= 1 << kind as u32;
                }
            }
            term.built_in = found != 0 || RECORDED.iter().any(|table| term.names_table(&table.def.name));
            *(if term.negated { &mut negative } else { &mut positive }) |= found;
            all.push(term);
        }
        Self { kinds: positive & !negative, terms: all }
    }

    /// Refuses a term that names neither a kind nor one of `tables`, the names of the tape's tables. They are read only
    /// if some term names no kind. A filter behind a term is refused too.
    ///
    /// # Errors
    /// There is such a term: bad usage.
    pub fn check<'a>(&self, tables: impl FnOnce() -> Vec<&'a str>) -> Result<()> {
        if let Some(term) = self.terms.iter().find(|term| term.filtered) {
            bail!(BadUsage(format!(
                "-e '{}/.../': a filter on fields is of record; choose among the fields in --format json or csv",
                term.pattern
            )));
        }
        let unknown: Vec<&Term> = self.terms.iter().filter(|term| !term.built_in).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let tables = tables();
        if let Some(term) = unknown.iter().find(|term| !tables.iter().any(|table| term.names(table))) {
            let recorded = RECORDED.iter().map(|table| &*table.def.name).filter(|name| !tables.contains(name));
            let kinds = Kind::ALL.iter().map(|(_, name, ..)| *name);
            let known: Vec<_> = kinds.chain(tables.iter().copied()).chain(recorded).collect();
            let near = systape_abi::nearest(&term.pattern, known.iter().copied());
            let meant = match near.first() {
                Some(name) => format!("did you mean '{name}'?"),
                None => format!("{};", stored_by(&term.pattern)),
            };
            bail!(BadUsage(format!("-e '{}': no such event; {meant} there are {}", term.pattern, known.join(", "))));
        }
        Ok(())
    }

    /// Whether nothing is selected.
    pub fn is_empty(&self) -> bool {
        self.kinds == 0 && !self.tables()
    }

    /// Whether something is selected that only a table of the tape can be.
    pub fn tables(&self) -> bool {
        let recorded = RECORDED.iter().any(|table| self.has_table(&table.def.name));
        recorded || self.terms.iter().any(|term| !term.negated && !term.built_in)
    }

    /// Whether `kind` is selected.
    pub fn has(&self, kind: Kind) -> bool {
        self.kinds & 1 << kind as u32 != 0
    }

    /// Whether the table called `name` is selected.
    pub fn has_table(&self, name: &str) -> bool {
        let named = |negated| self.terms.iter().any(|term| term.negated == negated && term.names_table(name));
        named(false) && !named(true)
    }

    /// The tape's families of the selected kinds, each once.
    pub fn families(&self) -> Vec<Family> {
        let mut families: Vec<_> =
            Kind::ALL.iter().filter(|(kind, ..)| self.has(*kind)).map(|(_, _, _, family)| *family).collect();
        families.dedup();
        for table in RECORDED.iter().chain(OWN).filter(|table| self.has_table(&table.def.name)) {
            if !families.contains(&table.family) {
                families.push(table.family);
            }
        }
        // any of them may name tracepoints too, which only the tape knows
        if self.terms.iter().any(|term| !term.negated) {
            families.push(Family::Tracepoint);
        }
        families
    }
}

/// What of `record` stores the event `name`, which this tape does not have.
fn stored_by(name: &str) -> String {
    let behind = |kind: &str| name.strip_prefix(kind);
    match (behind("kprobe:"), behind("uprobe:"), behind("usdt:")) {
        (Some(function), ..) => format!("functions of the kernel are stored by record --kprobe {function}"),
        (_, Some(function), _) => format!("functions of programs are stored by record --uprobe FILE:{function}"),
        (.., Some(probe)) => format!("static probes are stored by record --usdt FILE:{probe}"),
        _ => format!("a tracepoint is stored by record -e '{name}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systape_abi::Selection;

    fn asked(text: &str) -> Wanted {
        Wanted::new(Selection::parse(&[text]).unwrap().other_events())
    }

    fn wanted(text: &str) -> Vec<&'static str> {
        let wanted = asked(text);
        Kind::ALL.iter().filter(|(kind, ..)| wanted.has(*kind)).map(|(kind, ..)| kind.name()).collect()
    }

    #[test]
    fn the_table_is_in_order() {
        for (at, (kind, ..)) in Kind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, at);
        }
    }

    #[test]
    fn terms_add_up() {
        assert_eq!(wanted("sched:sched_switch,read"), ["sched:sched_switch"]);
        let error =
            asked("sched:*,!sched:sched_[x],!sched:sched_process*").check(|| vec!["writeback:written"]).unwrap_err();
        assert!(error.to_string().contains("sched:sched_[x]"), "{error}");
        assert!(error.to_string().contains("writeback:written, exceptions:page_fault_user"), "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
        assert_eq!(
            wanted("sched:*,!sched:sched_process*"),
            ["sched:sched_switch", "sched:sched_waking", "sched:sched_wakeup_new"]
        );
        assert_eq!(wanted("process:*").len(), 7);
        assert_eq!(wanted("*:signal_d*"), ["signal:signal_deliver"]);
        assert_eq!(wanted("!signal:*"), [""; 0]);
        let families = [Family::Sched, Family::Process, Family::IoUring, Family::Tracepoint];
        assert_eq!(asked("sched:*,io_uring:*").families(), families);
    }

    #[test]
    fn tables_of_a_tape_have_names_too() {
        let wanted = asked("writeback:*,!*:start");
        assert!(wanted.check(|| vec!["writeback:written", "writeback:start"]).is_ok());
        assert!(wanted.check(|| vec!["writeback:written"]).is_err(), "what is left out must be there");
        assert!(wanted.has_table("writeback:written") && !wanted.has_table("writeback:start"));
        assert!(!wanted.has_table("x:y") && wanted.tables() && !wanted.is_empty());
        let error = asked("writeback:*/ino==1/").check(|| vec!["writeback:written"]).unwrap_err();
        assert!(error.to_string().contains("is of record"), "{error}");
        assert!(asked("sched:*").has_table("sched:mine") && !asked("sched:*").tables());
        assert!(asked("!signal:*").is_empty() && asked("read").is_empty());
    }
}
