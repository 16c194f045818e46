//! Names of places in code: functions, functions inlined into them, source lines.
//!
//! A limited child process ([`Resolver`], [`FileReader`], [`RuleReader`]) parses ELF files and perf maps, because they are untrusted. A parser that
//! panics, maps a file that is cut short, or allocates all memory costs only the names of that file. The calling
//! process itself parses only text of the kernel ([`Kallsyms`]), and headers and notes of debug files ([`DebugDirs`]),
//! with bounds.
//!
//! What stays the same between versions: [the crates](https://github.com/systape/systape/blob/main/docs/reference/crates.md).

#![warn(clippy::missing_errors_doc, clippy::print_stderr, clippy::print_stdout)]

mod carrier;
mod child;
mod deadline;
mod debug_dirs;
mod demangle;
mod elf;
mod executed;
#[cfg(feature = "exercise")]
mod exercise;
mod facts;
mod function;
mod go;
mod ident;
mod kallsyms;
mod notes;
mod perf_map;
mod process;
mod regular;
mod resolver;
mod rules;
mod socket;
mod static_probes;
mod wire;

pub use carrier::{Carrier, OpenByName, Unread, run_carrier};
pub use child::run_child;
pub use deadline::Deadline;
pub use debug_dirs::{DebugDirs, has_build_id};
pub use demangle::demangle;
pub use executed::Executed;
#[cfg(feature = "exercise")]
pub use exercise::{exercise, exercise_file, exercise_notes};
pub use facts::{FileReader, Limits};
pub use function::FunctionStart;
pub use ident::{Ident, image_build_id};
pub use kallsyms::{Kallsyms, KernelModule, modules};
pub use notes::{build_id, kernel_build_id, module_build_id};
pub use perf_map::{MOST as LONGEST_PERF_MAP, PerfMap};
pub use process::left_behind;
pub use regular::{open_regular, open_regular_no_follow};
pub use resolver::{File, GivenUp, Resolver, ResolverLimits};
pub use rules::{FileRules, Lost, RuleReader};
pub use static_probes::StaticProbe;
