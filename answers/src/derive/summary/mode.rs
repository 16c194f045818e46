//! What a summary groups by.

use clap::ValueEnum;

/// What `--summary-mode` groups by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SummaryMode {
    /// Each thread.
    #[default]
    Thread,
    /// Each process.
    Process,
    /// Nothing: one table.
    Total,
    /// Each cgroup.
    Cgroup,
}
