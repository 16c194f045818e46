//! Columns by which sums of calls are sorted.

use clap::ValueEnum;

use super::stats::Stats;

/// A column of the summary; other words are those of strace -S.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Column {
    /// Number of calls.
    #[value(alias = "count")]
    Calls,
    /// Calls that returned an error.
    #[value(alias = "error")]
    Errors,
    /// Time in all of them.
    #[default]
    #[value(aliases = ["time", "total-time"])]
    Total,
    /// Mean of their times.
    #[value(alias = "avg-time")]
    Avg,
    /// The longest of them.
    #[value(alias = "max-time")]
    Max,
    /// The median of their times.
    P50,
    /// The 99th percentile of their times.
    P99,
}

impl Column {
    /// Whether that of several sums together is the sum of theirs.
    pub fn adds_up(self) -> bool {
        matches!(self, Self::Calls | Self::Errors | Self::Total)
    }

    /// Name of the column in a heading.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Calls => "of calls",
            Self::Errors => "of errors",
            Self::Total => "of time",
            Self::Avg => "avg",
            Self::Max => "max",
            Self::P50 => "p50",
            Self::P99 => "p99",
        }
    }

    /// What it has of `stats`: a number, or ns; None: that is not known, or there is none.
    pub fn of(self, stats: &Stats) -> Option<u128> {
        match self {
            Self::Calls => Some(stats.calls.into()),
            Self::Errors => Some(stats.errors.into()),
            Self::Total => Some(stats.total()),
            Self::Avg => stats.avg().map(u128::from),
            Self::Max => stats.longest().map(u128::from),
            Self::P50 => stats.quantile(500).map(|quantile| quantile.value.into()),
            Self::P99 => stats.quantile(990).map(|quantile| quantile.value.into()),
        }
    }
}
