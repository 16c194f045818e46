//! Facts by which the programs distinguish a network softirq that runs for its sender from an interrupt
//! (softirq.bpf.h): places of some of the kernel's code, and distances of per-CPU variables from the CPU's run queue.

use libbpf_rs::btf::types::{DataSec, Func, MemberAttr, Struct, Var};
use libbpf_rs::btf::{Btf, BtfType};

use crate::machine::kallsyms::WantedSymbols;

/// Most ranges in the programs (SOFTIRQ_CODES).
const CODES: usize = 4;

/// Code by address: from, to.
pub(crate) type CodeRange = (u64, u64);

/// All facts; no part is of use alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Softirqs {
    /// Code that switches to the interrupt stack for softirqs: `do_softirq` and its parts.
    pub do_softirq: Vec<CodeRange>,
    /// The function that delivers packets sent on this machine.
    pub backlog: CodeRange,
    /// Distance from the run queue to `__preempt_count` of the same CPU, bytes.
    pub preempt_count: i64,
    /// Distance from the run queue to `hardirq_stack_ptr`.
    pub irq_stack: i64,
}

/// The facts of the running kernel; None if it hides its addresses, or lacks one of these.
pub(crate) fn find(btf: &Btf<'_>, symbols: &WantedSymbols) -> Option<Softirqs> {
    let (run_queue, preempt_count, irq_stack) = per_cpu(btf)?;
    let (do_softirq, backlog) = code(symbols)?;
    let from = |at: u64| at.cast_signed() - run_queue.cast_signed();
    Some(Softirqs { do_softirq, backlog, preempt_count: from(preempt_count), irq_stack: from(irq_stack) })
}

/// Whether programs may read the kernel's memory by a load (6.2).
pub(crate) fn has_rdonly_cast(btf: &Btf<'_>) -> bool {
    btf.type_by_name::<Func<'_>>("bpf_rdonly_cast").is_some()
}

/// Offsets of `runqueues`, the preemption count and the interrupt stack's address among the per-CPU variables.
fn per_cpu(btf: &Btf<'_>) -> Option<(u64, u64, u64)> {
    let section = btf.type_by_name::<DataSec<'_>>(".data..percpu")?;
    let place = |name: &str| {
        let named = |id| btf.type_by_id::<Var<'_>>(id).is_some_and(|var| var.name().is_some_and(|n| n == name));
        section.iter().find(|var| named(var.ty)).map(|var| u64::from(var.offset))
    };
    let run_queue = place("runqueues")?;
    if let (Some(count), Some(stack)) = (place("__preempt_count"), place("hardirq_stack_ptr")) {
        return Some((run_queue, count, stack));
    }
    // 6.2 to 6.14: in one structure
    let hot = place("pcpu_hot")?;
    let inside = |name| member(btf.type_by_name("pcpu_hot")?, btf, name).map(|offset| hot + offset);
    Some((run_queue, inside("preempt_count")?, inside("hardirq_stack_ptr")?))
}

/// Offset of a member in bytes, also of one in a union or structure without a name.
fn member(whole: BtfType<'_>, btf: &Btf<'_>, name: &str) -> Option<u64> {
    let place = |attr| match attr {
        MemberAttr::Normal { offset } => Some(u64::from(offset / 8)),
        MemberAttr::BitField { .. } => None,
    };
    let find = |members: Vec<(Option<&std::ffi::OsStr>, libbpf_rs::btf::TypeId, MemberAttr)>| {
        members.into_iter().find_map(|(its, ty, attr)| match its {
            Some(its) if its == name => place(attr),
            Some(its) if !its.is_empty() => None,
            _ => Some(place(attr)? + member(btf.type_by_id(ty)?, btf, name)?),
        })
    };
    match Struct::try_from(whole) {
        Ok(s) => find(s.iter().map(|m| (m.name, m.ty, m.attr)).collect()),
        Err(other) => {
            let union = libbpf_rs::btf::types::Union::try_from(other).ok()?;
            find(union.iter().map(|m| (m.name, m.ty, m.attr)).collect())
        }
    }
}

/// Whether a function's place is one of these facts.
pub(crate) fn wants(name: &str) -> bool {
    name == "process_backlog" || name.starts_with("do_softirq")
}

/// The ranges of `do_softirq*` and of `process_backlog`.
fn code(symbols: &WantedSymbols) -> Option<(Vec<CodeRange>, CodeRange)> {
    // a module's has none
    let ranges = symbols.iter().filter(|symbol| wants(&symbol.name) && symbol.to > symbol.from);
    let mut softirqs: Vec<CodeRange> = Vec::new();
    let mut backlog = None;
    for symbol in ranges {
        let range = (symbol.from, symbol.to);
        if symbol.name == "process_backlog" {
            backlog = backlog.or(Some(range));
        } else if softirqs.last() != Some(&range) {
            softirqs.push(range);
        }
    }
    let found = (1..=CODES).contains(&softirqs.len());
    backlog.filter(|_| found).map(|backlog| (softirqs, backlog))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<(Vec<CodeRange>, CodeRange)> {
        code(&WantedSymbols::parse(text.as_bytes(), wants))
    }

    const KERNEL: &str = "ffffffff8120774a t handle_softirqs.cold\nffffffff8135fa90 t do_softirq.part.0\n\
        ffffffff8135fad0 T __local_bh_enable_ip\nffffffff81360b30 T do_softirq\nffffffff81360b60 T irq_enter\n\
        ffffffff81e63ec0 t process_backlog\nffffffff81e64000 t napi_watchdog\nffffffffc0001000 t do_softirq_x\t[mod]\n";

    #[test]
    fn code_is_all_of_do_softirq_and_the_backlog() {
        let softirqs =
            vec![(0xffff_ffff_8135_fa90, 0xffff_ffff_8135_fad0), (0xffff_ffff_8136_0b30, 0xffff_ffff_8136_0b60)];
        assert_eq!(parse(KERNEL), Some((softirqs, (0xffff_ffff_81e6_3ec0, 0xffff_ffff_81e6_4000))));
    }

    #[test]
    fn a_part_alone_is_nothing() {
        assert_eq!(parse(&KERNEL.replace("process_backlog", "x")), None);
        assert_eq!(parse(&KERNEL.replace("do_softirq", "x")), None);
        let hidden: String = KERNEL.lines().map(|line| format!("0000000000000000{}\n", &line[16..])).collect();
        assert_eq!(parse(&hidden), None);
    }
}
