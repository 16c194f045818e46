//! Names behind places in code: functions, what was inlined into them, source lines.
//!
//! ELF files are parsed in a child process with limits ([`Resolver`]): they may come from anywhere, and a parser that panics, maps a
//! file that is cut short, or asks for all memory must cost the names of that file only.

mod resolver;

pub use resolver::{File, Resolver, run_child};
