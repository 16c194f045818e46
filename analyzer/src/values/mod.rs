//! Values and words that every storey uses: times, numbers, names, files, messages.

pub mod clock;
pub mod devices;
pub mod glob;
pub mod num;
pub mod open;
pub mod output;
pub mod progress;
pub mod say;
pub mod spool;
pub mod timespec;
pub mod words;
