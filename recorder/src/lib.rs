//! `record`: from BPF rings to a tape.
//!
//! The way of an event: the BPF side (systape-bpf) sends a wire record → [`drain`] copies it out of its ring → [`order`]
//! puts the records of all rings in time order → [`encode`] follows tasks ([`tasks`]) and fds ([`fds`], [`effects`]) and
//! fills a segment → compressor threads → writer thread ([`pipeline`]). [`run`] is the whole of a recording; the rest
//! prepares it.

#![warn(clippy::missing_errors_doc, clippy::print_stderr, clippy::print_stdout)]

mod addresses;
pub mod args;
pub mod ask;
mod backlog;
mod bio_ends;
mod bounded;
mod call_memory;
mod called;
mod calls;
mod cgroup_limits;
mod cgroups;
pub mod cli;
pub mod clock;
pub mod config;
mod containers;
mod cpu_buffers;
mod devices;
mod drain;
mod effects;
pub mod encode;
mod entries;
mod environ;
mod families;
mod fds;
pub mod filter;
pub mod flight;
mod forced;
pub mod foreign;
pub mod generate;
mod habits;
mod interpreter;
mod iterate;
mod kallsyms;
mod kin;
mod kprobe;
mod ledger;
mod limits;
mod load;
mod lock_buffers;
pub mod lock_names;
mod major_faults;
pub mod memory;
mod mounts;
mod names;
mod notify;
pub mod opening;
pub mod order;
mod outlet;
mod output;
mod patient;
mod perf_event;
mod pipeline;
mod preemption;
mod priority;
mod probes;
mod programs;
mod progress;
mod records;
mod registers;
pub mod rights;
pub mod run;
mod same_numbers;
mod sampler;
pub mod say;
mod self_stats;
mod session;
mod signals;
mod sink;
mod skips;
mod snapshot;
mod sockets;
mod softirq;
pub mod spaces;
mod spare;
pub mod stacks;
mod stage;
mod start;
mod sync;
mod system;
mod target;
pub mod targets;
mod tasks;
pub mod tracepoints;
pub mod triggers;
mod waits_in;
