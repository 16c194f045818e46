//! A bound on the pairs of rows that joins compare: a join without an equality compares every row with every other, and
//! would keep a CPU for days. Counts stand in the plan before and behind each join.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties};
use futures::StreamExt as _;

use crate::check::ELSEWHERE;

/// Most pairs that a join compares or makes: a few seconds.
const MOST: u64 = 1 << 29;
/// Joins whose rows of both sides all meet.
const ALL_MEET: [&str; 2] = ["CrossJoinExec", "NestedLoopJoinExec"];

/// `plan` with its joins bounded.
///
/// # Errors
/// The engine cannot make such a plan.
pub(crate) fn bounded(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let joins = |node: Arc<dyn ExecutionPlan>| {
        if !node.name().ends_with("JoinExec") {
            return Ok(Transformed::no(node));
        }
        let mut node = node;
        if ALL_MEET.contains(&node.name())
            && let [left, right] = node.children()[..]
        {
            // the left side is read to its end before the right one begins
            let (left, right) = (Arc::clone(left), Arc::clone(right));
            let seen = Arc::new(AtomicU64::new(0));
            let left = Arc::new(RowCounter { of: left, seen: Arc::clone(&seen), with: None });
            let right = Arc::new(RowCounter { of: right, seen: Arc::default(), with: Some(seen) });
            node = replace_children_if_necessary(node, vec![left, right])?;
        }
        Ok(Transformed::yes(Arc::new(RowCounter { of: node, seen: Arc::default(), with: Some(one()) }) as _))
    };
    Ok(plan.transform_up(joins)?.data)
}

/// What each row is compared with behind a join.
fn one() -> Arc<AtomicU64> {
    Arc::new(AtomicU64::new(1))
}

/// Passes rows on, and counts them.
#[derive(Debug)]
struct RowCounter {
    of: Arc<dyn ExecutionPlan>,
    /// Rows so far.
    seen: Arc<AtomicU64>,
    /// Each meets so many others; None: they are only counted.
    with: Option<Arc<AtomicU64>>,
}

impl DisplayAs for RowCounter {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counted")
    }
}

impl ExecutionPlan for RowCounter {
    fn name(&self) -> &'static str {
        "Counted"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.of.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.of]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let of = children.pop().unwrap_or_else(|| Arc::clone(&self.of));
        Ok(Arc::new(Self { of, seen: Arc::clone(&self.seen), with: self.with.clone() }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let batches = self.of.execute(partition, context)?;
        let (seen, with) = (Arc::clone(&self.seen), self.with.clone());
        let schema = batches.schema();
        let counted = batches.map(move |batch| {
            let batch = batch?;
            let rows = batch.num_rows() as u64;
            let all = seen.fetch_add(rows, Ordering::Relaxed) + rows;
            match &with {
                Some(with) if all.saturating_mul(with.load(Ordering::Relaxed)) > MOST => Err(too_many()),
                _ => Ok(batch),
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, counted)))
    }
}

fn too_many() -> DataFusionError {
    DataFusionError::Plan(format!("a join compares more than {MOST} pairs of rows: {ELSEWHERE}"))
}
