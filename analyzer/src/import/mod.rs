//! Makes tapes of logs that other programs wrote: of strace's, in two readings. The first ([`survey`]) finds out who made whom, the second
//! writes the tape. What a log does not say is not known in the tape.
//!
//! A log is untrusted: lines, open calls, threads and what waits are bounded, and what is not understood is counted as lost.
//!
//! [`logs`] gives lines in order of time, [`lead`] whose and when, [`body`] what they say, [`stitch`] calls that were interrupted put
//! together, [`values`] arguments as numbers and bytes, [`signals`] what came with a signal, [`threads`] who lives, [`tape`] the tape.

mod body;
mod days;
mod file;
mod lead;
mod lines;
mod logs;
mod number;
mod signals;
mod stitch;
pub(crate) mod strace;
mod structs;
mod survey;
mod tape;
mod text;
mod threads;
mod values;

use std::path::PathBuf;

use anyhow::Result;
use systape_abi::Abi;

pub(crate) use file::LogFile;

/// The tape of logs of strace, each with the thread that its name says, as bytes: what the fuzzer asks for.
///
/// # Errors
/// They are no logs of strace's that can be dated.
pub fn tape_of_logs(logs: Vec<(PathBuf, Option<u32>)>, midnight: Option<u64>, pid: Option<u32>) -> Result<Vec<u8>> {
    let files: Vec<LogFile> = logs.into_iter().map(|(path, tid)| LogFile { path, file: None, tid }).collect();
    let native = (Abi::X86_64, "x86_64");
    let facts = strace::LogFacts { pid, midnight, native, version: String::new(), target: String::new() };
    Ok(strace::import(&files, &facts, Vec::new(), [7; 16])?.0)
}
