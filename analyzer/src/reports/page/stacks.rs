//! Flame graphs: the rows of `analyze callgraph` as columns.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::answers::{Asker, Row, ns, word};
use super::figure::bound;
use super::pool::Pool;
use super::text::visible;

/// Most functions of one graph; the lightest are left out.
const MOST: usize = 20_000;
/// Most rows that are read for one.
const READ: usize = 400_000;

/// The graphs: heading, what stacks are of, metric.
const GRAPHS: [(&str, &str, &str); 3] =
    [("On a CPU", "cpu", "time"), ("Off the CPU", "offcpu", "time"), ("In calls", "syscall", "time")];

/// Kind of the frame of all threads of one name.
const THREADS: u8 = 4;

/// One row of a graph.
struct Frame {
    parent: Option<u64>,
    id: u64,
    value: u64,
    label: u32,
    /// 0: a function, 1: of the kernel, 2: inlined, 3: what is missing, 4: [`THREADS`].
    kind: u8,
}

/// The graphs that the tape has stacks for.
pub(super) fn graphs(asker: &Asker<'_>) -> Value {
    let graphs = GRAPHS.iter().filter_map(|(title, of, metric)| graph(asker, title, of, metric));
    graphs.collect()
}

fn graph(asker: &Asker<'_>, title: &str, of: &str, metric: &str) -> Option<Value> {
    let mut pool = Pool::default();
    let (mut frames, mut more, mut short) = (Vec::<Frame>::new(), 0_u64, false);
    let mut roots = BTreeMap::new();
    let words = format!("callgraph --of {of} --metric {metric}");
    let each = &mut |row: Row| {
        if frames.len() < READ {
            short |= !bound(&row, "time_ns").is_empty();
            if let Some(frame) = frame(&row, &mut roots, &mut pool) {
                frames.push(frame);
            }
        } else {
            more += 1;
        }
    };
    let (command, told, none) = asker.each(&words, each);
    if none.is_some() || frames.is_empty() {
        return None;
    }
    // threads of one name below all of its stacks
    frames.extend(roots.into_values());
    frames.sort_by_key(|frame| (frame.kind != THREADS, frame.id));
    let least = least(&frames);
    let left_out = frames.len();
    // a parent weighs as much as its children, so no child stays without it
    frames.retain(|frame| frame.value >= least);
    let left_out = (left_out - frames.len()) as u64 + more;
    let mut places = rustc_hash::FxHashMap::default();
    frames.iter().enumerate().for_each(|(at, frame)| _ = places.insert(frame.id, at));
    let parent = |frame: &Frame| frame.parent.and_then(|parent| places.get(&parent)).map_or(-1, |at| *at as i64);
    Some(json!({
        "title": title,
        "command": visible(&command),
        "told": told.iter().map(|text| visible(text)).collect::<Vec<_>>(),
        "short": short,
        "left_out": left_out,
        "labels": pool.texts(),
        "parent": frames.iter().map(parent).collect::<Vec<_>>(),
        "label": frames.iter().map(|frame| frame.label).collect::<Vec<_>>(),
        "kind": frames.iter().map(|frame| frame.kind).collect::<Vec<_>>(),
        "ns": frames.iter().map(|frame| frame.value).collect::<Vec<_>>(),
    }))
}

/// Least value of a frame that is kept: with it there are not more than [`MOST`].
fn least(frames: &[Frame]) -> u64 {
    if frames.len() <= MOST {
        return 0;
    }
    let mut values: Vec<u64> = frames.iter().map(|frame| frame.value).collect();
    values.sort_unstable_by_key(|value| std::cmp::Reverse(*value));
    values.get(MOST).map_or(0, |first_out| first_out.saturating_add(1))
}

/// The frame of a row; that of its threads is among `roots`.
fn frame(row: &Row, roots: &mut BTreeMap<String, Frame>, pool: &mut Pool) -> Option<Frame> {
    let is = |name: &str| row.get(name).and_then(Value::as_bool) == Some(true);
    let kind = match (is("kernel"), is("inlined"), row.get("module").is_some_and(Value::is_null)) {
        (_, _, true) => 3,
        (true, ..) => 1,
        (_, true, _) => 2,
        _ => 0,
    };
    let value = ns(row, "time_ns")?;
    let parent = match ns(row, "parent") {
        Some(parent) => parent,
        None => {
            let comm = word(row, "comm").unwrap_or_default();
            // no row has such a number
            let id = u64::MAX - roots.len() as u64;
            let root = roots.entry(comm.clone()).or_insert_with(|| Frame {
                parent: None,
                id,
                value: 0,
                label: pool.number(&comm),
                kind: THREADS,
            });
            root.value = root.value.saturating_add(value);
            root.id
        }
    };
    Some(Frame { parent: Some(parent), id: ns(row, "id")?, value, label: pool.number(&word(row, "sym")?), kind })
}
