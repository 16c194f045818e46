//! All processes of a tape, with parent, programs, start and end.
//!
//! [`Processes`] takes plain values (tasks, command lines, events of process life) in the order of the tape; [`read`]
//! feeds it from one. A process is identified by its `upid`, so a reused pid is another process. A child whose parent
//! dies keeps the parent that forked it. Memory grows with the number of processes, not of events.

pub mod ending;
pub mod interpreters;
pub mod living;
pub mod process;
pub mod read;
pub mod track;
pub mod usage;

pub use ending::Ending;
pub use process::{Command, Image, Process};
pub use track::Processes;
