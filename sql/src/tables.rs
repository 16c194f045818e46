//! Tables of a tape for the engine: what a query needs of them is decoded, segment by segment, when it is asked for.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use rayon::prelude::*;
use systape_analyzer::frames::{Bounds, FrameField, Part, QueryCost, Source};

use crate::bounds;
use crate::columns;
use crate::plan::{BatchSource, Reading};

/// Most rows of a report's table: they are kept in memory.
const MOST_ROWS: usize = 1 << 20;

/// Most segments decoded at a time.
const MOST_PARTS: usize = 8;

/// What a query read of a table.
#[derive(Clone, Debug)]
pub(crate) struct UsedTable {
    /// The table's number.
    pub(crate) table: usize,
    /// Columns of the table that were read.
    pub(crate) columns: Vec<String>,
    /// What is known of the rows it can be about.
    pub(crate) bounds: Bounds,
    /// The predicates that say so.
    pub(crate) filters: Vec<String>,
    /// What that costs.
    pub(crate) cost: QueryCost,
}

/// A tape, and what a query used of it.
#[derive(Debug)]
pub(crate) struct Taped {
    /// The tape.
    pub(crate) source: Source,
    /// Predicates leave out nothing.
    pub(crate) read_all: bool,
    /// Tables that were read.
    pub(crate) used: Mutex<Vec<UsedTable>>,
}

/// Table number `at` of a tape.
#[derive(Debug)]
pub(crate) struct Provider {
    taped: Arc<Taped>,
    at: usize,
    schema: SchemaRef,
}

impl Provider {
    /// Table number `at` of `taped`.
    pub(crate) fn new(taped: &Arc<Taped>, at: usize) -> Self {
        let schema = columns::schema_of(&taped.source.tables()[at]);
        Self { taped: Arc::clone(taped), at, schema }
    }
}

#[async_trait]
impl TableProvider for Provider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        // segments are left out by them; each row is tested by the engine
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let table = &self.taped.source.tables()[self.at];
        self.taped.source.require(table).map_err(failed)?;
        let wanted: Vec<usize> = projection.cloned().unwrap_or_else(|| (0..table.fields.len()).collect());
        let fields: Vec<&FrameField> = wanted.iter().map(|at| &table.fields[*at]).collect();
        let (bounds, said) = if self.taped.read_all { Default::default() } else { bounds::of(filters, table) };
        let parts = self.taped.source.parts(table, &bounds);
        let used = UsedTable {
            table: self.at,
            columns: fields.iter().map(|field| field.name.clone()).collect(),
            cost: self.taped.source.cost(table, &fields, &parts),
            bounds,
            filters: said,
        };
        self.taped.used.lock().unwrap_or_else(PoisonError::into_inner).push(used);
        let schema = columns::schema(fields);
        let scan = Arc::new(TapeScan {
            taped: Arc::clone(&self.taped),
            at: self.at,
            wanted,
            schema: Arc::clone(&schema),
            parts,
            next: AtomicUsize::new(0),
        });
        let about = self.taped.source.about(table, &scan.parts);
        Ok(Arc::new(Reading::new(scan, schema, about)))
    }
}

/// Reading a table: its readers take the next part from here.
#[derive(Debug)]
pub(crate) struct TapeScan {
    taped: Arc<Taped>,
    at: usize,
    wanted: Vec<usize>,
    schema: SchemaRef,
    parts: Vec<Part>,
    next: AtomicUsize,
}

impl BatchSource for TapeScan {
    /// As many parts at a time as there are CPUs.
    fn next(&self) -> Result<Option<Vec<RecordBatch>>> {
        let many = rayon::current_num_threads().clamp(1, MOST_PARTS);
        let from = self.next.fetch_add(many, Ordering::Relaxed);
        let Some(parts) = self.parts.get(from..).filter(|parts| !parts.is_empty()) else { return Ok(None) };
        let read: Vec<Result<Vec<RecordBatch>>> =
            parts[..many.min(parts.len())].par_iter().map(|part| self.read(*part)).collect();
        let read = read.into_iter().collect::<Result<Vec<_>>>()?;
        // they are taken from the end
        Ok(Some(read.into_iter().flatten().rev().collect()))
    }
}

impl TapeScan {
    fn read(&self, part: Part) -> Result<Vec<RecordBatch>> {
        let table = &self.taped.source.tables()[self.at];
        let fields: Vec<&FrameField> = self.wanted.iter().map(|at| &table.fields[*at]).collect();
        let (mut batches, mut rows, mut fault) = (Vec::new(), 0_usize, None);
        let read = self.taped.source.read(table, part, &fields, &mut |batch| {
            rows += batch.rows;
            match columns::record_batch(&self.schema, batch) {
                Ok(_) if table.is_report() && rows > MOST_ROWS => {
                    fault = Some(too_many(&table.name));
                    ControlFlow::Break(())
                }
                Ok(batch) => {
                    batches.push(batch);
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    fault = Some(error.into());
                    ControlFlow::Break(())
                }
            }
        });
        match fault {
            Some(fault) => Err(fault),
            None => read.map(|()| batches).map_err(failed),
        }
    }
}

fn too_many(table: &str) -> DataFusionError {
    DataFusionError::ResourcesExhausted(format!("table {table} has more than {MOST_ROWS} rows"))
}

fn failed(error: anyhow::Error) -> DataFusionError {
    DataFusionError::External(error.into())
}
