//! From a row to a line of the listing: perf trace's text, JSON, CSV.
//!
//! A [`LineFormat`] knows the tape. For each segment it makes a [`SegmentLines`], which holds the parts common to many
//! rows (names of threads) and the buffers of one thread. Both write only into the buffer they are given.

pub(crate) mod csv;
pub(crate) mod events;
pub(crate) mod json;
pub(crate) mod row;
pub(crate) mod strace;
pub(crate) mod tables;
pub(crate) mod text;
pub(crate) mod value;

use systape_format::model::Gap;

use crate::table::load::Loaded;
use crate::table::loss::Hole;

/// One form of a listing.
pub(crate) trait LineFormat: Sync {
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
pub(crate) trait SegmentLines {
    /// Appends the line of `row` with its newline.
    fn row(&mut self, out: &mut Vec<u8>, row: usize);
}
