//! Families of events: which are requested, which programs they need, and which the running kernel supports.
//!
//! The kernel's BTF shows what it supports (whether there is a tracepoint, and its number of arguments), not its
//! version: distributions backport changes.

use anyhow::{Context, Result, bail};
use libbpf_rs::OpenProgramMut;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Func, FuncProto, Ptr, Struct, Typedef};
use libbpf_rs::skel::OpenSkel;
use systape_bpf::{OpenSystapeSkel, stack_user};
use systape_format::families::RECORDED;
use systape_format::model::{Family, StackOf};

use crate::kernel::programs::{self, BpfProgram, Hook, Load, PROGRAMS};
use crate::kernel::{bio_ends, preemption, softirq};
use crate::machine::kallsyms::WantedSymbols;

macro_rules! names {
    ($(($family:ident, $name:literal, $when:ident))*) => {
        /// Names of families on the command line, and whether one is recorded by default. Process life is always
        /// recorded, because everything else depends on it.
        const NAMES: &[(&str, Family, When)] = &[$(($name, Family::$family, When::$when)),*];
        /// Help on `--families`.
        pub(crate) const HELP: &str = concat!(
            "Families of events:", $(names!(@default $when $name),)* " or all of these (the default)"
            $(, names!(@named $when $name))*
        );
    };
    (@default Default $name:literal) => { concat!(" ", $name) };
    (@default Named $name:literal) => { "" };
    (@named Default $name:literal) => { "" };
    (@named Named $name:literal) => { concat!("; only if named: ", $name) };
}
systape_bpf::families!(names);

/// When a family is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "every family may be one of the default")]
enum When {
    /// Recorded by default, or with `all`.
    Default,
    /// Only when named.
    Named,
}

/// The family's name on the command line and in messages.
pub(crate) fn name(family: Family) -> &'static str {
    family.name()
}

/// Every word that `--families` takes.
pub(crate) fn words() -> Vec<&'static str> {
    NAMES.iter().map(|(name, ..)| *name).chain(["all"]).collect()
}

/// The families to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Families(Vec<Family>);

impl Default for Families {
    fn default() -> Self {
        Self(NAMES.iter().filter(|(.., when)| *when == When::Default).map(|(_, family, _)| *family).collect())
    }
}

impl Families {
    /// Reads a comma list of names, `all` among them; empty = all.
    ///
    /// # Errors
    /// An unknown name.
    pub(crate) fn parse(names: &[String]) -> Result<Self> {
        let mut wanted = vec![Family::Process];
        for name in names {
            // perf and bpftrace say it with an s
            let singular = name.strip_suffix('s').unwrap_or(name);
            match NAMES.iter().find(|(known, ..)| known == name || *known == singular) {
                Some((_, family, _)) => wanted.push(*family),
                None if name == "all" => wanted.extend(Self::default().0),
                None => {
                    let known: Vec<_> = NAMES.iter().map(|(name, ..)| *name).collect();
                    bail!("--families: there is no family '{name}'; there are {} and all", known.join(", "))
                }
            }
        }
        if names.is_empty() {
            return Ok(Self::default());
        }
        wanted.sort_unstable();
        wanted.dedup();
        Ok(Self(wanted))
    }

    /// The families of looks (--sample): what happens to processes is rare, and gives them names.
    pub(crate) fn of_looks() -> Self {
        Self(vec![Family::Process, Family::Signal, Family::Look])
    }

    /// Whether `family` is among them.
    pub(crate) fn has(&self, family: Family) -> bool {
        self.0.contains(&family)
    }

    /// Adds one.
    pub(crate) fn add(&mut self, family: Family) {
        if !self.has(family) {
            self.0.push(family);
            self.0.sort_unstable();
        }
    }

    /// Removes one.
    pub(crate) fn leave_out(&mut self, family: Family) {
        self.0.retain(|had| *had != family);
    }

    /// Whether tables with stacks are recorded.
    pub fn have_row_stacks(&self) -> bool {
        self.has(Family::Tracepoint)
            || RECORDED.iter().any(|table| table.def.stack_column().is_some() && self.has(table.family))
    }

    /// All of them.
    pub(crate) fn list(&self) -> &[Family] {
        &self.0
    }
}

/// The running kernel's tracepoints and helpers.
#[derive(Debug)]
pub(crate) struct Tracepoints {
    btf: Btf<'static>,
    symbols: WantedSymbols,
}

impl Tracepoints {
    /// Reads the kernel's BTF, and its symbols.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn read() -> Result<Self> {
        let btf = Btf::from_vmlinux().context("cannot read the kernel's BTF")?;
        let wanted = |name: &str| softirq::wants(name) || preemption::wants(name) || bio_ends::of(name).is_some();
        Ok(Self { btf, symbols: WantedSymbols::read(wanted) })
    }

    /// All of it.
    pub(crate) fn btf(&self) -> &Btf<'static> {
        &self.btf
    }

    /// Places of its functions, and names.
    pub(crate) fn symbols(&self) -> &WantedSymbols {
        &self.symbols
    }

    /// Whether programs may copy the memory of another task (5.18).
    pub(crate) fn copies_from_tasks(&self) -> bool {
        self.btf.type_by_name::<Func<'_>>("bpf_copy_from_user_task").is_some()
    }

    /// Whether programs can ask what is mapped at an address (5.17).
    pub(crate) fn finds_mappings(&self) -> bool {
        self.btf.type_by_name::<Func<'_>>("bpf_find_vma").is_some()
    }

    /// Whether programs can walk all tasks themselves (6.7).
    pub(crate) fn walks_tasks(&self) -> bool {
        self.btf.type_by_name::<Func<'_>>("bpf_iter_task_new").is_some()
    }

    /// Whether programs can read which descriptor an operation of io_uring closes (5.19).
    pub(crate) fn knows_closes(&self) -> bool {
        let has = |name: &str, field: &str| {
            let of = self.btf.type_by_name::<Struct<'_>>(name);
            of.is_some_and(|of| of.iter().any(|member| member.name.is_some_and(|name| name == field)))
        };
        has("io_close", "file_slot") && has("io_cmd_data", "file")
    }

    /// Number of arguments of a tracepoint; None when the kernel has no such tracepoint.
    pub(crate) fn arguments(&self, name: &str) -> Option<usize> {
        let typedef = self.btf.type_by_name::<Typedef<'_>>(&format!("btf_trace_{name}"))?;
        let pointer = Ptr::try_from(typedef.next_type()?).ok()?;
        let function = FuncProto::try_from(pointer.next_type()?).ok()?;
        // the first is the tracepoint's own
        Some(function.iter().count().saturating_sub(1))
    }
}

/// Requested families without a tracepoint in this kernel, and why they cannot be recorded.
pub(crate) fn without_tracepoints(families: &Families, kernel: &Tracepoints) -> Vec<(Family, String)> {
    let lacks = |family: &Family| {
        let needed = |program: &&BpfProgram| program.family == *family && program.load == Load::OneOf;
        let any_of: Vec<_> = PROGRAMS.iter().filter(needed).filter_map(BpfProgram::tracepoint).collect();
        if *family == Family::Look && !kernel.walks_tasks() {
            return Some((*family, "--sample takes Linux 6.7: before, no program could walk the threads".to_owned()));
        }
        let lacks = !any_of.is_empty() && any_of.iter().all(|name| kernel.arguments(name).is_none());
        let since = if *family == Family::Lock { " (Linux 5.19 has)" } else { "" };
        lacks.then(|| (*family, format!("this kernel has no tracepoint {}{since}", any_of.join(" or "))))
    };
    families.list().iter().filter_map(lacks).collect()
}

/// Loads the programs of the requested families for which the kernel has tracepoints; notes what is missing. `targets`:
/// only some tasks are recorded.
///
/// # Errors
/// When the object cannot be changed.
pub(crate) fn choose(
    open: &mut OpenSystapeSkel<'static>,
    families: &Families,
    stacks: &[StackOf],
    targets: bool,
    kernel: &Tracepoints,
) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    let has = |name: &str| kernel.arguments(name).is_some();
    let takes = |name: &str, count: usize| kernel.arguments(name) == Some(count);
    let Some(options) = open.maps.rodata_data.as_deref_mut() else { bail!("the BPF object has no options") };
    options.has_switch_state = takes("sched_switch", 4);
    options.has_bio_queue_arg = takes("block_bio_queue", 2);
    options.has_rq_queue_arg = takes("block_rq_issue", 2);
    options.has_io_start = has("block_io_start");
    options.has_uring_opcode = !takes("io_uring_submit_sqe", 2);
    let finds_mappings = kernel.finds_mappings();
    let takes_user = options.stacks_user != stack_user::NO_USER;

    for mut program in open.open_object_mut().progs_mut() {
        let row = program.name().to_str().and_then(programs::find);
        if let Some(row) = row.filter(|row| row.load != Load::IfAsked) {
            program.set_autoload(families.has(row.family) && is_there(row, kernel));
        }
    }
    let progs = &mut open.progs;
    let set = |prog: &mut OpenProgramMut<'_>, on: bool| prog.set_autoload(on);
    set(&mut progs.cpu_sample, stacks.contains(&StackOf::Sample));
    set(&mut progs.sys_exit_stack, stacks.contains(&StackOf::Syscall));
    let sleepers = stacks.contains(&StackOf::Asleep);
    let copies = sleepers && takes_user;
    set(&mut progs.walk_sleepers, sleepers);
    set(&mut progs.copy_sleepers, copies && kernel.copies_from_tasks());
    if copies && !kernel.copies_from_tasks() {
        notes.push("this kernel lets nobody copy the stack of a task that sleeps (5.18 does): threads asleep since before the start have kernel frames only".into());
    }
    let looks = families.has(Family::Look);
    set(&mut progs.look_walk, looks);
    set(&mut progs.look_copy, looks);
    set(&mut progs.any_tracepoint, families.has(Family::Tracepoint));
    set(&mut progs.packet_tracepoint, families.has(Family::Tracepoint));
    set(&mut progs.probe_entry, families.has(Family::Tracepoint));
    set(&mut progs.probe_return, families.has(Family::Tracepoint));
    let net = families.has(Family::Net);
    // with the whole machine recorded nobody's sockets have to be told from others'
    set(&mut progs.walk_files, net && targets);
    if !(net && targets) {
        open.maps.sockets.set_max_entries(1)?;
        open.maps.listening.set_max_entries(1)?;
        open.maps.target_files.set_max_entries(1)?;
    }
    let faults = families.has(Family::Fault);
    set(&mut progs.page_fault_user, faults && finds_mappings);
    set(&mut progs.fault_major, faults && finds_mappings);
    set(&mut progs.page_fault_plain, faults && !finds_mappings);
    set(&mut progs.fault_major_plain, faults && !finds_mappings);
    if !faults {
        open.maps.fault_entries.set_max_entries(1)?;
    } else if !finds_mappings {
        notes
            .push("this kernel does not say what is mapped at an address (5.17 does): page faults have no file".into());
    }
    if has("block_io_start") {
        // what begins there is inserted later, and a flush never is
        set(&mut progs.block_rq_insert, false);
    }
    if has("io_uring_submit_req") {
        // of the two the newer one: both would tell of each operation
        set(&mut progs.io_uring_submit_sqe, false);
    }
    Ok(notes)
}

/// Whether the kernel has the tracepoint of a program; for programs that are always loaded, loading shows it.
fn is_there(program: &BpfProgram, kernel: &Tracepoints) -> bool {
    match (program.load, program.hook) {
        (Load::IfThere | Load::OneOf, Hook::Tracepoint(name, 0)) => kernel.arguments(name).is_some(),
        (Load::IfThere | Load::OneOf, Hook::Tracepoint(name, count)) => kernel.arguments(name) == Some(count),
        _ => true,
    }
}

/// Decides whether to load the second programs of calls, which do the work of first ones that the kernel skipped.
///
/// # Errors
/// When the object cannot be changed.
pub(crate) fn run_twice(open: &mut OpenSystapeSkel<'static>, on: bool) -> Result<()> {
    let Some(options) = open.maps.rodata_data.as_deref_mut() else { bail!("the BPF object has no options") };
    options.preemptible = on;
    open.progs.sys_enter_again.set_autoload(on);
    open.progs.sys_exit_again.set_autoload(on);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Families> {
        Families::parse(&text.split(',').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn one_is_left_out() {
        let mut families = Families::default();
        families.leave_out(Family::Block);
        assert!(!families.has(Family::Block) && families.has(Family::Sched) && families.has(Family::Process));
        assert_eq!((name(Family::IoUring), name(Family::Sample)), ("io_uring", "sample"));
    }

    #[test]
    fn names_are_families() {
        assert!(parse("sched,block").unwrap().has(Family::Block));
        assert!(!parse("sched").unwrap().has(Family::Syscall));
        assert!(parse("signals").unwrap().has(Family::Process), "nothing can be told without it");
        assert_eq!(parse("all").unwrap(), Families::default());
        assert_eq!(Families::parse(&[]).unwrap(), Families::default());
        assert!(parse("disk").unwrap_err().to_string().contains("block"));
    }
}
