//! Stacks: from the trees of segments to one tree of the tape, to names, to call graphs.
//!
//! [`forest`] merges the trees of all segments by place in code, before any name is looked up: memory grows with the
//! distinct frames, not with events. [`names`] has the tape's names of places, [`label`] the label of a frame.
//! [`graph`] adds up by labels; [`text`], [`folded`] and [`flame`] print the result. [`lines`] prints one stack.
//! [`recorded`] lists a tape's stacks, and [`asleep`] finds the stack of the sleep in which a thread was when the
//! recording began.

pub(crate) mod asleep;
pub(crate) mod debug_files;
pub(crate) mod ending;
pub(crate) mod flame;
pub(crate) mod folded;
pub(crate) mod forest;
pub(crate) mod graph;
pub(crate) mod interner;
pub(crate) mod label;
pub(crate) mod limits;
pub(crate) mod lines;
pub(crate) mod names;
pub(crate) mod of;
pub(crate) mod places;
pub(crate) mod recorded;
pub(crate) mod text;
pub(crate) mod weight;
