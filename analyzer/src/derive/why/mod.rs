//! What a tape says about why something was slow: findings, ranked by the time that would go away.
//!
//! Inputs are sums, made in few passes over the tape with bounded memory: [`calls`] time in calls by process, call and file, and waits
//! for futexes; [`talk`] waits for other ends of sockets and pipes; [`lookups`] names; [`cpu`] waits for a CPU and time asleep; [`programs`] programs that were started; [`disks`], [`network`], [`memory`], [`limits`] of cgroups.
//! Each file of [`rules`] judges such plain values and makes [`finding`]s; a rule says its thresholds. What is below the [`floor`] is not
//! worth a line.

pub(crate) mod calls;
pub(crate) mod cpu;
pub(crate) mod disks;
pub(crate) mod finding;
pub(crate) mod floor;
pub(crate) mod limits;
pub(crate) mod lookups;
pub(crate) mod memory;
pub(crate) mod network;
pub(crate) mod patterns;
pub(crate) mod programs;
pub(crate) mod rank;
pub(crate) mod rules;
pub(crate) mod talk;
