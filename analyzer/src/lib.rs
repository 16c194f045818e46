//! The work behind `analyze`: read a tape, answer a question about it as text, JSON or CSV.
//!
//! Folders are storeys, and imports only point down (tests/analyze/storeys.rs); below all of them are `systape-answers`, what events mean and how values are
//! printed, and `systape-events`, filters, segments, sums and losses:
//!
//! | storey | what is there |
//! |---|---|
//! | `frames` | tables as typed columns, for `analyze-sql`, Python and `analyze export arrow` |
//! | `cli` | reads the command line, opens the tape, calls a view; says why an answer is empty |
//! | `tui` | a tape in a terminal: answers of views as screens |
//! | `reports` | one file a report, each with its [`View`](exercise::View) |
//! | `asked` | the command line as typed and settled; what a view is |
//! | `import` | makes tapes of logs that other programs wrote |
//!
//! Nothing of the machine `analyze` runs on is looked at (no /proc, /sys, timezone): in a pipe the same tape gives the same
//! bytes everywhere; a terminal gets colours and lines of its width (`systape_answers::values::fit`); `cli::sandbox` gives up what is not needed for that. Recording and the layout of tapes are left to
//! the recorder and `systape-format`.

#![warn(clippy::missing_errors_doc, clippy::print_stderr, clippy::print_stdout)]

use std::ffi::OsString;
use std::process::ExitCode;

mod asked;
mod cli;
pub mod frames;
mod import;
mod reports;
#[cfg(unix)]
mod tui;

#[cfg(unix)]
pub use cli::mcp::sql::{SQL_STARTER, run_sql_starter};
#[cfg(target_os = "linux")]
pub use systape_answers::derive::stacks::debug_files::READER;
#[cfg(target_os = "linux")]
pub use systape_answers::values::{debuginfod::FETCHER, fetcher::run_fetcher};

/// Executes the command line, in a sandbox unless it says otherwise; messages go to stderr. This thread and those
/// made later stay in the sandbox: only for a process that does nothing else.
pub fn run_confined(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    cli::run::run_confined(words, frames::export::write)
}

/// Executes the command line, without a sandbox; messages go to stderr.
pub fn run(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    cli::run::run(words, frames::export::write)
}

/// What tests and benches use besides; nothing else may.
#[doc(hidden)]
pub mod exercise {
    pub use crate::asked::config::Config;
    pub use crate::asked::config::view::{COMMON, Operands, Part, Rows, View};
    pub use crate::cli::parse::{Asked, parse, union};
    pub use crate::cli::sandbox::{RemainingRights, enter};
    pub use crate::cli::views::{VIEWS, tables};
    pub use crate::import::tape_of_logs;
    pub use crate::reports::Context;
    pub use crate::reports::listing::run as listing;
    pub use systape_answers::derive::stacks::of::Of;
    pub use systape_answers::derive::stacks::weight::Metric;
    pub use systape_answers::derive::summary::collect::collect;
    pub use systape_answers::derive::summary::mode::SummaryMode;
    pub use systape_answers::derive::summary::plan::Plan;
    pub use systape_answers::render::out::Out;
    pub use systape_answers::render::sink::names;
    pub use systape_events::loss::{CAUSES, cause_text, is_loss, remedy};
    pub use systape_events::stream::{Loose, Merger, Part as StreamPart};
}
