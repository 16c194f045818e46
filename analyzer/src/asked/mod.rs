//! What was asked: the command line as typed ([`args`]) and settled ([`config`]).

pub(crate) mod args;
pub(crate) mod config;
pub(crate) mod options;
pub(crate) mod other;
pub(crate) mod sort;
