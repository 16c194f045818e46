//! `sched timehist`: a line for each time a thread left a CPU, in perf's columns: how long it had been off the CPU before, how
//! much of that it waited for one, how long it ran.
//!
//! Lines are printed as they come; nothing grows with their number.

use std::io::Write;

use anyhow::Result;
use systape_format::model::{CPU_NONE, Gap};

use super::super::{Context, scheduling};
use crate::reports::losses::{self, LOSS_LINES};
use systape_answers::derive::runs::decode::Needs;
use systape_answers::derive::runs::keys::{Keys, set_thread, task_text};
use systape_answers::derive::runs::{End, Interval, IntervalSink, Slot, State, Thread, Why, feed};
use systape_answers::lines::LineFormat as _;
use systape_answers::lines::json::Json;
use systape_answers::render::form::Format;
use systape_answers::render::mark;
use systape_answers::render::out::Out;
use systape_answers::render::paint;
use systape_answers::render::row::Row;
use systape_answers::render::sink;
use systape_answers::render::stamp::{Column, Stamps};
use systape_answers::values::say::Verdict;
use systape_events::loss;
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
/// The headings behind that column.
const HEADER: &str = "    cpu  task name                       wait time  sch delay   run time\n\
    \x20                       [tid/pid]                          (msec)     (msec)     (msec)\n\
    --------------- ------  ------------------------------  ---------  ---------  ---------\n";

/// Prints the report.
pub(crate) fn run(mut context: Context<'_>, out: &mut Out) -> Result<Verdict> {
    let session = context.question.tape.session();
    let stamps = context.stamps();
    let mut head = format!("{}{HEADER}", stamps.heading(TIME)).into_bytes();
    let rows = context.config.format.rows().map(|form| sink::Sink::new(form, &TIMEHIST));
    if let Some(rows) = &rows {
        head.clear();
        rows.head(&mut head);
    }
    out.write_all(&head)?;
    context.config.shown.rows(0);
    let sink = Timehist {
        keys: Keys::new(&[], &context.question.scope, context.question.tape.session(), false),
        context: &context,
        json: Json::new(session, systape_events::question::clock(context.question.tape)),
        rows,
        line: Vec::new(),
        gaps: context.question.loss.gaps.clone(),
        accs: Vec::new(),
        left: context.config.max_events,
        stamps,
        out,
        error: None,
    };
    let fed = feed::feed(&context.question, Needs::default(), context.question.scope.to, sink);
    let sink = fed.tracker.sink;
    if let Some(error) = sink.error {
        return Err(error.into());
    }
    let (out, gaps, json, stamps) = (sink.out, sink.gaps, sink.json, sink.stamps);
    for gap in gaps {
        match context.config.format {
            Format::Text => writeln!(out, "{}", lost(&gap, &stamps))?,
            Format::Json => out.write_all(&json.gap(&gap))?,
            Format::Csv => {}
        }
    }
    out.flush()?;
    // those of before the time asked for have no line among the others
    let before = context.question.loss.gaps.clone();
    scheduling::touched(fed.coverage, fed.unsure_until, &mut context);
    // gaps have their lines, except in CSV
    let mut told = context.question.loss.clone();
    if context.config.format != Format::Csv {
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
    json: Json<'a>,
    /// None: text.
    rows: Option<sink::Sink<'static>>,
    line: Vec<u8>,
    /// Not passed yet, in order.
    gaps: Vec<Gap>,
    accs: Vec<OffCpuTimes>,
    left: u64,
    stamps: Stamps,
    out: &'o mut Out<'r>,
    error: Option<std::io::Error>,
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
        self.left == 0 || self.error.is_some()
    }
}

/// The line of a loss.
fn lost(gap: &Gap, stamps: &Stamps) -> String {
    paint::error(loss::gap_text(gap, |first, last| stamps.span(first, last)))
}

impl Timehist<'_, '_, '_> {
    fn row(&mut self, threads: &[Thread], slot: Slot, interval: &Interval, acc: OffCpuTimes, letter: u8) {
        let filters = self.context.question.scope.filters();
        let cpu = filters.cpus.as_ref().is_none_or(|cpus| cpus.binary_search(&interval.cpu).is_ok());
        if self.done() || interval.to < self.context.question.scope.from || !cpu || !self.keys.passes(threads, slot) {
            return;
        }
        if let Err(error) = self.write(&threads[slot], interval, acc, letter) {
            self.error = Some(error);
        }
        self.left -= 1;
        self.context.config.shown.rows(1);
    }

    fn write(&mut self, thread: &Thread, interval: &Interval, acc: OffCpuTimes, letter: u8) -> std::io::Result<()> {
        let format = self.context.config.format;
        while format != Format::Csv && self.gaps.first().is_some_and(|gap| gap.first <= interval.to) {
            let gap = self.gaps.remove(0);
            match format {
                Format::Json => self.out.write_all(&self.json.gap(&gap))?,
                _ => writeln!(self.out, "{}", lost(&gap, &self.stamps))?,
            }
        }
        let Some(sink) = &self.rows else {
            let time = self.stamps.text(TIME, interval.to);
            let cpu = if interval.cpu == CPU_NONE { "????".into() } else { format!("{:04}", interval.cpu) };
            let name = task_text(&thread.task);
            return writeln!(
                self.out,
                "{time} [{cpu}]  {name:<30} {} {} {}",
                paint::number(&acc.wait.text(), 10),
                paint::number(&acc.delay.text(), 10),
                paint::number(&acc.run.text(), 10)
            );
        };
        let since = interval.to.wrapping_sub(self.context.question.tape.session().window_open) as i64;
        let mut row = Row::new(&TIMEHIST);
        row.set("ts_ns", since).set("cpu", interval.cpu);
        set_thread(&mut row, &thread.task);
        for (name, known) in [("wait_ns", acc.wait), ("delay_ns", acc.delay), ("run_ns", acc.run)] {
            row.bound(name, known.value(), known.at_least);
        }
        let letter = [letter];
        row.set("state", &letter[..]);
        self.line.clear();
        sink.row(&mut self.line, &row);
        self.out.write_all(&self.line)
    }
}
