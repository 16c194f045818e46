//! Choice and arguments of calls: which are stored, what is copied of their memory, and the same for calls that began before
//! the recording.

pub mod filter;
pub(crate) mod memory;
pub(crate) mod tables;
pub(crate) mod waits_in;
