//! The output of a recording: opened safely, written, and synced to disk.

pub(crate) mod output;
pub(crate) mod sink;
pub(crate) mod sync;
