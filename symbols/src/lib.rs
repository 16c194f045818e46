//! Names behind places in code: functions, what was inlined into them, source lines.
//!
//! ELF files and perf maps are parsed in a child process with limits ([`Resolver`]): they may come from anywhere, and a parser that panics, maps a
//! file that is cut short, or asks for all memory must cost the names of that file only. What the calling process parses itself is
//! text of the kernel ([`Kallsyms`]), and headers and notes of debug files ([`DebugDirs`]), with bounds.

mod child;
mod debug_dirs;
mod demangle;
mod elf;
mod kallsyms;
mod notes;
mod perf_map;
mod regular;
mod resolver;
mod socket;
mod wire;

pub use child::run_child;
pub use debug_dirs::DebugDirs;
pub use demangle::demangle;
pub use kallsyms::{Kallsyms, KernelModule, modules};
pub use notes::{build_id, kernel_build_id, module_build_id};
pub use perf_map::PerfMap;
pub use regular::{open_regular, open_regular_no_follow};
pub use resolver::{File, Resolver, ResolverLimits};
