//! Unwinds user stacks from a copy: registers, the bytes above the stack pointer, and the unwind information
//! (`.eh_frame`, `.debug_frame`) of the files that were mapped. Stacks are those of the machine that this is compiled for, x86-64 or arm64.
//!
//! Nothing here knows processes, rings or tapes. All input may be hostile: a traced program chooses its registers, its
//! stack and its files. Work and memory per stack and per file are bounded, and nothing panics.
//!
//! The caller provides an [`AddressSpace`] with the mappings, a [`RuleSource`] for each file, and a [`StackCopy`]. One
//! [`Unwinder`] serves all processes, because its cache is by file. A [`Module`] parses a file, which may be done in
//! another process: the [`Unwinder`] itself knows numbers only. The head of `unwinder.rs` says how frames are
//! looked up, what a top is, and what is guessed.
//!
//! Known limits:
//! - `_init` and `_fini` have no unwind information, nor has much assembler; a stack that stops in them ends there, or goes on by a guess.
//! - Code that keeps its stack elsewhere (goroutines, coroutines, an alternate signal stack) ends at the edge of that stack.
//! - `.debug_frame` is read as it is or compressed with zlib, not with zstd, whose decoder does not stop at the length promised.
//!
//! What stays the same between versions: [the crates](https://github.com/systape/systape/blob/main/docs/reference/crates.md).

#![warn(clippy::missing_errors_doc, clippy::print_stderr, clippy::print_stdout)]

mod bytes;
mod cfi;
mod eh_frame;
mod elf;
mod evaluate;
#[cfg(feature = "exercise")]
mod exercise;
mod limits;
mod machine;
mod module;
mod numbers;
mod registers;
mod rules;
mod segments;
mod stack;
mod unwinder;

#[cfg(feature = "exercise")]
pub use exercise::exercise;
pub use limits::{ModuleError, ModuleLimits};
pub use machine::CODE_BYTES;
pub use module::Module;
pub use numbers::REGISTERS;
pub use registers::Registers;
pub use rules::{Facts, RuleSource, Stepped};
pub use segments::Segments;
pub use stack::{StackCopy, UnwindEnd};
pub use unwinder::{AddressSpace, Found, MappedCode, Unwinder};
