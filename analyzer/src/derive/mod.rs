//! State machines on plain values: they know neither tapes' bytes nor printing.

pub mod block;
pub mod net;
pub mod paths;
pub mod processes;
pub mod runs;
pub mod signals;
pub mod stacks;
pub mod summary;
