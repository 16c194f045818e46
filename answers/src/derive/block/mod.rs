//! Block I/Os: single ones with their owners, and sums.

pub mod by;
pub mod devices;
pub mod files;
pub mod flags;
pub mod io;
pub mod sums;
