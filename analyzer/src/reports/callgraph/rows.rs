//! The graph as rows: one a function on its path, parents before their children.

use anyhow::Result;

use super::Found;
use crate::asked::config::Config;
use systape_answers::derive::stacks::weight::{Metric, Weight, percent};
use systape_answers::render::out::Out;
use systape_answers::render::row::{Judgement, Row};

systape_format::tables! {
    /// One row a function on its path, parents before their children, the heaviest first; all of them unless `--min-percent` is given.
    pub CALLGRAPH = "callgraph" {
        id: Int "number of the row"
        parent: Int key "number of its parent's row; null: a root"
        depth: Int "functions up to its root, itself included"
        comm: Str key [Comm] "name of the threads; with `--idle=fold` `[idle waits]` for all that waited for work"
        sym: Str key "name; `[0x1a2b]` without one, `[no stack: reason]` and `[stack ends: reason]` for what is missing"
        module: Str key [Path] "file it is in, as in `stack` of the listing; null: `sym` is a reason"
        kernel: Flag key "it is the kernel's"
        inlined: Flag key "it was inlined into its caller"
        named: Flag "it has a name"
        count ? AtLeast: Count "events with it on their stack"
        self_count ? AtLeast: Count "part of `count` that it is the end of"
        time_ns ? AtLeast: Duration "time of the events; null: such events have none"
        self_time_ns ? AtLeast: Duration "the same of `self_count`"
        bytes ? AtLeast: Wide "bytes of the events; null: such events have none"
        self_bytes ? AtLeast: Wide "the same of `self_count`"
        percent ? OfKnown: Real "part of the total by `metric`"
        self_percent ? OfKnown: Real "the same of `self_count`"
        of: Word key "what the stacks are of"
        metric: Word key "what the percentages are of: `count`, `time` or `bytes`"
    }
}

/// Prints them; below `--min-percent` nothing is printed.
pub(super) fn print(config: &Config, found: &Found<'_>, out: &mut Out) -> Result<()> {
    let graph = &found.graph;
    let (metric, least) = (found.metric, found.own.least(config.format));
    let heavy = |at: &u32| percent(graph.nodes[*at as usize].total.of(metric), graph.total()) >= least;
    let (timed, sized) = (found.of.has(Metric::Time), found.of.has(Metric::Bytes));
    let of_known = metric == Metric::Bytes && found.total.short > 0;
    let mut rows: Vec<Row<'_>> = Vec::new();
    // (node, number of its parent's row, depth)
    let mut waiting: Vec<(u32, Option<usize>, usize)> = Vec::new();
    let roots = graph.roots().into_iter().filter(|(_, root)| heavy(root));
    let limit = config.most();
    for (comm, root) in roots.take(limit) {
        waiting.push((root, None, 1));
        while let Some((at, parent, depth)) = waiting.pop() {
            let node = &graph.nodes[at as usize];
            let label = graph.label(at);
            let number = rows.len();
            let module = (!label.is_mark()).then(|| label.module.to_vec());
            let time = |weight: &Weight| timed.then_some(weight.time);
            let bytes = |weight: &Weight| sized.then_some(weight.bytes);
            // some lasted longer than is known, or nobody knows how long
            let open = node.total.open + node.total.untimed > 0;
            let mut row = Row::new(&CALLGRAPH);
            row.set("id", number).set("parent", parent).set("depth", depth);
            row.set("comm", graph.comms[comm as usize].to_vec()).set("sym", label.name.to_vec()).set("module", module);
            row.set("kernel", label.kernel).set("inlined", label.inlined).set("named", label.named);
            row.set("count", node.total.count).set("self_count", node.own.count);
            row.bound("time_ns", time(&node.total), open).bound("self_time_ns", time(&node.own), open);
            let (short, own_short) = (node.total.short > 0, node.own.short > 0);
            row.bound("bytes", bytes(&node.total), short).bound("self_bytes", bytes(&node.own), own_short);
            row.bound("percent", percent(node.total.of(metric), graph.total()), of_known);
            row.bound("self_percent", percent(node.own.of(metric), graph.total()), of_known);
            row.set("of", found.of.name()).set("metric", metric.name());
            rows.push(row);
            if depth < found.own.depth() {
                let below = node.children.iter().rev().filter(|child| heavy(child));
                waiting.extend(below.map(|child| (*child, Some(number), depth + 1)));
            }
        }
    }
    out.rows(&CALLGRAPH, Judgement::Touched(found.lost || found.partial), rows)?;
    Ok(())
}
