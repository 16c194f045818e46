//! The engine: a query in, batches out, within a budget of memory and without files.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, SchemaRef, TimeUnit};
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::common::{DFSchema, DFSchemaRef, DataFusionError};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable as _, LogicalPlan, TryCast};
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;
use futures::TryStreamExt as _;

use crate::check::ELSEWHERE;
use crate::tables::{Provider, Taped};
use crate::{exact, pairs, texts};

/// Memory for groups, sorts and joins. The program with all its segments stays below 1 GiB with it.
const BUDGET: usize = 600 << 20;
/// Rows of a batch.
const BATCH: usize = 8192;
/// Stack of a thread: deep expressions are walked by recursion.
pub(crate) const STACK: usize = 256 << 20;

/// Runs `statement` over the tables of `taped`. The schema comes first, then `each` gets the batches until it says false.
///
/// # Errors
/// The query names what does not exist, fails, or needs more memory than the budget.
pub(crate) fn run(
    taped: &Arc<Taped>,
    statement: ast::Statement,
    each: &mut dyn FnMut(&SchemaRef, Option<RecordBatch>) -> Result<bool>,
) -> Result<()> {
    // One thread for the engine, with a stack for deep expressions; all CPUs decode segments ([`crate::tables`]). Sums of
    // fractions are added up in one order.
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let context = context(taped)?;
        let statement = Statement::Statement(Box::new(statement));
        let plan = context.state().statement_to_plan(statement).await.map_err(said)?;
        shown(plan.schema().as_arrow())?;
        casts(&context, &plan)?;
        let plan = context.state().create_physical_plan(&plan).await.map_err(said)?;
        let plan = pairs::bounded(plan).map_err(said)?;
        let mut batches = execute_stream(plan, context.task_ctx()).map_err(said)?;
        let schema = batches.schema();
        if !each(&schema, None)? {
            return Ok(());
        }
        while let Some(batch) = batches.try_next().await.map_err(said)? {
            if !each(&schema, Some(batch))? {
                break;
            }
        }
        Ok(())
    })
}

fn context(taped: &Arc<Taped>) -> Result<SessionContext> {
    let mut config = SessionConfig::new().with_target_partitions(1).with_batch_size(BATCH);
    let options = config.options_mut();
    // as in most engines: NULL is last, whichever way
    "nulls_last".clone_into(&mut options.sql_parser.default_null_ordering);
    options.sql_parser.enable_ident_normalization = true;
    options.execution.enable_recursive_ctes = false;
    options.execution.time_zone = Some("UTC".to_owned());
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(GreedyMemoryPool::new(BUDGET)))
        .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled))
        .build_arc()?;
    let builder = SessionStateBuilder::new().with_config(config).with_runtime_env(runtime).with_default_features();
    let mut state = builder.build();
    let mut planners = state.expr_planners().to_vec();
    planners.insert(0, Arc::new(exact::Arithmetic));
    planners.insert(0, Arc::new(texts::Join));
    state = SessionStateBuilder::new_from_existing(state).with_expr_planners(planners).build();
    let context = SessionContext::new_with_state(state);
    for aggregate in exact::aggregates() {
        context.register_udaf(aggregate);
    }
    context.register_udf(exact::negated());
    for function in texts::functions() {
        context.register_udf(function);
    }
    for (at, table) in taped.source.tables().iter().enumerate() {
        context.register_table(table.name.as_str(), Arc::new(Provider::new(taped, at)))?;
    }
    Ok(context)
}

/// Refuses casts whose result depends on the engine: of a fraction to a whole number, if nothing says how it is rounded, and of
/// fractions and times to text.
fn casts(context: &SessionContext, plan: &LogicalPlan) -> Result<()> {
    let state = context.state();
    let plan = state.analyzer().execute_and_check(plan.clone(), state.config_options(), |_, _| {}).map_err(said)?;
    let mut refused = None;
    let walked = plan.apply_with_subqueries(|node| {
        let schemas: Vec<&DFSchemaRef> = node.inputs().into_iter().map(LogicalPlan::schema).collect();
        let mut input = DFSchema::empty();
        schemas.into_iter().for_each(|schema| input.merge(schema));
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                if let Expr::Cast(Cast { expr: of, field }) | Expr::TryCast(TryCast { expr: of, field }) = part
                    && let Ok(from) = of.get_type(&input)
                {
                    let to = field.data_type();
                    let rounds = matches!(&**of, Expr::ScalarFunction(call) if ["round", "floor", "ceil"].contains(&call.name()));
                    if from.is_floating() && to.is_integer() && !rounds {
                        refused = Some("a fraction as a whole number is not answered here: say how it is rounded, CAST(round(x) AS BIGINT)");
                    }
                    if (from.is_floating() || from.is_temporal()) && to.is_string() {
                        refused = Some("a fraction or a time as text is not answered here: engines write them differently");
                    }
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    walked.map_err(said)?;
    refused.map_or(Ok(()), |why| Err(anyhow!("{why}")))
}

/// Refuses answers with values that have no common meaning outside the engine.
fn shown(schema: &datafusion::arrow::datatypes::Schema) -> Result<()> {
    for field in schema.fields() {
        let shown = match field.data_type() {
            DataType::Timestamp(TimeUnit::Microsecond, Some(_))
            | DataType::Null
            | DataType::Boolean
            | DataType::Map(..) => true,
            ty => ty.is_integer() || ty.is_floating() || ty.is_string() || matches!(ty, DataType::Decimal128(..)),
        };
        if !shown {
            return Err(anyhow!(
                "column {} is of type {}: cast it to text, bigint or double",
                field.name(),
                field.data_type()
            ));
        }
    }
    Ok(())
}

/// An error of the engine in one line, with what to do about it.
fn said(error: DataFusionError) -> anyhow::Error {
    let exhausted = matches!(error.find_root(), DataFusionError::ResourcesExhausted(_));
    let text = error.find_root().strip_backtrace();
    let line = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    match exhausted {
        true => anyhow!("the query needs more than {} MiB of memory: {ELSEWHERE} ({line})", BUDGET >> 20),
        false => anyhow!("{line}"),
    }
}
