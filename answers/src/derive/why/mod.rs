//! What a tape says about why something was slow: findings, ranked by the time that would go away.
//!
//! Inputs are sums, made in few passes over the tape with bounded memory: [`calls`] time in calls by process, call and file, and waits
//! for futexes; [`talk`] waits for other ends of sockets and pipes; [`lookups`] names; [`cpu`] waits for a CPU and time asleep; [`programs`] programs that were started; [`disks`], [`network`], [`memory`], [`limits`] of cgroups; [`seen`] what looks found.
//! Each file of [`rules`] judges such plain values and makes [`finding`]s; a rule says its thresholds. What is below the [`floor`] is not
//! worth a line.

pub mod calls;
pub mod cpu;
pub mod disks;
pub mod finding;
pub mod floor;
pub mod limits;
pub mod lookups;
pub mod memory;
pub mod network;
pub mod patterns;
pub mod programs;
pub mod rank;
pub mod rules;
pub mod seen;
pub mod talk;
