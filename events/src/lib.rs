//! The events of a tape and what is done with them before anything is derived: which rows count ([`filter`]), what calls moved ([`moved`]), reading
//! segments ([`scan`], [`load`]), sums by keys ([`group`]), what is missing ([`loss`]), all of them bound to one tape ([`question`]).
//!
//! How often threads came to a CPU or left it, with what may be missing:
//!
//! ```
//! use systape_events::{families, filter::Filters, question::Question, scan::Scan};
//! use systape_format::{Family, Tape};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))?;
//! let tape = Tape::open("testdata/tapes/mix-1.5.tape".as_ref())?;
//! families::require(&tape, Family::Sched, "context switches")?;
//! let filters = Filters::none();
//! let mut question = Question::new(&filters, &tape, &[Family::Sched])?;
//! let mut switches = 0;
//! let scan = Scan::candidates(&question);
//! let coverage = scan.walk("context switches", |segment, dict| segment.switches(dict), |_, _, rows| switches += rows.len());
//! coverage.tell(&mut question.loss);
//! println!("{}{switches} context switches", if question.loss.complete() { "" } else { "at least " });
//! question.loss.lines(tape.session(), 10).iter().for_each(|text| println!("{text}"));
//! # assert!(switches > 0 && question.loss.complete());
//! # Ok(())
//! # }
//! ```
//!
//! Calls are not only rows: `systape-answers` has their sum.
//!
//! It knows no command line, prints nothing, and looks at nothing of the machine it runs on. What stays the same between versions:
//! [the crates](https://github.com/systape/systape/blob/main/docs/reference/crates.md).

#![warn(clippy::missing_errors_doc, clippy::print_stderr, clippy::print_stdout)]
#![allow(clippy::len_without_is_empty, reason = "some are lengths of time, others are never asked")]

pub mod call_files;
pub mod calls;
pub mod empty_path;
pub mod families;
pub mod filter;
pub mod fired;
pub mod group;
pub mod in_cgroup;
pub mod kin;
pub mod load;
pub mod loss;
pub mod moved;
pub mod picked;
pub mod question;
pub mod scan;
pub mod stream;
pub mod values;
