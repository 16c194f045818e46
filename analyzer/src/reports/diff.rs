//! `analyze diff`: the summaries of two tapes side by side, a line for each syscall or other key of which more differs than chance
//! explains, the largest difference first.

mod rows;
mod side;

use std::io::Write;

use anyhow::{Result, bail};
use clap::ValueEnum;
use systape_format::reader::Tape;

use self::rows::{Compared, DIFF, Row, Unit};
use self::side::Side;
use crate::asked::config::Config;
use crate::asked::config::view::Part::{All, Keys as KeysPart};
use crate::asked::config::view::{CALLS, CPUS, Operands, Own, PATHS, Rows, Run, TASKS, View};
use crate::render::by;
use crate::render::keys::with_keys;
use crate::render::mark;
use crate::render::rank::{Rank, more};
use crate::render::row::Judgement;
use crate::render::sink;
use crate::render::table::{Table, millis};
use crate::table::group::by::By;
use crate::values::open::open;
use crate::values::output::{self, Out, line};
use crate::values::say::Verdict;
use crate::values::words::{escaped, span};

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "diff",
    about: "What changed between two tapes, by syscall, file, program or another key",
    operands: Operands::TwoTapes,
    options: &[TASKS, CALLS, PATHS, CPUS, &["time", "by", "max_events"]],
    examples: [
        ("analyze diff before.tape after.tape", "what changed by more than chance, by time"),
        ("analyze diff before.tape after.tape --by syscall,file", "which calls on which files"),
    ],
    own: Own::of::<Options>(),
    tables: &[Rows::of("diff", &[KeysPart(&by::BY), All(&DIFF)])],
    check,
    run: Run::Prints(run),
    ..View::PLAIN
};

/// What the numbers of both tapes are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Per {
    /// All of each tape, of a command its run.
    Run,
    /// A second.
    Second,
}

#[derive(Clone, Copy, Debug, clap::Args)]
struct Options {
    /// Also rows that chance may explain
    #[arg(long)]
    all: bool,

    /// Compare whole tapes, or rates [default: run of two commands or tapes of one length, else second]
    #[arg(long, value_name = "UNIT")]
    per: Option<Per>,

    #[command(flatten)]
    rank: Rank,
}

/// Lengths that differ by less are the same.
const SAME_LENGTH: f64 = 0.02;

impl Options {
    fn rates(self, [before, after]: [&Side; 2]) -> bool {
        let same = (after.length as f64 - before.length as f64).abs() <= SAME_LENGTH * after.length as f64;
        self.per.map_or(!(same || (before.of_command && after.of_command)), |per| per == Per::Second)
    }
}

/// Options that do not apply.
fn check(config: &Config) -> Result<()> {
    if config.own::<Options>()?.all && config.format.rows().is_some() {
        bail!("--all is for text: JSON and CSV have all rows, and what chance may explain of them in 'changed'");
    }
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
    let own: Options = config.own()?;
    let rates = own.rates([&before, &after]);
    let compared = Compared::of(&before, &after, rates);
    let limit = own.rank.limit(config.format, config.max_events);
    let mut out = output::stdout()?;
    let complete = before.complete && after.complete;
    let rows = &compared.rows;
    match config.format.rows() {
        None => {
            let listed: Vec<&Row> = rows.iter().filter(|row| own.all || row.changed.any()).collect();
            config.shown.rows(listed.len());
            let shown = Shown { by: &by, sides: [&before, &after], compared: &compared, rates };
            shown.print(&listed[..listed.len().min(limit)], &mut out)?;
            more(listed.len(), limit).iter().try_for_each(|text| line(&mut out, text))?;
            let hidden = rows.len() - listed.len();
            if hidden > 0 {
                let which = if listed.is_empty() { "all" } else { "the other" };
                let s = if hidden == 1 { "" } else { "s" };
                line(&mut out, &format!("{which} {hidden} row{s} may differ by chance (--all)"))?;
            }
        }
        Some(form) => {
            config.shown.rows(rows.len());
            let judged = Judgement::Touched(!complete);
            let table = with_keys(by::columns(&by), &DIFF);
            let whole = complete && ![&before, &after].into_iter().any(Side::is_vague);
            let records = rows.iter().take(limit).map(|row| row.record(&by, compared.scale, whole, &table));
            sink::print(form, &table, judged, records, &mut out)?;
            [&before, &after].into_iter().for_each(Side::tell);
        }
    }
    out.flush()?;
    Ok(Verdict { lost: before.lost || after.lost, bad: false })
}

/// An answer in text.
struct Shown<'a> {
    by: &'a [By],
    sides: [&'a Side; 2],
    compared: &'a Compared,
    rates: bool,
}

impl Shown<'_> {
    fn print(&self, rows: &[&Row], out: &mut Out) -> Result<()> {
        let unit = Unit::of(self.sides, self.rates);
        for (side, name) in self.sides.iter().zip(["before", "after"]) {
            let (mut calls, mut total) = (0_u64, 0_u64);
            for (_, sum) in side.sums.values() {
                calls = calls.saturating_add(sum.calls);
                total = total.saturating_add(sum.total);
            }
            let least = if side.complete { "" } else { "at least " };
            let (name, length) = (format!("{name}: {}", escaped(side.name.as_bytes())), span(side.length));
            line(out, &format!("{name}, {length}: {least}{calls} calls, {} ms in them", millis(total, "")))?;
            for text in side.loss.iter().chain(&side.counted) {
                line(out, &format!("  {text}"))?;
            }
        }
        line(out, "")?;
        for text in [self.in_one_line(rows, unit), self.in_all_rows()].into_iter().flatten() {
            line(out, &text)?;
            line(out, "")?;
        }
        if rows.is_empty() {
            return Ok(());
        }
        let per = unit.suffix();
        let columns = self.by.iter().fold(Table::default(), |table, by| table.word(by.heading()));
        let columns = columns.number(&format!("calls{per}")).number("after").number("diff");
        let columns = columns.number(&format!("errors{per}")).number("after");
        let columns = columns.number(&format!("total ms{per}")).number("after").number("diff");
        let mut table = columns.number("p50 ms").number("after").number("p99 ms").number("after");
        rows.iter().for_each(|row| table.row(row.cells(unit)));
        table.print(out)?;
        Ok(())
    }

    /// What changed, in one line; None: the time in calls is the same.
    fn in_one_line(&self, rows: &[&Row], unit: Unit) -> Option<String> {
        let total = |side: &Side| side.sums.values().fold(0_u64, |all, (_, sum)| all.saturating_add(sum.total));
        let rough = |side: &Side| !side.complete || side.sums.values().any(|(_, sum)| sum.open || sum.short);
        let [before, after] = self.sides;
        let (a, b) = (unit.time(0, total(before)), unit.time(1, total(after)));
        let about = mark::about(rough(before) || rough(after));
        let word = match b.cmp(&a) {
            std::cmp::Ordering::Equal => return None,
            std::cmp::Ordering::Greater => "more",
            std::cmp::Ordering::Less => "less",
        };
        let each = if self.rates { " of each second" } else { "" };
        let spends = format!("after spends {about}{} {word}{each} in calls", span(b.abs_diff(a)));
        let Some(most) = rows.first() else {
            return Some(format!("{spends}; no row differs by more than chance may explain"));
        };
        let name = most.named.texts.join(" ");
        let calls = format!("{} calls{}", unit.more(most.before.calls, most.after.calls), unit.suffix());
        Some(format!("{spends}; most changed: {name}, {} ms{}, {calls}", most.difference(unit), unit.suffix()))
    }

    /// What most rows have in common; None: they are as before.
    fn in_all_rows(&self) -> Option<String> {
        let common = &self.compared.common;
        let differs = |factor: f64| (factor - 1.0).abs() >= 0.1;
        let calls = common.calls / self.compared.scale;
        let calls = differs(calls).then(|| format!("there are {calls:.2} times as many calls"));
        let time = differs(common.time).then(|| format!("a call takes {:.2} times as long", common.time));
        let texts: Vec<String> = [calls, time].into_iter().flatten().collect();
        (!texts.is_empty()).then(|| format!("in most rows {}: what differs from that is listed", texts.join(" and ")))
    }
}
