//! Whether the kernel lets tracing programs be preempted.
//!
//! Up to 6.19 a tracepoint's programs run with preemption off. Since 7.0 (a46023d5616e, f7d327654b88) they run with it on, where the
//! kernel preempts at all: a task may be preempted inside a program, and for every task that comes to the same program on that CPU
//! meanwhile the kernel skips it (`bpf_prog_get_recursion_context` counts per program and CPU).

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Struct;

use crate::machine::kallsyms::WantedSymbols;

/// The guard of tracepoints instead of preemption off. Kernels before 6.13 have one of that name for another purpose.
const GUARD: &str = "tracepoint_srcu";

/// Whether the symbol of that name tells.
pub(crate) fn wants(name: &str) -> bool {
    name == GUARD
}

/// Whether the running kernel does; false if it hides the names of its variables.
pub(crate) fn is_on(btf: &Btf<'_>, symbols: &WantedSymbols) -> bool {
    is_since_6_13(btf) && symbols.has(GUARD)
}

fn is_since_6_13(btf: &Btf<'_>) -> bool {
    let Some(srcu) = btf.type_by_name::<Struct<'_>>("srcu_struct") else { return false };
    srcu.iter().any(|member| member.name.is_some_and(|name| name == "srcu_reader_flavor"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_is_found() {
        let has = |text: &str| WantedSymbols::parse(text.as_bytes(), wants).has(GUARD);
        assert!(has("ffffffff81 T a\nffffffff82 D tracepoint_srcu\n"));
        assert!(has("0000000000 T a\n0000000000 D tracepoint_srcu\n"));
        assert!(!has("ffffffff81 T a\nffffffff82 D tracepoint_srcu_x\nffffffff83 d x\ttracepoint_srcu [m]\n"));
    }
}
