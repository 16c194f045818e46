//! `analyze rate`: how many calls began when: the busiest programs, calls or files, each with a line of its rate over time.

use anyhow::{Result, bail};
use rustc_hash::FxHashMap;
use serde_json::json;
use systape_format::model::Family;
use systape_format::reader::Tape;

use super::{Context, losses};
use crate::asked::config::Config;
use crate::asked::config::view::Part::{All, Keys as KeysPart};
use crate::asked::config::view::{AnswerFn, CALLS, CPUS, Own, PATHS, Rows, TASKS, View};
use systape_answers::derive::summary::collect;
use systape_answers::derive::summary::column::Column;
use systape_answers::derive::summary::ledger::Knowledge;
use systape_answers::derive::summary::plan::{Plan, Slices};
use systape_answers::derive::summary::table::{self, Ranked, Row};
use systape_answers::keys::{KeyWords, RowKeys};
use systape_answers::render::by;
use systape_answers::render::cell::Cell;
use systape_answers::render::keys::with_keys;
use systape_answers::render::mark;
use systape_answers::render::out::Out;
use systape_answers::render::rank::{self, Few};
use systape_answers::render::row::{self as record, Judgement};
use systape_answers::render::spark;
use systape_answers::render::table::Table;
use systape_answers::values::output::{self, line};
use systape_answers::values::say::Verdict;
use systape_events::families;
use systape_events::filter::Scope;
use systape_events::group::by::GroupKey;
use systape_events::group::value::Value;
use systape_events::values::spill::Kept;
use systape_events::values::words::span;

systape_format::tables! {
    /// One row for each value of the keys, which stand before these columns; the one with most calls first.
    pub RATE = "rate" {
        calls ? AtLeast: Count "calls"
        mean_per_s ? OfKnown: Real "calls that began in the time asked about, by its length in seconds"
        peak_per_s ? AtLeast: Real "calls that began in the busiest slice of time, by its length"
        peak_ns ? OfKnown: Duration "start of that slice, from the start of the recording; null: of none it is known when it began"
        slice_ns: Duration key "length of a slice"
        slices ? AtLeast: Nested "calls that began in each slice that has some, `[{\"from\": 0, \"to\": 50000000, \"count\": 17}]`, ns from the start of the recording"
        untimed_calls ? OfKnown: Count "calls that are in no slice: they began before the recording, or were counted and not stored"
        ledger_calls ? AtLeast: Count "part of `calls` known by count only ([counted calls](../reading/losses.md#stored-counted-lost))"
    }
}

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "rate",
    about: "How many calls began when: a line over time for each program, call, file ...",
    options: &[TASKS, CALLS, PATHS, CPUS, &["time", "by"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze rate -e execve --by comm", "which programs are started when, and how often"),
        ("analyze rate --by file --failure --time 2,3", "failing calls by file, in one second"),
    ],
    tables: &[Rows::of("rate", &[KeysPart(&by::BY), All(&RATE)])],
    check,
    run: AnswerFn::Prints(run),
    ..View::PLAIN
};

/// Keys without `--by`.
const DEFAULT: [GroupKey; 2] = [GroupKey::Comm, GroupKey::Syscall];
/// Slices of time without `--slices`.
const SLICES: u16 = 60;

#[derive(Debug, clap::Args)]
struct Options {
    /// Slices of time: columns of the line [default: 60, on a narrow terminal fewer]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    slices: Option<u16>,

    #[command(flatten)]
    rank: Few,
}

fn check(config: &Config) -> Result<()> {
    if !config.calls || config.events.tables() {
        bail!("'analyze rate' counts calls, and -e names other events");
    }
    if config.bare_cpu() {
        bail!("--cpu without CPUs goes with the summary: analyze -s --cpu");
    }
    keys(config).map(drop)
}

fn keys(config: &Config) -> Result<Vec<GroupKey>> {
    let known: Vec<GroupKey> = Plan::OF_CALLS.into_iter().filter(|by| !GroupKey::OF_TIME.contains(by)).collect();
    let by = GroupKey::parse(&config.by, &known, "'analyze rate'")?;
    Ok(if by.is_empty() { DEFAULT.to_vec() } else { by })
}

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    families::require(tape, Family::Syscall, "syscalls")?;
    let own: Options = config.own()?;
    let by = keys(config)?;
    let session = tape.session();
    let plan = Plan::by(&by).naming(session);
    let mut context = Context::about(config, tape, &[Family::Syscall])?;
    let question = &context.question;
    // those of all the time are kept beside those by slice
    let (sums, knowledge, coverage) = collect::one_of(2, tape, &question.scope, &question.book, &plan);
    coverage.tell(&mut context.question.loss);
    context.question.loss = context.question.loss.of_sums();
    let count = own.slices.unwrap_or_else(default_slices);
    let slices = slices(&context.question.scope, tape, count);
    let timed = Plan::by(&[&by[..], &[GroupKey::Second]].concat()).naming(session).in_slices(slices);
    let question = &context.question;
    let limit = config.few(own.rank);
    let rows = table::rows(&sums, &knowledge, &question.book, &plan, Column::Calls);
    let mut lines = Lines::of(rows.iter().take(limit), count)?;
    let (parts, of_parts, _) = collect::one_of(2, tape, &question.scope, &question.book, &timed);
    for row in table::rows(&parts, &of_parts, &question.book, &timed, Column::default()).iter() {
        lines.add(&row, timed.place(GroupKey::Second));
    }
    context.config.shown.rows(rows.len());
    let shown = Shown { context: &context, knowledge: &knowledge, plan: &plan, by: &by, slices, lines: &lines };
    if out.is_text() {
        shown.text(&rows, limit, out)?;
    } else {
        shown.rows(&rows, limit, out)?;
    }
    let verdict = losses::end_of_sums_of_calls(&context, &knowledge, out)?;
    Ok(verdict.doubted(rows.lost()))
}

/// As many as without `--slices`, or as a terminal has room for beside the other columns.
fn default_slices() -> u16 {
    const OTHERS: usize = 64;
    const LEAST: u16 = 12;
    let left = output::room().map(|room| u16::try_from(room.saturating_sub(OTHERS)).unwrap_or(SLICES));
    left.map_or(SLICES, |left| left.clamp(LEAST, SLICES))
}

/// Calls that began in each of `count` equal slices of the time asked about, and those slices.
pub(super) fn in_slices(context: &Context<'_>, count: u16) -> (Slices, Vec<u64>) {
    let question = &context.question;
    let slices = slices(&question.scope, question.tape, count);
    let plan = Plan::by(&[GroupKey::Second]).naming(question.tape.session()).in_slices(slices);
    let (sums, knowledge, _) = collect::collect(question.tape, &question.scope, &question.book, &plan);
    let mut line = Line::of(count);
    for row in table::rows(&sums, &knowledge, &question.book, &plan, Column::default()).iter() {
        line.add(&row, plan.place(GroupKey::Second));
    }
    (slices, line.slices)
}

/// The time asked about, or all of the tape, in `count` equal slices; the last reaches over its end by less than `count` ns.
pub(super) fn slices(scope: &Scope<'_>, tape: &Tape, count: u16) -> Slices {
    let from = scope.from.max(tape.session().window_open);
    let to = if scope.to == u64::MAX { tape.complete_until() } else { scope.to };
    // what begins at the very end is in the last one
    let width = to.saturating_sub(from) / u64::from(count) + 1;
    Slices { from, width }
}

/// The calls of one key by slices.
#[derive(Clone, Debug, Default)]
struct Line {
    slices: Vec<u64>,
    /// Calls that are in none.
    untimed: u64,
    /// There may be more in some.
    short: bool,
}

/// Those of the rows that are shown, by their keys without the slice.
#[derive(Debug, Default)]
struct Lines(FxHashMap<Vec<Value>, Line>);

impl Lines {
    /// Empty ones of `count` slices for these rows.
    ///
    /// # Errors
    /// There is no memory for them.
    fn of<'r>(rows: impl Iterator<Item = Row<'r>>, count: u16) -> Result<Self> {
        let (mut lines, mut kept) = (FxHashMap::default(), Kept::new(1));
        for row in rows {
            let text = |value: &Value| if let Value::Text(text) = value { text.len() } else { 0 };
            let key = row.key.iter().map(|value| size_of::<Value>() + text(value)).sum::<usize>();
            kept.add(key + size_of::<(Vec<Value>, Line)>() + usize::from(count) * size_of::<u64>());
            kept.check()?;
            lines.insert(row.key.to_vec(), Line::of(count));
        }
        Ok(Self(lines))
    }

    fn add(&mut self, row: &Row<'_>, place: Option<usize>) {
        let key = row.key.iter().enumerate().filter(|(at, _)| Some(*at) != place).map(|(_, value)| value.clone());
        if let Some(line) = self.0.get_mut(&key.collect::<Vec<Value>>()) {
            line.add(row, place);
        }
    }
}

impl Line {
    fn of(count: u16) -> Self {
        Self { slices: vec![0; count.into()], ..Self::default() }
    }

    fn add(&mut self, row: &Row<'_>, place: Option<usize>) {
        let at = match place.and_then(|at| row.key.get(at)) {
            Some(Value::Number(at)) => usize::try_from(*at).ok(),
            _ => None,
        };
        let slot = at.and_then(|at| self.slices.get_mut(at));
        let slot = slot.unwrap_or(&mut self.untimed);
        *slot = slot.saturating_add(row.stats.calls);
        self.short |= row.short || row.stats.ledger_calls() > 0;
    }

    /// The busiest slice, and its calls; None: all are empty.
    fn peak(&self) -> Option<(usize, u64)> {
        let full = self.slices.iter().copied().enumerate().filter(|(_, calls)| *calls > 0);
        // of equal ones the first
        full.rev().max_by_key(|(_, calls)| *calls)
    }
}

struct Shown<'a> {
    context: &'a Context<'a>,
    knowledge: &'a Knowledge,
    plan: &'a Plan,
    by: &'a [GroupKey],
    slices: Slices,
    lines: &'a Lines,
}

impl Shown<'_> {
    fn complete(&self) -> bool {
        losses::sums_are_whole(self.context, self.knowledge)
    }

    fn keys<'r>(&'r self, row: &'r Row<'_>) -> RowKeys<'r> {
        let question = &self.context.question;
        let words = KeyWords { session: question.tape.session(), book: &question.book, plan: self.plan };
        RowKeys { words, values: &row.key, task: row.task }
    }

    fn line(&self, row: &Row<'_>) -> Line {
        self.lines.0.get(&*row.key).cloned().unwrap_or_default()
    }

    /// From the start of the recording to the start of a slice, ns.
    fn since(&self, slice: usize) -> u64 {
        let open = self.context.question.tape.session().window_open;
        self.slices.start(slice as u64).saturating_sub(open)
    }

    fn per_second(&self, calls: u64, slices: usize) -> f64 {
        calls as f64 * 1e9 / (self.slices.width as f64 * slices as f64)
    }

    fn text(&self, rows: &Ranked<'_>, limit: usize, out: &mut Out) -> Result<()> {
        losses::above_sums(self.context, self.knowledge, out)?;
        let first = self.since(0) as f64 / 1e9;
        line(out, &format!("each column {}, from {first:.3} s; calls by when they began", span(self.slices.width)))?;
        line(out, "")?;
        let table = Table::default().number("calls").number("mean/s").number("peak/s").number("at s").whole("rate");
        let table = self.by.iter().fold(table, |table, by| table.word(by.heading()));
        let mut table = table.leaving(&["at s", "peak/s", "rate", "mean/s"]);
        let mut untimed = 0_u64;
        for row in rows.iter().take(limit) {
            let of_time = self.line(&row);
            let least = mark::at_least(of_time.short || row.short || !self.complete());
            let timed: u64 = of_time.slices.iter().sum();
            let about = mark::about(!least.is_empty());
            let mut cells = vec![
                format!("{}{}", mark::at_least(row.short || !self.complete()), row.stats.calls),
                format!("{about}{:.1}", self.per_second(timed, of_time.slices.len().max(1))),
            ];
            let peak = of_time.peak();
            cells.push(
                peak.map_or_else(|| "-".to_owned(), |(_, calls)| format!("{least}{:.1}", self.per_second(calls, 1))),
            );
            cells.push(peak.map_or_else(|| "-".to_owned(), |(at, _)| format!("{:.3}", self.since(at) as f64 / 1e9)));
            cells.push(spark::line(&of_time.slices));
            let keys = self.keys(&row);
            cells.extend(self.by.iter().map(|by| keys.text(*by)));
            table.row(cells);
            untimed = untimed.saturating_add(of_time.untimed);
        }
        table.print(out)?;
        rank::more(rows.len(), limit).iter().try_for_each(|text| line(out, text))?;
        if untimed > 0 {
            let why = "are in no column: they began before the recording, or were counted and not stored";
            line(out, &format!("{untimed} of these calls {why}"))?;
        }
        Ok(())
    }

    fn rows(&self, rows: &Ranked<'_>, limit: usize, out: &mut Out) -> Result<()> {
        let table = with_keys(by::columns(self.by), &RATE);
        let lines = rows.iter().take(limit).map(|row| {
            let mut line = record::Row::short_if(row.short, &table);
            let keys = self.keys(&row);
            by::fill(&mut line, self.by, |by, name| keys.cell(by, name).into_owned());
            let of_time = self.line(&row);
            let (timed, peak): (u64, _) = (of_time.slices.iter().sum(), of_time.peak());
            let short = of_time.short;
            line.set("calls", row.stats.calls);
            line.bound("mean_per_s", self.per_second(timed, of_time.slices.len().max(1)), short);
            line.bound("peak_per_s", peak.map_or(0.0, |(_, calls)| self.per_second(calls, 1)), short);
            line.bound("peak_ns", peak.map(|(at, _)| self.since(at)), short).set("slice_ns", self.slices.width);
            line.bound("slices", Cell::Nested(self.list(&of_time)), short);
            line.bound("untimed_calls", of_time.untimed, short).set("ledger_calls", row.stats.ledger_calls());
            line
        });
        out.rows(&table, Judgement::Touched(!self.context.question.loss.complete()), lines)?;
        Ok(())
    }

    fn list(&self, of_time: &Line) -> serde_json::Value {
        let full = of_time.slices.iter().enumerate().filter(|(_, calls)| **calls > 0);
        full.map(|(at, calls)| json!({"from": self.since(at), "to": self.since(at + 1), "count": calls})).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_the_first_of_the_busiest() {
        let peak = |slices: &[u64]| Line { slices: slices.to_vec(), ..Line::default() }.peak();
        assert_eq!(peak(&[0, 3, 1, 3]), Some((1, 3)));
        assert_eq!((peak(&[0, 0]), peak(&[])), (None, None));
    }
}
