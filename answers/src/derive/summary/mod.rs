//! Adding up calls: histograms and statistics that do not depend on the order of events.

mod batch;
pub mod collect;
pub mod column;
pub mod counted;
pub mod cpu;
pub mod group;
pub mod hist;
pub mod labels;
pub mod ledger;
pub mod mode;
mod places;
pub mod plan;
mod shared;
pub mod stats;
pub mod table;
pub(crate) mod tally;
pub mod threads;
pub mod uring;
