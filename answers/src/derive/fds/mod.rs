//! The open descriptors of every process at one moment: what `ls -l /proc/PID/fd` said then.
//!
//! [`tables`] follows all tables of descriptors from plain values, [`calls`] says what a call of the tape does to them, and [`feed`]
//! gives both in order of time: the checkpoint at the tape's start, then every recorded fork, exec, exit and call that changes one.
//! Later checkpoints mend what a loss made uncertain; where nothing was lost they only add names.
//!
//! A tape has the name of a descriptor where a call uses it, not where it is made. So reading goes on behind the moment until all
//! open ones are named or closed; a file that no call ever used has only what its `open` was given.

pub mod calls;
pub mod feed;
pub mod file;
pub mod peers;
pub mod tables;
