//! The work behind `analyze`: read a tape, answer a question about it as text, JSON or CSV.
//!
//! Folders are storeys, and imports only point down (tests/storeys.rs):
//!
//! | storey | what is there |
//! |---|---|
//! | `cli` | reads the command line, opens the tape, calls a view; says why an answer is empty |
//! | `reports` | one file a report, each with its `View` |
//! | `asked` | the command line as typed and settled; what a view is |
//! | `lines` | rows of the listing, of calls and of other events |
//! | `derive` | state machines: processes, signals, run states, connections, block I/O, paths, stacks; the summary |
//! | `render` | values as text, JSON, CSV |
//! | `table` | filters, segments, sums by keys, losses |
//! | `values` | times, numbers, names, output, messages |
//!
//! Nothing of the machine `analyze` runs on is looked at (no /proc, /sys, locale, timezone): the same tape gives the same
//! bytes everywhere; `cli::sandbox` gives up what is not needed for that. Recording and the layout of tapes are left to
//! the recorder and `systape-format`.

#![allow(unreachable_pub, reason = "a program: its tests are the only other crate that names anything here")]

pub mod asked;
pub mod cli;
pub mod derive;
pub mod lines;
pub mod render;
pub mod reports;
pub mod table;
pub mod values;
