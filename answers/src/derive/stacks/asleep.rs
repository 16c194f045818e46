//! Stacks of threads that slept since before the recording: the recorder fetched them right after the start.

use rustc_hash::FxHashMap;
use systape_format::header::BlockKind;
use systape_format::model::StackOf;
use systape_format::reader::Tape;

use super::ending::StackEnding;
use super::forest::{Forest, Graft};
use crate::derive::runs::decode::Needs;
use crate::derive::runs::{Interval, IntervalSink, Slot, State, Thread, feed};
use systape_events::question::Question;
use systape_events::values::order::InOrder as _;

/// Place of a stack: (kind of event, index of its segment, row).
pub type Place = (StackOf, usize, u32);

/// A stack in a [`Forest`]: innermost user and kernel node, and how it ends.
pub type Stack = (u32, u32, StackEnding);

/// A recorded state of a sleeping thread.
#[derive(Clone, Copy, Debug)]
struct SleepReading {
    /// When.
    ts: u64,
    place: Place,
}

/// The stacks of threads (by utid) that slept from before the recording until their state was read, and so belong to
/// that sleep.
pub fn since_before(question: &Question<'_>, findings: &mut Vec<String>) -> FxHashMap<u32, Place> {
    let looks = looks(question.tape, findings);
    let Some(last) = looks.values().map(|look| look.ts).max() else { return FxHashMap::default() };
    let sink = SleepReadings { looks, slept: FxHashMap::default() };
    // what cannot be read here is told by the report, which reads it too
    feed::feed(question, Needs::default(), last.saturating_add(1), sink).tracker.sink.slept
}

fn looks(tape: &Tape, findings: &mut Vec<String>) -> FxHashMap<u32, SleepReading> {
    let mut looks = FxHashMap::default();
    for at in 0..tape.segments().len() {
        let segment = tape.segment(at);
        if !segment.has(BlockKind::Sleepers) {
            continue;
        }
        let read = segment.dict().and_then(|dict| segment.sleepers(&dict).map(|sleepers| (dict, sleepers)));
        let (dict, sleepers) = match read {
            Ok(read) => read,
            Err(error) => {
                findings.push(format!("segment {}: its sleepers cannot be read: {error}", segment.info().segment));
                continue;
            }
        };
        for (row, sleeper) in sleepers.iter().enumerate() {
            if let Some(task) = dict.tasks.get(sleeper.task as usize).filter(|task| task.utid != 0) {
                let place = (StackOf::Asleep, at, row as u32);
                looks.entry(task.utid).or_insert(SleepReading { ts: sleeper.ts, place });
            }
        }
    }
    looks
}

/// Keeps the readings that fall into the sleep in which the recording found a thread.
struct SleepReadings {
    looks: FxHashMap<u32, SleepReading>,
    slept: FxHashMap<u32, Place>,
}

impl IntervalSink for SleepReadings {
    fn interval(&mut self, threads: &[Thread], slot: Slot, interval: &Interval) {
        let utid = threads[slot].task.utid;
        // the end of a call does not end a sleep; where the state goes on it is told again, as before
        if matches!(interval.state, State::Sleeping(_))
            && interval.began_before
            && let Some(look) = self.looks.get(&utid)
            && interval.from <= look.ts
            && look.ts < interval.to
        {
            self.slept.insert(utid, look.place);
        }
    }
}

/// Adds stacks to `forest`.
pub fn graft<K: Copy + Eq + std::hash::Hash>(
    tape: &Tape,
    wanted: impl IntoIterator<Item = (K, Place)>,
    forest: &mut Forest,
    findings: &mut Vec<String>,
) -> FxHashMap<K, Stack> {
    let mut by_segment: FxHashMap<usize, Vec<(K, StackOf, u32)>> = FxHashMap::default();
    for (key, (of, at, row)) in wanted {
        by_segment.entry(at).or_default().push((key, of, row));
    }
    let mut segments: Vec<_> = by_segment.into_iter().collect();
    segments.order_by_key(|(at, _)| *at);
    let mut found = FxHashMap::default();
    for (at, wanted) in segments {
        let stacks = match tape.segment(at).stacks() {
            Ok(stacks) => stacks,
            Err(error) => {
                let number = tape.segment(at).info().segment;
                findings.push(format!("segment {number}: its stacks cannot be read: {error}"));
                found.extend(
                    wanted
                        .iter()
                        .map(|(key, ..)| (*key, (super::forest::NONE, super::forest::NONE, StackEnding::Unreadable))),
                );
                continue;
            }
        };
        let mut graft = Graft::new(&stacks);
        for (key, of, row) in wanted {
            let Some(stack) = stacks.of(of, row) else { continue };
            let mut node = |leaf| graft.node(&stacks, forest, leaf);
            found.insert(key, (node(stack.user), node(stack.kernel), StackEnding::Status(stack.status)));
        }
    }
    found
}
