//! Sums by key.

use super::labels::Labels;
use super::tally::Tally;
use crate::table::group::Groups;

/// Sums so far.
#[derive(Debug, Default)]
pub struct Sums {
    /// One sum per key; a key is in one of these.
    pub groups: Vec<Groups<Tally>>,
    /// Names of the tasks among the keys.
    pub labels: Labels,
}
