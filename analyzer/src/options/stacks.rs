//! What callgraph and listings with stacks are asked beside the filters.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::args::Args;
use crate::render::form::Format;
use crate::report::Report;
use crate::stacks::graph::Order;
use crate::stacks::limits::Limits;
use crate::stacks::of::Of;
use crate::stacks::weight::Metric;

/// Settled values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// What the graph is of; None: what the tape has.
    pub of: Option<Of>,
    /// What percentages are of; None: what suits that.
    pub metric: Option<Metric>,
    /// Callers or callees first.
    pub order: Order,
    /// Least share that is printed, in percent.
    pub min_percent: f64,
    /// Functions of a stack at most; None: all.
    pub max_depth: Option<usize>,
    /// Folded stacks instead of a tree.
    pub folded: bool,
    /// A flame graph goes to this file.
    pub svg: Option<PathBuf>,
    /// The tape this one is compared with.
    pub diff: Option<PathBuf>,
    /// Where to look for files with symbols that the tape lacks.
    pub debug_dirs: Vec<PathBuf>,
    /// Listings print stacks.
    pub listed: bool,
    /// How much of them.
    pub limits: Limits,
}

impl Options {
    /// Settles what was typed for `report`.
    pub fn resolve(args: &Args, report: Report) -> Result<Self> {
        let graph = report == Report::Callgraph;
        let limited = args.max_stack.is_some() || args.min_stack.is_some();
        let listed = args.call_graph.is_some() || limited;
        let instant = report == Report::States && args.at.is_some();
        if listed && report == Report::States && !instant {
            bail!("--call-graph shows the stacks of one instant: it needs --at TIME");
        }
        let of_kills = report == Report::Kills && (args.verbose || args.format != Format::Text);
        if !args.debug_dirs.is_empty() && !graph && !listed && !of_kills {
            bail!(
                "--debug-dir names functions on stacks: it needs 'analyze callgraph', --call-graph or 'analyze kills -v'"
            );
        }
        if graph {
            check(args)?;
        }
        // rows have no place to say what was left out
        let min_percent = args.min_percent.unwrap_or(if args.format == Format::Text { 0.5 } else { 0.0 });
        if !(0.0..=100.0).contains(&min_percent) {
            bail!("--min-percent {min_percent}: a percentage is between 0 and 100");
        }
        if args.max_depth == Some(0) {
            bail!("--max-depth 0 leaves nothing");
        }
        Ok(Self {
            of: args.of.clone(),
            metric: args.metric,
            order: if args.callee { Order::Callee } else { Order::Caller },
            min_percent,
            max_depth: args.max_depth,
            folded: args.folded,
            svg: args.svg.clone(),
            diff: args.diff.clone(),
            debug_dirs: args.debug_dirs.clone(),
            listed,
            limits: Limits { max: args.max_stack.unwrap_or(usize::MAX), min: args.min_stack.unwrap_or(0) },
        })
    }
}

/// What the report cannot do, said instead of ignored.
fn check(args: &Args) -> Result<()> {
    if args.folded && args.format != Format::Text {
        bail!("--folded is a form of its own: leave out --format");
    }
    if args.diff.is_some() && !args.folded && args.svg.is_none() {
        bail!("--diff compares two tapes as --folded (two columns) or as --svg FILE: give one of them");
    }
    if let (Some(of), Some(metric)) = (&args.of, args.metric)
        && !of.has(metric)
    {
        bail!("--metric {}: {} have none", metric.name(), of.words());
    }
    Ok(())
}
