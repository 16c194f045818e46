//! `analyze diff`: the summaries of two tapes side by side, a line a syscall, the largest difference first.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use rustc_hash::FxHashMap;
use systape_format::model::Family;
use systape_format::reader::Tape;

use super::Context;
use super::losses::LOSS_LINES;
use crate::asked::config::Config;
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{CALLS, CPUS, Operands, Own, PATHS, Rows, Run, TASKS, View};
use crate::derive::summary::collect;
use crate::derive::summary::column::Column;
use crate::derive::summary::mode::SummaryMode;
use crate::derive::summary::plan::Plan;
use crate::derive::summary::table;
use crate::render::cell::Cell;
use crate::render::mark;
use crate::render::rank::{Rank, more};
use crate::render::row::Judgement;
use crate::render::sink;
use crate::render::table::{Table, millis};
use crate::table::families;
use crate::table::loss::seconds;
use crate::values::num;
use crate::values::open::open;
use crate::values::output::{self, line};
use crate::values::say::{Verdict, complain};
use crate::values::words::escaped;

systape_format::tables! {
    /// One row a syscall of either tape, what differs most first.
    pub DIFF = "diff" {
        abi: Word "`x86_64`, `i386`, `x32`, `aarch64`, `unknown`"
        syscall: Word "its name"
        calls_before ? AtLeast: Count "calls in the first tape"
        calls_after ? AtLeast: Count "calls in the second tape"
        calls_diff ? OfKnown: Int "how many more the second has; negative: fewer"
        errors_before ? AtLeast: Count "calls of the first tape that returned an error"
        errors_after ? AtLeast: Count "the same of the second"
        errors_diff ? OfKnown: Int "how many more the second has"
        total_ns_before ? AtLeast: Duration "time in the calls of the first tape"
        total_ns_after ? AtLeast: Duration "time in those of the second"
        total_ns_diff ? OfKnown: Duration "how much more the second has; null: no number of JSON holds it"
    }
}

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "diff",
    about: "Two summaries side by side, by syscall",
    operands: Operands::TwoTapes,
    options: &[TASKS, CALLS, PATHS, CPUS, &["time", "max_events"]],
    examples: [
        ("analyze diff before.tape after.tape", "what changed, by time"),
        ("analyze diff before.tape after.tape -e file", "calls on files only"),
    ],
    own: Own::of::<Rank>(),
    tables: &[Rows::of("diff", &[All(&DIFF)])],
    check,
    run: Run::Prints(run),
    ..View::PLAIN
};

/// Options that do not apply.
fn check(config: &Config) -> Result<()> {
    match config.calls {
        true => Ok(()),
        false => bail!("'analyze diff' compares sums of calls, and -e names none"),
    }
}

/// Prints the difference between `tape` and the second of `config`.
fn run(config: &Config, tape: &Tape) -> Result<Verdict> {
    let path = config.second.as_deref().unwrap_or(&config.file);
    let second = open(path)?;
    let before = Side::read(config, tape, &config.file)?;
    let after = Side::read(config, &second, path)?;
    let rows = rows(&before, &after);
    config.shown.rows(rows.len());
    let limit = config.own::<Rank>()?.limit(config.format, config.max_events);
    let mut out = output::stdout()?;
    let complete = before.complete && after.complete;
    match config.format.rows() {
        None => {
            text(&[&before, &after], &rows[..rows.len().min(limit)], &mut out)?;
            more(rows.len(), limit).iter().try_for_each(|text| line(&mut out, text))?;
        }
        Some(form) => {
            let judged = Judgement::Touched(!complete);
            sink::print(form, &DIFF, judged, rows.iter().take(limit).map(Row::record), &mut out)?;
            [&before, &after].into_iter().for_each(Side::tell);
        }
    }
    out.flush()?;
    Ok(Verdict { lost: before.lost || after.lost, bad: false })
}

/// One call of one tape.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    calls: u64,
    errors: u64,
    total: u64,
    /// Some lasted longer than known.
    open: bool,
}

/// One tape.
struct Side {
    name: String,
    /// By name and ABI.
    sums: FxHashMap<(String, String), Sum>,
    /// Its length, s.
    length: String,
    complete: bool,
    /// A loss could change it.
    lost: bool,
    loss: Vec<String>,
    /// The counted calls that were not stored.
    counted: Vec<String>,
}

impl Side {
    fn read(config: &Config, tape: &Tape, path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        families::require(tape, Family::Syscall, "syscalls").with_context(|| name.clone())?;
        let mut context = Context::new(config, tape).with_context(|| name.clone())?;
        let plan = Plan::mode(SummaryMode::Total);
        let question = &context.question;
        let (found, knowledge, coverage) = collect::collect(tape, &question.scope, &question.book, &plan);
        let mut sums: FxHashMap<(String, String), Sum> = FxHashMap::default();
        for row in table::rows(&found, &knowledge, &question.book, &plan, Column::default()) {
            let (Some(info), stats) = (row.call, row.stats) else { continue };
            let sum = sums.entry((info.long_name.clone(), info.abi.to_string())).or_default();
            sum.calls = sum.calls.saturating_add(stats.calls);
            sum.errors = sum.errors.saturating_add(stats.errors);
            sum.total = sum.total.saturating_add(u64::try_from(stats.total()).unwrap_or(u64::MAX));
            sum.open |= stats.open > 0;
        }
        coverage.tell(&mut context.question.loss);
        let session = tape.session();
        let of_sums = context.question.loss.of_sums();
        let mut loss = of_sums.lines(session, LOSS_LINES);
        loss.extend(knowledge.doubts());
        Ok(Self {
            name,
            sums,
            length: seconds(tape.complete_until(), session),
            complete: of_sums.complete() && !knowledge.missing(),
            lost: !of_sums.complete() || knowledge.lost(),
            loss,
            counted: knowledge.counted(session),
        })
    }

    fn tell(&self) {
        self.loss.iter().for_each(|text| complain(&format!("{}: {text}", self.name)));
    }
}

/// A syscall in both tapes.
struct Row {
    name: String,
    abi: String,
    before: Sum,
    after: Sum,
}

fn rows(before: &Side, after: &Side) -> Vec<Row> {
    let mut keys: Vec<&(String, String)> = before.sums.keys().chain(after.sums.keys()).collect();
    keys.sort();
    keys.dedup();
    let sum = |side: &Side, key: &(String, String)| side.sums.get(key).copied().unwrap_or_default();
    let row = |key: &(String, String)| Row {
        name: key.0.clone(),
        abi: key.1.clone(),
        before: sum(before, key),
        after: sum(after, key),
    };
    let mut rows: Vec<Row> = keys.into_iter().map(row).collect();
    // the sort is stable: equal differences stay in the order of names
    let differs = |row: &Row| (row.after.total.abs_diff(row.before.total), row.after.calls.abs_diff(row.before.calls));
    rows.sort_by_key(|row| std::cmp::Reverse(differs(row)));
    rows
}

/// `+3`, `-3`, `0`.
fn signed(before: u64, after: u64) -> String {
    match after.cmp(&before) {
        std::cmp::Ordering::Equal => "0".to_owned(),
        std::cmp::Ordering::Greater => format!("+{}", after - before),
        std::cmp::Ordering::Less => format!("-{}", before - after),
    }
}

impl Row {
    fn cells(&self) -> Vec<String> {
        let (a, b) = (&self.before, &self.after);
        let total = |sum: &Sum| millis(sum.total, mark::at_least(sum.open));
        let sign = match b.total.cmp(&a.total) {
            std::cmp::Ordering::Less => "-",
            std::cmp::Ordering::Equal => "",
            std::cmp::Ordering::Greater => "+",
        };
        // the difference of a lower bound is neither more nor less than anything
        let about = mark::about(a.open || b.open);
        let mut difference = Vec::new();
        num::millis(&mut difference, b.total.abs_diff(a.total), 0, &format!("{about}{sign}"));
        vec![
            self.name.clone(),
            a.calls.to_string(),
            b.calls.to_string(),
            signed(a.calls, b.calls),
            a.errors.to_string(),
            b.errors.to_string(),
            signed(a.errors, b.errors),
            total(a),
            total(b),
            String::from_utf8_lossy(&difference).into_owned(),
        ]
    }

    fn record(&self) -> crate::render::row::Row<'_> {
        let (a, b) = (&self.before, &self.after);
        // null: no number of JSON's holds what the sums of an invalid tape differ by
        let difference = |a: u64, b: u64| {
            let value = i128::from(b) - i128::from(a);
            if u64::try_from(value).is_ok() || i64::try_from(value).is_ok() { Cell::Int(value) } else { Cell::Null }
        };
        let mut row = crate::render::row::Row::new(&DIFF);
        row.set("abi", &*self.abi).set("syscall", &*self.name);
        row.set("calls_before", a.calls).set("calls_after", b.calls).set("calls_diff", difference(a.calls, b.calls));
        row.set("errors_before", a.errors).set("errors_after", b.errors);
        row.set("errors_diff", difference(a.errors, b.errors));
        row.bound("total_ns_before", a.total, a.open).bound("total_ns_after", b.total, b.open);
        row.bound("total_ns_diff", difference(a.total, b.total), a.open || b.open);
        row
    }
}

fn text(sides: &[&Side; 2], rows: &[Row], out: &mut BufWriter<File>) -> Result<()> {
    for (side, name) in sides.iter().zip(["before", "after"]) {
        let (mut calls, mut total) = (0_u64, 0_u64);
        for sum in side.sums.values() {
            calls = calls.saturating_add(sum.calls);
            total = total.saturating_add(sum.total);
        }
        let least = if side.complete { "" } else { "at least " };
        let name = format!("{name}: {}", escaped(side.name.as_bytes()));
        line(out, &format!("{name}, {} s: {least}{calls} calls, {} ms in them", side.length, millis(total, "")))?;
        for text in side.loss.iter().chain(&side.counted) {
            line(out, &format!("  {text}"))?;
        }
    }
    line(out, "")?;
    let columns = Table::default().word("syscall");
    let columns = columns.number("calls").number("after").number("diff");
    let columns = columns.number("errors").number("after").number("diff");
    let mut table = columns.number("total ms").number("after").number("diff");
    rows.iter().for_each(|row| table.row(row.cells()));
    table.print(out)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Row, Sum};

    #[test]
    fn a_difference_that_no_number_holds_is_null() {
        let of = |before, after| {
            let sum = |total| Sum { total, ..Sum::default() };
            let row = Row { abi: String::new(), name: String::new(), before: sum(before), after: sum(after) };
            let record = row.record();
            let (_, cell, _) = record.cells().find(|(column, ..)| column.name == "total_ns_diff").expect("a column");
            format!("{cell:?}")
        };
        assert_eq!(of(7, 5), "Int(-2)");
        assert_eq!(of(0, u64::MAX), format!("Int({})", u64::MAX));
        assert_eq!(of(u64::MAX, 0), "Null");
    }
}
