//! Adding up calls: histograms and statistics that do not depend on the order of events.

pub mod collect;
pub mod column;
pub mod counted;
pub mod cpu;
pub mod group;
pub mod hist;
pub mod labels;
pub mod ledger;
pub mod mode;
pub mod plan;
pub mod stats;
pub mod table;
pub mod threads;
pub mod uring;
