//! Values that every part uses: times, numbers, names, columns of rows, sums for which there is no memory.

pub mod clock;
pub mod columns;
pub mod devices;
pub mod glob;
pub mod num;
pub mod order;
pub mod owners;
pub mod parallel;
pub mod spill;
pub mod strings;
pub mod timespec;
pub mod words;
