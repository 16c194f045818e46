//! Other events than syscalls, as lines of the listing: selection, contents, and text, JSON and CSV.

pub(crate) mod describe;
pub(crate) mod form;
pub(crate) mod kind;
pub(crate) mod lines;
pub(crate) mod picked;
pub(crate) mod walk;
