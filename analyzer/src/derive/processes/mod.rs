//! All processes of a tape, with parent, programs, start and end.
//!
//! [`Processes`] takes plain values (tasks, command lines, events of process life) in the order of the tape; [`read`]
//! feeds it from one. A process is identified by its `upid`, so a reused pid is another process. A child whose parent
//! dies keeps the parent that forked it. Memory grows with the number of processes, not of events.

pub(crate) mod ending;
pub(crate) mod interpreters;
pub(crate) mod living;
pub(crate) mod process;
pub(crate) mod read;
pub(crate) mod track;
pub(crate) mod usage;

pub(crate) use ending::Ending;
pub(crate) use process::{Command, Image, Process};
pub(crate) use track::Processes;
