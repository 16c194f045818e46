//! `analyze offcputime`: the stacks of `analyze callgraph --of offcpu` as offcputime prints them, by name of the threads.

use anyhow::Result;

use super::text_only;
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{AnswerFn, CPUS, Own, Reads, Rows, TASKS, View};
use crate::asked::options::stacks::SymbolPlaces;
use crate::reports::callgraph::answer_offcpu;
use crate::reports::callgraph::rows::CALLGRAPH;
use systape_answers::derive::stacks::folded;
use systape_answers::derive::stacks::graph::Graph;
use systape_answers::render::out::Out;
use systape_answers::values::output::line;
use systape_events::values::order::InOrder as _;
use systape_events::values::words::named;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "offcputime",
    about: "Stacks with which threads left the CPU and the time until they came back, as bcc's offcputime prints them",
    options: &[TASKS, CPUS, &["time"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze offcputime -p 2214", "what a process waited for"),
        ("analyze offcputime -f", "one stack a line, for flame graphs; the numbers are ns"),
    ],
    tables: &[Rows::of("offcputime", &[All(&CALLGRAPH)])],
    reads: |config| -> Result<Reads> { config.own::<Options>()?.names.reads() },
    check: |config| text_only(config, config.own::<Options>()?.folded, "--folded"),
    run: AnswerFn::Prints(|config, tape, out| {
        let Options { folded, names } = config.own()?;
        answer_offcpu(config, tape, folded, names, text, out)
    }),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// One stack a line, functions separated by semicolons
    #[arg(long)]
    folded: bool,

    #[command(flatten)]
    names: SymbolPlaces,
}

/// Innermost functions first, the thread's name below them, then µs; the longest last.
fn text(graph: &Graph, out: &mut Out) -> Result<()> {
    let mut stacks = Vec::new();
    folded::each(graph, usize::MAX, |comm, nodes, ns| stacks.push((ns, named(comm), nodes.to_vec())));
    // numbers of nodes depend on what came before
    let labels = |nodes: &[u32]| nodes.iter().map(|at| graph.label(*at).in_tree()).collect::<Vec<_>>();
    stacks.order_by(|(a, x, these), (b, y, those)| (a, x).cmp(&(b, y)).then_with(|| labels(these).cmp(&labels(those))));
    for (ns, comm, nodes) in stacks {
        for at in nodes.iter().rev() {
            line(out, &format!("    {}", graph.label(*at).in_tree()))?;
        }
        line(out, &format!("    {:<16} {comm}\n        {}\n", "-", ns / 1000))?;
    }
    Ok(())
}
