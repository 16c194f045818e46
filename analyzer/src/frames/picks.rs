//! Some rows of some batches, in an order of their own: what is written needs no batch of its own to be made.

use std::ops::Range;

use super::{Batch, Values};

/// Rows of a batch that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RowRun {
    /// Index of the batch.
    batch: u32,
    /// The first of the rows.
    from: u32,
    /// Number of the rows.
    rows: u32,
}

/// Rows of batches.
#[derive(Debug)]
pub struct RowPicks<'b> {
    batches: Vec<&'b Batch>,
    runs: Vec<RowRun>,
    rows: usize,
}

impl<'b> RowPicks<'b> {
    /// Makes picks of `rows`: the index of the batch, and of the row in it.
    pub fn new(batches: Vec<&'b Batch>, rows: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let (mut runs, mut count) = (Vec::<RowRun>::new(), 0);
        for (batch, row) in rows {
            count += 1;
            match runs.last_mut() {
                Some(last) if last.batch == batch && last.from + last.rows == row => last.rows += 1,
                _ => runs.push(RowRun { batch, from: row, rows: 1 }),
            }
        }
        Self { batches, runs, rows: count }
    }

    /// Makes picks of all rows of `batch`, at most `most` at a time.
    pub fn all(batch: &'b Batch, most: usize) -> impl Iterator<Item = Self> {
        let rows = u32::try_from(batch.rows).unwrap_or(u32::MAX);
        let step = u32::try_from(most.max(1)).unwrap_or(u32::MAX);
        let starts = (0..rows).step_by(step as usize);
        starts.map(move |from| {
            let rows = step.min(rows - from);
            Self { batches: vec![batch], runs: vec![RowRun { batch: 0, from, rows }], rows: rows as usize }
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
        let rows = runs.iter().map(|run| run.rows as usize).sum();
        (rows > 0).then(|| Self { batches: self.batches.clone(), runs, rows })
    }

    /// A batch of these rows.
    pub fn batch(&self) -> Batch {
        let rows: Vec<(u32, u32)> = self.rows().map(|(batch, row)| (batch as u32, row as u32)).collect();
        let column = |at: usize| {
            let columns: Vec<&Values> = self.batches().filter_map(|batch| batch.columns.get(at)).collect();
            Values::picked(&columns, &rows)
        };
        Batch { rows: self.rows, columns: (0..).map_while(column).collect() }
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
    fn rows_that_follow_each_other_are_one_run() {
        let batch = Batch { rows: 9, columns: vec![Values::Int((0..9).map(Some).collect())] };
        let rows = [(0, 3), (0, 4), (0, 5), (1, 6), (0, 6), (0, 8)];
        let picks = RowPicks::new(vec![&batch, &batch], rows);
        assert_eq!(picks.runs().collect::<Vec<_>>(), [(0, 3..6), (1, 6..7), (0, 6..7), (0, 8..9)]);
        let back: Vec<(u32, u32)> = picks.rows().map(|(batch, row)| (batch as u32, row as u32)).collect();
        assert_eq!((back, picks.len()), (rows.to_vec(), 6));
        let values = |picks: &RowPicks<'_>| match picks.batch().columns.remove(0) {
            Values::Int(values) => values.into_iter().flatten().collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        assert_eq!(values(&picks), [3, 4, 5, 6, 6, 8]);
        assert_eq!(values(&picks.first(2).unwrap()), [3, 4]);
        assert_eq!(values(&picks.first(5).unwrap()), [3, 4, 5, 6, 6]);
        assert_eq!(picks.first(100).unwrap().len(), 6);
        assert!(picks.first(0).is_none() && RowPicks::new(vec![&batch], []).first(3).is_none());
        let all: Vec<_> = RowPicks::all(&batch, 4).map(|picks| values(&picks)).collect();
        assert_eq!(all, [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8]]);
    }
}
