//! Block I/Os: one with whom it is blamed on, and sums of many.

pub mod by;
pub mod flags;
pub mod io;
pub mod sums;
