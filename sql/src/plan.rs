//! Reading a table as a step of the engine's plan. It says roughly how large the table is, by which the engine builds a join's hash
//! table from the smaller of two, whichever stands first in the query.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::stream;

/// Most bytes of a value, roughly.
const VALUE: usize = 16;

/// Batches of rows of a table, each given once to whichever reader asks next.
pub(crate) trait BatchSource: fmt::Debug + Send + Sync {
    /// The next batches, the first of them last; None: there are no more.
    fn next(&self) -> Result<Option<Vec<RecordBatch>>>;
}

/// A step of the engine's plan that reads a table.
#[derive(Debug)]
pub(crate) struct Reading {
    scan: Arc<dyn BatchSource>,
    /// Rows, roughly.
    about: usize,
    properties: Arc<PlanProperties>,
}

impl Reading {
    /// `scan` gives batches of `schema`, `about` so many rows.
    pub(crate) fn new(scan: Arc<dyn BatchSource>, schema: SchemaRef, about: usize) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self { scan, about, properties: Arc::new(properties) }
    }
}

impl DisplayAs for Reading {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reading: about {} rows", self.about)
    }
}

impl ExecutionPlan for Reading {
    fn name(&self) -> &str {
        "Reading"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rest = (Arc::clone(&self.scan), Vec::<RecordBatch>::new());
        let batches = stream::try_unfold(rest, |(scan, mut ready)| async move {
            loop {
                if let Some(batch) = ready.pop() {
                    return Ok(Some((batch, (scan, ready))));
                }
                match scan.next()? {
                    Some(batches) => ready = batches,
                    None => return Ok(None),
                }
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        let schema = self.schema();
        let bytes = self.about.saturating_mul(schema.fields().len().max(1) * VALUE);
        let statistics = Statistics::new_unknown(&schema)
            .with_num_rows(Precision::Inexact(self.about))
            .with_total_byte_size(Precision::Inexact(bytes));
        Ok(Arc::new(statistics))
    }
}
