//! Events that are no syscalls, as lines of the listing: which are asked for, what each says, and its text, JSON and CSV.

pub mod describe;
pub mod form;
pub mod kind;
pub mod lines;
pub mod picked;
