//! From a row to a line of the listing: perf trace's text, JSON, CSV.
//!
//! A [`LineFormat`] knows the tape. For each segment it makes a [`SegmentLines`], which holds the parts common to many
//! rows (names of threads) and the buffers of one thread. Both write only into the buffer they are given.

pub mod csv;
pub mod events;
pub mod json;
pub mod row;
pub mod strace;
pub mod tables;
pub mod text;
pub mod value;

use systape_format::model::Gap;

use systape_events::load::Loaded;
use systape_events::loss::Hole;

/// One form of a listing.
pub trait LineFormat: Sync {
    /// The first line; empty for none.
    fn header(&self) -> Vec<u8> {
        Vec::new()
    }
    /// Prepares to print rows of `segment`.
    fn segment<'a>(&'a self, segment: &'a Loaded) -> Box<dyn SegmentLines + 'a>;
    /// The line of `gap`; empty if this form has none.
    fn gap(&self, gap: &Gap) -> Vec<u8>;
    /// The line of `hole`; empty if this form has none.
    fn hole(&self, hole: &Hole) -> Vec<u8>;
}

/// Prints rows of one segment.
pub trait SegmentLines {
    /// Appends the line of `row` with its newline, and with `more`: columns behind those of JSON and CSV, or lines below text.
    fn row(&mut self, out: &mut Vec<u8>, row: usize, more: &[u8]);
}
