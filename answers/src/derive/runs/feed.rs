//! Passes the events of a tape to a [`Tracker`], in order of time.
//!
//! All rows of a segment are passed, so they are plain indices into its [`Part`]. A call is two events, so that nothing
//! waits for its end: a thread is in a call from its start. Rows that began before their segment wait as both. A
//! checkpoint is read only after a loss; it has for each thread the time at which its state was read.

use std::ops::ControlFlow;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_abi::Abi;
use systape_format::model::{Call, Checkpoint, Family, InFlight, Task};
use systape_format::reader::Tape;

use super::decode::{Decoder, Event, LooseEdge, LooseFact, NOBODY, Needs, OPEN, Part, UNTHROTTLED_UNIT, What};
use super::gaps;
use super::names::Names;
use super::queued::{PartCalls, numbered};
use super::targets::Followed;
use super::tracker::{Change, RunCoverage, Tracker};
use super::{InCall, IntervalSink, Slot, Waker, targets};
use systape_events::call_files::unseen;
use systape_events::calls;
use systape_events::families::in_session;
use systape_events::question::Question;
use systape_events::scan::later::{HasTime as _, Later};
use systape_events::scan::lost::{Lost, MissingKind};
use systape_events::scan::stream::{self, Machine};
use systape_events::scan::{self, Scan};
use systape_events::values::spill::Store;

/// The result.
#[derive(Debug)]
pub struct FedRuns<S> {
    /// The states at the end, and the sink.
    pub tracker: Tracker<S>,
    /// Names of files.
    pub names: Names,
    /// Time that [`Tracker::unsure_until`] gives.
    pub unsure_until: u64,
    /// Parts that could not be read.
    pub coverage: scan::Coverage,
}

/// The coverage of the recording.
pub fn coverage(tape: &Tape) -> RunCoverage {
    let session = tape.session();
    RunCoverage {
        open: stream::opened(tape),
        followed: Followed::of(tape),
        every_cpu: targets::every_cpu(session),
        cpus: session.cpus,
        hides_calls: session.registers_unknown,
    }
}

/// Passes everything up to `until`, or the end, to `sink`.
pub fn feed<S: IntervalSink>(question: &Question<'_>, needs: Needs, until: u64, sink: S) -> FedRuns<S> {
    let tape = question.tape;
    let events = gaps::of_family(tape, Family::Sched).into_iter().map(|lost| (MissingKind::Events, lost));
    let calls = if needs.calls { gaps::of_calls(tape) } else { Vec::new() };
    let life = gaps::of_family(tape, Family::Process).into_iter().map(|lost| (MissingKind::Life, lost));
    let lost: Vec<_> = events.chain(life).chain(calls.into_iter().map(|lost| (MissingKind::Calls, lost))).collect();
    let queues = lost.is_empty();
    fed(question, needs, until, sink, (lost, queues))
}

/// What passes what happens: `lost`, known before, and whether calls may be passed late.
fn fed<S: IntervalSink>(
    question: &Question<'_>,
    needs: Needs,
    until: u64,
    sink: S,
    (lost, queues): (Vec<(MissingKind, Lost)>, bool),
) -> FedRuns<S> {
    let tape = question.tape;
    let began = tape.session().window_open;
    let until = until.min(tape.complete_until());
    let mut feeder = RunFeeder {
        question,
        needs,
        tracker: Tracker::new(coverage(tape), until, sink),
        names: Names::default(),
        store: Store::of_process(),
        files: Vec::new(),
        slots: Vec::new(),
        restarts: Vec::new(),
        until,
    };
    let decoder = Decoder { began, scope: &question.scope, book: &question.book, needs, queues };
    let coverage = Scan::all(tape).stream(&decoder, lost, &mut feeder);
    let RunFeeder { mut tracker, names, .. } = feeder;
    tracker.finish(until);
    tracker.sink.passed();
    FedRuns { unsure_until: tracker.unsure_until(), tracker, names, coverage }
}

struct RunFeeder<'a, S> {
    question: &'a Question<'a>,
    needs: Needs,
    tracker: Tracker<S>,
    names: Names,
    /// None: memory has no limit.
    store: Option<Store>,
    /// Numbers of the files of the current part, and slots of its tasks.
    files: Vec<u32>,
    slots: Vec<Option<Slot>>,
    /// Whether each call of the current part is [`RESTART`].
    restarts: Vec<bool>,
    until: u64,
}

/// The kernel has a thread call this to go on with the call that a signal without a handler had interrupted.
const RESTART: &str = "restart_syscall";

impl<'a, S: IntervalSink> Machine<Decoder<'a>> for RunFeeder<'a, S> {
    #[inline(always)]
    fn push(&mut self, event: stream::Event<'_, Decoder<'a>>, later: &mut Later<LooseFact>) -> ControlFlow<()> {
        match event {
            stream::Event::Row(part, event) => return self.happens(part, event),
            stream::Event::Due(loose) => self.due(loose),
            stream::Event::Part(part) => {
                if self.tracker.sink.done() {
                    return ControlFlow::Break(());
                }
                self.relieve();
                self.files.clear();
                for file in &part.files {
                    let (number, new) = self.names.numbered(file);
                    if new {
                        self.tracker.sink.file(number, file);
                    }
                    self.files.push(number);
                }
                self.slots.clear();
                self.slots.resize(part.tasks.len(), None);
                let restarts: Vec<bool> = part.calls.iter().map(|call| self.restarts(*call)).collect();
                self.restarts = restarts;
                if !part.spans.is_empty() {
                    self.tracker.part(PartCalls {
                        at: part.at as u32,
                        spans: std::mem::take(&mut part.spans),
                        tasks: part.tasks.clone(),
                        calls: part.calls.clone(),
                        restarts: self.restarts.clone(),
                        files: self.files.clone(),
                    });
                }
            }
            stream::Event::Early(part, event) => self.wait(part, event, later),
            stream::Event::Lost(missing, lost) if lost.first < self.until => match missing {
                MissingKind::Events => self.tracker.lose(lost),
                MissingKind::Life => self.tracker.lose_life(lost),
                MissingKind::Calls => self.tracker.lose_calls(lost),
            },
            stream::Event::Lost(..) => {}
            stream::Event::Start(checkpoint) => self.begin(checkpoint),
            stream::Event::Checkpoint(checkpoint) => self.see(checkpoint, later),
            stream::Event::End => {
                self.tracker.end_part();
                self.tracker.bury();
            }
        }
        ControlFlow::Continue(())
    }

    /// States lost in this time are known again after the next checkpoint.
    fn wants_checkpoint(&self, losses: bool) -> bool {
        losses || self.tracker.lost_before()
    }
}

impl<S: IntervalSink> RunFeeder<'_, S> {
    /// Puts sums and names into the file if they take more memory than there is.
    fn relieve(&mut self) {
        let Self { store: Some(store), tracker, names, .. } = self else { return };
        if tracker.sink.bytes().is_some_and(|bytes| bytes + names.bytes() > store.limit()) {
            tracker.sink.spill(store);
            names.spill(store);
        }
    }

    /// The states and open calls at the start.
    fn begin(&mut self, checkpoint: &Checkpoint) {
        let tasks = tasks_of(checkpoint);
        for run in &checkpoint.run {
            let slot = tasks.get(&run.utid).and_then(|task| self.tracker.slot(task, Some(self.tracker.now())));
            if let Some(slot) = slot {
                self.tracker.begin(slot, run);
            }
        }
        let open = self.tracker.now();
        for (utid, call) in open_calls(checkpoint, self.question, self.needs, open) {
            let slot = tasks.get(&utid).and_then(|task| self.tracker.slot(task, None));
            if let Some(slot) = slot {
                self.tracker.enter(slot, call);
            }
        }
    }

    fn see(&mut self, checkpoint: &Checkpoint, later: &mut Later<LooseFact>) {
        let tasks = tasks_of(checkpoint);
        let open = self.question.tape.session().window_open;
        let mut calls: FxHashMap<u32, InCall> = open_calls(checkpoint, self.question, self.needs, open).collect();
        for run in &checkpoint.run {
            let Some(task) = tasks.get(&run.utid) else { continue };
            later.push(LooseFact { ts: checkpoint.ts, task: Arc::clone(task), what: LooseEdge::Is });
            let ts = if run.seen == 0 { checkpoint.ts } else { run.seen };
            later.push(LooseFact { ts, task: Arc::clone(task), what: LooseEdge::Seen(*run, calls.remove(&run.utid)) });
        }
    }

    fn wait(&self, part: &Part, event: Event, later: &mut Later<LooseFact>) {
        let (task, what) = match event.what {
            What::Leave { task, cpu } => (task, Some(LooseEdge::Leave(cpu))),
            What::Enter { task, .. } => (task, self.call(part, event).map(LooseEdge::Enter)),
            _ => return,
        };
        if let Some(what) = what {
            later.push(LooseFact { ts: event.ts, task: Arc::clone(&part.tasks[task as usize]), what });
        }
    }

    fn due(&mut self, loose: LooseFact) {
        let key = loose.key();
        let LooseFact { ts, task, what } = loose;
        if ts >= self.until {
            return;
        }
        self.tracker.comes_to(key);
        // its name may be one it got later
        let Some(slot) = self.tracker.slot(&task, None) else { return };
        match what {
            LooseEdge::Enter(call) => self.enter(slot, call, self.restarts(call.call)),
            LooseEdge::Leave(cpu) => self.tracker.leave(ts, slot, cpu),
            LooseEdge::Seen(run, call) => self.tracker.seen(ts, slot, &run, call),
            LooseEdge::Is if self.tracker.doubts(slot) => _ = self.tracker.slot(&task, Some(ts)),
            LooseEdge::Is => {}
        }
    }

    fn restarts(&self, call: Call) -> bool {
        self.question.book.get(call).name == RESTART
    }

    fn enter(&mut self, slot: Slot, call: InCall, restarts: bool) {
        if restarts { self.tracker.restart(slot, call) } else { self.tracker.enter(slot, call) }
    }

    /// Notes it where a call of a thread that waits begins or ends just before the thread gets a CPU unseen.
    fn comes(&mut self, part: &Part, slot: Slot, event: Event) {
        if let What::Enter { task, .. } | What::Leave { task, .. } = event.what
            && !part.arrivals.is_empty()
            && self.tracker.is_off(slot)
            && let Some(ts) = part.comes_soon(task, event.ts)
        {
            self.tracker.comes(slot, ts);
        }
    }

    fn call(&self, part: &Part, event: Event) -> Option<InCall> {
        let What::Enter { call, file, row, before, counted, .. } = event.what else { return None };
        Some(InCall {
            call: part.calls[call as usize],
            file: numbered(&self.files, file),
            start: event.ts,
            began_before: before,
            counted,
            row: (part.at != OPEN).then_some((part.at as u32, row)),
        })
    }

    #[inline(always)]
    fn happens(&mut self, part: &Part, event: Event) -> ControlFlow<()> {
        if event.ts >= self.until {
            return ControlFlow::Break(());
        }
        self.tracker.comes_to(event.key());
        match event.what {
            What::Leave { task, cpu } => {
                if let Some(slot) = self.slot(part, task, event.ts) {
                    self.comes(part, slot, event);
                    self.tracker.leave(event.ts, slot, cpu);
                }
            }
            What::Become { task, running, all } => {
                self.tracker.becomes(&part.tasks[task as usize], event.ts);
                if let Some(slot) = self.slot(part, task, event.ts)
                    && running
                {
                    self.tracker.runs(event.ts, slot);
                }
                if all {
                    self.tracker.moves(&part.tasks[task as usize], event.ts);
                }
            }
            What::Enter { task, call: index, .. } => {
                let call = self.call(part, event);
                // its entry is that of the call's end
                let slot = self.known(part, task);
                if let (Some(slot), Some(call)) = (slot, call) {
                    self.comes(part, slot, event);
                    self.enter(slot, call, self.restarts[index as usize]);
                }
            }
            What::Calls { task, first, end } => {
                // its entry is that of the end of the first call
                if let Some(slot) = self.known(part, task) {
                    self.tracker.queue(slot, first..end);
                }
            }
            What::Fork { task } => {
                if let Some(slot) = self.slot(part, task, event.ts) {
                    self.tracker.fork(event.ts, slot);
                }
            }
            What::Exit { task } => {
                if let Some(slot) = self.slot(part, task, event.ts) {
                    self.tracker.exit(event.ts, slot);
                }
            }
            What::Wakeup { waker, wakee, new, softirq, throttled } => {
                let waker = if waker == NOBODY { None } else { self.slot(part, waker, event.ts) };
                let waker = waker.map(|slot| Waker { slot, softirq });
                if let Some(wakee) = self.slot(part, wakee, event.ts) {
                    self.tracker.wakeup(event.ts, waker, wakee, new);
                    if throttled {
                        self.tracker.throttled(wakee);
                    }
                }
            }
            What::Came { task, cpu } => {
                let next = self.slot(part, task, event.ts);
                self.tracker.switch(Change { ts: event.ts, cpu, next, ..Change::default() });
            }
            What::Switch { prev, next, cpu, letter, throttled, unthrottled, row } => {
                let prev = self.slot(part, prev, event.ts);
                let next = self.slot(part, next, event.ts);
                let unthrottled_ns = u64::from(unthrottled) * UNTHROTTLED_UNIT;
                let came = part.came.binary_search_by_key(&row, |(row, _)| *row).ok().map(|at| part.came[at].1);
                self.tracker.switch(Change { ts: event.ts, cpu, prev, next, letter, throttled, unthrottled_ns, came });
                if let Some(prev) = prev.filter(|prev| !self.tracker.threads()[*prev].dead) {
                    self.tracker.sink.left(prev, part, row);
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// The slot of a task whose entry may be newer than the event.
    fn known(&mut self, part: &Part, task: u32) -> Option<Slot> {
        let (slot, task) = (self.slots[task as usize], &part.tasks[task as usize]);
        let cached = slot.filter(|slot| task.utid != 0 && self.tracker.threads()[*slot].task.utid == task.utid);
        cached.or_else(|| self.tracker.slot(task, None))
    }

    fn slot(&mut self, part: &Part, task: u32, ts: u64) -> Option<Slot> {
        let task = task as usize;
        if let Some(slot) = self.slots[task] {
            // calls say who it is, too
            self.tracker.settle_at(slot, ts);
            if Arc::ptr_eq(&self.tracker.threads()[slot].task, &part.tasks[task]) && !self.tracker.doubts(slot) {
                return Some(slot);
            }
        }
        let slot = self.tracker.slot(&part.tasks[task], Some(ts));
        self.slots[task] = slot;
        slot
    }
}

fn tasks_of(checkpoint: &Checkpoint) -> FxHashMap<u32, Arc<Task>> {
    checkpoint.tasks.iter().map(|task| (task.utid, Arc::new(task.clone()))).collect()
}

/// Calls in progress at a checkpoint, by thread. `open`: those without a start began before it.
fn open_calls<'a>(
    checkpoint: &'a Checkpoint,
    question: &'a Question<'_>,
    needs: Needs,
    open: u64,
) -> impl Iterator<Item = (u32, InCall)> + use<'a> {
    let session = question.tape.session();
    // the end of a call that is not recorded would not be seen
    let selection = calls::recorded(session);
    let wanted = needs.calls && in_session(session, Family::Syscall);
    let ends =
        move |call: Call| wanted && selection.as_ref().is_some_and(|s| s.contains(Abi::from_raw(call.abi), call.nr));
    checkpoint.in_flight.iter().filter(move |open| ends(open.call)).map(
        move |InFlight { utid, call, start, .. }| {
            let start = if *start == 0 { open } else { *start };
            let file = unseen(&question.book.get(*call));
            (*utid, InCall { call: *call, file, start, began_before: start <= open, ..InCall::default() })
        },
    )
}

#[cfg(test)]
mod tests;
