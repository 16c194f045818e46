//! Hands the events of a tape to a [`Tracker`], in order of time.
//!
//! Segments are decoded in parallel, a batch ahead of the one that is told. A call that spans segments is stored where it ended, but its
//! thread is in it from its start: such rows are read when time gets to their start, as the listing does ([`CarryPlan`]), so what is known of
//! a thread is known when it is needed, and nothing waits for the end of a call.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use systape_abi::Abi;
use systape_format::model::{Call, Checkpoint, FD_FIRST, Family, InFlight, RunState, Session, Task};
use systape_format::reader::Tape;

use super::decode::{Decoder, NOBODY, Needs, Part, Rows, What};
use super::gaps::{self, Lost};
use super::names::Names;
use super::targets::Followed;
use super::tracker::{Change, Coverage, Tracker};
use super::{InCall, Sink, Slot, Waker, targets};
use crate::call_files::{NO_FILE, unseen};
use crate::calls::{self, CallBook};
use crate::families::in_session;
use crate::load::OpenCalls;
use crate::loss::Hole;
use crate::question::Question;
use crate::stream::CarryPlan;

/// Most segments decoded at a time.
const BATCH: usize = 6;

/// What is left when all was told.
#[derive(Debug)]
pub struct Fed<S> {
    /// The states at the end, and the sink.
    pub tracker: Tracker<S>,
    /// Names of files.
    pub names: Names,
    /// Calls that could not be read.
    pub holes: Vec<Hole>,
    /// Scheduler events that could not be read.
    pub findings: Vec<String>,
}

/// What the recording covers.
pub fn coverage(tape: &Tape) -> Coverage {
    let session = tape.session();
    let late = tape.checkpoint_chunk(0).is_some_and(|chunk| chunk > 0);
    let first = if late { tape.checkpoint(0).map_or(0, |checkpoint| checkpoint.ts) } else { 0 };
    Coverage {
        open: session.window_open.max(first),
        followed: Followed::of(tape),
        every_cpu: targets::every_cpu(session),
        cpus: session.cpus,
        hides_calls: session.registers_unknown,
    }
}

/// The end of what is known.
pub fn end(tape: &Tape) -> u64 {
    tape.end().map_or_else(|| tape.complete_until(), |end| end.window_close)
}

/// Tells `sink` everything up to `until`, or the end.
pub fn feed<S: Sink>(question: &Question<'_>, needs: Needs, until: u64, sink: S) -> Fed<S> {
    let tape = question.tape;
    let until = until.min(end(tape));
    let mut feeder = Feeder {
        tracker: Tracker::new(coverage(tape), sink),
        names: Names::default(),
        loose: BinaryHeap::new(),
        pushed: 0,
        checkpoints: 1,
        lost: gaps::of_family(tape, Family::Sched).into_iter().rev().collect(),
        lost_calls: if needs.calls { gaps::of_calls(tape).into_iter().rev().collect() } else { Vec::new() },
        until,
        over: false,
    };
    feeder.begin(question, needs);
    let decoder = Decoder { tape, scope: &question.scope, book: &question.book, needs };
    let (holes, findings) = feeder.segments(&decoder);
    feeder.flush(u64::MAX);
    feeder.losses(until);
    feeder.tracker.finish(until);
    feeder.tracker.sink.reached(u64::MAX);
    Fed { tracker: feeder.tracker, names: feeder.names, holes, findings }
}

/// An edge of a call whose row is read before its time.
#[derive(Debug)]
struct Loose {
    key: (u64, u8, u64),
    task: Arc<Task>,
    what: Edge,
}

/// What is told of a thread at a time that its row or table is not sorted by.
#[derive(Debug)]
enum Edge {
    /// A call ended, on a CPU.
    Leave(u32),
    /// A call began.
    Enter(InCall),
    /// A checkpoint has its state, and the call it was in.
    Seen(RunState, Option<InCall>),
}

/// After everything else of the same time.
const SEEN_ORDER: u8 = u8::MAX;

impl PartialEq for Loose {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Loose {}

impl PartialOrd for Loose {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Loose {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// A batch of segments, and the carry rows that begin before its end.
#[derive(Debug, Default)]
struct Batch {
    carry: Vec<Part>,
    own: Vec<Part>,
    /// Later batches have nothing before this.
    frontier: u64,
}

struct Feeder<S> {
    tracker: Tracker<S>,
    names: Names,
    loose: BinaryHeap<Reverse<Loose>>,
    pushed: u64,
    /// How many checkpoints were taken in.
    checkpoints: usize,
    /// The next one is last, as in `lost_calls`.
    lost: Vec<Lost>,
    lost_calls: Vec<Lost>,
    until: u64,
    over: bool,
}

impl<S: Sink> Feeder<S> {
    /// The states and open calls at the start, and calls that a recording left open when it ended abnormally.
    fn begin(&mut self, question: &Question<'_>, needs: Needs) {
        let tape = question.tape;
        let session = tape.session();
        if let Ok(checkpoint) = tape.checkpoint(0) {
            self.begin_with(&checkpoint, session, &question.book, needs);
        }
        let open = if needs.calls { OpenCalls::read(tape) } else { None };
        if let Some(open) = open {
            let filter = question.scope.segment(&open.dict);
            for row in 0..open.core.call.len() {
                let start = open.time.start[row];
                let call = open.dict.calls[open.core.call[row] as usize];
                let call = InCall {
                    call,
                    file: unseen(&question.book.get(call)),
                    start,
                    began_before: start <= session.window_open,
                    counted: filter.core(&open.core, row) && filter.time(&open.time, row),
                    row: None,
                };
                let task = Arc::new(open.dict.tasks[open.core.task[row] as usize].clone());
                self.push(start, What::ENTER_ORDER, task, Edge::Enter(call));
            }
        }
    }

    fn begin_with(&mut self, checkpoint: &Checkpoint, session: &Session, book: &CallBook<'_>, needs: Needs) {
        let tasks = tasks_of(checkpoint);
        for run in &checkpoint.run {
            let slot = tasks.get(&run.utid).and_then(|task| self.tracker.slot(task, Some(self.tracker.now())));
            if let Some(slot) = slot {
                self.tracker.begin(slot, run);
            }
        }
        let open = self.tracker.now();
        for (utid, call) in open_calls(checkpoint, session, book, needs, open) {
            let slot = tasks.get(&utid).and_then(|task| self.tracker.slot(task, None));
            if let Some(slot) = slot {
                self.tracker.enter(slot, call);
            }
        }
    }

    /// Takes in the checkpoints up to that of `chunk`: what was lost before them is known again.
    fn catch_up(&mut self, decoder: &Decoder<'_>, chunk: u32, findings: &mut Vec<String>) {
        let tape = decoder.tape;
        while tape.checkpoint_chunk(self.checkpoints).is_some_and(|of| of <= chunk) {
            let at = self.checkpoints;
            self.checkpoints += 1;
            if !self.tracker.lost_before() && self.lost.is_empty() && self.lost_calls.is_empty() {
                continue;
            }
            match tape.checkpoint(at) {
                Ok(checkpoint) => self.see(&checkpoint, decoder),
                Err(error) => findings.push(format!("checkpoint {at}: {error}")),
            }
        }
    }

    fn see(&mut self, checkpoint: &Checkpoint, decoder: &Decoder<'_>) {
        let tasks = tasks_of(checkpoint);
        let (session, book) = (decoder.tape.session(), decoder.book);
        let mut calls: FxHashMap<u32, InCall> =
            open_calls(checkpoint, session, book, decoder.needs, session.window_open).collect();
        for run in &checkpoint.run {
            let Some(task) = tasks.get(&run.utid) else { continue };
            let seen = if run.seen == 0 { checkpoint.ts } else { run.seen };
            self.push(seen, SEEN_ORDER, Arc::clone(task), Edge::Seen(*run, calls.remove(&run.utid)));
        }
    }

    fn segments(&mut self, decoder: &Decoder<'_>) -> (Vec<Hole>, Vec<String>) {
        let infos = decoder.tape.segments();
        let carries = infos.iter().enumerate().filter(|(_, info)| decoder.needs.calls && info.carry_rows > 0);
        let carries = carries.map(|(at, info)| {
            let start = [info.carry_start_min, info.start_min].into_iter().find(|start| *start != 0);
            (at, start.unwrap_or(0))
        });
        let mut plan = CarryPlan::new(carries);
        let (mut holes, mut findings) = (Vec::new(), Vec::new());
        let mut next = 0;
        let mut ready = Batch::default();
        // a segment that is missing may be the first one
        let mut last_window = Some(self.tracker.now());
        loop {
            let more = next < infos.len() && !self.over && !self.tracker.sink.done();
            let until = if more { (next + batch_size()).min(infos.len()) } else { next };
            let batch = std::mem::take(&mut ready);
            let (carry, frontier) = if more { due(decoder, until, &mut plan) } else { (Vec::new(), u64::MAX) };
            let (own, ((), decoded)) = (
                next..until,
                rayon::join(
                    || self.tell(decoder, batch, &mut last_window, &mut holes, &mut findings),
                    || decode(decoder, next..until, &carry),
                ),
            );
            ready = Batch { frontier, ..decoded };
            next = own.end;
            if ready.own.is_empty() {
                self.lose_the_end(decoder, last_window);
                return (holes, findings);
            }
        }
    }

    fn tell(
        &mut self,
        decoder: &Decoder<'_>,
        batch: Batch,
        last_window: &mut Option<u64>,
        holes: &mut Vec<Hole>,
        findings: &mut Vec<String>,
    ) {
        for mut part in batch.carry {
            if !part.holes.is_empty() {
                // the calls that end in it began before it
                let info = decoder.tape.segment(part.at).info();
                let first = [info.carry_start_min, info.start_min].into_iter().find(|first| *first != 0).unwrap_or(0);
                self.lost_between(Lost { first, last: part.window.1, cpu: None, pid: 0 }, true);
                add_new(holes, &mut part.holes);
            }
            self.carry(part);
        }
        for mut part in batch.own {
            if self.over || self.tracker.sink.done() {
                return;
            }
            let number = part.at;
            self.catch_up(decoder, decoder.tape.segment(number).info().chunk, findings);
            let (start, stop) = part.window;
            // a segment that is missing altogether
            let from = last_window.unwrap_or(start).min(start);
            if from < start {
                self.lose_all(Lost { first: from, last: start, cpu: None, pid: 0 });
            }
            *last_window = Some(stop);
            if let Some(why) = part.unread.take() {
                self.lost_between(Lost { first: start, last: stop, cpu: None, pid: 0 }, false);
                findings.push(format!("segment {number}: its scheduler events cannot be read: {why}"));
            }
            if let Some(why) = part.no_stacks.take() {
                findings.push(format!("segment {number}: its stacks cannot be read: {why}"));
            }
            if !part.holes.is_empty() {
                self.lost_between(Lost { first: start, last: stop, cpu: None, pid: 0 }, true);
                add_new(holes, &mut part.holes);
            }
            self.own(&part);
            self.tracker.bury();
        }
        if batch.frontier < u64::MAX {
            self.flush(batch.frontier);
            self.tracker.sink.reached(self.tracker.now());
        }
    }

    /// Segments behind the last one that is there may be missing, where damage was found that belongs to none.
    fn lose_the_end(&mut self, decoder: &Decoder<'_>, last_window: Option<u64>) {
        let damaged = !decoder.tape.findings().is_empty();
        if let Some(first) = last_window.filter(|stop| damaged && !self.over && *stop < self.until) {
            self.lose_all(Lost { first, last: self.until, cpu: None, pid: 0 });
        }
    }

    fn lose_all(&mut self, lost: Lost) {
        self.lost_between(lost, false);
        self.lost_between(lost, true);
    }

    /// Puts a loss that was met on the way among those that were known before.
    fn lost_between(&mut self, lost: Lost, calls: bool) {
        let list = if calls { &mut self.lost_calls } else { &mut self.lost };
        let at = list.partition_point(|other| other.first > lost.first);
        list.insert(at, lost);
    }

    fn push(&mut self, ts: u64, order: u8, task: Arc<Task>, what: Edge) {
        self.pushed += 1;
        self.loose.push(Reverse(Loose { key: (ts, order, self.pushed), task, what }));
    }

    fn carry(&mut self, part: Part) {
        let files = self.numbers(&part);
        for event in &part.events {
            let (task, edge) = match event.what {
                What::Leave { task, cpu } => (task, Some(Edge::Leave(cpu))),
                What::Enter { task, .. } => (task, self.call(&part, &files, event.ts, event.what).map(Edge::Enter)),
                _ => continue,
            };
            if let Some(edge) = edge {
                self.push(event.ts, event.what.order(), Arc::clone(&part.tasks[task as usize]), edge);
            }
        }
    }

    /// Numbers of the files of `part`.
    fn numbers(&mut self, part: &Part) -> Vec<u32> {
        part.files.iter().map(|file| self.names.number(file)).collect()
    }

    fn call(&self, part: &Part, files: &[u32], ts: u64, what: What) -> Option<InCall> {
        let What::Enter { call, file, row, before, counted, .. } = what else { return None };
        let file = match file.checked_sub(FD_FIRST) {
            Some(at) => files.get(at as usize).copied().unwrap_or(NO_FILE),
            None => file,
        };
        Some(InCall {
            call: part.calls[call as usize],
            file,
            start: ts,
            began_before: before,
            counted,
            row: Some((part.at as u32, row)),
        })
    }

    fn own(&mut self, part: &Part) {
        let files = self.numbers(part);
        let mut slots: Vec<Option<Slot>> = vec![None; part.tasks.len()];
        for event in &part.events {
            if event.ts >= self.until {
                self.over = true;
                return;
            }
            self.flush_to(event.ts, event.what.order());
            self.losses(event.ts);
            match event.what {
                What::Leave { task, cpu } => {
                    if let Some(slot) = self.slot(part, &mut slots, task, event.ts) {
                        self.tracker.leave(event.ts, slot, cpu);
                    }
                }
                What::Become { task, running } => {
                    if let Some(slot) = self.slot(part, &mut slots, task, event.ts)
                        && running
                    {
                        self.tracker.runs(event.ts, slot);
                    }
                }
                What::Enter { task, .. } => {
                    let call = self.call(part, &files, event.ts, event.what);
                    // its entry is that of the call's end
                    let slot = self.known(part, &slots, task);
                    if let (Some(slot), Some(call)) = (slot, call) {
                        self.tracker.enter(slot, call);
                    }
                }
                What::Fork { task } => {
                    if let Some(slot) = self.slot(part, &mut slots, task, event.ts) {
                        self.tracker.fork(event.ts, slot);
                    }
                }
                What::Exit { task } => {
                    if let Some(slot) = self.slot(part, &mut slots, task, event.ts) {
                        self.tracker.exit(event.ts, slot);
                    }
                }
                What::Wakeup { waker, wakee, new, softirq } => {
                    let waker = if waker == NOBODY { None } else { self.slot(part, &mut slots, waker, event.ts) };
                    let waker = waker.map(|slot| Waker { slot, softirq });
                    if let Some(wakee) = self.slot(part, &mut slots, wakee, event.ts) {
                        self.tracker.wakeup(event.ts, waker, wakee, new);
                    }
                }
                What::Switch { prev, next, cpu, letter, row } => {
                    let prev = self.slot(part, &mut slots, prev, event.ts);
                    let next = self.slot(part, &mut slots, next, event.ts);
                    self.tracker.switch(Change { ts: event.ts, cpu, prev, next, letter });
                    if let Some(prev) = prev.filter(|prev| !self.tracker.threads()[*prev].dead) {
                        self.tracker.sink.left(prev, part, row);
                    }
                }
            }
        }
    }

    /// The slot of a task whose entry may be newer than the event.
    fn known(&mut self, part: &Part, slots: &[Option<Slot>], task: u32) -> Option<Slot> {
        let (slot, task) = (slots[task as usize], &part.tasks[task as usize]);
        let cached = slot.filter(|slot| task.utid != 0 && self.tracker.threads()[*slot].task.utid == task.utid);
        cached.or_else(|| self.tracker.slot(task, None))
    }

    fn slot(&mut self, part: &Part, slots: &mut [Option<Slot>], task: u32, ts: u64) -> Option<Slot> {
        let task = task as usize;
        if let Some(slot) = slots[task]
            && Arc::ptr_eq(&self.tracker.threads()[slot].task, &part.tasks[task])
        {
            return Some(slot);
        }
        let slot = self.tracker.slot(&part.tasks[task], Some(ts));
        slots[task] = slot;
        slot
    }

    /// Tells of the loose edges before (`ts`, `order`).
    fn flush_to(&mut self, ts: u64, order: u8) {
        while self.loose.peek().is_some_and(|Reverse(loose)| (loose.key.0, loose.key.1) < (ts, order)) {
            let Some(Reverse(loose)) = self.loose.pop() else { return };
            if loose.key.0 >= self.until {
                continue;
            }
            self.losses(loose.key.0);
            // its name may be one it got later
            let Some(slot) = self.tracker.slot(&loose.task, None) else { continue };
            match loose.what {
                Edge::Enter(call) => self.tracker.enter(slot, call),
                Edge::Leave(cpu) => self.tracker.leave(loose.key.0, slot, cpu),
                Edge::Seen(run, call) => self.tracker.seen(loose.key.0, slot, &run, call),
            }
        }
    }

    /// Tells of the loose edges before `ts`.
    fn flush(&mut self, ts: u64) {
        self.flush_to(ts, 0);
    }

    /// Tells of the losses that began until `ts`.
    fn losses(&mut self, ts: u64) {
        while let Some(lost) = self.lost.pop_if(|lost| lost.first <= ts && lost.first < self.until) {
            self.tracker.lose(lost);
        }
        while let Some(lost) = self.lost_calls.pop_if(|lost| lost.first <= ts && lost.first < self.until) {
            self.tracker.lose_calls(lost);
        }
    }
}

/// Adds those of `more` that are not in `holes` yet.
fn add_new(holes: &mut Vec<Hole>, more: &mut Vec<Hole>) {
    for hole in more.drain(..) {
        if !holes.contains(&hole) {
            holes.push(hole);
        }
    }
}

fn tasks_of(checkpoint: &Checkpoint) -> FxHashMap<u32, Arc<Task>> {
    checkpoint.tasks.iter().map(|task| (task.utid, Arc::new(task.clone()))).collect()
}

/// Calls that a checkpoint has as in progress, by thread. `open`: those without a start began before it.
fn open_calls<'a>(
    checkpoint: &'a Checkpoint,
    session: &Session,
    book: &'a CallBook<'_>,
    needs: Needs,
    open: u64,
) -> impl Iterator<Item = (u32, InCall)> + use<'a> {
    // the end of a call that is not recorded would not be seen
    let selection = calls::recorded(session);
    let wanted = needs.calls && in_session(session, Family::Syscall);
    let ends =
        move |call: Call| wanted && selection.as_ref().is_some_and(|s| s.contains(Abi::from_raw(call.abi), call.nr));
    checkpoint.in_flight.iter().filter(move |open| ends(open.call)).map(
        move |InFlight { utid, call, start, .. }| {
            let start = if *start == 0 { open } else { *start };
            let file = unseen(&book.get(*call));
            (*utid, InCall { call: *call, file, start, began_before: start <= open, ..InCall::default() })
        },
    )
}

/// The segments whose carry rows begin before segment `next`, and when that begins.
fn due(decoder: &Decoder<'_>, next: usize, plan: &mut CarryPlan) -> (Vec<usize>, u64) {
    let tape = decoder.tape;
    let frontier = match tape.segments().get(next) {
        Some(info) => tape.segment(next).dict().map_or(info.end_min, |dict| dict.window_start),
        None => u64::MAX,
    };
    (plan.due(frontier), frontier)
}

fn decode(decoder: &Decoder<'_>, own: std::ops::Range<usize>, carry: &[usize]) -> Batch {
    let (own, carry) = rayon::join(
        || own.into_par_iter().map(|at| decoder.read(at, Rows::Own)).collect(),
        || carry.par_iter().map(|at| decoder.read(*at, Rows::Carry)).collect(),
    );
    Batch { own, carry, frontier: 0 }
}

fn batch_size() -> usize {
    rayon::current_num_threads().clamp(1, BATCH)
}
