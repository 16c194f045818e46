//! Arguments of single calls, short: for rows about what a thread was in.

use rustc_hash::FxHashMap;

use super::Context;
use systape_answers::derive::runs::InCall;
use systape_answers::lines::text::{self, Look};
use systape_answers::lines::value::ValueScratch;
use systape_events::load::{Base, Loaded, OpenCalls};

/// Most characters of a call's arguments.
const SHORT: usize = 60;

/// The arguments of each of `calls`, with the number of its thread that is unique in the tape; None when they are not on the tape.
pub(super) fn of(context: &Context<'_>, calls: &[(u32, Option<InCall>)]) -> Vec<Option<String>> {
    let mut texts: Vec<Option<String>> = vec![None; calls.len()];
    let mut by_segment: FxHashMap<u32, Vec<(usize, u32)>> = FxHashMap::default();
    let mut others = Vec::new();
    for (at, (_, call)) in calls.iter().enumerate() {
        match call.map(|call| call.row) {
            Some(Some((segment, row))) => by_segment.entry(segment).or_default().push((at, row)),
            Some(None) => others.push(at),
            None => {}
        }
    }
    for (segment, rows) in by_segment {
        let mut holes = Vec::new();
        let base = Base::read(context.question.tape.segment(segment as usize), &mut holes, |_, _| true);
        let Some(loaded) = base.map(|base| base.load(&context.question.book, &mut holes)) else { continue };
        for (at, row) in rows {
            texts[at] = Some(short(&loaded, row as usize));
        }
    }
    if others.is_empty() {
        return texts;
    }
    // known from a checkpoint only
    let last = context.question.tape.checkpoints().saturating_sub(1);
    let checkpoints: Vec<_> =
        [0, last].into_iter().filter_map(|at| context.question.tape.checkpoint(at).ok()).collect();
    for at in others {
        let (utid, call) = calls[at];
        let open = checkpoints
            .iter()
            .flat_map(|checkpoint| &checkpoint.in_flight)
            .find(|open| open.utid == utid && call.is_some_and(|call| call.call == open.call));
        if let Some(open) = open {
            let task = checkpoints.iter().flat_map(|checkpoint| &checkpoint.tasks).find(|task| task.utid == utid);
            let Some(task) = task else { continue };
            texts[at] = Some(short(&OpenCalls::of(task, open).load(&context.question.book), 0));
        }
    }
    texts
}

fn short(loaded: &Loaded, row: usize) -> String {
    let mut bytes = Vec::new();
    text::arguments(&mut bytes, &mut ValueScratch::default(), loaded, row, Look::default());
    let text = String::from_utf8_lossy(&bytes);
    match text.char_indices().nth(SHORT) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.into_owned(),
    }
}
