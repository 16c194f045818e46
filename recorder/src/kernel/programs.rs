//! The BPF programs, as `bpf/src/c/events.def.h` lists them: what each records, when it is loaded, and what is missing
//! without it.

use systape_format::model::{Family, StackOf};

/// One program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BpfProgram {
    /// Name of the program in the object.
    pub name: &'static str,
    /// The family whose events are missing when a run of it is.
    pub family: Family,
    /// Place where it is attached.
    pub hook: Hook,
    /// When it is loaded.
    pub load: Load,
    /// The part that is left out with it.
    pub part: Part,
}

/// Attachment of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hook {
    /// A tracepoint, by name, and its number of arguments; 0 = any number.
    Tracepoint(&'static str, usize),
    /// An iterator, run on request: no event is missing without a run.
    Iterator,
    /// Nowhere: the recorder runs it itself. No event is missing without a run.
    Run,
    /// A timer of each CPU.
    Timer,
    /// The tracepoints that the command line names.
    Named,
}

/// When a program is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// Loaded with its family.
    Always,
    /// Loaded with its family when the kernel has the tracepoint with that number of arguments.
    IfThere,
    /// Loaded likewise; a family has nothing when the kernel has none of these tracepoints.
    OneOf,
    /// When something other than its family needs it.
    IfAsked,
}

/// The part of the recording that depends on a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Calls and process life: everything else depends on them.
    Essential,
    /// A whole family.
    Family(Family),
    /// Stacks of one kind of event, or samples.
    Stacks(StackOf),
    /// Only itself; the words say what the recording lacks without it.
    Alone(&'static str),
}

macro_rules! table {
    ($(($name:ident, $family:ident, ($($hook:tt)+), $load:ident, ($($part:tt)+)))*) => {
        /// All of them.
        pub(crate) const PROGRAMS: &[BpfProgram] = &[$(BpfProgram {
            name: stringify!($name),
            family: Family::$family,
            hook: Hook::$($hook)+,
            load: Load::$load,
            part: part!($family $($part)+),
        }),*];
    };
}

macro_rules! part {
    ($family:ident Family) => {
        Part::Family(Family::$family)
    };
    ($family:ident Essential) => {
        Part::Essential
    };
    ($family:ident Stacks($of:ident)) => {
        Part::Stacks(StackOf::$of)
    };
    ($family:ident Alone($lacks:literal)) => {
        Part::Alone($lacks)
    };
}

systape_bpf::programs!(table);

/// The program of a name.
pub(crate) fn find(name: &str) -> Option<&'static BpfProgram> {
    PROGRAMS.iter().find(|program| program.name == name)
}

impl BpfProgram {
    /// The tracepoint it is attached to, if it is one.
    pub(crate) fn tracepoint(&self) -> Option<&'static str> {
        match self.hook {
            Hook::Tracepoint(name, _) => Some(name),
            Hook::Iterator | Hook::Run | Hook::Timer | Hook::Named => None,
        }
    }

    /// The family whose events are missing when the kernel skips a run of it; None: none.
    pub(crate) fn skipped(&self) -> Option<Family> {
        (!matches!(self.hook, Hook::Iterator | Hook::Run)).then_some(self.family)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::mem::MaybeUninit;

    use libbpf_rs::skel::OpenSkel;

    use super::*;

    #[test]
    fn the_object_has_the_programs_of_the_list_and_no_others() {
        let mut storage = MaybeUninit::uninit();
        let open = systape_bpf::open(&mut storage).unwrap();
        let name = |program: libbpf_rs::OpenProgram<'_>| program.name().to_str().unwrap().to_owned();
        let there: BTreeSet<String> = open.open_object().progs().map(name).collect();
        let listed: BTreeSet<String> = PROGRAMS.iter().map(|program| program.name.to_owned()).collect();
        assert_eq!(there, listed);
        assert_eq!(listed.len(), PROGRAMS.len(), "one row each");
    }

    #[test]
    fn skipped_runs_are_of_a_family() {
        let of = |name| find(name).unwrap().skipped();
        assert_eq!(of("sched_switch"), Some(Family::Sched));
        assert_eq!(of("sched_process_exit"), Some(Family::Process));
        assert_eq!(of("mark_victim_pid"), Some(Family::Signal));
        assert_eq!(of("sys_exit_stack"), Some(Family::Stack));
        assert_eq!(of("cpu_sample"), Some(Family::Sample));
        assert_eq!(of("walk_tasks"), None);
        assert_eq!(of("walk_files"), None);
        assert_eq!(of("check_io"), None);
    }
}
