//! What a cause costs: the wall time that a subject would have saved without it.
//!
//! [`pattern`] says which time of which threads is a cause's. Two rules measure it. [`saved`] re-times the wake graph without that time, in
//! one pass and with one number for each thread and cause. [`inclusive`] adds up the parts of the critical path that are inside of it.
//! [`judge`] makes one figure of both, or a range where they differ. A subject without an end has neither: [`union`] is the time in which at
//! least one thread was in the cause, an upper bound. [`paced`] tells threads whose sleeps end at fixed times, where nothing is saved.

pub mod inclusive;
pub mod judge;
pub mod paced;
pub mod pattern;
pub mod saved;
pub mod union;
