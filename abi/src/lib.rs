//! Syscall numbers, names, argument kinds and values: the kernel ABI for both the recorder and the analyzer.
//!
//! Pure data and pure functions: no file is read and no syscall is made, so a tape of any supported ABI is printed the same on any
//! host, macOS included. Nothing here follows the host's own architecture: constants that differ between x86 and arm64 are written
//! out per ABI. Tables are part of the source, and tests compare them with the crates `syscalls` and `linux-raw-sys`.
//!
//! - [`name`], [`number`], [`display_name`], [`all`]: numbers and names per [`Abi`]
//! - [`describe`]: the arguments of a call, what its return value is and what it does to kernel state
//! - [`descriptors`]: what a call did to the descriptors of its process
//! - [`FlagSet`]: values with names, printed in perf's or strace's way
//! - [`errno_name`], [`errno_text`], [`signal_name`], [`sockaddr_text`], [`escape`]: single values
//! - [`captured_class`]: what captured memory tells of somebody
//! - [`Selection`]: the `-e` expressions of `record` and `analyze`
//! - [`condition`]: filters on fields of events, as they are written
//! - [`nearest`]: what a misspelt name may be meant to be
//!
//! What stays the same between versions: [the crates](https://github.com/systape/systape/blob/main/docs/reference/crates.md).
//!
//! Reading memory of the traced process, keeping fd tables and laying out lines are left to the recorder and the analyzer.

#![warn(clippy::missing_errors_doc, clippy::print_stderr, clippy::print_stdout)]

mod abi;
pub mod condition;
mod desc;
pub mod descriptors;
mod errno;
mod flags;
mod iouring;
mod names;
mod near;
#[rustfmt::skip]
mod numbers;
mod plain;
mod private;
pub mod rest;
mod select;
pub mod si_code;
mod signal;
#[expect(missing_docs, reason = "the kernel's names")]
pub mod signo;
mod struct_text;
#[expect(missing_docs, reason = "the kernel's names")]
pub mod tcp;
#[expect(missing_docs, reason = "the kernel's names")]
pub mod uapi;
mod value;

pub use abi::Abi;
pub use desc::{
    AT_FDCWD, ArgDesc, ArgKind, ContentIo, Effect, ElementCount, Layout, RetKind, Struct, Structs, SyscallDesc,
    describe, describe_name,
};
pub use errno::{errno_name, errno_number, errno_text, is_restart};
pub use flags::{FlagForm, FlagSet, FlagStyle, clock_flags, open_flags, protocol_flags, sockopt_flags};
pub use iouring::{aio_op_name, iouring_op_name};
pub use names::{NO_CALL, all, display_name, name, number};
pub use near::{Habits, instead_of, nearest};
pub use plain::{plain, plain_json};
pub use private::{FUTEX_WORDS, captured_class};
pub use select::{EventTerm, SelectError, Selection, glob_matches};
pub use signal::{signal_name, signal_number};
pub use struct_text::{FdText, StructBytes};
pub use value::{dev_text, escape, is_unsafe, mode_text, open_how_text, sockaddr_text};
