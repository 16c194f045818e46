//! `analyze diff`: the summaries of two tapes side by side, a line for each syscall or other key, the largest difference first.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use systape_format::model::Family;
use systape_format::reader::Tape;
use systape_format::table::TableDef;

use super::Context;
use super::losses::LOSS_LINES;
use crate::asked::config::Config;
use crate::asked::config::view::Part::{All, Keys as KeysPart};
use crate::asked::config::view::{CALLS, CPUS, Operands, Own, PATHS, Rows, Run, TASKS, View};
use crate::derive::summary::collect;
use crate::derive::summary::column::Column;
use crate::derive::summary::plan::Plan;
use crate::derive::summary::table;
use crate::render::by;
use crate::render::cell::Cell;
use crate::render::keys::with_keys;
use crate::render::mark;
use crate::render::rank::{Rank, more};
use crate::render::row::Judgement;
use crate::render::sink;
use crate::render::table::{Table, millis};
use crate::reports::keys::{Keys, Words};
use crate::table::families;
use crate::table::group::by::By;
use crate::table::group::value::Value;
use crate::table::loss::seconds;
use crate::values::num;
use crate::values::open::open;
use crate::values::output::{self, line};
use crate::values::say::{Verdict, complain};
use crate::values::words::{escaped, span};

systape_format::tables! {
    /// One row for each value of the keys in either tape (`--by`; without it each syscall), what differs most first. Keys are equal
    /// by name: of cgroups by path, of users by number. What else is known of a key is null where the tapes differ.
    pub DIFF = "diff" {
        calls_before ? AtLeast: Count "calls in the first tape"
        calls_after ? AtLeast: Count "calls in the second tape"
        calls_diff ? OfKnown: Int "how many more the second has; negative: fewer"
        errors_before ? AtLeast: Count "calls of the first tape that returned an error"
        errors_after ? AtLeast: Count "the same of the second"
        errors_diff ? OfKnown: Int "how many more the second has"
        total_ns_before ? AtLeast: Duration "time in the calls of the first tape"
        total_ns_after ? AtLeast: Duration "time in those of the second"
        total_ns_diff ? OfKnown: Duration "how much more the second has; null: no number of JSON holds it"
        ledger_calls ? AtLeast: Count "calls of both that were counted and not stored; which thread made each of them, and on which file, is not known"
    }
}

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "diff",
    about: "Two summaries side by side, by syscall, file, program or another key",
    operands: Operands::TwoTapes,
    options: &[TASKS, CALLS, PATHS, CPUS, &["time", "by", "max_events"]],
    examples: [
        ("analyze diff before.tape after.tape", "what changed, by time"),
        ("analyze diff before.tape after.tape --by syscall,file", "which calls on which files"),
    ],
    own: Own::of::<Rank>(),
    tables: &[Rows::of("diff", &[KeysPart(&by::BY), All(&DIFF)])],
    check,
    run: Run::Prints(run),
    ..View::PLAIN
};

/// Options that do not apply.
fn check(config: &Config) -> Result<()> {
    if !config.calls {
        bail!("'analyze diff' compares sums of calls, and -e names none");
    }
    keys(config).map(drop)
}

/// Keys whose values mean the same in two recordings: ids of processes do not, nor does time.
const KEYS: [By; 17] = [
    By::Syscall,
    By::Comm,
    By::File,
    By::Dir,
    By::Ext,
    By::Peer,
    By::Port,
    By::Errno,
    By::Uid,
    By::Cgroup,
    By::Container,
    By::Unit,
    By::Pod,
    By::Job,
    By::Env,
    By::Label,
    By::Cpu,
];

fn keys(config: &Config) -> Result<Vec<By>> {
    let by = By::parse(&config.by, &KEYS, "'analyze diff', whose keys mean the same in both tapes,")?;
    Ok(if by.is_empty() { vec![By::Syscall] } else { by })
}

/// Prints the difference between `tape` and the second of `config`.
fn run(config: &Config, tape: &Tape) -> Result<Verdict> {
    let path = config.second.as_deref().unwrap_or(&config.file);
    let second = open(path)?;
    let by = keys(config)?;
    let before = Side::read(config, &by, tape, &config.file)?;
    let after = Side::read(config, &by, &second, path)?;
    let rows = rows(&before, &after);
    config.shown.rows(rows.len());
    let limit = config.own::<Rank>()?.limit(config.format, config.max_events);
    let mut out = output::stdout()?;
    let complete = before.complete && after.complete;
    match config.format.rows() {
        None => {
            text(&by, &[&before, &after], &rows[..rows.len().min(limit)], &mut out)?;
            more(rows.len(), limit).iter().try_for_each(|text| line(&mut out, text))?;
        }
        Some(form) => {
            let judged = Judgement::Touched(!complete);
            let table = with_keys(by::columns(&by), &DIFF);
            sink::print(form, &table, judged, rows.iter().take(limit).map(|row| row.record(&by, &table)), &mut out)?;
            [&before, &after].into_iter().for_each(Side::tell);
        }
    }
    out.flush()?;
    Ok(Verdict { lost: before.lost || after.lost, bad: false })
}

/// The calls of one key of one tape.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    calls: u64,
    errors: u64,
    total: u64,
    /// Some lasted longer than known.
    open: bool,
    /// There may be more calls than these.
    short: bool,
    /// Calls that were counted and not stored.
    counted: u64,
}

/// One value of the keys, as its tape has it.
#[derive(Clone, Debug, PartialEq)]
struct Named {
    /// A text for each key.
    texts: Vec<String>,
    /// A cell for each of its columns.
    cells: Vec<Cell<'static>>,
}

/// What makes keys of two tapes equal: the JSON of each key's value, or its text if that is null.
type Identity = Vec<Vec<u8>>;

/// One tape.
struct Side {
    name: String,
    /// In the order of the keys.
    sums: BTreeMap<Identity, (Named, Sum)>,
    /// Calls were counted of which not each key is known: they may be of a key that none of the others has.
    vague: bool,
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
    fn read(config: &Config, by: &[By], tape: &Tape, path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        families::require(tape, Family::Syscall, "syscalls").with_context(|| name.clone())?;
        let mut context = Context::new(config, tape).with_context(|| name.clone())?;
        let session = tape.session();
        let plan = Plan::by(by).naming(session);
        let question = &context.question;
        let (found, knowledge, coverage) = collect::collect(tape, &question.scope, &question.book, &plan);
        let mut sums: BTreeMap<Identity, (Named, Sum)> = BTreeMap::new();
        let mut vague = false;
        for row in table::rows(&found, &knowledge, &question.book, &plan, Column::default()) {
            let words = Words { session, book: &question.book, plan: &plan };
            let (identity, named) = identify(by, &Keys { words, values: row.key, task: row.task });
            let (_, sum) = sums.entry(identity).or_insert_with(|| (named, Sum::default()));
            let stats = row.stats;
            sum.calls = sum.calls.saturating_add(stats.calls);
            sum.errors = sum.errors.saturating_add(stats.errors);
            sum.total = sum.total.saturating_add(u64::try_from(stats.total()).unwrap_or(u64::MAX));
            sum.open |= stats.open > 0;
            sum.short |= row.short;
            sum.counted = sum.counted.saturating_add(stats.ledger_calls());
            vague |= stats.ledger_calls() > 0 && row.key.contains(&Value::Unknown);
        }
        coverage.tell(&mut context.question.loss);
        let of_sums = context.question.loss.of_sums();
        let mut loss = of_sums.lines(session, LOSS_LINES);
        loss.extend(knowledge.doubts());
        Ok(Self {
            name,
            sums,
            vague,
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

fn identify(by: &[By], keys: &Keys<'_>) -> (Identity, Named) {
    let text = |by: &By| {
        let text = keys.text(*by);
        without_number(text.as_bytes()).map(escaped).unwrap_or(text)
    };
    let texts: Vec<String> = by.iter().map(text).collect();
    let (mut identity, mut cells) = (Identity::new(), Vec::new());
    let columns = by::columns(by);
    by::each(by, |key, name| {
        let cell = anonymous(keys.cell(key, name));
        if by::is_value(key, name) || name == "syscall" {
            let mut part = Vec::new();
            match (cell.is_null(), columns.get(cells.len())) {
                (false, Some(column)) => cell.json(column.ty, &mut part),
                // no JSON begins with it
                _ => part.extend(
                    by.iter().position(|by| *by == key).map(|at| format!("?{}", texts[at])).unwrap_or_default().bytes(),
                ),
            }
            identity.push(part);
        }
        cells.push(cell.into_owned());
    });
    (identity, Named { texts, cells })
}

/// A cell without the number of a pipe or socket.
fn anonymous(cell: Cell<'_>) -> Cell<'_> {
    match &cell {
        Cell::Text(text) => without_number(text).map(|kind| Cell::from(kind.to_vec())).unwrap_or(cell),
        _ => cell,
    }
}

/// `pipe` of `pipe:[4711]`: the kernel numbers these anew each time, so no other tape has the same. None: it is no such name.
fn without_number(name: &[u8]) -> Option<&[u8]> {
    let at = name.windows(2).position(|two| two == b":[")?;
    let (kind, rest) = name.split_at(at);
    let number = rest.strip_prefix(b":[")?.strip_suffix(b"]")?;
    let plain = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
    (plain && [&b"pipe"[..], b"socket"].contains(&kind)).then_some(kind)
}

/// One value of the keys in both tapes.
struct Row {
    named: Named,
    before: Sum,
    after: Sum,
}

fn rows(before: &Side, after: &Side) -> Vec<Row> {
    let all: BTreeSet<&Identity> = before.sums.keys().chain(after.sums.keys()).collect();
    let row = |identity: &Identity| {
        let [a, b] = [before, after].map(|side| side.sums.get(identity));
        let sum = |side: &Side| match side.sums.get(identity) {
            Some((_, sum)) => *sum,
            None => Sum { short: side.vague, ..Sum::default() },
        };
        let named = match (a, b) {
            (Some((a, _)), Some((b, _))) => a.agreed(b),
            (Some((named, _)), None) | (None, Some((named, _))) => named.clone(),
            (None, None) => return None,
        };
        Some(Row { named, before: sum(before), after: sum(after) })
    };
    let mut rows: Vec<Row> = all.into_iter().filter_map(row).collect();
    // the sort is stable: equal differences stay in the order of names
    let differs = |row: &Row| (row.after.total.abs_diff(row.before.total), row.after.calls.abs_diff(row.before.calls));
    rows.sort_by_key(|row| std::cmp::Reverse(differs(row)));
    rows
}

impl Named {
    /// What both tapes say of the same key.
    fn agreed(&self, other: &Self) -> Self {
        let both = |(one, other): (&Cell<'static>, &Cell<'static>)| if one == other { one.clone() } else { Cell::Null };
        Self { texts: self.texts.clone(), cells: self.cells.iter().zip(&other.cells).map(both).collect() }
    }
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
    /// How much longer the calls of the second took, ms: `+3.000`, `~-3.000`.
    fn difference(&self) -> String {
        let (a, b) = (&self.before, &self.after);
        let sign = match b.total.cmp(&a.total) {
            std::cmp::Ordering::Less => "-",
            std::cmp::Ordering::Equal => "",
            std::cmp::Ordering::Greater => "+",
        };
        // the difference of a lower bound is neither more nor less than anything
        let about = mark::about([a, b].iter().any(|sum| sum.open || sum.short));
        let mut difference = Vec::new();
        num::millis(&mut difference, b.total.abs_diff(a.total), 0, &format!("{about}{sign}"));
        String::from_utf8_lossy(&difference).into_owned()
    }

    fn cells(&self) -> Vec<String> {
        let (a, b) = (&self.before, &self.after);
        let total = |sum: &Sum| millis(sum.total, mark::at_least(sum.open || sum.short));
        let count = |sum: &Sum, count: u64| format!("{}{count}", mark::at_least(sum.short));
        let more = |before, after| format!("{}{}", mark::about(a.short || b.short), signed(before, after));
        let mut cells = self.named.texts.clone();
        cells.extend([
            count(a, a.calls),
            count(b, b.calls),
            more(a.calls, b.calls),
            count(a, a.errors),
            count(b, b.errors),
            more(a.errors, b.errors),
            total(a),
            total(b),
            self.difference(),
        ]);
        cells
    }

    fn record<'t>(&'t self, by: &[By], table: &'t TableDef) -> crate::render::row::Row<'t> {
        let (a, b) = (&self.before, &self.after);
        // null: no number of JSON's holds what the sums of an invalid tape differ by
        let difference = |a: u64, b: u64| {
            let value = i128::from(b) - i128::from(a);
            if u64::try_from(value).is_ok() || i64::try_from(value).is_ok() { Cell::Int(value) } else { Cell::Null }
        };
        let mut row = crate::render::row::Row::new(table);
        let mut cells = self.named.cells.iter();
        by::fill(&mut row, by, |_, _| cells.next().cloned().unwrap_or_default());
        let short = a.short || b.short;
        row.bound("calls_before", a.calls, a.short).bound("calls_after", b.calls, b.short);
        row.bound("calls_diff", difference(a.calls, b.calls), short);
        row.bound("errors_before", a.errors, a.short).bound("errors_after", b.errors, b.short);
        row.bound("errors_diff", difference(a.errors, b.errors), short);
        row.bound("total_ns_before", a.total, a.open || a.short).bound("total_ns_after", b.total, b.open || b.short);
        row.bound("total_ns_diff", difference(a.total, b.total), short || a.open || b.open);
        row.bound("ledger_calls", a.counted.saturating_add(b.counted), short);
        row
    }
}

fn text(by: &[By], sides: &[&Side; 2], rows: &[Row], out: &mut BufWriter<File>) -> Result<()> {
    for (side, name) in sides.iter().zip(["before", "after"]) {
        let (mut calls, mut total) = (0_u64, 0_u64);
        for (_, sum) in side.sums.values() {
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
    if let Some(text) = in_one_line(sides, rows) {
        line(out, &text)?;
        line(out, "")?;
    }
    let columns = by.iter().fold(Table::default(), |table, by| table.word(by.heading()));
    let columns = columns.number("calls").number("after").number("diff");
    let columns = columns.number("errors").number("after").number("diff");
    let mut table = columns.number("total ms").number("after").number("diff");
    rows.iter().for_each(|row| table.row(row.cells()));
    table.print(out)?;
    Ok(())
}

/// What changed, in one line; None: the time in calls is the same.
fn in_one_line([before, after]: &[&Side; 2], rows: &[Row]) -> Option<String> {
    let total = |side: &Side| side.sums.values().fold(0_u64, |all, (_, sum)| all.saturating_add(sum.total));
    let rough = |side: &Side| !side.complete || side.sums.values().any(|(_, sum)| sum.open || sum.short);
    let (a, b) = (total(before), total(after));
    let about = mark::about(rough(before) || rough(after));
    let most = rows.first()?;
    let word = match b.cmp(&a) {
        std::cmp::Ordering::Equal => return None,
        std::cmp::Ordering::Greater => "more",
        std::cmp::Ordering::Less => "less",
    };
    let name = most.named.texts.join(" ");
    let calls = signed(most.before.calls, most.after.calls);
    let difference = most.difference();
    Some(format!(
        "after spends {about}{} {word} in calls; most changed: {name}, {difference} ms, {calls} calls",
        span(b.abs_diff(a))
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_that_no_number_holds_is_null() {
        let of = |before, after| {
            let sum = |total| Sum { total, ..Sum::default() };
            let named = Named { texts: Vec::new(), cells: Vec::new() };
            let row = Row { named, before: sum(before), after: sum(after) };
            let record = row.record(&[], &DIFF);
            let (_, cell, _) = record.cells().find(|(column, ..)| column.name == "total_ns_diff").expect("a column");
            format!("{cell:?}")
        };
        assert_eq!(of(7, 5), "Int(-2)");
        assert_eq!(of(0, u64::MAX), format!("Int({})", u64::MAX));
        assert_eq!(of(u64::MAX, 0), "Null");
    }

    #[test]
    fn numbers_of_one_boot_are_left_out() {
        assert_eq!(without_number(b"pipe:[4711]"), Some(&b"pipe"[..]));
        assert_eq!(without_number(b"socket:[1]"), Some(&b"socket"[..]));
        for whole in
            ["pipe:[]", "pipe:[4a]", "/tmp/pipe:[4]", "pipe:[4]x", "anon_inode:[eventpoll]", "UNIX:[/run/a]", ""]
        {
            assert_eq!(without_number(whole.as_bytes()), None, "{whole}");
        }
    }

    #[test]
    fn what_the_tapes_say_differently_of_a_key_is_null() {
        let named = |id: u32| Named { texts: vec!["/a".to_owned()], cells: vec![Cell::from("/a"), Cell::from(id)] };
        assert_eq!(named(7).agreed(&named(7)), named(7));
        assert_eq!(named(7).agreed(&named(8)).cells, [Cell::from("/a"), Cell::Null]);
    }
}
