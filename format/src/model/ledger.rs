//! Calls that were counted instead of stored, because there was no room or an option of `record` asked for it.
//!
//! As in [`crate::model`]: plain values, times in ns of CLOCK_MONOTONIC.

use crate::model::CallState;

/// The reason why calls were counted instead of stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum LedgerReason {
    /// No room.
    #[default]
    Lost = 1,
    /// Counted only, by an option of `record`.
    Filtered = 2,
    /// No room: the process had filled its share of the ring.
    OverShare = 3,
    /// Stored too, to check the ledger: reports do not add them.
    Checked = 4,
    /// No room: the recorder was behind and its memory full.
    Behind = 5,
}

impl LedgerReason {
    /// The reason with a tape's number; None for one unknown to this version.
    pub fn from_raw(raw: u8) -> Option<Self> {
        Some(match raw {
            1 => Self::Lost,
            2 => Self::Filtered,
            3 => Self::OverShare,
            4 => Self::Checked,
            5 => Self::Behind,
            _ => return None,
        })
    }

    /// Whether calls of that reason should have been stored.
    pub fn is_loss(self) -> bool {
        !matches!(self, Self::Filtered | Self::Checked)
    }
}

/// `errno` of a row without a task whose calls failed: any error.
pub const ERRNO_ANY: u16 = u16::MAX;

/// Buckets of [`LedgerRow::sizes`].
pub(crate) const LEDGER_BUCKETS: usize = 64;

/// The sum of one process's calls with one outcome on one CPU in one window of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerRow {
    /// Index into the segment's tasks: the process's leader as it was then. None = not known, because the kernel's
    /// table was full.
    pub task: Option<u32>,
    /// Index into the segment's calls.
    pub call: u32,
    /// The reason.
    pub reason: LedgerReason,
    /// 0 = ok; else the errno, or a restart; [`ERRNO_ANY`] only without a task.
    pub errno: u16,
    /// How they began and ended.
    pub state: CallState,
    /// The CPU of their exits.
    pub cpu: u32,
    /// Number of calls; never 0.
    pub count: u64,
    /// Sum of the durations, ns: exact or lower bounds, depending on `state`.
    pub sum: u64,
    /// The shortest, ns.
    pub min: u64,
    /// The longest, ns.
    pub max: u64,
    /// End of the earliest.
    pub first: u64,
    /// End of the latest.
    pub last: u64,
    /// (b, number of durations from 2^b to 2^(b+1) - 1 ns, or also 0 for b = 0), ascending, adding up to `count`; empty
    /// = not known.
    pub sizes: Vec<(u8, u64)>,
}

/// The bucket of [`LedgerRow::sizes`] for a duration.
pub fn size_bucket(dur: u64) -> u8 {
    (63 - (dur | 1).leading_zeros()) as u8
}

#[cfg(test)]
mod tests {
    use super::size_bucket;

    #[test]
    fn buckets_are_powers_of_two() {
        let expected = [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (1023, 9), (1024, 10), (u64::MAX, 63)];
        for (dur, bucket) in expected {
            assert_eq!(size_bucket(dur), bucket, "{dur}");
        }
    }
}
