//! Rows in order of time: batches come nearly in order, and wait until nothing earlier can come.

use anyhow::Result;
use datafusion::arrow::array::{Array as _, AsArray as _, RecordBatch};
use datafusion::arrow::compute::interleave_record_batch;
use datafusion::arrow::datatypes::{Int64Type, SchemaRef};

use super::write::{GROUP, TableWriter};

/// Rows passed on at once.
const BATCH: usize = 8192;
/// So many are sorted at a time: a row has some 400 bytes here, and 20 when it is written.
const STEP: usize = 4 * BATCH;
/// Most rows that wait. If more would, what is there is passed on, in order among itself.
const MOST: usize = GROUP + GROUP / 2;

/// Rows that wait.
#[derive(Debug)]
pub(crate) struct WaitingRows {
    /// The column with their times.
    time: Option<usize>,
    waiting: Vec<RecordBatch>,
    rows: usize,
}

impl WaitingRows {
    /// Makes one without rows.
    pub(crate) fn new(schema: &SchemaRef) -> Self {
        let time = schema.index_of("rel_ns").ok();
        Self { time, waiting: Vec::new(), rows: 0 }
    }

    /// More rows.
    ///
    /// # Errors
    /// Rows cannot be written.
    pub(crate) fn push(&mut self, batch: RecordBatch, to: &mut TableWriter) -> Result<()> {
        if self.time.is_none() {
            return to.rows(&batch);
        }
        self.rows += batch.num_rows();
        self.waiting.push(batch);
        if self.rows > MOST { self.pass(None, to) } else { Ok(()) }
    }

    /// Rows to come are not before `frontier`; None: nothing is known of them.
    ///
    /// # Errors
    /// Rows cannot be written.
    pub(crate) fn reached(&mut self, frontier: Option<i64>, to: &mut TableWriter) -> Result<()> {
        if self.rows < STEP || frontier.is_none() { Ok(()) } else { self.pass(frontier, to) }
    }

    /// There are no more.
    ///
    /// # Errors
    /// Rows cannot be written.
    pub(crate) fn end(mut self, to: &mut TableWriter) -> Result<()> {
        self.pass(Some(i64::MAX), to)
    }

    /// Passes on the rows before `frontier`; without one all.
    fn pass(&mut self, frontier: Option<i64>, to: &mut TableWriter) -> Result<()> {
        let Some(time) = self.time else { return Ok(()) };
        let all = std::mem::take(&mut self.waiting);
        // those without a time are last
        let key = |batch: &RecordBatch, row: usize| {
            let times = batch.column(time).as_primitive::<Int64Type>();
            if times.is_null(row) { i64::MAX } else { times.value(row) }
        };
        let of = |(at, batch): (usize, &RecordBatch)| -> Vec<(i64, (usize, usize))> {
            (0..batch.num_rows()).map(|row| (key(batch, row), (at, row))).collect()
        };
        let mut order: Vec<(i64, (usize, usize))> = all.iter().enumerate().flat_map(of).collect();
        order.sort_by_key(|(key, _)| *key);
        let ready = match frontier {
            Some(i64::MAX) | None => order.len(),
            Some(frontier) => order.partition_point(|(key, _)| *key < frontier),
        };
        let batches: Vec<&RecordBatch> = all.iter().collect();
        let rows = |part: &[(i64, (usize, usize))]| {
            interleave_record_batch(&batches, &part.iter().map(|(_, place)| *place).collect::<Vec<_>>())
        };
        let (go, stay) = order.split_at(ready);
        for part in go.chunks(BATCH) {
            to.rows(&rows(part)?)?;
        }
        self.waiting = stay.chunks(BATCH).map(rows).collect::<Result<_, _>>()?;
        self.rows = stay.len();
        Ok(())
    }
}
