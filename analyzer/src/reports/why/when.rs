//! `analyze why --when`: what began, ended, rose or fell, and when: how often each call is made, how long it takes, how much memory
//! processes have.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::json;
use systape_format::families::PROCESS_MEMORY;
use systape_format::model::Family;
use systape_format::reader::Tape;

use super::print::tape_word;
use crate::asked::config::Config;
use crate::reports::{Context, losses};
use systape_answers::derive::changes::{Change, changes};
use systape_answers::derive::processes::track::key;
use systape_answers::derive::summary::collect;
use systape_answers::derive::summary::column::Column;
use systape_answers::derive::summary::plan::{Plan, Slices};
use systape_answers::derive::summary::table::rows;
use systape_answers::render::cell::Cell;
use systape_answers::render::mark;
use systape_answers::render::out::Out;
use systape_answers::render::rank;
use systape_answers::render::row::{Judgement, Row};
use systape_answers::render::spark;
use systape_answers::render::table::Table;
use systape_answers::values::output::{command, line};
use systape_answers::values::say::Verdict;
use systape_events::families;
use systape_events::group::by::GroupKey;
use systape_events::group::value::Value;
use systape_events::scan::Scan;
use systape_events::values::words::{bytes, escaped, span};

systape_format::tables! {
    /// With `--when` one row for each change of a level, in order of time. The time looked at is in slices; a level is that of the slices around it.
    pub WHEN = "why_when" {
        ts_ns ? OfKnown: Time "start of the first slice of the new level"
        what: Word key "`rate` of calls that begin, their `p50`, their `p99`, or `rss`: memory"
        change: Word key "`began`, `ended`, `rose` or `fell`"
        syscall: Word key "the call; null: memory"
        pid: Int key "the process; null: calls of all that are asked for"
        comm: Str [Comm] "its name"
        before ? OfKnown: Real "level before: calls a second, ns or bytes"
        after ? OfKnown: Real "level after"
        slice_ns: Duration key "length of a slice"
        slices ? OfKnown: Nested "the whole series, `[{\"from\": 0, \"to\": 50000000, \"value\": 17}]`, ns from the start of the recording; without slices of which there is no value"
    }
}

/// Slices of time at most.
const SLICES: u64 = 60;
/// Widths of slices, ns.
const WIDTHS: [u64; 9] = [
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    10_000_000_000,
    60_000_000_000,
];
/// Calls that are looked at: those with most time, and as many of those that are made most often.
const CALLS: usize = 20;
/// Processes whose memory is looked at: those with most.
const PROCESSES: usize = 20;
/// Most processes that are told apart.
const MOST_PROCESSES: usize = 1 << 14;
/// A quantile of fewer calls in a slice is none.
const FEW: u64 = 5;

/// What a series is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Rate,
    P50,
    P99,
    Rss,
}

impl What {
    fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::Rss => "rss",
        }
    }

    /// A value as the change is looked for in: with the same noise whatever its size.
    fn even(self, value: f64, seconds: f64) -> f64 {
        match self {
            // the root of a count of independent events has the same deviation whatever the count: 1 of twice the root
            Self::Rate => 2.0 * (value * seconds + 0.375).sqrt(),
            _ => value.max(1.0).ln(),
        }
    }

    /// The least deviation of that noise.
    fn floor(self) -> f64 {
        match self {
            Self::Rate => 1.0,
            Self::P50 => 0.08,
            Self::P99 => 0.25,
            Self::Rss => 0.02,
        }
    }

    /// The factor by which levels must differ to be worth a line.
    fn least(self) -> f64 {
        match self {
            Self::Rate | Self::P50 => 1.5,
            Self::P99 => 2.0,
            Self::Rss => 1.25,
        }
    }

    fn text(self, value: f64, about: &str) -> String {
        match self {
            Self::Rate => format!("{about}{value:.1}/s"),
            Self::P50 | Self::P99 => format!("{about}{}", span(value as u64)),
            Self::Rss => format!("{about}{}", bytes(value as u64)),
        }
    }
}

/// Values by slice.
#[derive(Clone, Debug)]
struct Series {
    what: What,
    /// The call, or the process and its name.
    of: Of,
    /// By slice; None: there is none.
    values: Vec<Option<f64>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Of {
    Call(String),
    Process(u32, Vec<u8>),
}

/// A change of a series, as its numbers are.
#[derive(Clone, Debug)]
struct Found<'a> {
    series: &'a Series,
    /// Slice in which the new level begins.
    at: usize,
    before: f64,
    after: f64,
}

impl Found<'_> {
    fn change(&self) -> &'static str {
        match (self.before, self.after) {
            (0.0, _) => "began",
            (_, 0.0) => "ended",
            (before, after) if after > before => "rose",
            _ => "fell",
        }
    }
}

impl Series {
    /// Where its level changes by what is worth a line; `width`: length of a slice, ns.
    fn found(&self, width: u64) -> Vec<Found<'_>> {
        let seconds = width as f64 / 1e9;
        let there: Vec<usize> = (0..self.values.len()).filter(|at| self.values[*at].is_some()).collect();
        let values: Vec<f64> = there.iter().filter_map(|at| self.values[*at]).collect();
        let even: Vec<f64> = values.iter().map(|value| self.what.even(*value, seconds)).collect();
        let splits = changes(&even, self.what.floor());
        let starts: Vec<usize> = splits.iter().map(|Change { at, .. }| *at).collect();
        let level = |from: usize, to: usize| systape_answers::derive::changes::median(&values[from..to]);
        let found = starts.iter().enumerate().map(|(nth, at)| {
            let from = if nth == 0 { 0 } else { starts[nth - 1] };
            let to = starts.get(nth + 1).copied().unwrap_or(values.len());
            Found { series: self, at: there[*at], before: level(from, *at), after: level(*at, to) }
        });
        let worth = |found: &Found<'_>| {
            let (less, more) = (found.before.min(found.after), found.before.max(found.after));
            more > 0.0 && more >= less * self.what.least()
        };
        found.filter(worth).collect()
    }

    fn name(&self) -> String {
        match &self.of {
            Of::Call(name) => name.clone(),
            Of::Process(pid, comm) => format!("{} {pid}", escaped(comm)),
        }
    }
}

/// What is said instead of rows.
const NO_CHANGE: &str = "no change of a rate, a time or memory that is more than noise";

/// Prints the answer for `config`, `limit` rows of it.
pub(super) fn run(config: &Config, tape: &Tape, limit: usize, out: &mut Out) -> Result<Verdict> {
    let mut context = Context::about(config, tape, &[Family::Syscall, Family::Process])?;
    let scope = &context.question.scope;
    let from = scope.from.max(tape.session().window_open);
    let to = scope.to.min(tape.complete_until());
    let slices = Slices { from, width: width(to.saturating_sub(from)) };
    let count = usize::try_from(to.saturating_sub(from) / slices.width).unwrap_or(0).min(SLICES as usize + 1);
    let (mut all, counted) = calls(&mut context, slices, count);
    all.extend(memory(&mut context, slices, count)?);
    let mut found: Vec<Found<'_>> = all.iter().flat_map(|series| series.found(slices.width)).collect();
    // several at once are in the order of the series
    found.sort_by_key(|found| found.at);
    config.shown.rows(all.len());
    if out.is_text() {
        text(&context, &found, slices, (limit, count, counted), out)?;
    } else {
        if found.is_empty() {
            out.say(NO_CHANGE);
        }
        let lines = found.iter().take(limit).map(|found| row(found, slices, tape.session().window_open));
        let short = counted || !context.question.loss.complete();
        out.rows(&WHEN, Judgement::Touched(short), lines)?;
    }
    losses::end_of_sums(&context, out)
}

/// Length of a slice of a time of `length` ns.
fn width(length: u64) -> u64 {
    let fits = |width: &&u64| length / **width <= SLICES;
    WIDTHS.iter().find(fits).copied().unwrap_or((length / SLICES).max(1))
}

/// Calls of one kind: how many, their time in ns, and by bin what is looked for changes.
type Bins = (u64, u128, Vec<[Option<f64>; 3]>);

/// Rates and quantiles of calls, and whether some are in no slice because they were only counted.
fn calls(context: &mut Context<'_>, slices: Slices, count: usize) -> (Vec<Series>, bool) {
    let question = &context.question;
    if !families::in_session(question.tape.session(), Family::Syscall) {
        return (Vec::new(), false);
    }
    let mut counted = false;
    let plan = Plan::by(&[GroupKey::Syscall, GroupKey::Second]).naming(question.tape.session()).in_slices(slices);
    let (sums, knowledge, coverage) = collect::collect(question.tape, &question.scope, &question.book, &plan);
    // by name: calls, time, and what each slice has
    let mut found: BTreeMap<String, Bins> = BTreeMap::new();
    for row in rows(&sums, &knowledge, &question.book, &plan, Column::default()).iter() {
        counted |= row.stats.ledger_calls() > 0;
        let second = plan.place(GroupKey::Second).and_then(|at| row.key.get(at));
        let (Some(call), Some(Value::Number(at))) = (&row.call, second) else { continue };
        let none = || (0, 0, vec![[Some(0.0), None, None]; count]);
        let (calls, time, values) = found.entry(call.long_name.clone()).or_insert_with(none);
        let Some(value) = usize::try_from(*at).ok().and_then(|at| values.get_mut(at)) else { continue };
        (*calls, *time) = (calls.saturating_add(row.stats.calls), time.saturating_add(row.stats.total()));
        let quantile = |which: usize| row.quantiles()[which].filter(|_| row.stats.calls >= FEW);
        let quantiles = [0, 1].map(|which| quantile(which).map(|quantile| quantile.value as f64));
        *value = [Some(row.stats.calls as f64 * 1e9 / slices.width as f64), quantiles[0], quantiles[1]];
    }
    coverage.tell(&mut context.question.loss);
    let mut names: Vec<&String> = found.keys().collect();
    names.sort_by_key(|name| std::cmp::Reverse(found[*name].1));
    let mut picked: Vec<&String> = names.iter().copied().take(CALLS).collect();
    names.sort_by_key(|name| std::cmp::Reverse(found[*name].0));
    picked.extend(names.into_iter().take(CALLS));
    picked.sort();
    picked.dedup();
    let series = |name: &String, at: usize, what: What| Series {
        what,
        of: Of::Call(name.clone()),
        values: found[name].2.iter().map(|values| values[at]).collect(),
    };
    let kinds = [What::Rate, What::P50, What::P99].into_iter().enumerate();
    let of_call = |name: &&String| kinds.clone().map(|(at, what)| series(name, at, what)).collect::<Vec<_>>();
    (picked.iter().flat_map(of_call).collect(), counted)
}

/// Memory of the processes that have most.
fn memory(context: &mut Context<'_>, slices: Slices, count: usize) -> Result<Vec<Series>> {
    let scope = &context.question.scope;
    let mut found: BTreeMap<u64, Series> = BTreeMap::new();
    let coverage = Scan::all(context.question.tape).walk(
        "memory of processes",
        |segment, dict| segment.tables(dict),
        |_, dict, tables| {
            for table in tables.iter().filter(|table| table.def.name == PROCESS_MEMORY.name) {
                let (Some(tasks), Some(rss)) = (table.column("task"), table.column("rss")) else { continue };
                for ((ts, task), rss) in table.ts.iter().zip(tasks).zip(rss).filter(|((ts, _), _)| scope.at(**ts)) {
                    let Some(task) = dict.task_of(*task).filter(|task| scope.task(task)) else { continue };
                    let slice = usize::try_from(ts.saturating_sub(slices.from) / slices.width).unwrap_or(usize::MAX);
                    let key = key(task);
                    if found.len() >= MOST_PROCESSES && !found.contains_key(&key) {
                        continue;
                    }
                    let of = || Of::Process(task.pid, task.comm.clone());
                    let none = || Series { what: What::Rss, of: of(), values: vec![None; count] };
                    let series = found.entry(key).or_insert_with(none);
                    series.of = of();
                    if let Some(value) = series.values.get_mut(slice) {
                        *value = Some(*rss as f64);
                    }
                }
            }
        },
    );
    coverage.tell(&mut context.question.loss);
    let most = |series: &Series| series.values.iter().flatten().fold(0.0_f64, |most, value| most.max(*value)) as u64;
    let mut all: Vec<Series> = found.into_values().collect();
    all.sort_by_key(|series| std::cmp::Reverse(most(series)));
    all.truncate(PROCESSES);
    Ok(all)
}

fn row<'a>(found: &Found<'a>, slices: Slices, open: u64) -> Row<'a> {
    let since = |at: usize| slices.start(at as u64).saturating_sub(open);
    let series = found.series;
    let (syscall, pid, comm) = match &series.of {
        Of::Call(name) => (Some(name.as_str()), None, None),
        Of::Process(pid, comm) => (None, Some(*pid), Some(comm)),
    };
    let there = series.values.iter().enumerate().filter_map(|(at, value)| value.map(|value| (at, value)));
    let list: serde_json::Value =
        there.map(|(at, value)| json!({"from": since(at), "to": since(at + 1), "value": value})).collect();
    let mut row = Row::new(&WHEN);
    row.set("ts_ns", since(found.at)).set("what", series.what.name()).set("change", found.change());
    row.set("syscall", syscall).set("pid", pid).set("comm", comm);
    row.set("before", found.before).set("after", found.after);
    row.set("slice_ns", slices.width).set("slices", Cell::Nested(list));
    row
}

fn text(
    context: &Context<'_>,
    found: &[Found<'_>],
    slices: Slices,
    (limit, count, counted): (usize, usize, bool),
    out: &mut Out,
) -> Result<()> {
    losses::head(context, "Events are missing: rates and times are of the events that are left:", out)?;
    if counted {
        line(out, "calls that record counted and did not store are in no slice")?;
    }
    let about = mark::about(counted || !context.question.loss.complete());
    let open = context.question.tape.session().window_open;
    let seconds = |at: usize| format!("{:.3}", slices.start(at as u64).saturating_sub(open) as f64 / 1e9);
    line(out, &format!("{count} slices of {}, {}–{} s", span(slices.width), seconds(0), seconds(count)))?;
    if found.is_empty() {
        line(out, NO_CHANGE)?;
        return Ok(());
    }
    let mut table = Table::default().number("time s").word("of").word("what").number("before").number("after");
    table = table.word("change").whole("over time").leaving(&["over time", "before"]);
    for found in found.iter().take(limit) {
        let (series, what) = (found.series, found.series.what);
        let values: Vec<u64> = series.values.iter().map(|value| value.map_or(0, |value| value.ceil() as u64)).collect();
        table.row(vec![
            seconds(found.at),
            series.name(),
            what.name().to_owned(),
            what.text(found.before, about),
            what.text(found.after, about),
            found.change().to_owned(),
            spark::line(&values),
        ]);
    }
    table.print(out)?;
    rank::more(found.len(), limit).iter().try_for_each(|text| line(out, text))?;
    let at = busiest(found);
    let (begin, when, end) = (seconds(0), seconds(at), seconds(count));
    let tape = tape_word(context.config);
    let tape = if tape.is_empty() { " trace.tape".to_owned() } else { tape };
    line(out, &command(&format!("analyze diff{tape} --before {begin},{when} --after {when},{end}")))?;
    Ok(())
}

/// The slice in which most changes.
fn busiest(found: &[Found<'_>]) -> usize {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    found.iter().for_each(|found| *counts.entry(found.at).or_default() += 1);
    counts.into_iter().max_by_key(|(at, count)| (*count, std::cmp::Reverse(*at))).map_or(0, |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(what: What, values: Vec<Option<f64>>) -> Series {
        Series { what, of: Of::Call("read".to_owned()), values }
    }

    fn some(parts: &[(f64, usize)]) -> Vec<Option<f64>> {
        parts.iter().flat_map(|(value, count)| vec![Some(*value); *count]).collect()
    }

    #[test]
    fn what_begins_rises_falls_and_ends() {
        let of = |what, parts: &[(f64, usize)]| {
            let series = series(what, some(parts));
            let found = series.found(1_000_000_000);
            found.iter().map(|found| format!("{} {}", found.at, found.change())).collect::<Vec<_>>()
        };
        assert_eq!(of(What::Rate, &[(0.0, 10), (100.0, 20), (0.0, 10)]), ["10 began", "30 ended"]);
        assert_eq!(of(What::P50, &[(4_000.0, 30), (68_000.0, 30)]), ["30 rose"]);
        assert_eq!(of(What::P50, &[(86e6, 30), (26e6, 10)]), ["30 fell"]);
        assert_eq!(of(What::Rss, &[(50e6, 20), (55e6, 20)]), [""; 0], "too little to matter");
        assert_eq!(of(What::Rate, &[(3.0, 20), (4.0, 20)]), [""; 0], "chance");
    }

    #[test]
    fn slices_without_a_value_are_passed_over() {
        let mut values = some(&[(4_000.0, 20), (90_000.0, 20)]);
        (0..40).step_by(3).for_each(|at| values[at] = None);
        let series = series(What::P50, values);
        let found = series.found(1_000_000_000);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].at, found[0].before, found[0].after), (20, 4_000.0, 90_000.0));
    }

    #[test]
    fn a_slice_is_as_short_as_fits() {
        assert_eq!(width(500_000_000), 10_000_000);
        assert_eq!(width(30_000_000_000), 500_000_000);
        assert_eq!(width(86_400_000_000_000), 1_440_000_000_000);
        assert_eq!(width(0), 10_000_000);
    }
}
