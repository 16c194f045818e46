//! What the command lines of both programs have in common: man pages and completions ([`Generate`]), and why a command line is not
//! followed ([`Stop`]), how options take their values ([`Options`]), sizes ([`size`]), what a running `record` is asked and answers
//! ([`control`]), how it holds the tape that it writes ([`held`]), and what a terminal can do ([`takes_escapes`]). What there is to type is each program's own.
//!
//! Any version may change it: [the crates](https://github.com/systape/systape/blob/main/docs/reference/crates.md).

#![warn(clippy::missing_errors_doc, clippy::print_stderr, clippy::print_stdout)]

pub mod control;
mod generate;
pub mod held;
mod options;
mod shell;
mod size;
mod stop;
mod terminal;
mod version;

pub use clap_complete::Shell;
pub use generate::{Generate, completions, man};
pub use options::{Options, Takes};
pub use shell::words;
pub use size::size;
pub use stop::{Stop, unknown};
pub use terminal::takes_escapes;
pub use version::{built_from, version};
