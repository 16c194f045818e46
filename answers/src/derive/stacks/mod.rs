//! Stacks: from the trees of segments to one tree of the tape, to names, to call graphs.
//!
//! [`forest`] merges the trees of all segments by place in code, before any name is looked up: memory grows with the
//! distinct frames, not with events. [`names`] has the tape's names of places, [`label`] the label of a frame.
//! [`graph`] adds up by labels; [`text`], [`folded`] and [`flame`] print the result. [`lines`] prints one stack.
//! [`recorded`] lists a tape's stacks, and [`asleep`] finds the stack of the sleep in which a thread was when the
//! recording began.

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
