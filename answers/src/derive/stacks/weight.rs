//! Weight of a stack: number of events, their time, their bytes.

use std::ops::AddAssign;

use clap::ValueEnum;

/// Sums over events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Number of events.
    pub count: u64,
    /// Time in ns.
    pub time: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// Events that lasted longer than known; `time` has the lower bounds.
    pub open: u64,
    /// Events of unknown time.
    pub untimed: u64,
    /// Events that moved more bytes than is known, or may have; `bytes` has the lower bounds.
    pub short: u64,
}

impl Weight {
    /// The sum for `metric`.
    pub fn of(&self, metric: Metric) -> u64 {
        match metric {
            Metric::Count => self.count,
            Metric::Time => self.time,
            Metric::Bytes => self.bytes,
        }
    }
}

impl AddAssign for Weight {
    fn add_assign(&mut self, other: Self) {
        // numbers of a tape may be anything
        self.count = self.count.saturating_add(other.count);
        self.time = self.time.saturating_add(other.time);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.open = self.open.saturating_add(other.open);
        self.untimed = self.untimed.saturating_add(other.untimed);
        self.short = self.short.saturating_add(other.short);
    }
}

/// The metric of percentages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Metric {
    /// Number of events.
    Count,
    /// Time of the events.
    Time,
    /// Bytes of the events.
    Bytes,
}

impl Metric {
    /// Name of the metric as typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Time => "time",
            Self::Bytes => "bytes",
        }
    }
}

/// `part` of `all` in percent.
pub fn percent(part: u64, all: u64) -> f64 {
    100.0 * part as f64 / all.max(1) as f64
}
