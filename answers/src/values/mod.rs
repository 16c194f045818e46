//! What every storey uses: tapes and their files, output, messages. What is about files and processes of a unix machine is there for one alone.

#[cfg(unix)]
pub mod arriving;
pub mod bad_usage;
#[cfg(unix)]
pub mod debuginfod;
#[cfg(target_os = "linux")]
pub mod fetcher;
pub mod fit;
#[cfg(unix)]
pub mod interrupt;
#[cfg(unix)]
pub mod new_file;
#[cfg(unix)]
pub mod open;
pub mod output;
pub mod progress;
pub mod say;
#[cfg(unix)]
pub mod spool;
pub mod tapes;
