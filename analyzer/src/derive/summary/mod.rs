//! Adding up calls: histograms and statistics that do not depend on the order of events.

mod batch;
pub(crate) mod collect;
pub(crate) mod column;
pub(crate) mod counted;
pub(crate) mod cpu;
pub(crate) mod group;
pub(crate) mod hist;
pub(crate) mod labels;
pub(crate) mod ledger;
pub(crate) mod mode;
mod places;
pub(crate) mod plan;
mod shared;
pub(crate) mod stats;
pub(crate) mod table;
pub(crate) mod tally;
pub(crate) mod threads;
pub(crate) mod uring;
