//! Reading a table from its first row to its last: several parts at a time, rows in order of time if that is wanted.
//!
//! Calls are stored by their ends, and asked for by their starts. Rows that come early wait ([`WaitingBatches`]) until no earlier one can
//! come, as [`Step::frontier`] says. Memory does not grow with the tape.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use anyhow::Result;
use rayon::prelude::*;

use super::picks::{RowPicks, RowRun};
use super::{Batch, Bounds, FrameField, Source, Step, Table, Values};
use systape_events::values::columns;

/// Most rows that are passed at once.
pub const PASSED: usize = 1 << 16;
/// Rows that wait before any are passed on.
const STEP: usize = 1 << 15;
/// Most rows that wait. If more would, those that are there are passed on, in order among themselves.
const MOST: usize = 3 << 17;
/// Most parts that are read at a time.
const AT_ONCE: usize = 8;
/// The column that rows are ordered by.
const TIME: &str = "rel_ns";

/// What is read of a table.
#[derive(Clone, Debug)]
pub struct TableReading<'t> {
    /// The table.
    pub table: &'t Table,
    /// Columns of the rows.
    pub fields: Vec<&'t FrameField>,
    /// What is known of the rows: others may be passed too.
    pub bounds: Bounds,
    /// Whether rows are in order of time; else they are in the tape's order, which costs less.
    pub ordered: bool,
}

/// Takes rows of a table. Break: no more are wanted.
pub type TakePicks<'a> = &'a mut (dyn FnMut(&RowPicks<'_>) -> ControlFlow<()> + Send);

/// A batch with rows that wait, in order of time.
#[derive(Debug)]
struct WaitingBatch {
    batch: Batch,
    /// Time of each row; i64::MAX: it is not known, and the row is among the last.
    times: Vec<i64>,
    /// The first row that waits.
    next: usize,
}

impl WaitingBatch {
    /// Puts the rows of `batch` in order of time, by its last column, which is taken from it.
    fn new(mut batch: Batch) -> Self {
        let mut times = match batch.columns.pop() {
            Some(Values::Int(times)) => times.or(i64::MAX),
            _ => vec![i64::MAX; batch.rows],
        };
        if let Some(order) = columns::order_of(&times) {
            times = columns::in_order(&times, &order);
            batch.columns = batch.columns.into_iter().map(|column| column.in_order(&order)).collect();
        }
        Self { batch, times, next: 0 }
    }

    /// Time of the first row that waits, if one does before `end`.
    fn first(&self, end: usize) -> Option<i64> {
        self.times[..end].get(self.next).copied()
    }
}

/// How many items `are` at the beginning, behind which no more of them come. Mostly few of many do.
fn leading<T>(items: &[T], are: impl Fn(&T) -> bool) -> usize {
    let mut most = 1;
    while items.get(most - 1).is_some_and(&are) {
        most *= 2;
    }
    let known = most / 2;
    known + items[known..most.min(items.len())].partition_point(are)
}

/// A batch that was read.
#[derive(Debug)]
enum ReadBatch {
    /// In the tape's order.
    AsIs(Batch),
    /// In order of time.
    InOrder(WaitingBatch),
}

impl ReadBatch {
    fn new(batch: Batch, ordered: bool) -> Self {
        if ordered { Self::InOrder(WaitingBatch::new(batch)) } else { Self::AsIs(batch) }
    }
}

/// Batches with rows that wait.
#[derive(Debug, Default)]
struct WaitingBatches(Vec<WaitingBatch>);

impl WaitingBatches {
    /// Number of rows that wait.
    fn rows(&self) -> usize {
        self.0.iter().map(|waiting| waiting.times.len() - waiting.next).sum()
    }

    /// Passes on the rows before `frontier`; without one all. Of one time those come first whose batch came first.
    fn pass(&mut self, frontier: Option<i64>, each: TakePicks<'_>) -> ControlFlow<()> {
        let end = |waiting: &WaitingBatch| match frontier {
            Some(i64::MAX) | None => waiting.times.len(),
            Some(frontier) => waiting.times.partition_point(|time| *time < frontier),
        };
        let ends: Vec<usize> = self.0.iter().map(end).collect();
        // the first row of each batch, the earliest on top
        let first = |(at, (waiting, end)): (usize, (&WaitingBatch, &usize))| Some(Reverse((waiting.first(*end)?, at)));
        let mut firsts: BinaryHeap<_> = self.0.iter().zip(&ends).enumerate().filter_map(first).collect();
        loop {
            let mut runs = Vec::new();
            let mut room = PASSED;
            while room > 0 {
                let Some(Reverse((_, at))) = firsts.pop() else { break };
                let waiting = &mut self.0[at];
                let rest = &waiting.times[waiting.next..ends[at].min(waiting.next + room)];
                let rows = match firsts.peek() {
                    Some(Reverse(after)) => leading(rest, |time| (*time, at) < *after),
                    None => rest.len(),
                };
                runs.push(RowRun { batch: at as u32, from: waiting.next as u32, rows: rows as u32 });
                waiting.next += rows;
                room -= rows;
                firsts.extend(waiting.first(ends[at]).map(|time| Reverse((time, at))));
            }
            if runs.is_empty() {
                break;
            }
            each(&RowPicks::new(self.0.iter().map(|waiting| &waiting.batch).collect(), runs))?;
        }
        self.0.retain(|waiting| waiting.next < waiting.times.len());
        ControlFlow::Continue(())
    }
}

impl Source {
    /// Passes the rows of a table to `each`. What cannot be read is among [`Source::losses`] from then on.
    ///
    /// # Errors
    /// A report has no answer.
    pub fn rows(&self, reading: &TableReading<'_>, each: TakePicks<'_>) -> Result<()> {
        let TableReading { table, fields, bounds, ordered } = reading;
        if table.is_report() {
            return self.report_rows(table, fields, each);
        }
        if table.is_of_losses() {
            self.read_everything()?;
        }
        let time = table.fields.iter().find(|field| field.name == TIME).filter(|_| *ordered);
        // the column of times stands behind those that are wanted
        let wanted: Vec<&FrameField> = fields.iter().copied().chain(time).collect();
        let steps = match time {
            Some(_) => self.steps_within(table, bounds),
            None => {
                let parts = self.parts(table, bounds).into_iter();
                parts.map(|part| Step { parts: vec![part], frontier: None }).collect()
            }
        };
        let mut waiting = WaitingBatches::default();
        for steps in steps.chunks(rayon::current_num_threads().clamp(1, AT_ONCE)) {
            let read: Vec<Result<Vec<ReadBatch>>> = steps
                .par_iter()
                .map(|step| {
                    let batches = self.read_step(table, step, &wanted, bounds)?.into_iter();
                    Ok(batches.map(|batch| ReadBatch::new(batch, time.is_some())).collect())
                })
                .collect();
            for (step, batches) in steps.iter().zip(read) {
                for batch in batches? {
                    let passed = match batch {
                        ReadBatch::AsIs(batch) => RowPicks::all(&batch, PASSED).try_for_each(|picks| each(&picks)),
                        ReadBatch::InOrder(batch) => {
                            waiting.0.push(batch);
                            if waiting.rows() > MOST { waiting.pass(None, each) } else { ControlFlow::Continue(()) }
                        }
                    };
                    if passed.is_break() {
                        return Ok(());
                    }
                }
                let ready = time.is_some() && waiting.rows() >= STEP && step.frontier.is_some();
                if ready && waiting.pass(step.frontier, each).is_break() {
                    return Ok(());
                }
            }
        }
        let _ = waiting.pass(Some(i64::MAX), each);
        Ok(())
    }

    fn read_step(&self, table: &Table, step: &Step, wanted: &[&FrameField], bounds: &Bounds) -> Result<Vec<Batch>> {
        let mut batches = Vec::new();
        for part in &step.parts {
            self.read_within(table, *part, wanted, bounds, &mut |batch| {
                batches.push(batch);
                ControlFlow::Continue(())
            })?;
        }
        Ok(batches)
    }

    fn report_rows(&self, table: &Table, fields: &[&FrameField], each: TakePicks<'_>) -> Result<()> {
        for part in self.parts(table, &Bounds::default()) {
            self.read(table, part, fields, &mut |batch| {
                RowPicks::all(&batch, PASSED).try_for_each(|picks| each(&picks))
            })?;
        }
        Ok(())
    }

    /// Reads all events, so that what of them cannot be read is known.
    fn read_everything(&self) -> Result<()> {
        for table in self.tables().iter().filter(|table| !table.is_report() && !table.is_of_losses()) {
            if self.require(table).is_err() {
                continue;
            }
            let wanted: Vec<&FrameField> = table.fields.iter().collect();
            let parts = self.parts(table, &Bounds::default());
            parts
                .par_iter()
                .try_for_each(|part| self.read(table, *part, &wanted, &mut |_| ControlFlow::Continue(())))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::nullable::Nullable;

    /// A batch whose rows are their times.
    fn batch(times: &[Option<i64>]) -> WaitingBatch {
        let column = || Values::Int(times.iter().copied().collect());
        WaitingBatch::new(Batch { rows: times.len(), columns: vec![column(), column()] })
    }

    #[test]
    fn rows_wait_until_no_earlier_one_can_come() {
        let mut waiting = WaitingBatches::default();
        let mut passed = Vec::new();
        let mut pass = |waiting: &mut WaitingBatches, frontier| {
            let mut now = Vec::new();
            let _ = waiting.pass(frontier, &mut |picks| {
                let batches: Vec<&Batch> = picks.batches().collect();
                now.extend(picks.rows().map(|(batch, row)| match &batches[batch].columns[..] {
                    [Values::Int(times)] => times.get(row),
                    other => panic!("{other:?}"),
                }));
                ControlFlow::Continue(())
            });
            passed.extend(now.iter().copied());
            now
        };
        waiting.0.push(batch(&[Some(5), None, Some(1)]));
        assert_eq!(pass(&mut waiting, Some(5)), [Some(1)]);
        waiting.0.push(batch(&[Some(4), Some(9)]));
        assert_eq!(pass(&mut waiting, Some(9)), [Some(4), Some(5)]);
        assert_eq!(waiting.0.len(), 2);
        waiting.0.push(batch(&[Some(7)]));
        assert_eq!(pass(&mut waiting, Some(8)), [Some(7)]);
        assert_eq!(waiting.0.len(), 2, "a batch without rows is forgotten");
        assert_eq!(pass(&mut waiting, Some(i64::MAX)), [Some(9), None]);
        assert_eq!(waiting.0.len(), 0);
        assert_eq!(passed.len(), 6);
    }

    #[test]
    fn what_leads_is_counted() {
        for (len, leads) in (0..20).flat_map(|len| (0..=len).map(move |leads| (len, leads))) {
            let items: Vec<usize> = (0..len).collect();
            assert_eq!(leading(&items, |item| *item < leads), leads, "of {len}");
        }
    }

    #[test]
    fn rows_of_batches_that_overlap_are_in_one_order() {
        // by time, then by batch, then by row: as a sort of all of them would have them
        let times = [vec![3, 1, 4, 1, 5, 9, 2, 6], vec![5, 3, 5, 8, 9, 7], vec![], vec![9, 3, 2, 3, 8, 4]];
        let mut waiting = WaitingBatches(
            times
                .iter()
                .map(|times| {
                    let rows: Nullable<i64> = (0..times.len() as i64).map(Some).collect();
                    let times = times.iter().copied().map(Some).collect();
                    WaitingBatch::new(Batch { rows: rows.len(), columns: vec![Values::Int(rows), Values::Int(times)] })
                })
                .collect(),
        );
        let mut passed = Vec::new();
        let _ = waiting.pass(None, &mut |picks| {
            let batches: Vec<&Batch> = picks.batches().collect();
            passed.extend(picks.rows().map(|(batch, row)| match &batches[batch].columns[..] {
                [Values::Int(rows)] => (batch, rows.get(row).unwrap()),
                other => panic!("{other:?}"),
            }));
            ControlFlow::Continue(())
        });
        let mut wanted: Vec<(i64, usize, i64)> = Vec::new();
        for (batch, times) in times.iter().enumerate() {
            wanted.extend(times.iter().zip(0..).map(|(time, row)| (*time, batch, row)));
        }
        wanted.sort_unstable();
        assert_eq!(passed, wanted.into_iter().map(|(_, batch, row)| (batch, row)).collect::<Vec<_>>());
    }
}
