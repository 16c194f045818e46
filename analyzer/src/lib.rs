//! The work behind `analyze`: read a tape, answer a question about it as text, JSON or CSV.
//!
//! [`args`] is what was typed, [`config`] what it means, [`run`] opens the tape and calls a report of [`reports`]. All reports
//! share [`filter`] (which calls), [`loss`] (what is missing) and [`render`] (how a row reads). [`stream`] keeps a
//! listing in order with bounded memory; [`summary`] adds up without order. A new report is a new file in `reports`.
//!
//! Nothing of the machine `analyze` runs on is looked at (no /proc, /sys, locale, timezone): the same tape gives the same
//! bytes everywhere; [`sandbox`] gives up what is not needed for that. Recording, and the layout of tapes, are left to `systape-format` and the recorder.

pub mod args;
pub mod block;
pub mod calls;
pub mod clock;
pub mod config;
pub mod devices;
pub mod events;
pub mod families;
pub mod filter;
pub mod generate;
pub mod glob;
pub mod load;
pub mod loss;
pub mod net;
pub mod output;
pub mod processes;
pub mod render;
pub mod reports;
pub mod run;
pub mod runs;
pub mod sandbox;
pub mod signals;
pub mod stacks;
pub mod stream;
pub mod summary;
pub mod timespec;
