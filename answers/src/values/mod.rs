//! What every storey uses: tapes and their files, output, messages.

pub mod arriving;
pub mod bad_usage;
pub mod debuginfod;
#[cfg(target_os = "linux")]
pub mod fetcher;
pub mod fit;
pub mod interrupt;
pub mod memory;
pub mod new_file;
pub mod open;
pub mod output;
pub mod progress;
pub mod say;
pub mod spool;
pub mod tapes;
