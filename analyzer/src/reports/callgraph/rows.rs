//! The graph as rows: one a function on its path, parents before their children.

use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};

use super::Found;
use crate::config::Config;
use crate::render::json::bytes as text;
use crate::render::table::Fields;
use crate::reports::scheduling;
use crate::stacks::weight::{Metric, Weight, percent};

/// Prints them as JSON or CSV; below `--min-percent` nothing is printed.
pub fn print(config: &Config, found: &Found<'_>, out: &mut impl Write) -> Result<()> {
    let graph = &found.graph;
    let metric = found.metric;
    let heavy =
        |at: &u32| percent(graph.nodes[*at as usize].total.of(metric), graph.total()) >= config.stacks.min_percent;
    let (timed, sized) = (found.of.has(Metric::Time), found.of.has(Metric::Bytes));
    let mut rows: Vec<Fields> = Vec::new();
    // (node, number of its parent's row, depth)
    let mut waiting: Vec<(u32, Option<usize>, usize)> = Vec::new();
    let roots = graph.roots().into_iter().filter(|(_, root)| heavy(root));
    let limit = usize::try_from(config.max_events).unwrap_or(usize::MAX);
    for (comm, root) in roots.take(limit) {
        waiting.push((root, None, 1));
        while let Some((at, parent, depth)) = waiting.pop() {
            let node = &graph.nodes[at as usize];
            let label = graph.label(at);
            let number = rows.len();
            let module = if label.is_mark() { Value::Null } else { text(&label.module) };
            let time = |weight: &Weight| if timed { weight.time.into() } else { Value::Null };
            let bytes = |weight: &Weight| if sized { weight.bytes.to_string().into() } else { Value::Null };
            rows.push(vec![
                ("id", number.into()),
                ("parent", parent.map_or(Value::Null, Value::from)),
                ("depth", depth.into()),
                ("comm", text(&graph.comms[comm as usize])),
                ("sym", text(&label.name)),
                ("module", module),
                ("kernel", label.kernel.into()),
                ("inlined", label.inlined.into()),
                ("named", label.named.into()),
                ("count", node.total.count.into()),
                ("self_count", node.own.count.into()),
                ("time_ns", time(&node.total)),
                ("self_time_ns", time(&node.own)),
                ("bytes", bytes(&node.total)),
                ("self_bytes", bytes(&node.own)),
                ("percent", json!(percent(node.total.of(metric), graph.total()))),
                ("self_percent", json!(percent(node.own.of(metric), graph.total()))),
                ("of", found.of.name().into()),
                ("metric", metric.name().into()),
                ("at_least", (node.total.open + node.total.untimed > 0).into()),
                ("complete", (!found.lost && !found.partial).into()),
            ]);
            if depth < found.depth(config) {
                let below = node.children.iter().rev().filter(|child| heavy(child));
                waiting.extend(below.map(|child| (*child, Some(number), depth + 1)));
            }
        }
    }
    scheduling::rows(config.format, out, rows.into_iter())?;
    Ok(())
}
