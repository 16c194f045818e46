//! `record`: from BPF rings to a tape.
//!
//! The way of an event: the BPF side (systape-bpf) sends a wire record → [`drain`] copies it out of its ring → [`order`]
//! puts the records of all rings in time order → [`encode`] follows tasks ([`tasks`]) and fds ([`fds`], [`effects`]) and
//! fills a segment → compressor threads → writer thread ([`pipeline`]). [`run`] is the whole of a recording; the rest
//! prepares it.

pub mod args;
pub mod backlog;
pub mod bounded;
pub mod calls;
pub mod clock;
pub mod config;
pub mod cpu_buffers;
pub mod devices;
pub mod drain;
pub mod effects;
pub mod encode;
pub mod entries;
pub mod families;
pub mod fds;
pub mod filter;
pub mod forced;
pub mod habits;
pub mod iterate;
pub mod ledger;
pub mod limits;
pub mod load;
pub mod order;
pub mod output;
pub mod patient;
pub mod perf_event;
pub mod pipeline;
pub mod preemption;
pub mod priority;
pub mod programs;
pub mod progress;
pub mod registers;
pub mod rights;
pub mod run;
mod same_numbers;
pub mod sampler;
pub mod say;
pub mod self_stats;
pub mod session;
pub mod signals;
pub mod sink;
pub mod skips;
pub mod snapshot;
pub mod softirq;
pub mod spaces;
pub mod stacks;
pub mod stage;
pub mod start;
pub mod sync;
pub mod system;
pub mod target;
pub mod targets;
pub mod tasks;
