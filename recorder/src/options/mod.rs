//! The command line as it was typed, and words of other programs with what to type instead.

pub mod args;
pub(crate) mod habits;
