//! The summary: calls, errors and times per thread (or process, cgroup, all) and syscall, in the shape of `perf trace -s`, with the
//! median and the 99th percentile behind perf's columns.

pub(super) mod many;

use std::io::{self, Write};

use anyhow::{Result, bail};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value as Json};
use systape_format::model::{Family, Task};
use systape_format::table::TableDef;

use super::{Context, events};
use crate::asked::config::{Config, OF_TAPES};
use crate::asked::sort::Sort;
use crate::reports::losses::LOSS_LINES;
use crate::reports::measured::{ROUGH, SUMMARY, measured, measures};
use systape_abi::iouring_op_name;
use systape_answers::derive::summary::collect;
use systape_answers::derive::summary::column::Column;
use systape_answers::derive::summary::counted::Quantile;
use systape_answers::derive::summary::cpu::{self, CpuTime, CpuTimes};
use systape_answers::derive::summary::ledger::Knowledge;
use systape_answers::derive::summary::mode::SummaryMode;
use systape_answers::derive::summary::plan::Plan;
use systape_answers::derive::summary::stats::Stats;
use systape_answers::derive::summary::table::{self, Ranked, Row, SummaryGroup};
use systape_answers::derive::summary::uring::{ProcessOperations, Rings};
use systape_answers::keys::{KeyWords, RowKeys};
use systape_answers::render::by;
use systape_answers::render::cell::Cell;
use systape_answers::render::fields::{TextColumn, TextColumns};
use systape_answers::render::form::Format;
use systape_answers::render::keys::{columns as named, with_keys, with_parts};
use systape_answers::render::mark;
use systape_answers::render::out::Out;
use systape_answers::render::row::{self as record, Judgement};
use systape_answers::render::table::{Table, millis};
use systape_answers::values::output::{self, line};
use systape_events::families;
use systape_events::group::by::GroupKey;
use systape_events::group::value::{Key, Value};
use systape_events::loss::Loss;
use systape_events::values::num;
use systape_events::values::words::{self, errno_text, escaped};

systape_format::tables! {
    /// With `--cpu` also; all null: scheduler events were not recorded.
    pub CPU = "summary_cpu" {
        cpu_ns ? AtLeast: Duration "time on a CPU of `cpu_calls`; null: there are none"
        off_cpu_ns ? AtLeast: Duration "their time off the CPU; null: there are none"
        cpu_calls ? AtLeast: Count "calls whose whole history is known"
        cpu_unknown_calls ? OfKnown: Count "the others"
    }
    /// With `--errno-summary` also:
    pub ERRNOS = "summary_errnos" {
        errnos ? AtLeast: Nested "`{\"ENOENT\": 22}`; `unknown`: failed with an unknown error; CSV: `ENOENT=22 …`"
    }
    /// One row for each io_uring operation of a process, behind the others, in JSON.
    pub URING = "summary_io_uring" {
        kind: Word key "`io_uring`"
        pid: Int key "process"
        upid: Int key "the same, unique in the tape"
        comm: Str key [Comm] "its name"
        op: Word key "the operation: `READ`"
        count ? AtLeast: Count "how often"
    }
}

/// Options of the summary.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// Add how often each errno was returned; implies -s
    #[arg(long, help_heading = "Summary")]
    errno_summary: bool,

    /// What the summary groups by
    #[arg(long, value_enum, value_name = "MODE", default_value_t, help_heading = "Summary")]
    summary_mode: SummaryMode,
}

/// Options that do not apply to a summary.
pub(crate) fn check(config: &Config) -> Result<()> {
    let own: Options = config.own()?;
    if !config.view.takes("with_summary") && matches!(config.sort, Some(Sort::Listing(_))) {
        bail!("--sort start and end order a listing; a summary is sorted by calls, errors, total, avg, max or p99");
    }
    if config.events.tables() {
        events::keys(config)?;
        if config.calls && config.format == Format::Csv {
            bail!(
                "-s prints a table of calls and one of events, and CSV holds one: ask for calls and for events on their own"
            );
        }
    }
    if config.is_by_tape() {
        return many::check(config);
    }
    if config.calls {
        return keys(config, &own).map(drop);
    }
    if !config.events.tables() {
        bail!("-s sums up calls, and -e names none: add the calls to sum up, or leave out -s");
    }
    let of_calls = [
        (config.filters.longer_than.is_some(), "--duration"),
        (config.filters.failure, "--failure"),
        (config.filters.by_path(), "-P"),
        (own.errno_summary, "--errno-summary"),
        (own.summary_mode != SummaryMode::default(), "--summary-mode"),
        (config.bare_cpu(), "--cpu"),
        (matches!(config.sort, Some(Sort::Sums(_))), "--sort"),
    ];
    match of_calls.iter().find(|(given, _)| *given) {
        Some((_, option)) => bail!("{option} is about calls, and -e names none: leave it out, or add calls"),
        None => Ok(()),
    }
}

/// Facts that a summary found beside its numbers.
#[derive(Debug)]
pub(crate) struct Told {
    /// What is missing from it.
    pub loss: Loss,
    /// Lines about calls that might be missing.
    pub doubts: Vec<String>,
    /// Some of these were lost, or another loss was reported.
    pub lost: bool,
}

/// Prints the summary to `out`; holes are added to the context's losses.
pub(crate) fn run(context: &mut Context<'_>, out: &mut Out) -> Result<Told> {
    let own: Options = context.config.own()?;
    let (by, plan) = keys(context.config, &own)?;
    let plan = plan.naming(context.question.tape.session());
    let (sums, knowledge) = match families::recorded(context.question.tape, Family::Syscall) {
        // those in flight when the recording began or ended are no summary
        Some(false) => Default::default(),
        _ => {
            let question = &context.question;
            let (sums, knowledge, coverage) = collect::collect(question.tape, &question.scope, &question.book, &plan);
            coverage.tell(&mut context.question.loss);
            (sums, knowledge)
        }
    };
    let mut rings = Rings::default();
    let has_rings = families::recorded(context.question.tape, Family::IoUring) != Some(false);
    if has_rings && context.config.format != Format::Csv {
        let coverage = rings.collect(&context.question);
        coverage.tell(&mut context.question.loss);
    }
    let rings = rings.processes();
    let gather = || Loss::gather(context.question.tape, &context.question.scope, &[Family::IoUring]);
    let whole = !has_rings || gather().complete();
    let column = match context.config.sort {
        Some(Sort::Sums(column)) => column,
        _ => Column::default(),
    };
    let cpu = context.config.bare_cpu().then(|| cpu::collect(&mut context.question, &plan).map(CpuByKey::new));
    let rows = table::rows(&sums, &knowledge, &context.question.book, &plan, column);
    context.config.shown.rows(rows.len() + rings.len());
    let lost = rows.lost();
    // in perf's shape a group has a sum of its own
    let lost = lost || (by.is_empty() && rows.iter().any(|row| knowledge.group_lost(&row.key)));
    // what a thread did in its calls is not known where switches, or its beginning and end, are missing
    let of_cpu = || Loss::gather(context.question.tape, &context.question.scope, &[Family::Sched, Family::Process]);
    let seen = !matches!(cpu, Some(Some(_))) || of_cpu().of_sums().complete();
    if !seen && !out.is_text() {
        out.say("--cpu: scheduler events were lost: how long some calls were on a CPU is not known");
    }
    let cpu = OnOffCpu { times: cpu, seen };
    let loss = context.question.loss.of_sums();
    let view = SummaryInput { context, loss: &loss, knowledge: &knowledge, plan: &plan, by: &by, own: &own, cpu: &cpu };
    if matches!(cpu.times, Some(None)) {
        out.say(&match families::recorded(context.question.tape, Family::Sched) {
            None => "--cpu: the block that says whose scheduler events were recorded is damaged".to_owned(),
            Some(_) => match families::why_left_out(context.question.tape.session(), Family::Sched) {
                Some(why) => format!("--cpu: scheduler events were not recorded: {why}"),
                None => "--cpu: scheduler events were not recorded in this tape".to_owned(),
            },
        });
    }
    if out.is_text() {
        if by.is_empty() {
            view.text(&rows, out)?
        } else {
            view.flat(&rows, out)?
        }
        for ring in &rings {
            line(out, &ring.text(whole))?;
        }
    } else {
        view.rows(&rows, out)?;
        out.rows_beside(&URING, Judgement::Touched(!whole), rings.iter().flat_map(ring_rows))?;
    }
    Ok(Told { doubts: knowledge.doubts(), lost: lost || !whole || !seen, loss })
}

/// The keys of `--by`, none without, and the plan.
fn keys(config: &Config, own: &Options) -> Result<(Vec<GroupKey>, Plan)> {
    // those of tapes are no keys of calls
    let words: Vec<String> = config.by.iter().filter(|word| !OF_TAPES.contains(&word.as_str())).cloned().collect();
    let by = GroupKey::parse(&words, &Plan::OF_CALLS, "the summary")?;
    if config.by.is_empty() {
        return Ok((by, Plan::mode(own.summary_mode)));
    }
    if own.summary_mode != SummaryMode::default() {
        bail!("--summary-mode is a short way to say --by: give one of them");
    }
    let plan = Plan::by(&by);
    if config.bare_cpu() && plan.by_row() {
        bail!("--cpu goes with keys of tasks and syscalls, not with file, errno or cpu");
    }
    Ok((by, plan))
}

/// Input of every form.
struct SummaryInput<'a> {
    context: &'a Context<'a>,
    loss: &'a Loss,
    knowledge: &'a Knowledge,
    plan: &'a Plan,
    /// Keys of `--by`; empty: in perf's shape, by the plan's keys.
    by: &'a [GroupKey],
    own: &'a Options,
    cpu: &'a OnOffCpu,
}

/// Time on and off a CPU by key.
struct CpuByKey(FxHashMap<Key, CpuTime>);

impl CpuByKey {
    fn new(times: CpuTimes) -> Self {
        Self(times.into_sums().collect())
    }
}

/// Time on and off a CPU.
struct OnOffCpu {
    /// Whether they are requested, and recorded.
    times: Option<Option<CpuByKey>>,
    /// None of the events they depend on is missing.
    seen: bool,
}

impl OnOffCpu {
    /// Times of a row; None: not requested.
    fn of(&self, row: &Row<'_>) -> Option<CpuTime> {
        let times = self.times.as_ref()?;
        let time = times.as_ref().and_then(|times| times.0.get(&row.key));
        let mut time = time.copied().unwrap_or_default();
        // nobody knows when these ran
        time.unknown = time.unknown.saturating_add(row.stats.ledger_calls());
        Some(time)
    }

    /// Sets the columns of [`CPU`] if requested; null if not known.
    fn fill(&self, line: &mut record::Row<'_>, row: &Row<'_>) {
        let Some(time) = self.of(row) else { return };
        let known = |ns: u64| (time.calls > 0).then_some(ns);
        let count = |calls: u64| matches!(self.times, Some(Some(_))).then_some(calls);
        let short = time.unknown > 0 || !self.seen;
        line.bound("cpu_ns", known(time.on), short).bound("off_cpu_ns", known(time.off), short);
        line.bound("cpu_calls", count(time.calls), short).bound("cpu_unknown_calls", count(time.unknown), short);
    }

    /// Two columns of a row: `>=` when calls are, or may be, left out because the tape could not be read to its end.
    fn columns(&self, row: &Row<'_>, whole: bool) -> Option<[(Option<u64>, &'static str); 2]> {
        let time = self.of(row)?;
        let lead = mark::at_least(time.unknown > 0 || !whole);
        Some([time.on, time.off].map(|ns| ((time.calls > 0).then_some(ns), lead)))
    }
}

/// Widths of columns that adapt to their widest value: those that may have a mark, and those that perf does not have.
/// The table fits 100 columns if possible.
#[derive(Clone, Copy, Debug)]
struct Widths {
    total: usize,
    max: usize,
    p50: usize,
    p99: usize,
}

impl Widths {
    fn of(rows: &[Row<'_>]) -> Self {
        let mut text = Vec::new();
        let mut widest = |write: &dyn Fn(&mut Vec<u8>, &Row<'_>)| {
            let width = |row: &Row<'_>| {
                text.clear();
                write(&mut text, row);
                text.len()
            };
            rows.iter().map(width).max().unwrap_or(0)
        };
        Self {
            total: widest(&|out, row| total(out, &row.stats, 1)).max(9),
            max: widest(&|out, row| longest(out, &row.stats, 1)).max(9),
            p50: widest(&|out, row| quantile(out, row.quantiles()[0], 1)).max(6),
            p99: widest(&|out, row| quantile(out, row.quantiles()[1], 1)).max(7),
        }
    }
}

/// Columns of sums that a narrow terminal has no room for, in the order in which they are left out.
pub(super) const NARROW: &[&str] = &["stddev %", "min ms", "p50 ms", "avg ms", "p99 ms", "errors", "max ms"];

impl SummaryInput<'_> {
    /// Whether no call is missing.
    fn complete(&self) -> bool {
        self.loss.complete() && !self.knowledge.missing()
    }

    /// The head: losses, and counted calls.
    fn head(&self, out: &mut impl Write) -> io::Result<()> {
        let session = self.context.question.tape.session();
        // by keys no events are printed
        let two = self.by.is_empty().then_some("a call's entry and its return are two");
        let least = (!self.complete()).then_some("counts and times are lower bounds");
        let notes: Vec<&str> = two.into_iter().chain(least).collect();
        let heading = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
        line(out, "")?;
        line(out, &format!(" Summary of events{heading}:"))?;
        let lost = self.loss.lines(session, LOSS_LINES).into_iter();
        for text in lost.chain(self.knowledge.doubts()).chain(self.knowledge.counted(session)) {
            line(out, &format!("   {text}"))?;
        }
        line(out, "")
    }

    fn groups<'r>(&self, rows: impl IntoIterator<Item = Row<'r>>) -> (Vec<SummaryGroup<'r>>, u64) {
        let sorted = matches!(self.context.config.sort, Some(Sort::Sums(_)));
        table::groups(rows, self.knowledge, self.plan, sorted)
    }

    /// A table for each group, in perf's shape.
    fn text(&self, rows: &Ranked<'_>, out: &mut impl Write) -> io::Result<()> {
        self.head(out)?;
        let rows: Vec<Row<'_>> = rows.iter().collect();
        let widths = Widths::of(&rows);
        let (groups, events) = self.groups(rows);
        let fields = widths.fields(self.cpu.times.is_some());
        // which columns are left out is told once
        let mut buffer = Vec::new();
        fields.head();
        for group in &groups {
            buffer.clear();
            self.heading(&mut buffer, group, events);
            for texts in widths.headings() {
                buffer.extend_from_slice(format!("{}\n", fields.raw(&texts)).as_bytes());
            }
            for row in &group.rows {
                let mut texts = cells(row, widths);
                let cpu = self.cpu.columns(row, self.loss.complete() && self.cpu.seen).into_iter().flatten();
                texts.extend(cpu.map(|(ns, lead)| text_of(|out| optional(out, ns, 10, lead))));
                buffer.extend_from_slice(format!("{}\n", fields.line(&texts)).as_bytes());
                self.errnos(&mut buffer, row, "\t\t\t\t");
            }
            buffer.extend_from_slice(b"\n\n");
            output::lines(out, &String::from_utf8_lossy(&buffer))?;
        }
        Ok(())
    }

    /// One table of all keys.
    fn flat(&self, rows: &Ranked<'_>, out: &mut impl Write) -> io::Result<()> {
        self.head(out)?;
        let names = ["calls", "errors", "total ms", "min ms", "avg ms", "max ms", "stddev %", "p50 ms", "p99 ms"];
        let cpu = ["on cpu ms", "off cpu ms"].into_iter().filter(|_| self.cpu.times.is_some());
        let table = names.into_iter().chain(cpu).fold(Table::default(), Table::number);
        let errnos = ["errnos"].into_iter().filter(|_| self.own.errno_summary);
        let words = self.by.iter().map(|by| by.heading()).chain(errnos);
        let table = words.fold(table, Table::word).leaving(NARROW);
        let cells = |row: Row<'_>| {
            let mut cells = measured(&row, !self.complete() || row.short);
            let cpu = self.cpu.columns(&row, self.loss.complete() && self.cpu.seen).into_iter().flatten();
            cells.extend(cpu.map(|(ns, lead)| ns.map_or_else(|| "-".to_owned(), |ns| millis(ns, lead))));
            let keys = self.keys(&row);
            cells.extend(self.by.iter().map(|by| keys.text(*by)));
            if self.own.errno_summary {
                cells.push(errnos_text(&row.stats));
            }
            cells
        };
        table.print_rows(rows.iter().map(cells), out)
    }

    fn errnos(&self, out: &mut Vec<u8>, row: &Row<'_>, indent: &str) {
        for (errno, count) in row.stats.errnos.iter().filter(|_| self.own.errno_summary) {
            out.extend_from_slice(format!("{indent}{}: {count}\n", errno_text(*errno)).as_bytes());
        }
    }

    /// ` ls (7103), 388 events, 100.0%`.
    fn heading(&self, out: &mut Vec<u8>, group: &SummaryGroup<'_>, events: u64) {
        let percent = if events == 0 { 0.0 } else { 100.0 * group.events as f64 / events as f64 };
        let at_least = if self.complete() && !group.short { "" } else { "at least " };
        let task = |id: fn(&Task) -> u32| match group.task {
            Some(task) => format!("{} ({})", escaped(&task.comm), id(task)),
            None => "?".to_owned(),
        };
        let process = || task(|task| task.pid);
        let name = match &*group.key {
            [] => "total".to_owned(),
            [Value::Number(cgroup)] => words::cgroup(self.context.question.tape.session(), *cgroup),
            [Value::Several] => "(moved to another cgroup meanwhile)".to_owned(),
            [Value::None] => "cgroup not known".to_owned(),
            [Value::Unknown] if self.plan.by_cgroup() => "(cgroup unknown: events of moves are missing)".to_owned(),
            [Value::Unknown, ..] => "(process not known)".to_owned(),
            [_] => process(),
            [_, Value::Unknown, ..] => format!("{} calls counted per process", process()),
            _ => task(|task| task.tid),
        };
        let share = if group.key.is_empty() { String::new() } else { format!(", {percent:.1}%") };
        out.extend_from_slice(format!(" {name}, {at_least}{} events{share}\n\n", group.events).as_bytes());
    }

    /// Prints the rows; without `--by` in the order of the text.
    fn rows(&self, rows: &Ranked<'_>, out: &mut Out) -> io::Result<()> {
        let mut parts: Vec<&TableDef> = Vec::new();
        parts.extend(self.cpu.times.as_ref().map(|_| &CPU));
        parts.extend(Some(&ERRNOS).filter(|_| self.own.errno_summary));
        let modal = mode_columns(self.own.summary_mode);
        let (columns, rows): (_, Box<dyn Iterator<Item = Row<'_>>>) = if self.by.is_empty() {
            let (groups, _) = self.groups(rows.iter());
            let rows = groups.into_iter().flat_map(|group| group.rows);
            (named(&by::BY, modal.iter().map(|(_, name)| *name)), Box::new(rows))
        } else {
            (by::columns(self.by), Box::new(rows.iter()))
        };
        let table = with_keys(columns, &with_parts(&SUMMARY, parts));
        let lines = rows.map(|row| {
            let mut line = record::Row::short_if(row.short, &table);
            let keys = self.keys(&row);
            let cell = |by, name: &'static str| keys.cell(by, name).into_owned();
            if self.by.is_empty() {
                for (by, name) in &modal {
                    line.set(name, cell(*by, name));
                }
            } else {
                by::fill(&mut line, self.by, cell);
            }
            measures(&mut line, &row.stats);
            self.cpu.fill(&mut line, &row);
            if self.own.errno_summary {
                line.set("errnos", errnos(&row.stats));
            }
            line
        });
        out.rows(&table, Judgement::Touched(!self.loss.complete()), lines)
    }

    fn keys<'r>(&'r self, row: &'r Row<'_>) -> RowKeys<'r> {
        let question = &self.context.question;
        let words = KeyWords { session: question.tape.session(), book: &question.book, plan: self.plan };
        RowKeys { words, values: &row.key, task: row.task }
    }
}

/// The columns of [`by::BY`] that identify a row of a summary without `--by`.
fn mode_columns(mode: SummaryMode) -> Vec<(GroupKey, &'static str)> {
    let of = |by: GroupKey, names: &'static [&'static str]| names.iter().map(move |name| (by, *name));
    let whose = match mode {
        SummaryMode::Thread => of(GroupKey::Tid, &["pid", "tid", "upid", "utid", "comm", "uid"]),
        SummaryMode::Process => of(GroupKey::Pid, &["pid", "upid", "comm", "uid"]),
        SummaryMode::Cgroup => of(GroupKey::Cgroup, &["cgroup"]),
        SummaryMode::Total => of(GroupKey::Syscall, &[]),
    };
    whose.chain(of(GroupKey::Syscall, &["abi", "syscall"])).collect()
}

/// How often each error was returned.
fn errnos(stats: &Stats) -> Cell<'static> {
    let object: Map<String, Json> =
        stats.errnos.iter().map(|(errno, count)| (errno_text(*errno), (*count).into())).collect();
    Cell::Spelled(Json::Object(object), errnos_text(stats))
}

/// `ENOENT=22 EAGAIN=1`.
fn errnos_text(stats: &Stats) -> String {
    let text = stats.errnos.iter().map(|(errno, count)| format!("{}={count}", errno_text(*errno)));
    text.collect::<Vec<_>>().join(" ")
}

/// A row for each operation of a process.
fn ring_rows(ring: &ProcessOperations) -> impl Iterator<Item = record::Row<'_>> {
    ring.ops.iter().map(move |(op, count)| {
        let mut row = record::Row::new(&URING);
        row.set("kind", "io_uring").set("pid", ring.task.pid).set("upid", ring.task.upid);
        row.set("comm", &ring.task.comm).set("op", iouring_op_name(*op)).set("count", *count);
        row
    })
}

impl Widths {
    /// perf's columns, `"   %-15s %8u %6u %9.3f %9.3f %9.3f %9.3f %9.2f%%"`, then the quantiles and times on and off a CPU.
    fn fields(self, cpu: bool) -> TextColumns {
        let times = [TextColumn::right("on cpu", 10).leaves(7), TextColumn::right("off cpu", 10)];
        let fields = [
            TextColumn::left("syscall", 18),
            TextColumn::right("calls", 8),
            TextColumn::right("errors", 6).leaves(6),
            TextColumn::right("total", self.total),
            TextColumn::right("min", 9).leaves(2),
            TextColumn::right("avg", 9).leaves(4),
            TextColumn::right("max", self.max).leaves(8),
            TextColumn::right("stddev", 11).leaves(1),
            TextColumn::right("p50", self.p50).leaves(3),
            TextColumn::right("p99", self.p99).leaves(5),
        ];
        TextColumns::new(fields.into_iter().chain(times.into_iter().filter(|_| cpu)), " ")
    }

    /// The three lines above them, where perf has them.
    fn headings(self) -> [[String; 12]; 3] {
        // perf's columns are 9 wide
        let [t, m] = [self.total, self.max].map(|width| width - 9);
        let (a, b) = (self.p50, self.p99);
        [
            [
                "   syscall        ".to_owned(),
                "   calls".to_owned(),
                " errors".to_owned(),
                format!(" {:t$}total", ""),
                "      min".to_owned(),
                "      avg".to_owned(),
                format!("      {:m$}max", ""),
                "      stddev ".to_owned(),
                format!("{:>a$}", "p50"),
                format!("{:>b$}", "p99"),
                "    on cpu".to_owned(),
                "   off cpu".to_owned(),
            ],
            [
                " ".repeat(18),
                " ".repeat(8),
                " ".repeat(7),
                format!(" {:t$}(msec)", ""),
                "   (msec)".to_owned(),
                "   (msec)".to_owned(),
                format!("   {:m$}(msec)", ""),
                "       (%) ".to_owned(),
                format!("{:>a$}", "(msec)"),
                format!("{:>b$}", "(msec)"),
                "    (msec)".to_owned(),
                "    (msec)".to_owned(),
            ],
            [
                "   ---------------".to_owned(),
                "-".repeat(8),
                " ------".to_owned(),
                "-".repeat(8 + t),
                "-".repeat(9),
                "-".repeat(9),
                "-".repeat(9 + m),
                "    ------ ".to_owned(),
                "-".repeat(a),
                "-".repeat(b),
                "-".repeat(10),
                "-".repeat(10),
            ],
        ]
    }
}

/// The texts of a row in these columns.
fn cells(row: &Row<'_>, widths: Widths) -> Vec<String> {
    let (name, stats) = (row.call.as_ref().map_or("?", |call| &call.long_name), &*row.stats);
    let [p50, p99] = *row.quantiles();
    let time = |value: Option<u64>| text_of(|out| optional(out, value, 9, ""));
    vec![
        format!("   {name}"),
        stats.calls.to_string(),
        stats.errors.to_string(),
        text_of(|out| total(out, stats, widths.total)),
        time((stats.timed > 0).then_some(stats.min)),
        time(stats.avg()),
        text_of(|out| longest(out, stats, widths.max)),
        stats.stddev_percent().map_or_else(|| "        -  ".to_owned(), |percent| format!("{percent:9.2}% ")),
        text_of(|out| quantile(out, p50, widths.p50)),
        text_of(|out| quantile(out, p99, widths.p99)),
    ]
}

/// What `write` writes.
fn text_of(write: impl Fn(&mut Vec<u8>)) -> String {
    let mut text = Vec::new();
    write(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The time in all calls in ms; `>=`: some lasted longer than known.
fn total(out: &mut Vec<u8>, stats: &Stats, width: usize) {
    let total = u64::try_from(stats.total()).unwrap_or(u64::MAX);
    num::millis(out, total, width, mark::at_least(stats.open > 0));
}

/// The longest call in ms.
fn longest(out: &mut Vec<u8>, stats: &Stats, width: usize) {
    optional(out, stats.longest(), width, mark::at_least(stats.open > 0));
}

/// A quantile in ms; `~`: the ledger makes it less certain than the histogram of stored calls.
fn quantile(out: &mut Vec<u8>, quantile: Option<Quantile>, width: usize) {
    let about = quantile.is_some_and(|quantile| quantile.error > ROUGH);
    optional(out, quantile.map(|quantile| quantile.value), width, mark::about(about));
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
