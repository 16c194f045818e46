//! Some rows of some batches, in an order of their own: what is written needs no batch of its own to be made.

use super::{Batch, Values};

/// Rows of batches.
#[derive(Debug)]
pub struct RowPicks<'b> {
    batches: Vec<&'b Batch>,
    /// Index of the batch, and of the row in it.
    rows: Vec<(u32, u32)>,
}

impl<'b> RowPicks<'b> {
    /// Makes picks of `rows`: the index of the batch, and of the row in it.
    pub fn new(batches: Vec<&'b Batch>, rows: Vec<(u32, u32)>) -> Self {
        Self { batches, rows }
    }

    /// Makes picks of all rows of `batch`, at most `most` at a time.
    pub fn all(batch: &'b Batch, most: usize) -> impl Iterator<Item = Self> {
        let rows = u32::try_from(batch.rows).unwrap_or(u32::MAX);
        let step = u32::try_from(most.max(1)).unwrap_or(u32::MAX);
        let starts = (0..rows).step_by(step as usize);
        starts.map(move |from| {
            let rows = (from..rows.min(from.saturating_add(step))).map(|row| (0, row)).collect();
            Self { batches: vec![batch], rows }
        })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The first of them, `most` at most; None: there are none.
    pub fn first(&self, most: usize) -> Option<Self> {
        let rows = self.rows.get(..most.min(self.rows.len())).filter(|rows| !rows.is_empty())?;
        Some(Self { batches: self.batches.clone(), rows: rows.to_vec() })
    }

    /// A batch of these rows.
    pub fn batch(&self) -> Batch {
        let column = |at: usize| {
            let columns: Vec<&Values> = self.batches().filter_map(|batch| batch.columns.get(at)).collect();
            Values::picked(&columns, &self.rows)
        };
        Batch { rows: self.rows.len(), columns: (0..).map_while(column).collect() }
    }

    /// The batches.
    pub(super) fn batches(&self) -> impl Iterator<Item = &'b Batch> + '_ {
        self.batches.iter().copied()
    }

    /// The rows: the index of the batch, and of the row in it.
    pub(super) fn rows(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.rows.iter().map(|(batch, row)| (*batch as usize, *row as usize))
    }
}
