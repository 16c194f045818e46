//! Time off the CPU, by the stack with which the thread left it: until it came back, asleep or waiting for a CPU. A
//! thread that slept since before the recording has the stack that the recorder read at the start.

use anyhow::Result;
use rustc_hash::FxHashMap;
use systape_format::model::{StackOf, Task};

use super::super::{Context, offcpu::selected, scheduling};
use systape_answers::derive::runs::decode::{Needs, Part};
use systape_answers::derive::runs::rest::Rests;
use systape_answers::derive::runs::{Doing, End, Interval, IntervalSink, Slot, State, Thread, Why, feed, keys};
use systape_answers::derive::stacks::asleep::{self, Stack};
use systape_answers::derive::stacks::ending::StackEnding;
use systape_answers::derive::stacks::forest::{Graft, NONE};
use systape_answers::derive::stacks::graph::{Key, Stacked};
use systape_answers::derive::stacks::weight::Weight;

/// Time that a thread spent off the CPU in one go, as far as it is asked for.
#[derive(Debug)]
pub(in crate::reports) struct TimeAway<'a> {
    /// The thread.
    pub task: &'a Task,
    /// When it began.
    pub from: u64,
    /// The stack with which the thread left the CPU.
    pub key: Key,
    /// How long it was.
    pub weight: Weight,
}

/// Adds up the times of all threads that pass; `folds`: idle waits are one stack.
pub(super) fn collect(context: &mut Context<'_>, folds: bool) -> Result<Stacked> {
    walk(context, folds, Stacked::default(), |stacked, away| stacked.add(away.key, away.weight))
}

/// Passes each time off the CPU that passes to `each`, with the stacks so far, those of `stacked` among them; `folds`: idle waits are one
/// stack of these instead.
pub(in crate::reports) fn walk(
    context: &mut Context<'_>,
    folds: bool,
    mut stacked: Stacked,
    each: impl FnMut(&mut Stacked, TimeAway<'_>) + Send,
) -> Result<Stacked> {
    scheduling::require(context.question.tape)?;
    let scope = &context.question.scope;
    let needs = Needs { calls: folds || scope.filters().selects, files: folds, stacks: true, ..Needs::default() };
    let span = (
        scope.from.max(context.question.tape.session().window_open),
        scope.to.min(context.question.tape.complete_until()),
    );
    let rests = folds.then(|| Rests::new(span));
    let mut findings = Vec::new();
    let slept = asleep::since_before(&context.question, &mut findings);
    let slept = asleep::graft(context.question.tape, slept, &mut stacked.forest, &mut findings);
    context.question.loss.findings.extend(findings);
    let sink = OffCpuStacks { context, stacked, each, slept, away: Vec::new(), graft: None, rests };
    let fed = feed::feed(&context.question, needs, context.question.scope.to, sink);
    let stacked = fed.tracker.sink.stacked;
    scheduling::touched(fed.coverage, fed.unsure_until, context);
    Ok(stacked)
}

/// A thread that is off the CPU, or may be soon.
#[derive(Clone, Copy, Debug, Default)]
struct Away {
    /// The stack with which it left: user and kernel node.
    left: Option<(u32, u32, StackEnding)>,
    /// Time so far inside `--time`, ns; None: no interval yet.
    time: Option<u64>,
    /// When that began.
    from: u64,
    /// The whole time.
    length: u64,
    /// It lasts longer than known.
    open: bool,
    /// Its call when it left.
    doing: Doing,
    /// The part of `time` that is an idle wait, of threads that left the CPU for one.
    idle: Option<u64>,
}

struct OffCpuStacks<'a, E> {
    context: &'a Context<'a>,
    stacked: Stacked,
    /// Takes the times that pass.
    each: E,
    /// Stacks of threads (by utid) that slept since before the recording.
    slept: FxHashMap<u32, Stack>,
    away: Vec<Away>,
    /// Index of the segment whose nodes are known, and their numbers.
    graft: Option<(usize, Graft)>,
    /// Which sleeps are idle, if these are one stack.
    rests: Option<Rests>,
}

impl<E: FnMut(&mut Stacked, TimeAway<'_>) + Send> OffCpuStacks<'_, E> {
    fn slot(&mut self, slot: Slot) -> &mut Away {
        if slot >= self.away.len() {
            self.away.resize(slot + 1, Away::default());
        }
        &mut self.away[slot]
    }

    /// The stretch ended: counts it if it passes.
    fn back(&mut self, thread: &Thread, slot: Slot, interval: &Interval) {
        let away = std::mem::take(&mut self.away[slot]);
        let (Some(time), Some((user, kernel, ending))) = (away.time, away.left) else { return };
        let scope = &self.context.question.scope;
        let filters = scope.filters();
        let whole = Interval { doing: away.doing, ..*interval };
        if filters.longer_than.is_some_and(|least| away.length <= least)
            || filters.cpus.as_ref().is_some_and(|cpus| cpus.binary_search(&interval.cpu).is_err())
            || !selected(self.context, &whole)
            || !scope.task(&thread.task)
        {
            return;
        }
        let mut weight = Weight { count: 1, time, open: u64::from(away.open), ..Weight::default() };
        if let Some(idle) = away.idle {
            self.stacked.add_idle(Weight { time: idle, ..weight });
            // it waited for a CPU, too
            weight = Weight { time: time - idle, ..Weight::default() };
            if weight.time == 0 {
                return;
            }
        }
        let comm = self.stacked.comms.id(&thread.task.comm);
        let key = Key { user, kernel, ending, comm };
        (self.each)(&mut self.stacked, TimeAway { task: &thread.task, from: away.from, key, weight });
    }
}

impl<E: FnMut(&mut Stacked, TimeAway<'_>) + Send> IntervalSink for OffCpuStacks<'_, E> {
    fn concerns(&self, thread: &Thread) -> bool {
        self.context.question.scope.task(&thread.task)
    }

    fn left(&mut self, slot: Slot, part: &Part, row: u32) {
        let left = match &part.stacks {
            None => (NONE, NONE, StackEnding::Unreadable),
            Some(stacks) => {
                if self.graft.as_ref().is_none_or(|(at, _)| *at != part.at) {
                    self.graft = Some((part.at, Graft::new(stacks)));
                }
                match (stacks.of(StackOf::Switch, row), &mut self.graft) {
                    (Some(stack), Some((_, graft))) => {
                        let mut node = |leaf| graft.node(stacks, &mut self.stacked.forest, leaf);
                        (node(stack.user), node(stack.kernel), StackEnding::Status(stack.status))
                    }
                    _ => (NONE, NONE, StackEnding::NotStored),
                }
            }
        };
        *self.slot(slot) = Away { left: Some(left), ..Away::default() };
    }

    fn interval(&mut self, threads: &[Thread], slot: Slot, interval: &Interval) {
        let from = self.context.question.scope.from;
        let slept = self.slept.get(&threads[slot].task.utid).copied();
        let (book, task) = (&self.context.question.book, &threads[slot].task);
        let rests = self.rests.as_mut().is_some_and(|rests| rests.is(book, task, interval));
        let away = self.slot(slot);
        if !keys::off_cpu(interval.state, true) {
            // nothing of an earlier stretch may reach the next
            *away = Away::default();
            return;
        }
        // it never left a CPU: what is there is of another thread, whose place it took
        if away.length == 0 && matches!(interval.state, State::Waiting(Why::Made | Why::New)) {
            away.left = None;
        }
        if away.left.is_none() {
            let why = match interval.state {
                State::Waiting(Why::Made | Why::New) => StackEnding::New,
                State::Waiting(Why::Before) => StackEnding::Before,
                _ if interval.began_before => StackEnding::Before,
                _ => StackEnding::Unseen,
            };
            let slept = slept.filter(|_| matches!(interval.state, State::Sleeping(_)) && why == StackEnding::Before);
            away.left = Some(slept.unwrap_or((NONE, NONE, why)));
        }
        if away.length == 0 {
            away.doing = interval.doing;
            away.idle = rests.then_some(0);
        }
        away.length += interval.len();
        if interval.to > from && !interval.is_empty() {
            let begin = interval.from.max(from);
            if away.time.is_none() {
                away.from = begin;
            }
            away.time = Some(away.time.unwrap_or(0) + (interval.to - begin));
            away.idle = away.idle.map(|idle| idle + if rests { interval.to - begin } else { 0 });
            away.open |= interval.open() || begin > interval.from;
        }
        if !matches!(interval.end, End::Woken(_) | End::Step) {
            self.back(&threads[slot], slot, interval);
        }
    }
}
