//! `record`: from BPF rings to a tape.
//!
//! The way of an event: the BPF side (systape-bpf) sends a wire record → [`drain`] copies it out of its ring → [`order`]
//! puts the records of all rings in time order → [`encode`] follows tasks ([`tasks`]) and fds ([`fds`], [`effects`]) and
//! fills a segment → compressor threads → writer thread ([`pipeline`]). [`run`] is the whole of a recording; the rest
//! prepares it.

mod addresses;
pub mod args;
mod backlog;
mod bio_ends;
mod bounded;
mod calls;
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
mod forced;
pub mod generate;
mod habits;
mod iterate;
mod kallsyms;
mod kprobe;
mod ledger;
mod limits;
mod load;
mod lock_buffers;
pub mod lock_names;
mod major_faults;
mod mounts;
mod names;
pub mod order;
mod output;
mod patient;
mod perf_event;
mod pipeline;
mod preemption;
mod priority;
mod probes;
mod programs;
mod progress;
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
pub mod stacks;
mod stage;
mod start;
mod sync;
mod system;
mod target;
pub mod targets;
mod tasks;
pub mod tracepoints;
