//! `analyze top`: which process, file, directory, peer, error ... has most calls, or most of their time; each with its share, or with a
//! histogram of how long its calls took. With `-e EVENTS` the same of other events ([`events`]).

mod args;
mod events;
mod fields;
mod many;

use std::borrow::Cow;
use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use indexmap::IndexMap;
use systape_format::model::Family;
use systape_format::reader::Tape;
use systape_format::table::TableDef;

use self::fields::{Asked, TopMetric};
use super::idle::{self, Folded};
use super::measured::{SUMMARY, measured, measures};
use super::stays::{self, sums::STAYS};
use super::{Context, losses};
use crate::asked::config::view::Part::{All, Keys as KeysPart, Maybe};
use crate::asked::config::view::{AnswerFn, CALLS, CPUS, Own, PATHS, Reads, Rows, Several, TASKS, View};
use crate::asked::config::{Config, OF_TAPES, refuse};
use crate::asked::options::idle::Idle;
use crate::reports::added;
use crate::reports::named::TAPES;
use systape_answers::derive::looks::sums::KNOWN;
use systape_answers::derive::runs::rest::rests;
use systape_answers::derive::summary::collect;
use systape_answers::derive::summary::column::Column;
use systape_answers::derive::summary::ledger::Knowledge;
use systape_answers::derive::summary::plan::Plan;
use systape_answers::derive::summary::stats::Stats;
use systape_answers::derive::summary::table::{self, Ranked, Row};
use systape_answers::keys::{KeyWords, RowKeys};
use systape_answers::render::by;
use systape_answers::render::cell::Cell;
use systape_answers::render::columns::Layout;
use systape_answers::render::heat::{self, HeatStretch};
use systape_answers::render::keys::{with_keys, with_parts};
use systape_answers::render::mark;
use systape_answers::render::out::Out;
use systape_answers::render::rank::{self, Few};
use systape_answers::render::row::{self as record, Judgement};
use systape_answers::render::table::Table;
use systape_answers::values::output::line;
use systape_answers::values::say::Verdict;
use systape_events::families;
use systape_events::group::by::GroupKey;
use systape_events::group::value::Value;
use systape_events::values::order::InOrder as _;

systape_format::tables! {
    /// One row for each value of the keys, which stand before the columns of `summary`; the one with most of the metric first.
    pub SHARE = "top_share" {
        share_percent ? OfKnown: Real "share of the metric that all rows have; null: the metric does not add up, or is 0"
    }
    /// With `--hist` also:
    pub HIST = "top_hist" {
        durations ? AtLeast: Nested "calls by the power of two that their duration in ns is in, `[{\"from\": 1024, \"to\": 2047, \"count\": 17}]`; those whose whole duration is known"
    }
}

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "top",
    about: "Which process, file, directory, peer, error ... has most calls, or most of their time, with shares or histograms",
    options: &[TASKS, CALLS, PATHS, CPUS, &["time", "by"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze top --by dir,syscall", "the directories whose calls took most time"),
        ("analyze top --by second,file --hist -e fsync", "how long they took and when, a map for each file"),
    ],
    tables: &[
        Rows::of("top", &[KeysPart(&by::BY), All(&SUMMARY), All(&SHARE), Maybe(&HIST)]),
        Rows::of("top of several tapes", &[KeysPart(&TAPES), KeysPart(&by::BY), All(&SUMMARY), All(&SHARE)]),
        Rows::of("top of looks", &[KeysPart(&by::BY), All(&STAYS)]),
        Rows::of("top -e EVENTS", &[KeysPart(&by::BY), All(&fields::TOP_EVENTS), Maybe(&fields::VALUES)]),
    ],
    check,
    reads: |config| Ok(Reads { files: stays::full::files(config), ..Reads::default() }),
    run: AnswerFn::Prints(run),
    of_looks: Some(of_looks),
    several: Several::Added(run_many),
    ..View::PLAIN
};

/// Characters of the longest bar.
const BAR: usize = 20;
/// Keys without `--by`.
const DEFAULT: [GroupKey; 2] = [GroupKey::Comm, GroupKey::Syscall];

#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// What rows are ranked by
    #[arg(long, value_enum, value_name = "METRIC", default_value_t)]
    pub metric: Column,

    /// A histogram of durations below each row
    #[arg(long)]
    pub hist: bool,

    /// Field of events; of calls an argument, 'ret' or 'bytes' that they moved: added up in place of durations
    #[arg(long, value_name = "FIELD")]
    pub value: Option<String>,

    #[command(flatten)]
    pub rank: Few,

    #[command(flatten)]
    pub idle: Idle,
}

impl Options {
    /// Whether rows are ranked by a time.
    fn ranks_time(&self) -> bool {
        !matches!(self.metric, Column::Calls | Column::Errors)
    }
}

/// Options without effect.
fn check(config: &Config) -> Result<()> {
    let own: Options = config.own()?;
    let elsewhere = [
        (config.is_of_many(), "more than one tape"),
        (own.hist, "--hist"),
        (!config.events.is_empty(), "-e with other events than calls"),
        (args::is_asked(config, own.value.as_deref()), "a sum by arguments of calls"),
        (!own.ranks_time(), "a metric that is no time"),
    ];
    own.idle.check(config, &elsewhere)?;
    if config.is_of_many() {
        let of_one = [
            (own.hist, "--hist"),
            (!config.events.is_empty(), "-e with other events than calls"),
            (args::is_asked(config, own.value.as_deref()), "a sum by arguments of calls"),
        ];
        refuse(&of_one, "several tapes have one sum")?;
        added::check(config, &keys(config)?)?;
    }
    if config.events.is_empty() {
        if args::is_asked(config, own.value.as_deref()) {
            refuse(&[(config.bare_cpu(), "--cpu")], "it goes with the summary: analyze -s --cpu")?;
            return metric(own.metric).map(drop);
        }
        return check_calls(config);
    }
    if config.calls {
        bail!("{} ranks calls or other events: -e names both", config.view.title());
    }
    let of_calls = [
        (config.filters.longer_than.is_some(), "--duration"),
        (config.filters.failure, "--failure"),
        (config.filters.by_path(), "-P"),
        (config.bare_cpu(), "--cpu"),
    ];
    refuse(&of_calls, "it is about calls, and -e names other events")?;
    metric(own.metric).map(drop)
}

/// The metric of other events.
fn metric(column: Column) -> Result<TopMetric> {
    Ok(match column {
        Column::Calls => TopMetric::Count,
        Column::Total => TopMetric::Total,
        Column::Avg => TopMetric::Avg,
        Column::Max => TopMetric::Max,
        Column::Errors => bail!("--metric errors is of calls by other keys; fields have count, total, avg and max"),
        Column::P50 | Column::P99 => {
            bail!("quantiles are of calls; other events have the metrics count, total, avg and max")
        }
    })
}

/// Options without effect on calls.
pub(super) fn check_calls(config: &Config) -> Result<()> {
    if !config.calls || !config.events.is_empty() {
        bail!("{} ranks calls, and -e names other events", config.view.title());
    }
    if config.bare_cpu() {
        bail!("--cpu without CPUs goes with the summary: analyze -s --cpu");
    }
    keys(config).map(drop)
}

fn keys(config: &Config) -> Result<Vec<GroupKey>> {
    // those of tapes are no keys of calls
    let words: Vec<String> = config.by.iter().filter(|word| !OF_TAPES.contains(&word.as_str())).cloned().collect();
    let by = GroupKey::parse(&words, &Plan::OF_CALLS, "'analyze top'")?;
    Ok(if config.by.is_empty() { DEFAULT.to_vec() } else { by })
}

/// Prints the answer of several tapes.
fn run_many(config: &Config, tapes: &[PathBuf], out: &mut Out) -> Result<Verdict> {
    let own: Options = config.own()?;
    many::answer(config, tapes, &own, &keys(config)?, out)
}

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let own: Options = config.own()?;
    let value = own.value.as_deref();
    if !config.events.is_empty() || args::is_asked(config, value) {
        let asked = Asked { metric: metric(own.metric)?, hist: own.hist, value, rank: own.rank };
        let answer = if config.events.is_empty() { args::answer } else { events::answer };
        return answer(config, tape, &asked, out);
    }
    answer(config, tape, &own, &keys(config)?, None, out)
}

/// Prints what looks say: the time of threads in each call, or in whatever else the keys say.
fn of_looks(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let own: Options = config.own()?;
    if !config.events.is_empty() {
        return run(config, tape, out);
    }
    let filters = &config.filters;
    let of_calls = [
        (own.metric != Column::Total, "--metric with another metric than total"),
        (own.hist, "--hist"),
        (args::is_asked(config, own.value.as_deref()), "a sum by arguments of calls"),
        (filters.longer_than.is_some(), "--duration"),
        (filters.failure, "--failure"),
        (filters.by_path(), "-P"),
        (filters.cpus.is_some(), "-C"),
    ];
    stays::refuse(&of_calls, "looks find threads in calls, and not the calls themselves")?;
    let by = GroupKey::parse(&config.by, &KNOWN, "'analyze top' of looks").map_err(|error| anyhow!("{error}"))?;
    let by = if by.is_empty() { DEFAULT.to_vec() } else { by };
    let mut context = stays::context(config, tape)?;
    let folds = !own.rank.all() && idle::folds(own.idle, config, tape, &context.question.scope);
    // exact sums are of calls, and have their keys
    let both = by.iter().all(|by| Plan::OF_CALLS.contains(by));
    let full = if both { stays::full::beside(&context) } else { Vec::new() };
    let limit = config.few(own.rank);
    let verdict = stays::sums::print(&mut context, &by, (folds, limit), &stays::full::spans(&full), out)?;
    full.iter().try_fold(verdict, |verdict, full| Ok(verdict.and(full.print(&context, run, out)?)))
}

/// The whole answer by the keys `by`; text in the columns of `layout`, if that is given.
pub(super) fn answer(
    config: &Config,
    tape: &Tape,
    own: &Options,
    by: &[GroupKey],
    layout: Option<&'static Layout>,
    out: &mut Out,
) -> Result<Verdict> {
    families::require(tape, Family::Syscall, "syscalls")?;
    let plan = Plan::by(by).naming(tape.session());
    let mut context = Context::about(config, tape, &[Family::Syscall])?;
    let question = &context.question;
    let (sums, knowledge, coverage) = collect::collect(tape, &question.scope, &question.book, &plan);
    coverage.tell(&mut context.question.loss);
    context.question.loss = context.question.loss.of_sums();
    let rows = table::rows(&sums, &knowledge, &context.question.book, &plan, own.metric);
    context.config.shown.rows(rows.len());
    let shares = Shares::new(own.metric, rows.sums(), knowledge.missing());
    let shown = Shown { context: &context, knowledge: &knowledge, plan: &plan, by, own, shares };
    if out.is_text() {
        shown.text(&rows, layout, out)?;
    } else {
        shown.rows(&rows, out)?;
    }
    let verdict = losses::end_of_sums_of_calls(&context, &knowledge, out)?;
    Ok(verdict.doubted(rows.lost()))
}

struct Shown<'a> {
    context: &'a Context<'a>,
    knowledge: &'a Knowledge,
    plan: &'a Plan,
    by: &'a [GroupKey],
    own: &'a Options,
    shares: Shares,
}

/// The shares that rows have in a metric.
struct Shares {
    metric: Column,
    /// Of the metric of all rows the sum, or the greatest if it does not add up.
    all: u128,
    /// Some of the sum may be missing, and so all shares may be others.
    rough: bool,
}

impl Shares {
    /// Of rows with these sums, which may be too low; `missing`: there may be more rows.
    fn new<'s>(metric: Column, rows: impl Iterator<Item = (Cow<'s, Stats>, bool)>, missing: bool) -> Self {
        let (mut all, mut rough) = (0_u128, missing);
        for (stats, short) in rows {
            let value = metric.of(&stats).unwrap_or(0);
            all = if metric.adds_up() { all.saturating_add(value) } else { all.max(value) };
            rough |= metric.adds_up() && (short || (metric == Column::Total && stats.open > 0));
        }
        Self { metric, all, rough }
    }

    /// Share in [`Self::all`], 0 to 1; None: there is nothing to have a share in.
    fn of(&self, stats: &Stats) -> Option<f64> {
        let value = self.metric.of(stats)?;
        (self.all > 0).then(|| value as f64 / self.all as f64)
    }

    /// A table with the columns of [`Self::cells`].
    fn headings(&self) -> Table {
        let mut table = Table::default();
        if self.metric.adds_up() {
            table = table.number("share");
        }
        table = table.word(self.metric.heading());
        let table = COLUMNS.iter().fold(table, |table, (_, heading)| table.number(heading));
        // the one that rows are ordered by stays
        let own = self.metric.heading().trim_start_matches("of ");
        let first = ["p50 ms", self.metric.heading(), "errors", "avg ms", "p99 ms", "max ms", "share"];
        table.leaving(&first.into_iter().filter(|heading| !heading.starts_with(own)).collect::<Vec<_>>())
    }

    /// The share of a row, with a bar, and its sums; `missing`: all may be too low.
    fn cells(&self, row: &Row<'_>, missing: bool) -> Vec<String> {
        let share = self.of(&row.stats);
        let lead = mark::about(self.rough || missing);
        let percent = share.map_or_else(|| "-".to_owned(), |part| format!("{lead}{:.1}%", 100.0 * part));
        let mut cells = if self.metric.adds_up() { vec![percent] } else { Vec::new() };
        cells.push(bar(share.unwrap_or(0.0)));
        let all = measured(row, row.short || missing);
        cells.extend(COLUMNS.iter().map(|(at, _)| all[*at].clone()));
        cells
    }

    /// Sets the share in a row of [`SHARE`].
    fn set(&self, line: &mut record::Row<'_>, stats: &Stats) {
        let share = self.of(stats).filter(|_| self.metric.adds_up());
        line.bound("share_percent", share.map(|share| 100.0 * share), self.rough);
    }
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

    fn limit(&self) -> usize {
        self.context.config.few(self.own.rank)
    }

    fn text(&self, rows: &Ranked<'_>, layout: Option<&'static Layout>, out: &mut Out) -> Result<()> {
        losses::above_sums(self.context, self.knowledge, out)?;
        let limit = self.limit();
        let mut all = rows.len();
        if let Some(layout) = layout {
            let table = self.columns();
            layout.print(self.records(&table, rows).map(|row| row.judged(self.judged())), out)?;
            rank::more(all, limit).iter().try_for_each(|text| line(out, text))?;
            return Ok(());
        }
        if let Some(time) = self.by.iter().find(|by| GroupKey::OF_TIME.contains(by)).filter(|_| self.own.hist) {
            let maps = self.maps(*time, rows);
            maps.iter().take(limit).try_for_each(|(name, rows)| self.heat(*time, name, rows, out))?;
            all = maps.len();
        } else if self.own.hist {
            rows.iter().take(limit).try_for_each(|row| self.histogram(&row, out))?;
        } else {
            let (folds, folded, kept) = self.folded(rows);
            let shown = rows.iter().filter(|row| !folds || !self.rests(row)).take(limit);
            self.table().print_rows(shown.map(|row| self.cells(&row)), out)?;
            let more = rank::more(kept, limit);
            return Ok(more.iter().chain(&folded).try_for_each(|text| line(out, text))?);
        }
        rank::more(all, limit).iter().try_for_each(|text| line(out, text))?;
        Ok(())
    }

    /// Whether rows of idle waits are one line, that line, and the number of the other rows.
    fn folded(&self, rows: &Ranked<'_>) -> (bool, Option<String>, usize) {
        let Context { config, question } = self.context;
        let own = self.own;
        let folds =
            own.ranks_time() && !own.rank.all() && idle::folds(own.idle, config, question.tape, &question.scope);
        if !folds {
            return (false, None, rows.len());
        }
        let ns = |row: &Row<'_>| u64::try_from(row.stats.total()).unwrap_or(u64::MAX);
        let (mut folded, mut all, mut kept) = (Folded::default(), 0_u64, 0);
        for row in rows.iter() {
            all = all.saturating_add(ns(&row));
            if self.rests(&row) {
                folded.add(ns(&row), row.short || !self.complete() || row.stats.open > 0);
            } else {
                kept += 1;
            }
        }
        (true, folded.line(all), kept)
    }

    /// Whether a row is of idle waits.
    fn rests(&self, row: &Row<'_>) -> bool {
        let file = self.plan.place(GroupKey::File).and_then(|at| match row.key.get(at) {
            Some(Value::Text(name)) => Some(&**name),
            _ => None,
        });
        row.call.as_ref().is_some_and(|call| rests(call, file))
    }

    /// The rows of each value of the keys other than `time`, in the order of their first rows.
    fn maps<'r>(&self, time: GroupKey, rows: &Ranked<'r>) -> IndexMap<String, Vec<Row<'r>>> {
        let mut maps: IndexMap<String, Vec<Row<'_>>> = IndexMap::new();
        for row in rows.iter() {
            let keys = self.keys(&row);
            let named: Vec<String> = self.by.iter().filter(|by| **by != time).map(|by| keys.text(*by)).collect();
            maps.entry(named.join(", ")).or_default().push(row);
        }
        maps
    }

    /// The durations of `rows` by `time` as a map of characters.
    fn heat(&self, time: GroupKey, name: &str, rows: &[Row<'_>], out: &mut Out) -> Result<()> {
        let stretch = |row: &Row<'_>| {
            let at = match self.plan.place(time).map(|place| &row.key[place]) {
                Some(Value::Number(at)) => Some(*at),
                _ => None,
            };
            let count = measured(row, row.short || !self.complete())[0].clone();
            HeatStretch { at, count, sizes: row.stats.sizes().0 }
        };
        let mut stretches: Vec<HeatStretch> = rows.iter().map(stretch).collect();
        stretches.order_by_key(|stretch| (stretch.at.is_none(), stretch.at));
        let title = if name.is_empty() { String::new() } else { format!("{name}: ") };
        line(out, &format!("{title}calls by {} and duration in ns", time.name()))?;
        if rows.iter().any(|row| !row.stats.sizes().1) {
            line(out, "(durations of calls as totals only are partly known)")?;
        }
        heat::print(&stretches, (time.heading(), "calls"), out)?;
        line(out, "")?;
        Ok(())
    }

    /// A table with the columns of [`Self::cells`].
    fn table(&self) -> Table {
        self.by.iter().fold(self.shares.headings(), |table, by| table.word(by.heading()))
    }

    fn cells(&self, row: &Row<'_>) -> Vec<String> {
        let mut cells = self.shares.cells(row, !self.complete());
        let keys = self.keys(row);
        cells.extend(self.by.iter().map(|by| keys.text(*by)));
        cells
    }

    /// A row and its durations, as bpftrace prints a map of histograms.
    fn histogram(&self, row: &Row<'_>, out: &mut Out) -> Result<()> {
        let short = row.short || !self.complete();
        let keys = self.keys(row);
        let named: Vec<String> = self.by.iter().map(|by| keys.text(*by)).collect();
        let all = measured(row, short);
        let calls = if row.stats.calls == 1 { "call" } else { "calls" };
        line(out, &format!("{}: {} {calls}, {} ms, durations in ns", named.join(", "), all[0], all[2]))?;
        let (sizes, exact) = row.stats.sizes();
        if sizes.total() == 0 {
            line(out, "(the whole duration of none is known)")?;
        }
        if !exact {
            line(out, "(durations of calls as totals only are partly known)")?;
        }
        if short {
            line(out, "(numbers are lower bounds)")?;
        }
        sizes.print_powers(out)?;
        line(out, "")?;
        Ok(())
    }

    fn rows(&self, rows: &Ranked<'_>, out: &mut Out) -> Result<()> {
        let table = self.columns();
        out.rows(&table, self.judged(), self.records(&table, rows))?;
        Ok(())
    }

    fn judged(&self) -> Judgement {
        Judgement::Touched(!self.context.question.loss.complete())
    }

    /// The table of [`Self::records`].
    fn columns(&self) -> TableDef {
        let parts: Vec<&TableDef> = [Some(&SHARE), self.own.hist.then_some(&HIST)].into_iter().flatten().collect();
        with_keys(by::columns(self.by), &with_parts(&SUMMARY, parts))
    }

    /// The first `rows` as rows of `table`.
    fn records<'r>(&'r self, table: &'r TableDef, rows: &'r Ranked<'r>) -> impl Iterator<Item = record::Row<'r>> {
        rows.iter().take(self.limit()).map(|row| {
            let mut line = record::Row::short_if(row.short, table);
            let keys = self.keys(&row);
            by::fill(&mut line, self.by, |by, name| keys.cell(by, name).into_owned());
            measures(&mut line, &row.stats);
            self.shares.set(&mut line, &row.stats);
            if self.own.hist {
                let (sizes, exact) = row.stats.sizes();
                let json = sizes.json();
                let text = sizes.words();
                line.bound("durations", Cell::Spelled(json, text), !exact);
            }
            line
        })
    }
}

/// As long as a share of 0 to 1 is high.
fn bar(share: f64) -> String {
    let stars = (share * BAR as f64).round() as usize;
    format!("{:<BAR$}", "#".repeat(stars.min(BAR)))
}

/// Columns of text: the place in [`measured`], and the heading.
const COLUMNS: [(usize, &str); 7] =
    [(2, "total ms"), (0, "calls"), (1, "errors"), (4, "avg ms"), (5, "max ms"), (7, "p50 ms"), (8, "p99 ms")];
