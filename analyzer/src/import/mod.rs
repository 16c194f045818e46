//! Makes tapes of logs that other programs wrote: of strace's, in two readings. The first ([`survey`]) finds out who made whom, the second
//! writes the tape. What a log does not say is not known in the tape.
//!
//! A log is untrusted: lines, open calls, threads and what waits are bounded, and what is not understood is counted as lost.
//!
//! [`logs`] gives lines in order of time, [`lead`] whose and when, [`body`] what they say, [`stitch`] calls that were interrupted put
//! together, [`values`] arguments as numbers and bytes, [`threads`] who lives, [`tape`] the tape.

mod body;
mod lead;
mod lines;
mod logs;
mod number;
mod stitch;
pub(crate) mod strace;
mod structs;
mod survey;
mod tape;
mod text;
mod threads;
mod values;

pub(crate) use logs::LogFile;
