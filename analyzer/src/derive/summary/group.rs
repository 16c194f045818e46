//! Sums by key.

use systape_format::model::LedgerRow;

use super::labels::Labels;
use super::stats::Stats;
use crate::table::group::value::Value;
use crate::table::group::{Add, Groups};

impl Add for Stats {
    fn add(&mut self, other: &Self) {
        self.merge(other);
    }
}

/// Sums so far.
#[derive(Debug, Default)]
pub struct Sums {
    /// One sum per key.
    pub groups: Groups<Stats>,
    /// Names of the tasks among the keys.
    pub labels: Labels,
}

impl Sums {
    /// Adds a row of the ledger.
    pub(super) fn add_counted(&mut self, key: &[Value], row: &LedgerRow, timeless: bool) {
        self.groups.of(key).add_counted(row, timeless);
    }

    /// Adds all of `other`, which is empty then and keeps its memory.
    pub(super) fn merge(&mut self, other: &mut Self) {
        self.groups.merge(&mut other.groups);
        self.labels.merge(&mut other.labels);
    }
}
