//! What was asked: the command line as typed ([`args`]) and settled ([`config`]).

pub mod args;
pub mod config;
pub mod options;
pub mod sort;
