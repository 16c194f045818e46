//! Unwinds user stacks from a copy: registers, the bytes above the stack pointer, and the unwind information
//! (`.eh_frame`, `.debug_frame`) of the files that were mapped.
//!
//! Nothing here knows of processes, rings or tapes. All input may be hostile: a traced program chooses its registers, its stack and
//! its files. Work and memory per stack and per file are bounded, and nothing panics.

mod bytes;
mod cfi;
mod elf;
mod evaluate;
mod exercise;
mod module;
mod registers;
mod rules;
mod stack;
mod unwinder;

#[doc(hidden)]
pub use exercise::exercise;
pub use module::{Limits, Module, ModuleError};
pub use registers::Registers;
pub use unwinder::{AddressSpace, Code, End, Found, StackCopy, Unwinder};
