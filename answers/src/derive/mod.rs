//! State machines on plain values: they know neither tapes' bytes nor printing.

pub mod across;
pub mod block;
pub mod chance;
pub mod changes;
pub mod cost;
pub mod critical;
pub mod environments;
pub mod exchanges;
pub mod fds;
pub mod identities;
pub mod looks;
pub mod lost_calls;
pub mod measures;
pub mod net;
pub mod numbers;
pub mod operations;
pub mod paths;
pub mod processes;
pub mod runs;
pub mod sharers;
pub mod signals;
pub mod stacks;
pub mod summary;
pub mod waits;
pub mod why;
