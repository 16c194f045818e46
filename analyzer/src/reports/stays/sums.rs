//! Time that threads were in something, by keys, with bounds: of `stays`, and of `states` and `top` where a tape has looks.

use std::cmp::Reverse;

use anyhow::Result;

use super::super::idle::Folded;
use super::super::{Context, losses};
use super::full;
use systape_answers::derive::looks::presence::Estimate;
use systape_answers::derive::looks::sums::{StaySum, StaySums};
use systape_answers::derive::looks::walk::Covered;
use systape_answers::derive::summary::plan::Plan;
use systape_answers::keys::{KeyWords, RowKeys};
use systape_answers::render::by;
use systape_answers::render::cell::Cell;
use systape_answers::render::keys::with_keys;
use systape_answers::render::out::{Out, TopRows};
use systape_answers::render::row::Row;
use systape_answers::render::table::{Table, millis, share};
use systape_answers::values::say::Verdict;
use systape_events::group::by::GroupKey;
use systape_events::group::value::{Key, Value};
use systape_events::values::order::InOrder as _;
use systape_format::table::TableDef;

systape_format::tables! {
    /// One row for each value of the keys of `--by`, which stand before these columns, the one with most threads first. All but `looks` and `stays` are
    /// estimates: what no look fell into has no row.
    pub STAYS = "stays" {
        rest: Flag key "the threads wait for work: in a call that does so whatever it is on, or for data of a pipe, a terminal or a server's socket"
        threads ? OfKnown: Real "threads that were so at once, on average"
        threads_low ? OfKnown: Real "lower bound: in 95 of 100 cases the truth lies between both"
        threads_high ? OfKnown: Real "upper bound, likewise"
        share ? OfKnown: Real "part of the time of all rows, 0 to 1"
        time_ns ? OfKnown: Duration "time of all threads in it together: `threads` times the time that looks cover"
        time_low_ns ? OfKnown: Duration "its lower bound"
        time_high_ns ? OfKnown: Duration "its upper bound"
        looks ? AtLeast: Count "looks, in state RUN samples, that found a thread so"
        stays ? AtLeast: Count "stays that they fell into: without a switch in between; null: not known"
        longest_ns ? AtLeast: Duration "the longest that one of these is known to have been; null: likewise"
    }
}

/// The default keys: those of xcapture and psn.
pub(in crate::reports) const DEFAULT: [GroupKey; 3] = [GroupKey::State, GroupKey::Syscall, GroupKey::File];

/// Prints times by `by`. With `folds` threads at rest are one line. Looks in `without` are left out.
pub(in crate::reports) fn print(
    context: &mut Context<'_>,
    by: &[GroupKey],
    (folds, limit): (bool, usize),
    without: &[(u64, u64)],
    out: &mut Out,
) -> Result<Verdict> {
    let tape = context.question.tape;
    let plan = Plan::by(by).naming(tape.session());
    let (StaySums { groups, labels }, covered) = StaySums::read(&mut context.question, &plan, without);
    let words = KeyWords { session: tape.session(), book: &context.question.book, plan: &plan };
    let found: Vec<(Key, bool, &StaySum)> = groups
        .iter()
        .filter_map(|(key, sum)| {
            let mut key = key.key();
            let rest = key.pop()? == Value::Number(1);
            Some((key, rest, sum))
        })
        .collect();
    let mut rows: Vec<StayLine<'_>> = found
        .iter()
        .map(|(values, rest, sum)| {
            let keys = RowKeys { words, values, task: labels.get(values, &plan) };
            StayLine { keys, rest: *rest, sum, estimate: sum.presence.estimate() }
        })
        .collect();
    rows.order_by_key(|line| (line.rest, Reverse(line.nanos()), line.keys.values));
    let all = rows.iter().fold(0_u64, |all, line| all.saturating_add(line.nanos()));
    let mut folded = Folded::default();
    rows.retain(|line| {
        let fold = folds && line.rest;
        if fold {
            folded.add(line.nanos(), false);
        }
        !fold
    });
    let counted = covered.counted(!context.question.scope.by_task());
    head(context, &covered, out)?;
    let declared = with_keys(by::columns(by), &STAYS);
    let headings = ["threads", "from", "to", "share", "time ms", "looks", "stays", "longest ms"];
    let headings = headings.into_iter().fold(Table::default(), Table::number);
    out.ranking(
        TopRows {
            table: &declared,
            judged: context.judged(),
            headings: by.iter().fold(headings, |table, by| table.word(by.heading())).leaving(&[
                "looks",
                "time ms",
                "stays",
                "share",
                "longest ms",
            ]),
            all: rows.len(),
            limit,
        },
        rows.iter(),
        |line| line.row(&declared, by, (&covered, all)),
        |line| line.cells(by, (&covered, all)),
    )?;
    out.text(folded.line(all))?;
    out.text(counted)?;
    losses::end_of_sums(context, out)
}

/// Lines above an answer of looks: what is lost, what the looks were, and what was recorded in full beside them.
pub(super) fn head(context: &Context<'_>, covered: &Covered, out: &mut Out) -> Result<()> {
    losses::head(context, losses::AT_LEAST, out)?;
    out.text([covered.line()])?;
    out.notes(covered.notes(context.question.tape))?;
    out.notes(full::notes(context))?;
    Ok(())
}

/// Sets how many threads were so at once, and the bounds of that.
pub(super) fn set_threads(row: &mut Row<'_>, Estimate { time, low, high }: Estimate, covered: &Covered) {
    row.set("threads", covered.threads(time));
    row.set("threads_low", covered.threads(low)).set("threads_high", covered.threads(high));
}

/// Sets their time, and the bounds of that.
pub(super) fn set_times(row: &mut Row<'_>, Estimate { time, low, high }: Estimate) {
    let ns = |time: f64| time.max(0.0) as u64;
    row.set("time_ns", ns(time)).set("time_low_ns", ns(low)).set("time_high_ns", ns(high));
}

/// Threads at once, with both bounds, as text has them.
pub(super) fn threads(Estimate { time, low, high }: Estimate, covered: &Covered) -> [String; 3] {
    [time, low, high].map(|time| format!("{:.3}", covered.threads(time)))
}

/// A row.
struct StayLine<'a> {
    keys: RowKeys<'a>,
    rest: bool,
    sum: &'a StaySum,
    estimate: Estimate,
}

impl StayLine<'_> {
    fn nanos(&self) -> u64 {
        self.sum.presence.nanos()
    }

    /// The row; `all`: the time of all rows, ns.
    fn row<'r>(&'r self, declared: &'r TableDef, by: &[GroupKey], (covered, all): (&Covered, u64)) -> Row<'r> {
        let mut row = Row::new(declared);
        by::fill(&mut row, by, |by, name| match self.keys.cell(by, name) {
            // a word that is no call has no ABI
            Cell::Text(_) if name == "abi" && !self.is_call(by) => Cell::Null,
            cell => cell.into_owned(),
        });
        row.set("rest", self.rest);
        set_threads(&mut row, self.estimate, covered);
        row.set("share", self.nanos() as f64 / all.max(1) as f64);
        set_times(&mut row, self.estimate);
        let stays = self.sum.stays();
        row.set("looks", self.sum.presence.looks).set("stays", stays);
        row.set("longest_ns", stays.map(|_| self.sum.presence.longest));
        row
    }

    fn is_call(&self, by: GroupKey) -> bool {
        self.keys.words.plan.place(by).is_some_and(|at| matches!(self.keys.values[at], Value::Call(_)))
    }

    fn cells(&self, by: &[GroupKey], (covered, all): (&Covered, u64)) -> Vec<String> {
        let [threads, low, high] = threads(self.estimate, covered);
        let stays = self.sum.stays();
        let known = |text: String| stays.map_or_else(|| "-".to_owned(), |_| text);
        let mut cells = vec![
            threads,
            low,
            high,
            share(self.nanos(), all),
            millis(self.estimate.time as u64, ""),
            self.sum.presence.looks.to_string(),
            known(stays.unwrap_or(0).to_string()),
            known(millis(self.sum.presence.longest, "")),
        ];
        cells.extend(by.iter().map(|by| self.keys.text(*by)));
        cells
    }
}
