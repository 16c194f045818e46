//! The rows of `analyze callgraph` as frames of a flame graph, parents before their children.

use std::collections::BTreeMap;

use super::answers::{Asker, Row};
use super::pool::Pool;
use systape_events::values::order::InOrder as _;

/// Most rows that are read for one graph.
const READ: usize = 400_000;

/// Kind of the frame of all threads of one name.
const THREADS: u8 = 4;

/// One frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// [`Frame::id`] of its caller; None: it is of threads.
    pub parent: Option<u64>,
    /// Number within its graph.
    pub id: u64,
    /// Time of it and what it called, ns.
    pub value: u64,
    /// Number of its name.
    pub label: u32,
    /// Number of its file.
    pub module: u32,
    /// 0: a function, 1: of the kernel, 2: inlined, 3: what is missing, 4: all threads of one name.
    pub kind: u8,
}

/// Names of functions and files, the same for all graphs that are compared.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Names of functions and threads.
    pub labels: Pool,
    modules: Pool,
}

/// A graph.
#[derive(Debug, Default)]
pub(super) struct PageGraph {
    /// Command line of the graph.
    pub command: String,
    /// What was said beside it.
    pub told: Vec<String>,
    /// Threads first, then parents before their children.
    pub frames: Vec<Frame>,
    /// Rows that were not read.
    pub more: u64,
    /// Some times are lower bounds.
    pub short: bool,
}

/// The graph of `words` in `time`, or in that of the page; None: the tape has no such stacks.
pub(super) fn read(asker: &Asker<'_>, words: &str, time: Option<&str>, names: &mut Names) -> Option<PageGraph> {
    let mut graph = PageGraph::default();
    let mut roots = BTreeMap::new();
    let each = &mut |row: Row| {
        if graph.frames.len() < READ {
            graph.short |= !row.bound("time_ns").is_empty();
            graph.frames.extend(frame(&row, &mut roots, names));
        } else {
            graph.more += 1;
        }
    };
    let (command, told, none) = asker.each_in(words, time, each);
    (graph.command, graph.told) = (command, told);
    // threads of one name below all of its stacks
    graph.frames.extend(roots.into_values());
    graph.frames.order_by_key(|frame| (frame.kind != THREADS, frame.id));
    none.is_none().then_some(graph)
}

/// The frame of a row; that of its threads is among `roots`.
fn frame(row: &Row, roots: &mut BTreeMap<String, Frame>, names: &mut Names) -> Option<Frame> {
    let kind = match (row.is("kernel"), row.is("inlined"), row.cell("module").is_null()) {
        (_, _, true) => 3,
        (true, ..) => 1,
        (_, true, _) => 2,
        _ => 0,
    };
    let value = row.ns("time_ns")?;
    let parent = match row.ns("parent") {
        Some(parent) => parent,
        None => {
            let comm = row.word("comm").unwrap_or_default();
            // no row has such a number
            let id = u64::MAX - roots.len() as u64;
            let root = roots.entry(comm.clone()).or_insert_with(|| Frame {
                parent: None,
                id,
                value: 0,
                label: names.labels.number(&comm),
                module: 0,
                kind: THREADS,
            });
            root.value = root.value.saturating_add(value);
            root.id
        }
    };
    let label = names.labels.number(&row.word("sym")?);
    let module = names.modules.number(&row.word("module").unwrap_or_default());
    Some(Frame { parent: Some(parent), id: row.ns("id")?, value, label, module, kind })
}
