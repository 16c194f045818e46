//! State machines on plain values: they know neither tapes' bytes nor printing.

pub(crate) mod block;
pub(crate) mod chance;
pub(crate) mod changes;
pub(crate) mod cost;
pub(crate) mod critical;
pub(crate) mod environments;
pub(crate) mod fds;
pub(crate) mod identities;
pub(crate) mod lost_calls;
pub(crate) mod measures;
pub(crate) mod net;
pub(crate) mod numbers;
pub(crate) mod operations;
pub(crate) mod paths;
pub(crate) mod processes;
pub(crate) mod runs;
pub(crate) mod sharers;
pub(crate) mod signals;
pub(crate) mod stacks;
pub(crate) mod summary;
pub(crate) mod waits;
pub(crate) mod why;
