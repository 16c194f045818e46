//! The summary: calls, errors and times per thread (or process, cgroup, all) and syscall, in the shape of `perf trace -s`, with the
//! median and the 99th percentile behind perf's columns.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use anyhow::Result;
use serde_json::{Map, Value};
use systape_format::model::{ERRNO_ANY, Family, Session};
use systape_format::table::TableDef;

use super::Context;
use crate::calls::CallInfo;
use crate::families;
use crate::loss::Loss;
use crate::num;
use crate::output::line;
use crate::render::cell::Cell;
use crate::render::form::{Form, Format};
use crate::render::keys::{columns as named, with_keys, with_parts};
use crate::render::row::{self as record, user};
use crate::render::sink;
use crate::reports::losses::LOSS_LINES;
use crate::say::complain;
use crate::summary::collect;
use crate::summary::cpu::{self, CpuTime, CpuTimes};
use crate::summary::hist::QUANTILE_ERROR;
use crate::summary::ledger::{Kind, Knowledge};
use crate::summary::mode::SummaryMode;
use crate::summary::stats::Stats;
use crate::summary::table::{self, Group, Row};
use crate::summary::uring::{Ring, Rings};
use crate::words::escaped;
use systape_abi::iouring_op_name;

systape_format::tables! {
    /// Keys of the summary, before its columns: all but `cgroup` by thread, `pid upid comm uid` by process, `cgroup` by cgroup, none in total.
    /// Where calls are known per process only, `tid` and `utid` are null; where not even the process or the cgroup is known, all keys are.
    pub BY = "summary_by" {
        pid: Int "process"
        tid: Int "thread"
        upid: Int "the process, unique in the tape"
        utid: Int "the thread, unique in the tape"
        comm: Str [Comm] "name of the thread; of a process that of its leader"
        uid: Int "real user; null: not known"
        cgroup: Str [Path] "path of the cgroup; null: not known"
    }
    /// One row for each group and syscall.
    pub SUMMARY = "summary" {
        abi: Word "`x86_64`, `i386`, `x32`, `aarch64`, `unknown`"
        syscall: Word "its name"
        calls ? AtLeast: Count "calls, those that were counted instead of stored too"
        errors ? AtLeast: Count "calls that returned an error"
        total_ns ? AtLeast: Duration "time in all of them, as far as it is known of `incomplete_calls`"
        min_ns ? AtMost: Duration "shortest call whose whole duration is known; null: there is none"
        avg_ns ? OfKnown: Duration "mean of these; null: there are none"
        max_ns ? AtLeast: Duration "longest of these; null: there is none"
        stddev_percent ? OfKnown: Real "their relative standard deviation as perf has it; null: too few, or some were counted instead of stored"
        p50_ns ? OfKnown: Duration "their median; null: none, or it could be off by more than a factor of two"
        p99_ns ? OfKnown: Duration "their 99th percentile; null: likewise"
        incomplete_calls ? AtLeast: Count "calls of which only a lower bound is known"
        ledger_calls ? AtLeast: Count "part of `calls` known by count only ([calls that were counted](reading-reports.md#calls-that-were-counted))"
        quantile_error: Real "largest relative error of `p50_ns` and `p99_ns`; null: both are null"
    }
    /// With `--cpu` also; all null: scheduler events were not recorded.
    pub CPU = "summary_cpu" {
        cpu_ns ? AtLeast: Duration "time on a CPU of `cpu_calls`; null: there are none"
        off_cpu_ns ? AtLeast: Duration "their time off the CPU; null: there are none"
        cpu_calls ? AtLeast: Count "calls whose whole history is known"
        cpu_unknown_calls ? AtLeast: Count "the others"
    }
    /// With `--errno-summary` also:
    pub ERRNOS = "summary_errnos" {
        errnos ? AtLeast: Nested "`{\"ENOENT\": 22}`; `unknown`: failed, nobody knows how; CSV: `ENOENT=22 …`"
    }
    /// One row for each io_uring operation of a process, behind the others, in JSON.
    pub URING = "summary_io_uring" {
        kind: Word "`io_uring`"
        pid: Int "process"
        upid: Int "the same, unique in the tape"
        comm: Str [Comm] "its name"
        op: Word "the operation: `READ`"
        count ? AtLeast: Count "how often"
    }
}

/// What a summary found out beside its numbers.
#[derive(Debug)]
pub struct Told {
    /// What is missing from it.
    pub loss: Loss,
    /// Lines of calls that may be missing, because what was counted does not tell.
    pub doubts: Vec<String>,
    /// Of these, some were lost.
    pub lost: bool,
}

/// A quantile that may be further off than this is marked: twice the error of stored calls, which is the width of a bucket.
const ROUGH: f64 = 2.0 * QUANTILE_ERROR;

/// Prints the summary to `out`; holes it meets are added to the context's losses.
pub fn run(context: &mut Context<'_>, out: &mut BufWriter<File>) -> Result<Told> {
    let mode = context.config.mode;
    let (sums, knowledge) = match families::recorded(context.question.tape, Family::Syscall) {
        // those in flight when the recording began or ended are no summary
        Some(false) => Default::default(),
        _ => {
            let question = &context.question;
            let (sums, knowledge, coverage) = collect::collect(question.tape, &question.scope, &question.book, mode);
            coverage.tell(&mut context.question.loss);
            (sums, knowledge)
        }
    };
    let mut rings = Rings::default();
    if context.config.format != Format::Csv && families::recorded(context.question.tape, Family::IoUring) != Some(false)
    {
        let coverage = rings.collect(&context.question)?;
        coverage.tell(&mut context.question.loss);
    }
    let rings = rings.processes();
    let whole =
        rings.is_empty() || Loss::gather(context.question.tape, &context.question.scope, &[Family::IoUring]).complete();
    let (groups, events) = table::groups(sums, &knowledge, &context.question.book, mode);
    let cpu = Cpu(context.config.cpu_time.then(|| cpu::collect(&mut context.question, mode)));
    let loss = context.question.loss.of_sums();
    let view = View { context, loss: &loss, knowledge: &knowledge, groups: &groups, events, cpu: &cpu };
    if matches!(cpu, Cpu(Some(None))) {
        complain(&match families::recorded(context.question.tape, Family::Sched) {
            None => "--cpu: the block that says whose scheduler events were recorded is damaged".to_owned(),
            Some(_) => match families::why_left_out(context.question.tape.session(), Family::Sched) {
                Some(why) => format!("--cpu: scheduler events were not recorded: {why}"),
                None => "--cpu: scheduler events were not recorded in this tape".to_owned(),
            },
        });
    }
    match context.config.format.rows() {
        None => {
            view.text(out)?;
            for ring in &rings {
                line(out, &ring.text(whole))?;
            }
        }
        Some(form) => {
            view.rows(form, out)?;
            if form == Form::Json {
                sink::print(form, &URING, rings.iter().flat_map(|ring| ring_rows(ring, whole)), out)?;
            }
        }
    }
    Ok(Told { doubts: knowledge.doubts(), lost: knowledge.lost(), loss })
}

/// What every form prints from.
struct View<'a> {
    context: &'a Context<'a>,
    loss: &'a Loss,
    knowledge: &'a Knowledge,
    groups: &'a [Group],
    /// Of all groups.
    events: u64,
    cpu: &'a Cpu,
}

/// Time on and off a CPU, if asked for and recorded.
struct Cpu(Option<Option<CpuTimes>>);

impl Cpu {
    /// Of a row; None: not asked for.
    fn of(&self, group: &Group, row: &Row) -> Option<CpuTime> {
        let times = self.0.as_ref()?;
        let time = times.as_ref().and_then(|times| times.get(&(group.key, row.call.call)));
        let mut time = time.copied().unwrap_or_default();
        // nobody knows when these ran
        time.unknown = time.unknown.saturating_add(row.stats.ledger_calls());
        Some(time)
    }

    /// Sets the columns of [`CPU`] if they are asked for; null where nothing is known.
    fn fill(&self, line: &mut record::Row<'_>, group: &Group, row: &Row) {
        let Some(time) = self.of(group, row) else { return };
        let known = |ns: u64| (time.calls > 0).then_some(ns);
        let count = |calls: u64| matches!(self.0, Some(Some(_))).then_some(calls);
        let short = time.unknown > 0;
        line.bound("cpu_ns", known(time.on), short).bound("off_cpu_ns", known(time.off), short);
        line.set("cpu_calls", count(time.calls)).set("cpu_unknown_calls", count(time.unknown));
    }

    /// Two columns of a row: `≥` when calls are left out, or may be because the tape could not be read to the end.
    fn columns(&self, out: &mut Vec<u8>, group: &Group, row: &Row, whole: bool) {
        let Some(time) = self.of(group, row) else { return };
        for ns in [time.on, time.off] {
            out.push(b' ');
            optional(out, (time.calls > 0).then_some(ns), 10, if time.unknown > 0 || !whole { "≥" } else { "" });
        }
    }
}

/// Widths of the two columns that perf does not have: as wide as their widest value, so that the table fits 100 columns when it can.
#[derive(Clone, Copy, Debug)]
struct Widths {
    p50: usize,
    p99: usize,
}

impl Widths {
    fn of(groups: &[Group]) -> Self {
        let width = |permille| {
            let width = |row: &Row| {
                let mut text = Vec::new();
                quantile(&mut text, &row.stats, permille, 1);
                String::from_utf8_lossy(&text).chars().count()
            };
            groups.iter().flat_map(|group| &group.rows).map(width).max().unwrap_or(0)
        };
        Self { p50: width(500).max(6), p99: width(990).max(7) }
    }
}

impl View<'_> {
    fn text(&self, out: &mut impl Write) -> io::Result<()> {
        let context = self.context;
        let session = context.question.tape.session();
        let complete = self.loss.complete() && !self.knowledge.missing();
        line(out, "")?;
        line(
            out,
            if complete { " Summary of events:" } else { " Summary of events (every count and time is at least):" },
        )?;
        let lost = self.loss.lines(session, LOSS_LINES).into_iter();
        for text in lost.chain(self.knowledge.doubts()).chain(self.knowledge.counted(session)) {
            line(out, &format!("   {text}"))?;
        }
        line(out, "")?;
        let widths = Widths::of(self.groups);
        let mut buffer = Vec::new();
        for group in self.groups {
            buffer.clear();
            self.heading(&mut buffer, group, if complete && !group.short { "" } else { "at least " });
            columns(&mut buffer, widths, self.cpu.0.is_some());
            for row in &group.rows {
                cells(&mut buffer, &row.call, &row.stats, widths);
                self.cpu.columns(&mut buffer, group, row, self.loss.complete());
                buffer.push(b'\n');
                if context.config.errnos {
                    for (errno, count) in &row.stats.errnos {
                        buffer.extend_from_slice(format!("\t\t\t\t{}: {count}\n", errno_name(*errno)).as_bytes());
                    }
                }
            }
            buffer.extend_from_slice(b"\n\n");
            out.write_all(&buffer)?;
        }
        Ok(())
    }

    /// ` ls (7103), 388 events, 100.0%`.
    fn heading(&self, out: &mut Vec<u8>, group: &Group, at_least: &str) {
        let (mode, events) = (self.context.config.mode, self.events);
        let percent = if events == 0 { 0.0 } else { 100.0 * group.events as f64 / events as f64 };
        let process = || format!("{} ({})", escaped(&group.task.comm), group.task.pid);
        let name = match (group.kind, mode) {
            (Kind::PerProcess, _) => format!("{} calls counted per process", process()),
            (Kind::Nobody, _) => "(process not known)".to_owned(),
            (Kind::SeveralCgroups, _) => "(moved to another cgroup meanwhile)".to_owned(),
            (Kind::AnyCgroup, _) => "(cgroup not known: events that tell of moves are missing)".to_owned(),
            (Kind::Whole, SummaryMode::Total) => "total".to_owned(),
            (Kind::Whole, SummaryMode::Cgroup) => cgroup_name(self.context.question.tape.session(), group),
            (Kind::Whole, SummaryMode::Thread) => format!("{} ({})", escaped(&group.task.comm), group.task.tid),
            (Kind::Whole, SummaryMode::Process) => process(),
        };
        let share = if mode == SummaryMode::Total { String::new() } else { format!(", {percent:.1}%") };
        out.extend_from_slice(format!(" {name}, {at_least}{} events{share}\n\n", group.events).as_bytes());
    }

    /// Prints the rows of all groups.
    fn rows(&self, form: Form, out: &mut impl Write) -> io::Result<()> {
        let mut parts: Vec<&TableDef> = Vec::new();
        parts.extend(self.cpu.0.as_ref().map(|_| &CPU));
        parts.extend(Some(&ERRNOS).filter(|_| self.context.config.errnos));
        let table = with_keys(named(&BY, keys(self.context.config.mode).iter().copied()), &with_parts(&SUMMARY, parts));
        let all = self.groups.iter().flat_map(|group| group.rows.iter().map(move |row| (group, row)));
        let rows = all.map(|(group, row)| {
            let mut line = record::Row::short_if(!self.loss.complete() || row.short, &table);
            self.keys(&mut line, group);
            measures(&mut line, &row.call, &row.stats);
            self.cpu.fill(&mut line, group, row);
            if self.context.config.errnos {
                line.set("errnos", errnos(&row.stats));
            }
            line
        });
        sink::print(form, &table, rows, out)
    }

    /// Sets what identifies a group, by the names of the listing.
    fn keys<'a>(&'a self, line: &mut record::Row<'a>, group: &'a Group) {
        let (task, session) = (&group.task, self.context.question.tape.session());
        let known = group.kind == Kind::Whole || group.kind == Kind::PerProcess;
        for name in keys(self.context.config.mode) {
            line.set(
                name,
                match *name {
                    _ if !known => Cell::Null,
                    "pid" => task.pid.into(),
                    "upid" => task.upid.into(),
                    "comm" => (&task.comm).into(),
                    "uid" => user(task.uid).into(),
                    "cgroup" => session.cgroup_path(task.cgroup_id).into(),
                    // which thread it was
                    _ if group.kind == Kind::PerProcess => Cell::Null,
                    "tid" => task.tid.into(),
                    _ => task.utid.into(),
                },
            );
        }
    }
}

/// The columns of [`BY`] that identify a group.
fn keys(mode: SummaryMode) -> &'static [&'static str] {
    match mode {
        SummaryMode::Thread => &["pid", "tid", "upid", "utid", "comm", "uid"],
        SummaryMode::Process => &["pid", "upid", "comm", "uid"],
        SummaryMode::Cgroup => &["cgroup"],
        SummaryMode::Total => &[],
    }
}

/// How often each error was returned.
fn errnos(stats: &Stats) -> Cell<'static> {
    let text: Vec<String> =
        stats.errnos.iter().map(|(errno, count)| format!("{}={count}", errno_name(*errno))).collect();
    let object: Map<String, Value> =
        stats.errnos.iter().map(|(errno, count)| (errno_name(*errno), (*count).into())).collect();
    Cell::Spelled(Value::Object(object), text.join(" "))
}

/// A row for each operation of a process.
fn ring_rows(ring: &Ring, whole: bool) -> impl Iterator<Item = record::Row<'_>> {
    ring.ops.iter().map(move |(op, count)| {
        let mut row = record::Row::short_if(!whole, &URING);
        row.set("kind", "io_uring").set("pid", ring.task.pid).set("upid", ring.task.upid);
        row.set("comm", &ring.task.comm).set("op", iouring_op_name(*op)).set("count", *count);
        row
    })
}

fn errno_name(errno: u16) -> String {
    if errno == ERRNO_ANY {
        return "unknown".to_owned();
    }
    systape_abi::errno_name(errno).map_or_else(|| errno.to_string(), str::to_owned)
}

fn cgroup_name(session: &Session, group: &Group) -> String {
    let id = group.task.cgroup_id;
    match session.cgroup_path(id) {
        Some(path) => escaped(path),
        None if id == 0 => "cgroup not known".to_owned(),
        None => format!("cgroup {id}"),
    }
}

fn columns(out: &mut Vec<u8>, widths: Widths, cpu: bool) {
    let (a, b) = (widths.p50, widths.p99);
    let more =
        if cpu { ["     on cpu    off cpu", "     (msec)     (msec)", " ---------- ----------"] } else { [""; 3] };
    let text = format!(
        "   syscall            calls  errors  total       min       avg       max       stddev  {:>a$} {:>b$}{}\n\
         \x20                                    (msec)    (msec)    (msec)    (msec)        (%)  {:>a$} {:>b$}{}\n\
         \x20  --------------- --------  ------ -------- --------- --------- ---------     ------  {} {}{}\n",
        "p50",
        "p99",
        more[0],
        "(msec)",
        "(msec)",
        more[1],
        "-".repeat(a),
        "-".repeat(b),
        more[2]
    );
    out.extend_from_slice(text.as_bytes());
}

/// perf's `"   %-15s %8u %6u %9.3f %9.3f %9.3f %9.3f %9.2f%%"`, then the quantiles.
fn cells(out: &mut Vec<u8>, call: &CallInfo, stats: &Stats, widths: Widths) {
    let total = u64::try_from(stats.total()).unwrap_or(u64::MAX);
    out.extend_from_slice(format!("   {:<15} {:8} {:6} ", call.long_name, stats.calls, stats.errors).as_bytes());
    num::millis(out, total, 9, if stats.open > 0 { "≥" } else { "" });
    for value in [(stats.timed > 0).then_some(stats.min), stats.avg()] {
        out.push(b' ');
        optional(out, value, 9, "");
    }
    out.push(b' ');
    // an open call may already be longer than every finished one
    let longest = if stats.timed > 0 || stats.open_max > 0 { Some(stats.max.max(stats.open_max)) } else { None };
    optional(out, longest, 9, if stats.open_max > stats.max { "≥" } else { "" });
    match stats.stddev_percent() {
        Some(percent) => out.extend_from_slice(format!(" {percent:9.2}%  ").as_bytes()),
        None => out.extend_from_slice(b"         -   "),
    }
    quantile(out, stats, 500, widths.p50);
    out.push(b' ');
    quantile(out, stats, 990, widths.p99);
}

/// A quantile in ms; `~`: sizes from the ledger leave it open by more than the histogram of stored calls does.
fn quantile(out: &mut Vec<u8>, stats: &Stats, permille: u64, width: usize) {
    let quantile = stats.quantile(permille);
    let about = quantile.is_some_and(|quantile| quantile.error > ROUGH);
    optional(out, quantile.map(|quantile| quantile.value), width, if about { "~" } else { "" });
}

/// A duration in ms, or `-` when there is none.
fn optional(out: &mut Vec<u8>, value: Option<u64>, width: usize, lead: &str) {
    match value {
        Some(ns) => num::millis(out, ns, width, lead),
        None => {
            num::spaces(out, width - 1, b' ');
            out.push(b'-');
        }
    }
}

/// Sets what is known of a call: times are those of finished calls, `total_ns` has the others' lower bounds in it.
fn measures(line: &mut record::Row<'_>, call: &CallInfo, stats: &Stats) {
    let timed = |value: u64| (stats.timed > 0).then_some(value);
    let open = stats.open > 0;
    let quantiles = [stats.quantile(500), stats.quantile(990)];
    let [p50, p99] = quantiles.map(|quantile| quantile.map(|quantile| quantile.value));
    let error = quantiles.into_iter().flatten().map(|quantile| quantile.error).reduce(f64::max);
    line.set("abi", call.abi.as_str()).set("syscall", call.name.clone());
    line.set("calls", stats.calls).set("errors", stats.errors);
    line.bound("total_ns", u64::try_from(stats.total()).unwrap_or(u64::MAX), open);
    // an open call may become longer than every finished one
    line.set("min_ns", timed(stats.min)).set("avg_ns", stats.avg()).bound("max_ns", timed(stats.max), open);
    line.set("stddev_percent", stats.stddev_percent()).set("p50_ns", p50).set("p99_ns", p99);
    line.set("incomplete_calls", stats.open).set("ledger_calls", stats.ledger_calls()).set("quantile_error", error);
}
