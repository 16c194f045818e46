//! Reading a table from its first row to its last: several parts at a time, rows in order of time if that is wanted.
//!
//! Calls are stored by their ends, and asked for by their starts. Rows that come early wait ([`WaitingBatches`]) until no earlier one can
//! come, as [`Step::frontier`] says. Memory does not grow with the tape.

use std::ops::ControlFlow;

use anyhow::Result;
use rayon::prelude::*;

use super::picks::RowPicks;
use super::{Batch, Bounds, FrameField, Source, Step, Table, Values};

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

/// Batches with rows that wait.
#[derive(Debug, Default)]
struct WaitingBatches {
    batches: Vec<Batch>,
    /// Time of each row, the index of its batch, its index in that; None: it is not known, and the row is among the last.
    rows: Vec<(i64, u32, u32)>,
}

impl WaitingBatches {
    /// Adds rows; `time`: the column with their times.
    fn add(&mut self, batch: Batch, time: usize) {
        let number = self.batches.len() as u32;
        let times = match batch.columns.get(time) {
            Some(Values::Int(times)) => &**times,
            _ => &[],
        };
        let time = |row: u32| times.get(row as usize).copied().flatten().unwrap_or(i64::MAX);
        self.rows.extend((0..batch.rows as u32).map(|row| (time(row), number, row)));
        self.batches.push(batch);
    }

    /// Passes on the rows before `frontier`; without one all.
    fn pass(&mut self, frontier: Option<i64>, each: TakePicks<'_>) -> ControlFlow<()> {
        // batches and rows are in the order in which they came, by which equal times are told apart. They are nearly sorted, of which
        // this sort makes use
        self.rows.sort();
        let ready = match frontier {
            Some(i64::MAX) | None => self.rows.len(),
            Some(frontier) => self.rows.partition_point(|(time, ..)| *time < frontier),
        };
        for rows in self.rows[..ready].chunks(PASSED) {
            let rows = rows.iter().map(|(_, batch, row)| (*batch, *row));
            each(&RowPicks::new(self.batches.iter().collect(), rows))?;
        }
        self.rows.drain(..ready);
        self.forget();
        ControlFlow::Continue(())
    }

    /// Forgets batches of which no row waits any more.
    fn forget(&mut self) {
        let mut numbers = vec![None; self.batches.len()];
        self.rows.iter().for_each(|(_, batch, _)| numbers[*batch as usize] = Some(0));
        (0..).zip(numbers.iter_mut().flatten()).for_each(|(kept, number)| *number = kept);
        let mut at = 0;
        self.batches.retain(|_| {
            at += 1;
            numbers[at - 1].is_some()
        });
        self.rows.iter_mut().for_each(|(_, batch, _)| *batch = numbers[*batch as usize].unwrap_or(0));
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
            let read: Vec<Result<Vec<Batch>>> =
                steps.par_iter().map(|step| self.read_step(table, step, &wanted, bounds)).collect();
            for (step, batches) in steps.iter().zip(read) {
                for batch in batches? {
                    let passed = match time {
                        None => RowPicks::all(&batch, PASSED).try_for_each(|picks| each(&picks)),
                        Some(_) => {
                            waiting.add(batch, fields.len());
                            if waiting.rows.len() > MOST { waiting.pass(None, each) } else { ControlFlow::Continue(()) }
                        }
                    };
                    if passed.is_break() {
                        return Ok(());
                    }
                }
                let ready = time.is_some() && waiting.rows.len() >= STEP && step.frontier.is_some();
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

    fn batch(times: &[Option<i64>]) -> Batch {
        Batch { rows: times.len(), columns: vec![Values::Int(times.to_vec())] }
    }

    #[test]
    fn rows_wait_until_no_earlier_one_can_come() {
        let mut waiting = WaitingBatches::default();
        let mut passed = Vec::new();
        let mut pass = |waiting: &mut WaitingBatches, frontier| {
            let mut now = Vec::new();
            let _ = waiting.pass(frontier, &mut |picks| {
                let batches: Vec<&Batch> = picks.batches().collect();
                now.extend(picks.rows().map(|(batch, row)| match &batches[batch].columns[0] {
                    Values::Int(times) => times[row],
                    _ => None,
                }));
                ControlFlow::Continue(())
            });
            passed.extend(now.iter().copied());
            now
        };
        waiting.add(batch(&[Some(5), None, Some(1)]), 0);
        assert_eq!(pass(&mut waiting, Some(5)), [Some(1)]);
        waiting.add(batch(&[Some(4), Some(9)]), 0);
        assert_eq!(pass(&mut waiting, Some(9)), [Some(4), Some(5)]);
        assert_eq!(waiting.batches.len(), 2);
        waiting.add(batch(&[Some(7)]), 0);
        assert_eq!(pass(&mut waiting, Some(8)), [Some(7)]);
        assert_eq!(waiting.batches.len(), 2, "a batch without rows is forgotten");
        assert_eq!(pass(&mut waiting, Some(i64::MAX)), [Some(9), None]);
        assert_eq!(waiting.batches.len(), 0);
        assert_eq!(passed.len(), 6);
    }
}
