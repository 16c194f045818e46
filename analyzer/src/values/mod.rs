//! Values and words that every storey uses: times, numbers, names, files, messages.

pub(crate) mod arriving;
pub(crate) mod clock;
pub(crate) mod debuginfod;
pub(crate) mod devices;
#[cfg(target_os = "linux")]
pub(crate) mod fetcher;
pub(crate) mod glob;
pub(crate) mod interrupt;
pub(crate) mod num;
pub(crate) mod open;
pub(crate) mod order;
pub(crate) mod output;
pub(crate) mod owners;
pub(crate) mod parallel;
pub(crate) mod progress;
pub(crate) mod say;
pub(crate) mod spill;
pub(crate) mod spool;
pub(crate) mod strings;
pub(crate) mod tapes;
pub(crate) mod timespec;
pub(crate) mod words;
