//! The events of a tape and what is done with them before anything is derived: which rows count ([`filter`]), what calls moved ([`moved`]), reading
//! segments ([`scan`], [`load`]), sums by keys ([`group`]), what is missing ([`loss`]), all of them bound to one tape ([`question`]).
//!
//! It knows no command line, prints nothing, and looks at nothing of the machine it runs on.

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
