//! Sums by key.

use super::labels::Labels;
use super::tally::Tally;
use systape_events::group::spilling::Parts;

/// Sums so far.
#[derive(Debug, Default)]
pub struct Sums {
    /// One sum per key.
    pub groups: Parts<Tally>,
    /// Names of the tasks among the keys.
    pub labels: Labels,
}
