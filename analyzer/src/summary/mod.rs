//! Adding up calls: histograms and statistics that do not depend on the order of events.

pub mod collect;
pub mod cpu;
pub mod hist;
pub mod stats;
pub mod table;
pub mod uring;
