//! `sched timehist`: a line for each time a thread left a CPU, in perf's columns: how long it had been off the CPU before, how
//! much of that it waited for one, how long it ran.
//!
//! Lines are printed as they come; nothing grows with their number.

use std::io;
use std::ops::ControlFlow;

use anyhow::Result;
use systape_format::model::{CPU_NONE, Task};

use super::super::{Context, scheduling};
use crate::reports::losses::{self, LOSS_LINES};
use crate::reports::timed::Timed;
use systape_answers::derive::runs::decode::Needs;
use systape_answers::derive::runs::keys::{Keys, set_thread, task_text};
use systape_answers::derive::runs::{End, Interval, IntervalSink, Slot, State, Thread, Why, feed};
use systape_answers::render::fields::{TextColumn, TextColumns};
use systape_answers::render::mark;
use systape_answers::render::out::Out;
use systape_answers::render::paint;
use systape_answers::render::row::{Row, ShownTimes};
use systape_answers::render::stamp::{Column, Stamps};
use systape_answers::values::say::Verdict;
use systape_events::loss::ListedLoss;

systape_format::tables! {
    /// One row for each time a thread left a CPU.
    pub TIMEHIST = "sched_timehist" {
        ts_ns: Time key "when it left"
        cpu: Int key "which CPU"
        pid: Int "process"
        tid: Int key "thread"
        upid: Int "the process, unique in the tape"
        utid: Int "the thread, unique in the tape"
        comm: Str [Comm] "name of the thread"
        wait_ns ? AtLeast: Duration "how long it had been on no CPU before; null: not known"
        delay_ns ? AtLeast: Duration "part of `wait_ns` in which it could run and had no CPU; null: not known"
        run_ns ? AtLeast: Duration "how long it ran; null: not known"
        state: Word "what it is in from then on: a letter of ps(1), `R` preempted, `X` it ended"
    }
}

/// Column of times.
const TIME: Column = Column { name: "time", width: 15, places: 6, right: true };
/// The columns behind that.
const FIELDS: [TextColumn; 5] = [
    TextColumn::left("cpu", 7).leaves(1),
    TextColumn::left("task name", 30).shortens(),
    TextColumn::right("wait time", 10).leaves(2),
    TextColumn::right("sch delay", 10),
    TextColumn::right("run time", 10),
];
/// The lines of headings of these columns, as perf has them; the first with that of the time.
const HEADINGS: [[&str; 5]; 3] = [
    ["   cpu ", "task name", "wait time", "sch delay", "run time"],
    ["", "[tid/pid]", "(msec)", "(msec)", "(msec)"],
    ["------ ", "------------------------------", "---------", "---------", "---------"],
];

/// The lines above the rows.
fn head(stamps: &Stamps) -> Vec<u8> {
    let time = stamps.heading(TIME);
    let times = [time.clone(), " ".repeat(time.len()), "-".repeat(time.len())];
    // which columns are left out is told once
    TextColumns::timed(time, FIELDS).head();
    let lines =
        times.into_iter().zip(HEADINGS).map(|(time, texts)| TextColumns::timed(time, FIELDS).line(&texts) + "\n");
    lines.collect::<String>().into_bytes()
}

/// Prints the report.
pub(crate) fn run(mut context: Context<'_>, out: &mut Out) -> Result<Verdict> {
    let session = context.question.tape.session();
    let stamps = context.stamps();
    let head = || head(&stamps);
    let timed = Timed::begin(&context, &context.question.loss, (&TIMEHIST, None), head, out)?;
    let sink = Timehist {
        keys: Keys::new(&[], &context.question.scope, session, false),
        context: &context,
        times: context.times(),
        accs: Vec::new(),
        stamps: &stamps,
        timed,
        written: Ok(ControlFlow::Continue(())),
    };
    let fed = feed::feed(&context.question, Needs::default(), context.question.scope.to, sink);
    let Timehist { timed, written, .. } = fed.tracker.sink;
    let _flow = written?;
    timed.end()?;
    // those of before the time asked for have no line among the others
    let before = context.question.loss.gaps.clone();
    scheduling::touched(fed.coverage, fed.unsure_until, &mut context);
    let mut told = context.question.loss.clone();
    if losses::pushed(out) == ListedLoss::Gaps {
        told.gaps.retain(|gap| !before.contains(gap));
    }
    for line in told.lines(session, LOSS_LINES) {
        out.say(&line);
    }
    losses::end(&context, out, true, ListedLoss::Nothing)
}

/// A time: exact, a lower bound, or not known.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    ns: u64,
    at_least: bool,
    unknown: bool,
}

impl Known {
    fn add(&mut self, interval: &Interval) {
        self.ns += interval.len();
        self.at_least |= interval.began_before;
        self.unknown |= interval.state == State::Unknown;
    }

    fn text(self) -> String {
        if self.unknown {
            return "?".into();
        }
        systape_answers::render::table::millis(self.ns, mark::at_least(self.at_least))
    }

    fn value(self) -> Option<u64> {
        (!self.unknown).then_some(self.ns)
    }
}

/// A thread's times since it left a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct OffCpuTimes {
    utid: u32,
    wait: Known,
    delay: Known,
    run: Known,
}

struct Timehist<'a, 'o, 'r> {
    context: &'a Context<'a>,
    keys: Keys<'a>,
    times: ShownTimes<'a>,
    accs: Vec<OffCpuTimes>,
    stamps: &'a Stamps,
    timed: Timed<'o, 'r>,
    /// Whether more is wanted, or why nothing can be written.
    written: io::Result<ControlFlow<()>>,
}

impl IntervalSink for Timehist<'_, '_, '_> {
    fn concerns(&self, thread: &Thread) -> bool {
        self.context.question.scope.task(&thread.task)
    }

    fn interval(&mut self, threads: &[Thread], slot: Slot, interval: &Interval) {
        let thread = &threads[slot];
        if slot >= self.accs.len() {
            self.accs.resize(slot + 1, OffCpuTimes::default());
        }
        let acc = &mut self.accs[slot];
        if acc.utid != thread.task.utid {
            *acc = OffCpuTimes { utid: thread.task.utid, ..OffCpuTimes::default() };
        }
        match interval.state {
            State::Running => {
                acc.run.add(interval);
                // it came on the CPU before the recording, after a wait nobody saw
                (acc.wait.unknown, acc.delay.unknown) =
                    (acc.wait.unknown | interval.began_before, acc.delay.unknown | interval.began_before);
            }
            State::Waiting(why) => {
                acc.wait.add(interval);
                if why != Why::Made {
                    acc.delay.add(interval);
                }
            }
            State::Sleeping(_) | State::Throttled => acc.wait.add(interval),
            State::Unknown => [&mut acc.wait, &mut acc.delay, &mut acc.run].into_iter().for_each(|k| k.add(interval)),
        }
        if interval.state == State::Unknown && matches!(interval.end, End::In(_)) {
            // it runs from here on, for sure
            acc.run = Known::default();
        }
        let letter = match interval.end {
            End::Out(letter) => letter,
            End::Died if interval.state == State::Running => b'X',
            _ => return,
        };
        let acc = std::mem::take(acc);
        self.accs[slot].utid = acc.utid;
        self.row(threads, slot, interval, acc, letter);
    }

    fn done(&self) -> bool {
        !self.timed.wants() || !matches!(self.written, Ok(ControlFlow::Continue(())))
    }
}

impl Timehist<'_, '_, '_> {
    fn row(&mut self, threads: &[Thread], slot: Slot, interval: &Interval, acc: OffCpuTimes, letter: u8) {
        let filters = self.context.question.scope.filters();
        let cpu = filters.cpus.as_ref().is_none_or(|cpus| cpus.binary_search(&interval.cpu).is_ok());
        if self.done() || interval.to < self.context.question.scope.from || !cpu || !self.keys.passes(threads, slot) {
            return;
        }
        let task = &threads[slot].task;
        let text = |out: &mut Vec<u8>| out.extend(text(task, interval, acc, self.stamps));
        self.timed.event(interval.to, text, || row(task, interval, acc, letter, &self.times));
        self.written = self.timed.write_many();
    }
}

fn text(task: &Task, interval: &Interval, acc: OffCpuTimes, stamps: &Stamps) -> Vec<u8> {
    let (time, name) = (stamps.text(TIME, interval.to), task_text(task));
    let cpu = if interval.cpu == CPU_NONE { "[????] ".into() } else { format!("[{:04}] ", interval.cpu) };
    let [wait, delay, run] = [acc.wait, acc.delay, acc.run].map(|known| paint::number(&known.text(), 10));
    format!("{}\n", TextColumns::timed(time, FIELDS).line(&[cpu, name, wait, delay, run])).into_bytes()
}

fn row<'a>(task: &'a Task, interval: &Interval, acc: OffCpuTimes, letter: u8, times: &ShownTimes<'_>) -> Row<'a> {
    let mut row = Row::new(&TIMEHIST);
    row.set("ts_ns", times.since(interval.to)).set("cpu", interval.cpu);
    set_thread(&mut row, task);
    for (name, known) in [("wait_ns", acc.wait), ("delay_ns", acc.delay), ("run_ns", acc.run)] {
        row.bound(name, known.value(), known.at_least);
    }
    row.set("state", char::from(letter).to_string());
    row
}
