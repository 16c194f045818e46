//! Flame graphs: `analyze callgraph` of the whole time, and of parts of it, so that a stretch of time can be shown.

use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use super::answers::Asker;
use super::frames::{Frame, Names, PageGraph, read};
use super::text::visible;
use systape_answers::derive::summary::plan::Slices;
use systape_events::values::timespec::time_word;

/// Most functions of one graph; the lightest are left out.
const MOST: usize = 20_000;
/// Parts of the time, each of as many slices.
const PARTS: u64 = 20;
/// Most frames of all parts together; with more there are no parts.
const MOST_OF_PARTS: usize = 100_000;

/// The graphs: heading, what stacks are of, whether parts of the time are shown. A wait that is in several parts is in the answer of each, so
/// these do not add up.
const GRAPHS: [(&str, &str, bool); 3] =
    [("On a CPU", "cpu", true), ("Off the CPU", "offcpu", false), ("In calls", "syscall", true)];

/// The time that graphs are of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// Slices of the graph, from the start of the recording.
    pub slices: Slices,
    /// How many.
    pub count: u64,
    /// End of the part, ns from the start of the recording, if it is a part of the tape.
    pub to: Option<u64>,
}

/// The graphs that the tape has stacks for; `folds`: with one stack for idle waits.
pub(super) fn graphs(asker: &Asker<'_>, span: Span, folds: bool) -> Value {
    let words = |of: &str| {
        let idle = if folds && of != "cpu" { " --idle=fold" } else { "" };
        format!("callgraph --of {of} --metric time{idle}")
    };
    GRAPHS.iter().filter_map(|(title, of, parts)| graph(asker, title, &words(of), parts.then_some(span))).collect()
}

fn graph(asker: &Asker<'_>, title: &str, words: &str, span: Option<Span>) -> Option<Value> {
    let mut names = Names::default();
    let PageGraph { command, told, mut frames, more, short } = read(asker, words, None, &mut names)?;
    if frames.is_empty() {
        return None;
    }
    let total = total(&frames);
    let all = frames.len();
    let least = least(&frames);
    // a parent weighs as much as its children, so no child stays without it
    frames.retain(|frame| frame.value >= least);
    let mut places = FxHashMap::default();
    frames.iter().enumerate().for_each(|(at, frame)| _ = places.insert(frame.id, at));
    let parents: Vec<Option<usize>> =
        frames.iter().map(|frame| frame.parent.and_then(|parent| places.get(&parent).copied())).collect();
    let whole = Whole { frames: &frames, parents: &parents, total };
    let parts = span.and_then(|span| parts(asker, words, span, &mut names, &whole));
    Some(json!({
        "title": title,
        "command": visible(&command),
        "told": told.iter().map(|text| visible(text)).collect::<Vec<_>>(),
        "short": short,
        "left_out": (all - frames.len()) as u64 + more,
        "labels": names.labels.texts(),
        "parent": parents.iter().map(|parent| parent.map_or(-1, |at| at as i64)).collect::<Vec<_>>(),
        "label": frames.iter().map(|frame| frame.label).collect::<Vec<_>>(),
        "kind": frames.iter().map(|frame| frame.kind).collect::<Vec<_>>(),
        "ns": frames.iter().map(|frame| frame.value).collect::<Vec<_>>(),
        "parts": parts,
    }))
}

/// Time of all stacks.
fn total(frames: &[Frame]) -> u64 {
    frames.iter().filter(|frame| frame.parent.is_none()).fold(0, |sum, frame| sum.saturating_add(frame.value))
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

/// The graph that parts are of.
struct Whole<'a> {
    frames: &'a [Frame],
    /// Place of each one's caller.
    parents: &'a [Option<usize>],
    /// Time of all its stacks.
    total: u64,
}

/// The same graph of each part of the time: places of frames, and their time. None: the parts do not add up to the whole, as where
/// some of it belongs to no time, or are too many.
fn parts(asker: &Asker<'_>, words: &str, span: Span, names: &mut Names, whole: &Whole<'_>) -> Option<Value> {
    let key = |parent, frame: &Frame| (parent, frame.label, frame.module, frame.kind);
    let known: FxHashMap<_, usize> = whole
        .frames
        .iter()
        .zip(whole.parents)
        .enumerate()
        .map(|(at, (frame, parent))| (key(*parent, frame), at))
        .collect();
    let (mut sum, mut size, mut made) = (0_u64, 0, Vec::new());
    for part in 0..PARTS {
        let graph = read(asker, words, Some(&time(span, part)), names)?;
        sum = sum.saturating_add(total(&graph.frames));
        let mut places = FxHashMap::default();
        let (mut at, mut ns) = (Vec::new(), Vec::new());
        for frame in &graph.frames {
            let parent = match frame.parent.map(|parent| places.get(&parent)) {
                None => None,
                Some(Some(parent)) => Some(*parent),
                // its caller is too light
                Some(None) => continue,
            };
            if let Some(place) = known.get(&key(parent, frame)) {
                places.insert(frame.id, *place);
                at.push(*place);
                ns.push(frame.value);
            }
        }
        size += at.len();
        if graph.more > 0 || size > MOST_OF_PARTS {
            return None;
        }
        made.push(json!({"at": at, "ns": ns}));
    }
    (sum == whole.total).then(|| made.into())
}

/// `--time` of a part. The first and the last are open where the tape begins and ends.
fn time(span: Span, part: u64) -> String {
    let edge = |part: u64| time_word(span.slices.start(span.count * part / PARTS).cast_signed());
    let from = if part == 0 && span.to.is_none() { String::new() } else { edge(part) };
    let to = match (part + 1 == PARTS, span.to) {
        (false, _) => edge(part + 1),
        (true, None) => String::new(),
        (true, Some(to)) => time_word(to.cast_signed()),
    };
    format!("{from},{to}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_time_follow_each_other() {
        let slices = Slices { from: 0, width: 1_500_000 };
        let span = Span { slices, count: 1000, to: None };
        assert_eq!(
            [time(span, 0), time(span, 1), time(span, 19)],
            [",0.075000000", "0.075000000,0.150000000", "1.425000000,"]
        );
        let span = Span { slices: Slices { from: 2_000_000_000, width: 1 }, count: 1000, to: Some(2_000_000_990) };
        assert_eq!([time(span, 0), time(span, 19)], ["2.000000000,2.000000050", "2.000000950,2.000000990"]);
    }
}
