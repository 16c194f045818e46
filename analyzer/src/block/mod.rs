//! Block I/Os: what one says, and sums of many.

pub mod by;
pub mod flags;
pub mod io;
pub mod line;
pub mod sums;
pub mod table;
