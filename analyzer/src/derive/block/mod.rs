//! Block I/Os: single ones with their owners, and sums.

pub(crate) mod by;
pub(crate) mod devices;
pub(crate) mod files;
pub(crate) mod flags;
pub(crate) mod io;
pub(crate) mod sums;
