//! The summary: calls, errors and times per thread (or process, cgroup, all) and syscall, in the shape of `perf trace -s`, with the
//! median and the 99th percentile behind perf's columns.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use anyhow::Result;
use serde_json::{Map, Value, json};
use systape_format::model::{ERRNO_ANY, Family, Session, UID_UNKNOWN};

use super::Context;
use crate::calls::CallInfo;
use crate::families;
use crate::loss::Loss;
use crate::num;
use crate::output::line;
use crate::render::csv;
use crate::render::form::Format;
use crate::render::json::bytes;
use crate::reports::losses::LOSS_LINES;
use crate::say::complain;
use crate::summary::collect;
use crate::summary::cpu::{self, CpuTime, CpuTimes};
use crate::summary::hist::QUANTILE_ERROR;
use crate::summary::ledger::{Kind, Knowledge};
use crate::summary::mode::SummaryMode;
use crate::summary::stats::Stats;
use crate::summary::table::{self, Group, Row};
use crate::summary::uring::Rings;
use crate::words::escaped;

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
        _ => collect::collect(context.question.tape, &context.question.scope, &context.question.book, mode),
    };
    for hole in &sums.holes {
        if !context.question.loss.holes.contains(hole) {
            context.question.loss.holes.push(hole.clone());
        }
    }
    let mut rings = Rings::default();
    if context.config.format != Format::Csv && families::recorded(context.question.tape, Family::IoUring) != Some(false)
    {
        let mut loss = std::mem::take(&mut context.question.loss);
        let result = rings.collect(&context.question, &mut loss);
        context.question.loss = loss;
        result?;
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
    match context.config.format {
        Format::Text => {
            view.text(out)?;
            for ring in &rings {
                line(out, &ring.text(whole))?;
            }
        }
        Format::Json => {
            view.json(out)?;
            for ring in &rings {
                out.write_all(&ring.json(whole))?;
            }
        }
        Format::Csv => view.comma(out)?,
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

    /// Fields of a row; null where nothing is known.
    fn fields(&self, group: &Group, row: &Row) -> Vec<(&'static str, Value)> {
        let Some(time) = self.of(group, row) else { return Vec::new() };
        let known = |ns: u64| if time.calls == 0 { Value::Null } else { ns.into() };
        let count = |calls: u64| if matches!(self.0, Some(Some(_))) { calls.into() } else { Value::Null };
        vec![
            ("cpu_ns", known(time.on)),
            ("off_cpu_ns", known(time.off)),
            ("cpu_calls", count(time.calls)),
            ("cpu_unknown_calls", count(time.unknown)),
        ]
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

    fn json(&self, out: &mut impl Write) -> io::Result<()> {
        for group in self.groups {
            for row in &group.rows {
                let mut object: Map<String, Value> =
                    self.fields(group, row).into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
                if self.context.config.errnos {
                    let errnos: Map<String, Value> =
                        row.stats.errnos.iter().map(|(errno, count)| (errno_name(*errno), (*count).into())).collect();
                    object.insert("errnos".to_owned(), Value::Object(errnos));
                }
                line(out, &Value::Object(object).to_string())?;
            }
        }
        Ok(())
    }

    fn comma(&self, out: &mut impl Write) -> io::Result<()> {
        let mut buffer = Vec::new();
        let mut header = false;
        for group in self.groups {
            for row in &group.rows {
                let mut fields = self.fields(group, row);
                if self.context.config.errnos {
                    let errnos = row.stats.errnos.iter();
                    let errnos: Vec<String> =
                        errnos.map(|(errno, count)| format!("{}={count}", errno_name(*errno))).collect();
                    fields.push(("errnos", errnos.join(" ").into()));
                }
                if !std::mem::replace(&mut header, true) {
                    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
                    buffer.extend_from_slice(names.join(",").as_bytes());
                    buffer.push(b'\n');
                }
                for (at, (_, value)) in fields.iter().enumerate() {
                    if at > 0 {
                        buffer.push(b',');
                    }
                    csv::field(&mut buffer, csv::text(value).as_bytes());
                }
                buffer.push(b'\n');
            }
        }
        out.write_all(&buffer)
    }

    /// Everything known of a row, by name.
    fn fields(&self, group: &Group, row: &Row) -> Vec<(&'static str, Value)> {
        let complete = self.loss.complete() && !row.short;
        let fields = keys(self.context, group).into_iter().chain(measures(&row.call, &row.stats, complete));
        fields.chain(self.cpu.fields(group, row)).collect()
    }
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

/// What identifies a group, by the names of the listing.
fn keys(context: &Context<'_>, group: &Group) -> Vec<(&'static str, Value)> {
    let task = &group.task;
    if group.kind != Kind::Whole && group.kind != Kind::PerProcess {
        let names: &[&str] = match context.config.mode {
            SummaryMode::Thread => &["pid", "tid", "upid", "utid", "comm", "uid"],
            SummaryMode::Process => &["pid", "upid", "comm", "uid"],
            SummaryMode::Cgroup => &["cgroup"],
            SummaryMode::Total => &[],
        };
        return names.iter().map(|name| (*name, Value::Null)).collect();
    }
    // which thread it was
    let thread = |id: u32| if group.kind == Kind::PerProcess { Value::Null } else { id.into() };
    let comm = || bytes(&task.comm);
    let uid = || if task.uid == UID_UNKNOWN { Value::Null } else { task.uid.into() };
    match context.config.mode {
        SummaryMode::Total => Vec::new(),
        SummaryMode::Cgroup => {
            let path = context.question.tape.session().cgroup_path(task.cgroup_id);
            vec![("cgroup", path.map_or(Value::Null, bytes))]
        }
        SummaryMode::Process => {
            vec![("pid", task.pid.into()), ("upid", task.upid.into()), ("comm", comm()), ("uid", uid())]
        }
        SummaryMode::Thread => vec![
            ("pid", task.pid.into()),
            ("tid", thread(task.tid)),
            ("upid", task.upid.into()),
            ("utid", thread(task.utid)),
            ("comm", comm()),
            ("uid", uid()),
        ],
    }
}

/// What is known of a call, by the names of design: times are those of finished calls, `total_ns` has the others' lower bounds in it.
fn measures(call: &CallInfo, stats: &Stats, complete: bool) -> Vec<(&'static str, Value)> {
    let timed = |value: u64| if stats.timed > 0 { Value::from(value) } else { Value::Null };
    let optional = |value: Option<u64>| value.map_or(Value::Null, Value::from);
    let quantiles = [stats.quantile(500), stats.quantile(990)];
    let [p50, p99] = quantiles.map(|quantile| quantile.map(|quantile| quantile.value));
    let error = quantiles.into_iter().flatten().map(|quantile| quantile.error).reduce(f64::max);
    vec![
        ("abi", call.abi.as_str().into()),
        ("syscall", call.name.as_str().into()),
        ("calls", stats.calls.into()),
        ("errors", stats.errors.into()),
        ("total_ns", u64::try_from(stats.total()).unwrap_or(u64::MAX).into()),
        ("min_ns", timed(stats.min)),
        ("avg_ns", optional(stats.avg())),
        ("max_ns", timed(stats.max)),
        ("stddev_percent", json!(stats.stddev_percent())),
        ("p50_ns", optional(p50)),
        ("p99_ns", optional(p99)),
        ("incomplete_calls", stats.open.into()),
        ("ledger_calls", stats.ledger_calls().into()),
        ("complete", complete.into()),
        ("quantile_error", error.map_or(Value::Null, Value::from)),
    ]
}
