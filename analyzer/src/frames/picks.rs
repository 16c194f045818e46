//! Some rows of some batches, in an order of their own: what is written needs no batch of its own to be made.

use std::ops::Range;

use super::Batch;

/// Rows of a batch that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowRun {
    /// Index of the batch.
    pub(super) batch: u32,
    /// The first of the rows.
    pub(super) from: u32,
    /// Number of the rows.
    pub(super) rows: u32,
}

/// Rows of batches.
#[derive(Debug)]
pub struct RowPicks<'b> {
    batches: Vec<&'b Batch>,
    runs: Vec<RowRun>,
    rows: usize,
}

impl<'b> RowPicks<'b> {
    /// Makes picks of these runs of rows.
    pub(super) fn new(batches: Vec<&'b Batch>, runs: Vec<RowRun>) -> Self {
        let rows = runs.iter().map(|run| run.rows as usize).sum();
        Self { batches, runs, rows }
    }

    /// Makes picks of all rows of `batch`, at most `most` at a time.
    pub fn all(batch: &'b Batch, most: usize) -> impl Iterator<Item = Self> {
        let rows = u32::try_from(batch.rows).unwrap_or(u32::MAX);
        let step = u32::try_from(most.max(1)).unwrap_or(u32::MAX);
        let starts = (0..rows).step_by(step as usize);
        starts.map(move |from| {
            let rows = step.min(rows - from);
            Self::new(vec![batch], vec![RowRun { batch: 0, from, rows }])
        })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The first of them, `most` at most; None: there are none.
    pub fn first(&self, most: usize) -> Option<Self> {
        let mut left = u32::try_from(most).unwrap_or(u32::MAX);
        let mut runs = Vec::with_capacity(self.runs.len());
        for run in &self.runs {
            let rows = run.rows.min(left);
            if rows == 0 {
                break;
            }
            left -= rows;
            runs.push(RowRun { rows, ..*run });
        }
        (!runs.is_empty()).then(|| Self::new(self.batches.clone(), runs))
    }

    /// The batches.
    pub(super) fn batches(&self) -> impl Iterator<Item = &'b Batch> + '_ {
        self.batches.iter().copied()
    }

    /// The rows: the index of the batch, and of the row in it.
    pub(super) fn rows(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.runs().flat_map(|(batch, rows)| rows.map(move |row| (batch, row)))
    }

    /// The rows that follow each other in a batch: the index of the batch, and those of the rows in it.
    pub(super) fn runs(&self) -> impl Iterator<Item = (usize, Range<usize>)> + '_ {
        let range = |run: &RowRun| run.from as usize..run.from as usize + run.rows as usize;
        self.runs.iter().map(move |run| (run.batch as usize, range(run)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_those_of_the_runs() {
        let batch = Batch { rows: 9, columns: Vec::new() };
        let run = |batch, from, rows| RowRun { batch, from, rows };
        let picks = RowPicks::new(vec![&batch, &batch], vec![run(0, 3, 3), run(1, 6, 1), run(0, 6, 1), run(0, 8, 1)]);
        let rows = |picks: &RowPicks<'_>| picks.rows().collect::<Vec<_>>();
        assert_eq!((rows(&picks), picks.len()), (vec![(0, 3), (0, 4), (0, 5), (1, 6), (0, 6), (0, 8)], 6));
        assert_eq!(rows(&picks.first(2).unwrap()), [(0, 3), (0, 4)]);
        assert_eq!(rows(&picks.first(5).unwrap()), [(0, 3), (0, 4), (0, 5), (1, 6), (0, 6)]);
        assert_eq!(picks.first(100).unwrap().len(), 6);
        assert!(picks.first(0).is_none() && RowPicks::new(vec![&batch], Vec::new()).first(3).is_none());
        let all: Vec<_> = RowPicks::all(&batch, 4).map(|picks| picks.runs().collect::<Vec<_>>()).collect();
        assert_eq!(all, [[(0, 0..4)], [(0, 4..8)], [(0, 8..9)]]);
    }
}
