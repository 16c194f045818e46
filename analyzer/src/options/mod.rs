//! What was typed for a kind of report, settled.

pub mod sched;
pub mod stacks;
