//! `record`: from BPF rings to a tape.
//!
//! The way of an event: the BPF side (systape-bpf) sends a wire record → [`pipeline::drain`] copies it out of its ring →
//! [`rings::order`] puts the records of all rings in time order → [`encode`] follows [`tasks`] and [`descriptors`] and fills a
//! segment → compressor threads → writer thread ([`pipeline`]). [`run`] is the whole of a recording; the rest prepares it.
//!
//! A folder imports only from those above it in this list:
//!
//! | folder | its job |
//! |---|---|
//! | [`own`] | this process: messages, clocks, signals, priority, memory |
//! | [`machine`] | facts of the machine and its tasks, from /proc, /sys and /etc |
//! | [`kernel`] | what the kernel supports; perf events and iterators |
//! | [`rings`] | records between the kernel and the encoder |
//! | [`tape`] | the output: opened, written, synced |
//! | [`foreign`] | files of users, parsed by another process |
//! | [`mappings`] | mapped files of every process at any moment |
//! | [`probes`] | functions and static probes that were asked for |
//! | [`descriptors`] | open files of processes, names of files and sockets |
//! | [`tracepoints`] | tracepoints that were asked for |
//! | [`options`] | the command line as typed |
//! | [`calls`] | which calls are stored, and what is copied of them |
//! | [`triggers`] | what begins a tape of a flight recorder |
//! | [`stacks`] | frames and names of stacks |
//! | [`flight`] | the flight recorder |
//! | [`escalation`] | what makes a recording of looks one of everything (`--escalate`) |
//! | [`config`] | the command line resolved on this machine |
//! | [`ledger`] | calls that were counted instead of stored |
//! | [`load`] | loads and attaches the BPF programs |
//! | [`looks`] | looks at all threads (`--sample`) |
//! | [`tasks`] | threads and processes, and what calls do to them |
//! | [`encode`] | records to segments |
//! | [`pipeline`] | the threads: drain, encode, compress, write |
//! | [`run`] | one recording from start to end |
//! | [`commands`] | everything else that `record` can be asked for |

#![warn(clippy::missing_errors_doc, clippy::print_stderr, clippy::print_stdout)]

pub mod calls;
pub mod commands;
pub mod config;
mod descriptors;
pub mod encode;
pub mod escalation;
pub mod flight;
pub mod foreign;
mod kernel;
mod ledger;
mod load;
mod looks;
pub mod machine;
pub mod mappings;
pub mod options;
pub mod own;
mod pipeline;
mod probes;
pub mod rings;
pub mod run;
pub mod stacks;
mod tape;
pub mod tasks;
pub mod tracepoints;
pub mod triggers;
