//! Stacks: from the trees of segments to one tree of the tape, to names, to call graphs.
//!
//! [`forest`] puts the trees of all segments together by where code came from, before any name is looked up: memory grows with the
//! distinct frames, not with events. [`names`] knows what the tape says of places in code, [`label`] what a frame is called, [`graph`] adds
//! up by these, [`text`], [`folded`] and [`flame`] print the result. [`lines`] prints one stack. [`recorded`] says what a tape has, [`asleep`] which stack
//! belongs to the sleep a thread was in when the recording began.

pub mod asleep;
pub mod debug_files;
pub mod ending;
pub mod flame;
pub mod folded;
pub mod forest;
pub mod graph;
pub mod interner;
pub mod label;
pub mod limits;
pub mod lines;
pub mod names;
pub mod of;
pub mod places;
pub mod recorded;
pub mod text;
pub mod weight;
