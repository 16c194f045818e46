//! What threads did by slice of time: on a CPU, waiting for one, in uninterruptible sleep, unknown; and where within a second CPUs were
//! busy. The states are those of `analyze states`.

use anyhow::Result;
use serde_json::{Value, json};
use systape_format::model::Family;

use super::slicing::pieces;
use crate::reports::{Context, scheduling};
use systape_answers::derive::runs::decode::Needs;
use systape_answers::derive::runs::{Interval, IntervalSink, Slot, State, Thread, feed};
use systape_answers::derive::summary::plan::Slices;
use systape_events::filter::Scope;

/// Parts of a second.
const PARTS: u64 = 50;
/// Length of one, ns.
const PART: u64 = SECOND / PARTS;
const SECOND: u64 = 1_000_000_000;
/// Most columns of the map of seconds.
const COLUMNS: u64 = 500;
/// A map of fewer seconds shows nothing.
const LEAST: u64 = 3;

/// Sums by slice, ns.
struct Sums<'a> {
    scope: &'a Scope<'a>,
    slices: Slices,
    run: Vec<u64>,
    wait: Vec<u64>,
    throttled: Vec<u64>,
    disk: Vec<u64>,
    unknown: Vec<u64>,
    seconds: Seconds,
}

/// Time on CPUs by second and part of it, ns.
struct Seconds {
    /// Seconds of one column.
    each: u64,
    columns: Vec<[u64; PARTS as usize]>,
}

/// States from the start of the time that `page` is about to `to`.
///
/// # Errors
/// Nobody's scheduling was recorded.
pub(super) fn threads(page: &Context<'_>, slices: Slices, count: usize, to: u64) -> Result<Value> {
    scheduling::require(page.question.tape)?;
    let mut context = Context::about(page.config, page.question.tape, &[Family::Sched, Family::Process])?;
    let question = &context.question;
    let seconds = to.saturating_sub(slices.from).div_ceil(SECOND);
    let each = seconds.div_ceil(COLUMNS).max(1);
    let columns = usize::try_from(seconds.div_ceil(each)).unwrap_or(0);
    let sums = Sums {
        scope: &question.scope,
        slices,
        run: vec![0; count],
        wait: vec![0; count],
        throttled: vec![0; count],
        disk: vec![0; count],
        unknown: vec![0; count],
        seconds: Seconds { each, columns: vec![[0; PARTS as usize]; columns] },
    };
    let fed = feed::feed(question, Needs::default(), question.scope.to, sums);
    let Sums { run, wait, throttled, disk, unknown, seconds: within, .. } = fed.tracker.sink;
    scheduling::touched(fed.coverage, fed.unsure_until, &mut context);
    Ok(json!({
        "run": run,
        "wait": wait,
        "throttled": throttled,
        "disk": disk,
        "unknown": unknown,
        "exact": context.question.loss.complete(),
        "seconds": (seconds >= LEAST).then(|| json!({
            "parts": PARTS,
            "each": each,
            "ns": within.columns.iter().flatten().collect::<Vec<_>>(),
        })),
    }))
}

impl IntervalSink for Sums<'_> {
    fn concerns(&self, thread: &Thread) -> bool {
        self.scope.task(&thread.task)
    }

    fn interval(&mut self, threads: &[Thread], slot: Slot, interval: &Interval) {
        let from = interval.from.max(self.scope.from).max(self.slices.from);
        if interval.to <= from || !threads.get(slot).is_some_and(|thread| self.scope.task(&thread.task)) {
            return;
        }
        let sums = match interval.state {
            State::Running => &mut self.run,
            State::Waiting(_) => &mut self.wait,
            State::Sleeping(b'D') => &mut self.disk,
            State::Unknown => &mut self.unknown,
            State::Throttled => &mut self.throttled,
            State::Sleeping(_) => return,
        };
        let since = (from - self.slices.from, interval.to - self.slices.from);
        pieces(since, self.slices.width).for_each(|(slice, ns)| add(sums, slice, ns));
        if interval.state == State::Running {
            self.seconds.add(since);
        }
    }
}

/// Adds `ns` to a sum that there is.
fn add(sums: &mut [u64], at: u64, ns: u64) {
    if let Some(sum) = usize::try_from(at).ok().and_then(|at| sums.get_mut(at)) {
        *sum = sum.saturating_add(ns);
    }
}

impl Seconds {
    fn add(&mut self, span: (u64, u64)) {
        for (part, ns) in pieces(span, PART) {
            let column = usize::try_from(part / PARTS / self.each).ok();
            if let Some(parts) = column.and_then(|column| self.columns.get_mut(column)) {
                add(parts, part % PARTS, ns);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_seconds() {
        let mut seconds = Seconds { each: 2, columns: vec![[0; 50]; 2] };
        seconds.add((SECOND - PART, SECOND + 3 * PART));
        seconds.add((3 * SECOND, 3 * SECOND + 5));
        seconds.add((9 * SECOND, 9 * SECOND + 5));
        assert_eq!((seconds.columns[0][49], seconds.columns[0][2], seconds.columns[0][3]), (PART, PART, 0));
        assert_eq!(seconds.columns[1][0], 5);
    }
}
