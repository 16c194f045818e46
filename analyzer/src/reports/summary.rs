//! The summary: calls, errors and times per thread (or process, cgroup, all) and syscall, in the shape of `perf trace -s`, with the
//! median and the 99th percentile behind perf's columns.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use anyhow::Result;
use serde_json::{Map, Value, json};
use systape_format::model::{Family, Session, UID_UNKNOWN};

use super::Context;
use crate::args::{Format, SummaryMode};
use crate::calls::CallInfo;
use crate::families;
use crate::loss::Loss;
use crate::output::line;
use crate::render::json::lossless;
use crate::render::words::escaped;
use crate::render::{csv, num};
use crate::reports::losses::LOSS_LINES;
use crate::run::complain;
use crate::summary::collect;
use crate::summary::cpu::{self, CpuTime, CpuTimes};
use crate::summary::hist::QUANTILE_ERROR;
use crate::summary::stats::Stats;
use crate::summary::table::{self, Group};
use crate::summary::uring::Rings;

/// Prints the summary to `out`; holes it meets are added to the context's losses.
pub fn run(context: &mut Context<'_>, out: &mut BufWriter<File>) -> Result<()> {
    let sums = {
        let (tape, scope) = (context.tape, &context.scope);
        collect::collect(tape, scope, &context.book, context.config.mode, &context.candidates())
    };
    for hole in &sums.holes {
        if !context.loss.holes.contains(hole) {
            context.loss.holes.push(hole.clone());
        }
    }
    let mut rings = Rings::default();
    if context.config.format != Format::Csv && families::recorded(context.tape, Family::IoUring) != Some(false) {
        let mut loss = std::mem::take(&mut context.loss);
        let result = rings.collect(context, &mut loss);
        context.loss = loss;
        result?;
    }
    let rings = rings.processes();
    let whole = rings.is_empty() || Loss::gather(context.tape, &context.scope, &[Family::IoUring]).complete();
    let (groups, events) = table::groups(sums, &context.book);
    let cpu = Cpu(context.config.cpu_time.then(|| cpu::collect(context, context.config.mode)));
    if matches!(cpu, Cpu(Some(None))) {
        complain("--cpu: scheduler events were not recorded in this tape");
    }
    match context.config.format {
        Format::Text => {
            text(context, out, &groups, events, &cpu)?;
            for ring in &rings {
                line(out, &ring.text(whole))?;
            }
        }
        Format::Json => {
            json(context, out, &groups, &cpu)?;
            for ring in &rings {
                out.write_all(&ring.json(whole))?;
            }
        }
        Format::Csv => comma(context, out, &groups, &cpu)?,
    }
    Ok(())
}

/// Time on and off a CPU, if asked for and recorded.
struct Cpu(Option<Option<CpuTimes>>);

impl Cpu {
    /// Of a row; None: not asked for.
    fn of(&self, group: &Group, call: &CallInfo) -> Option<CpuTime> {
        let times = self.0.as_ref()?;
        let time = times.as_ref().and_then(|times| times.get(&(group.key, call.call)));
        Some(time.copied().unwrap_or_default())
    }

    /// Fields of a row; null where nothing is known.
    fn fields(&self, group: &Group, call: &CallInfo) -> Vec<(&'static str, Value)> {
        let Some(time) = self.of(group, call) else { return Vec::new() };
        let known = |ns: u64| if time.calls == 0 { Value::Null } else { ns.into() };
        let count = |calls: u64| if matches!(self.0, Some(Some(_))) { calls.into() } else { Value::Null };
        vec![
            ("cpu_ns", known(time.on)),
            ("off_cpu_ns", known(time.off)),
            ("cpu_calls", count(time.calls)),
            ("cpu_unknown_calls", count(time.unknown)),
        ]
    }

    /// Two columns of a row: `≥` when calls are left out.
    fn columns(&self, out: &mut Vec<u8>, group: &Group, call: &CallInfo) {
        let Some(time) = self.of(group, call) else { return };
        for ns in [time.on, time.off] {
            out.push(b' ');
            optional(out, (time.calls > 0).then_some(ns), 10, if time.unknown > 0 { "≥" } else { "" });
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
            let values = groups.iter().flat_map(|g| &g.rows).filter_map(|(_, stats)| stats.quantile(permille));
            let mut text = Vec::new();
            num::millis(&mut text, values.max().unwrap_or(0), 0, "");
            text.len()
        };
        Self { p50: width(500).max(6), p99: width(990).max(7) }
    }
}

fn text(context: &Context<'_>, out: &mut impl Write, groups: &[Group], events: u64, cpu: &Cpu) -> io::Result<()> {
    let complete = context.loss.complete();
    let session = context.tape.session();
    line(out, "")?;
    line(out, if complete { " Summary of events:" } else { " Summary of events (every count and time is at least):" })?;
    for lost in context.loss.lines(session, LOSS_LINES) {
        line(out, &format!("   {lost}"))?;
    }
    line(out, "")?;
    let widths = Widths::of(groups);
    let at_least = if complete { "" } else { "at least " };
    let mut buffer = Vec::new();
    for group in groups {
        buffer.clear();
        heading(context, &mut buffer, group, events, at_least);
        columns(&mut buffer, widths, cpu.0.is_some());
        for (call, stats) in &group.rows {
            row(&mut buffer, call, stats, widths);
            cpu.columns(&mut buffer, group, call);
            buffer.push(b'\n');
            if context.config.errnos {
                for (errno, count) in &stats.errnos {
                    buffer.extend_from_slice(format!("\t\t\t\t{}: {count}\n", errno_name(*errno)).as_bytes());
                }
            }
        }
        buffer.extend_from_slice(b"\n\n");
        out.write_all(&buffer)?;
    }
    Ok(())
}

fn errno_name(errno: u16) -> String {
    systape_abi::errno_name(errno).map_or_else(|| errno.to_string(), str::to_owned)
}

/// ` ls (7103), 388 events, 100.0%`.
fn heading(context: &Context<'_>, out: &mut Vec<u8>, group: &Group, events: u64, at_least: &str) {
    let percent = if events == 0 { 0.0 } else { 100.0 * group.events as f64 / events as f64 };
    let name = match context.config.mode {
        SummaryMode::Total => "total".to_owned(),
        SummaryMode::Cgroup => cgroup_name(context.tape.session(), group),
        SummaryMode::Thread => format!("{} ({})", escaped(&group.task.comm), group.task.tid),
        SummaryMode::Process => format!("{} ({})", escaped(&group.task.comm), group.task.pid),
    };
    let share = if context.config.mode == SummaryMode::Total { String::new() } else { format!(", {percent:.1}%") };
    out.extend_from_slice(format!(" {name}, {at_least}{} events{share}\n\n", group.events).as_bytes());
}

fn cgroup_name(session: &Session, group: &Group) -> String {
    let id = group.task.cgroup_id;
    match crate::render::cgroup_path(session, id) {
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
fn row(out: &mut Vec<u8>, call: &CallInfo, stats: &Stats, widths: Widths) {
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
    out.extend_from_slice(format!(" {:9.2}%  ", stats.stddev_percent()).as_bytes());
    optional(out, stats.quantile(500), widths.p50, "");
    out.push(b' ');
    optional(out, stats.quantile(990), widths.p99, "");
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
    let comm = || Value::from(lossless(&task.comm));
    let uid = || if task.uid == UID_UNKNOWN { Value::Null } else { task.uid.into() };
    match context.config.mode {
        SummaryMode::Total => Vec::new(),
        SummaryMode::Cgroup => {
            let path = crate::render::cgroup_path(context.tape.session(), task.cgroup_id);
            vec![("cgroup", path.map(String::from_utf8_lossy).map_or(Value::Null, Value::from))]
        }
        SummaryMode::Process => {
            vec![("pid", task.pid.into()), ("upid", task.upid.into()), ("comm", comm()), ("uid", uid())]
        }
        SummaryMode::Thread => vec![
            ("pid", task.pid.into()),
            ("tid", task.tid.into()),
            ("upid", task.upid.into()),
            ("utid", task.utid.into()),
            ("comm", comm()),
            ("uid", uid()),
        ],
    }
}

/// What is known of a call, by the names of design: times are those of finished calls, `total_ns` has the others' lower bounds in it.
fn measures(call: &CallInfo, stats: &Stats, complete: bool) -> Vec<(&'static str, Value)> {
    let timed = |value: u64| if stats.timed > 0 { Value::from(value) } else { Value::Null };
    let optional = |value: Option<u64>| value.map_or(Value::Null, Value::from);
    let stddev = if stats.timed > 0 { json!(stats.stddev_percent()) } else { Value::Null };
    vec![
        ("abi", call.abi.as_str().into()),
        ("syscall", call.name.as_str().into()),
        ("calls", stats.calls.into()),
        ("errors", stats.errors.into()),
        ("total_ns", u64::try_from(stats.total()).unwrap_or(u64::MAX).into()),
        ("min_ns", timed(stats.min)),
        ("avg_ns", optional(stats.avg())),
        ("max_ns", timed(stats.max)),
        ("stddev_percent", stddev),
        ("p50_ns", optional(stats.quantile(500))),
        ("p99_ns", optional(stats.quantile(990))),
        ("incomplete_calls", stats.open.into()),
        ("ledger_calls", 0.into()),
        ("complete", complete.into()),
        ("quantile_error", QUANTILE_ERROR.into()),
    ]
}

fn json(context: &Context<'_>, out: &mut impl Write, groups: &[Group], cpu: &Cpu) -> io::Result<()> {
    let complete = context.loss.complete();
    for group in groups {
        for (call, stats) in &group.rows {
            let fields = keys(context, group).into_iter().chain(measures(call, stats, complete));
            let fields = fields.chain(cpu.fields(group, call));
            let mut object: Map<String, Value> = fields.map(|(name, value)| (name.to_owned(), value)).collect();
            if context.config.errnos {
                let errnos: Map<String, Value> =
                    stats.errnos.iter().map(|(errno, count)| (errno_name(*errno), (*count).into())).collect();
                object.insert("errnos".to_owned(), Value::Object(errnos));
            }
            line(out, &Value::Object(object).to_string())?;
        }
    }
    Ok(())
}

fn comma(context: &Context<'_>, out: &mut impl Write, groups: &[Group], cpu: &Cpu) -> io::Result<()> {
    let complete = context.loss.complete();
    let mut buffer = Vec::new();
    let mut header = false;
    for group in groups {
        for (call, stats) in &group.rows {
            let mut fields: Vec<_> = keys(context, group);
            fields.extend(measures(call, stats, complete));
            fields.extend(cpu.fields(group, call));
            if context.config.errnos {
                let errnos: Vec<String> =
                    stats.errnos.iter().map(|(errno, count)| format!("{}={count}", errno_name(*errno))).collect();
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
                match value {
                    Value::Null => {}
                    Value::String(text) => csv::field(&mut buffer, escaped(text.as_bytes()).as_bytes()),
                    other => buffer.extend_from_slice(other.to_string().as_bytes()),
                }
            }
            buffer.push(b'\n');
        }
    }
    out.write_all(&buffer)
}
