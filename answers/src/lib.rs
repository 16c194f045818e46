//! What tapes are asked about, short of how: state machines over their events ([`derive`]), rows of the listing ([`lines`]), values as text,
//! JSON and CSV ([`render`]), and where an answer goes ([`values`]).
//!
//! Folders are storeys, and imports only point down (analyzer/tests/storeys.rs). Nothing of the machine that it runs on is looked at.

#![warn(clippy::missing_errors_doc, clippy::print_stderr, clippy::print_stdout)]
#![allow(clippy::len_without_is_empty, reason = "some are lengths of time, others are never asked")]

pub mod derive;
pub mod lines;
pub mod render;
pub mod values;
