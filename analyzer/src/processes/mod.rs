//! Who was there: every process a tape knows, with its parent, its programs, its start and its end.
//!
//! [`Processes`] takes plain values (tasks, command lines, events of process life) in the order of the tape; [`read`] feeds it
//! from one. A process is known by its `upid`, so a pid that is used again is another process. A child whose parent dies keeps
//! the parent that made it. Memory grows with the number of processes, not with that of events.

pub mod ending;
pub mod process;
pub mod read;
pub mod track;

pub use ending::Ending;
pub use process::{Command, Image, Process};
pub use track::Processes;
