//! What tapes are asked about, short of how: state machines over their events ([`derive`]), the fields of each kind of event ([`catalogue`]), rows of the listing ([`lines`]), values as text,
//! JSON and CSV ([`render`]), and where an answer goes ([`values`]).
//!
//! How many calls a tape has, by program and call, those among them that `record` counted and did not store:
//!
//! ```
//! use systape_answers::calls::CallCounts;
//! use systape_events::{filter::Filters, group::by::GroupKey};
//! use systape_format::Tape;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))?;
//! let tape = Tape::open("testdata/tapes/ledger-1.3.tape".as_ref())?;
//! let counts = CallCounts::of(&tape, &Filters::none(), &[GroupKey::Comm, GroupKey::Syscall])?;
//! for row in &counts.rows {
//!     let mark = if row.at_least { ">=" } else { "" };
//!     println!("{mark}{} {}", row.calls, row.keys.join(" "));
//! }
//! counts.missing.iter().for_each(|text| println!("{text}"));
//! # assert!(!counts.rows.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! Module [`calls`] is made for other programs; the rest is what `analyze` is made of, and changes with it:
//! [the crates](https://github.com/systape/systape/blob/main/docs/reference/crates.md).
//!
//! Folders are storeys, and imports only point down (analyzer/tests/analyze/storeys.rs). Nothing of the machine that it runs on is looked at.

#![warn(clippy::missing_errors_doc, clippy::print_stderr, clippy::print_stdout)]
#![allow(clippy::len_without_is_empty, reason = "some are lengths of time, others are never asked")]

pub mod calls;
pub mod catalogue;
pub mod derive;
pub mod keys;
pub mod lines;
pub mod render;
pub mod values;
