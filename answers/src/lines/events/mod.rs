//! Other events than syscalls, as lines of the listing: selection, contents, and text, JSON and CSV.

pub mod describe;
pub mod filter;
pub mod form;
pub mod kind;
pub mod lines;
pub mod picked;
pub mod walk;
