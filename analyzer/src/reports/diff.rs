//! `analyze diff`: two tapes, or two stretches of one, side by side: what differs of CPU time, waits, I/O, faults and processes, and a
//! line for each syscall or other key of which more differs than chance explains, the largest difference first.

mod rows;
mod side;
mod whole;

use std::io::Write;

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use systape_format::reader::Tape;

use self::rows::{Compared, DIFF, DiffUnit, Row};
use self::side::{RecordedSet, Side};
use self::whole::{Line, WHOLE};
use crate::asked::config::Config;
use crate::asked::config::view::Part::{All, Keys as KeysPart};
use crate::asked::config::view::{AnswerFn, CALLS, CPUS, Operands, Own, PATHS, Rows, TASKS, View};
use systape_answers::render::by;
use systape_answers::render::keys::with_keys;
use systape_answers::render::mark;
use systape_answers::render::out::Out;
use systape_answers::render::rank::{Rank, more};
use systape_answers::render::row::Judgement;
use systape_answers::render::table::{Table, millis};
use systape_answers::values::open::open;
use systape_answers::values::output::line;
use systape_answers::values::say::Verdict;
use systape_events::group::by::GroupKey;
use systape_events::values::timespec;
use systape_events::values::words::{escaped, span};

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "diff",
    about: "What changed between two tapes, or two stretches of one: CPU, waits, I/O, and calls by a key",
    operands: Operands::TwoTapes,
    options: &[TASKS, CALLS, PATHS, CPUS, &["time", "by", "max_events"]],
    examples: [
        ("analyze diff before.tape after.tape", "what changed by more than chance, by time"),
        ("analyze diff app.tape --before 0,5 --after 5,10", "the first five seconds, and the next"),
    ],
    own: Own::of::<Options>(),
    tables: &[Rows::of("diff", &[KeysPart(&by::BY), All(&DIFF)]), Rows::json("diff", &[All(&WHOLE)])],
    check,
    run: AnswerFn::Prints(run),
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

#[derive(Clone, Debug, clap::Args)]
struct Options {
    /// Also rows that chance may explain
    #[arg(long)]
    all: bool,

    /// Compare whole tapes, or rates [default: run of two commands or tapes of one length, else second]
    #[arg(long, value_name = "UNIT")]
    per: Option<Per>,

    /// Only this stretch of the first tape
    #[arg(long, value_name = "FROM,TO")]
    before: Option<String>,

    /// Only this stretch of the second tape, or of the one that there is
    #[arg(long, value_name = "FROM,TO")]
    after: Option<String>,

    #[command(flatten)]
    rank: Rank,
}

/// Lengths that differ by less are the same.
const SAME_LENGTH: f64 = 0.02;

impl Options {
    fn rates(&self, [before, after]: [&Side; 2]) -> bool {
        let same = (after.length as f64 - before.length as f64).abs() <= SAME_LENGTH * after.length as f64;
        self.per.map_or(!(same || (before.of_command && after.of_command)), |per| per == Per::Second)
    }
}

/// The question about one side: `stretch` of it, if that is given to `option`.
fn of_side(config: &Config, option: &str, stretch: Option<&str>) -> Result<Config> {
    let mut config = config.clone();
    if let Some(text) = stretch {
        config.filters.time = timespec::range(text).with_context(|| option.to_owned())?;
    }
    Ok(config)
}

/// A row that chance may explain is named if its time differs by more, ns, and by more than that of any other.
const WORTH_A_WORD: u64 = 10_000_000;

/// Options that do not apply.
fn check(config: &Config) -> Result<()> {
    let own: Options = config.own()?;
    let stretches = [own.before.as_deref(), own.after.as_deref()];
    if config.second.is_none() && stretches.contains(&None) {
        bail!(
            "'analyze diff BEFORE AFTER' compares two tapes: name both; or two stretches of one: \
             analyze diff TAPE --before FROM,TO --after FROM,TO"
        );
    }
    if config.filters.time != (None, None) && stretches != [None, None] {
        bail!("--time is of both sides: give --before and --after alone");
    }
    of_side(config, "--before", stretches[0])?;
    of_side(config, "--after", stretches[1])?;
    if own.all && config.format.rows().is_some() {
        bail!("--all is for text: JSON and CSV have all rows, and what chance may explain of them in 'changed'");
    }
    if !config.calls {
        bail!("'analyze diff' compares sums of calls, and -e names none");
    }
    keys(config).map(drop)
}

/// Keys whose values mean the same in two recordings: ids of processes do not, nor does time.
const KEYS: [GroupKey; 18] = [
    GroupKey::Syscall,
    GroupKey::Abi,
    GroupKey::Comm,
    GroupKey::File,
    GroupKey::Dir,
    GroupKey::Ext,
    GroupKey::Peer,
    GroupKey::Port,
    GroupKey::Errno,
    GroupKey::Uid,
    GroupKey::Cgroup,
    GroupKey::Container,
    GroupKey::Unit,
    GroupKey::Pod,
    GroupKey::Job,
    GroupKey::Env,
    GroupKey::Label,
    GroupKey::Cpu,
];

fn keys(config: &Config) -> Result<Vec<GroupKey>> {
    let by = GroupKey::parse(&config.by, &KEYS, "'analyze diff', whose keys mean the same in both tapes,")?;
    Ok(if by.is_empty() { vec![GroupKey::Syscall] } else { by })
}

/// Prints the difference between `tape` and the second of `config`.
fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let own: Options = config.own()?;
    let by = keys(config)?;
    let (of_before, of_after) =
        (of_side(config, "--before", own.before.as_deref())?, of_side(config, "--after", own.after.as_deref())?);
    let mut before = Side::read(&of_before, &by, tape, &config.file)?;
    let mut after = match config.second.as_deref() {
        Some(path) => Side::read(&of_after, &by, &open(path)?, config.second_name.as_deref().unwrap_or(path))?,
        None => Side::read(&of_after, &by, tape, &config.file)?,
    };
    for (side, stretch) in [(&mut before, &own.before), (&mut after, &own.after)] {
        side.stretch = stretch.as_ref().map(|text| format!(" {text}")).unwrap_or_default();
    }
    let rates = own.rates([&before, &after]);
    let compared = Compared::of(&before, &after, rates);
    let limit = config.limit(own.rank);
    let complete = before.complete && after.complete;
    let rows = &compared.rows;
    let measures = whole::lines([&before, &after], compared.scale);
    let filters = &config.filters;
    let narrowed = !filters.pids.is_empty() || !filters.tids.is_empty() || !filters.users.is_empty();
    let narrowed = narrowed || !filters.comms.is_empty() || !filters.cgroups.is_empty();
    if out.is_text() {
        let listed: Vec<&Row> = rows.iter().filter(|row| own.all || row.changed.any()).collect();
        config.shown.rows(listed.len());
        let sides = [&before, &after];
        let shown = Shown { by: &by, sides, compared: &compared, rates, measures: &measures, own: &own, narrowed };
        shown.print(&listed[..listed.len().min(limit)], out)?;
        out.text(more(listed.len(), limit))?;
        let hidden = rows.len() - listed.len();
        if hidden > 0 {
            let which = if listed.is_empty() { "all" } else { "the other" };
            let s = if hidden == 1 { "" } else { "s" };
            line(out, &format!("{which} {hidden} row{s} may differ by chance (--all)"))?;
        }
    } else {
        config.shown.rows(rows.len());
        let judged = Judgement::Touched(!complete);
        let table = with_keys(by::columns(&by), &DIFF);
        let whole = complete && ![&before, &after].into_iter().any(Side::is_vague);
        let records = rows.iter().take(limit).map(|row| row.record(&by, compared.scale, whole, &table));
        out.rows(&table, judged, records)?;
        out.rows_beside(&WHOLE, Judgement::Each, measures.iter().map(Line::record))?;
        [&before, &after].into_iter().for_each(|side| side.tell(out));
    }
    out.flush()?;
    Ok(Verdict { lost: before.lost || after.lost, bad: false })
}

/// An answer in text.
struct Shown<'a> {
    by: &'a [GroupKey],
    sides: [&'a Side; 2],
    compared: &'a Compared,
    rates: bool,
    /// What differs besides calls.
    measures: &'a [Line],
    own: &'a Options,
    /// Some tasks are asked for.
    narrowed: bool,
}

impl Shown<'_> {
    fn print(&self, rows: &[&Row], out: &mut Out) -> Result<()> {
        let unit = DiffUnit::of(self.sides, self.rates);
        for (side, name) in self.sides.iter().zip(["before", "after"]) {
            let (mut calls, mut total) = (0_u64, 0_u64);
            for (_, sum) in side.sums.values() {
                calls = calls.saturating_add(sum.calls);
                total = total.saturating_add(sum.total);
            }
            let least = if side.complete { "" } else { "at least " };
            let name = format!("{name}: {}{}", escaped(side.name.as_bytes()), escaped(side.stretch.as_bytes()));
            let length = span(side.length);
            line(out, &format!("{name}, {length}: {least}{calls} calls, {} ms in them", millis(total, "")))?;
            for text in side.loss.iter().chain(&side.counted) {
                line(out, &format!("  {text}"))?;
            }
        }
        self.scopes().iter().try_for_each(|text| line(out, text))?;
        line(out, "")?;
        for text in [self.in_one_line(rows, unit), self.in_all_rows()].into_iter().flatten() {
            line(out, &text)?;
            line(out, "")?;
        }
        if let Some(table) = whole::table(self.measures, unit, self.own.all) {
            table.print(out)?;
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
        let table = columns.number("p50 ms").number("after").number("p99 ms").number("after");
        // pairs go together; what rows are ordered by stays
        let mut table = table.leaving_at(&[8, 9, 3, 4, 10, 11, 2, 0, 1].map(|at| at + self.by.len()));
        rows.iter().for_each(|row| table.row(row.cells(unit)));
        table.print(out)?;
        Ok(())
    }

    /// What changed, in one line; None: the time in calls is the same.
    fn in_one_line(&self, rows: &[&Row], unit: DiffUnit) -> Option<String> {
        let total = |side: &Side| side.sums.values().fold(0_u64, |all, (_, sum)| all.saturating_add(sum.total));
        let rough = |side: &Side| !side.complete || side.sums.values().any(|(_, sum)| sum.open || sum.short);
        let [before, after] = self.sides;
        let each = if self.rates { " of each second" } else { "" };
        let lead = whole::lead(self.measures, unit, each);
        let (a, b) = (unit.time(0, total(before)), unit.time(1, total(after)));
        let about = mark::about(rough(before) || rough(after));
        let word = match b.cmp(&a) {
            std::cmp::Ordering::Equal => return lead.map(|(lead, _)| format!("after {lead}")),
            std::cmp::Ordering::Greater => "more",
            std::cmp::Ordering::Less => "less",
        };
        let spends = format!("spends {about}{} {word}{each} in calls", span(b.abs_diff(a)));
        // time on CPUs or asleep in calls is time in calls: it is said once
        let spends = match lead {
            None => spends,
            Some((lead, ns)) if lead.contains(" in calls") && ns.abs_diff(b.abs_diff(a)) <= ns / 10 => lead,
            Some((lead, _)) => format!("{lead}; it {spends}"),
        };
        let sure = rows.iter().find(|row| row.changed.any());
        let most = match (self.largest_by_chance(sure.copied()), sure) {
            (Some(most), Some(sure)) => {
                format!("most: {}, which may be chance; beyond chance: {}", most.change(unit), sure.change(unit))
            }
            (Some(most), None) => format!("most: {}, which may be chance", most.change(unit)),
            (None, Some(sure)) => format!("most changed: {}", sure.change(unit)),
            (None, None) => "no row of calls differs by more than chance explains".to_owned(),
        };
        Some(format!("after {spends}; {most}"))
    }

    /// The row that chance may explain and that differs most, if it differs more than `sure`, the first that chance does not explain.
    fn largest_by_chance(&self, sure: Option<&Row>) -> Option<&Row> {
        let unit = DiffUnit::of(self.sides, self.rates);
        let largest = self.compared.rows.iter().filter(|row| !row.changed.any()).max_by_key(|row| row.weight(unit));
        let least = sure.map_or(0, |row| row.weight(unit)).max(WORTH_A_WORD);
        largest.filter(|row| row.weight(unit) > least)
    }

    /// What the tapes were asked to hold, if that differs: a part of each difference is that.
    fn scopes(&self) -> Option<String> {
        let [before, after] = self.sides.map(|side| &side.recorded);
        let whom = |recorded: &RecordedSet| match recorded.everyone {
            true => "the whole machine (record -a)".to_owned(),
            false => escaped(recorded.target.as_bytes()),
        };
        let mut parts = Vec::new();
        if before.everyone != after.everyone && !self.narrowed {
            let hint = "-p, --comm or -G compares like with like";
            parts.push(format!("before is of {}, after of {} ({hint})", whom(before), whom(after)));
        }
        if before.selection != after.selection {
            parts.push("record -e selected other calls".to_owned());
        }
        if before.filters != after.filters {
            parts.push("record stored other calls (--duration and the like)".to_owned());
        }
        (!parts.is_empty()).then(|| format!("the scopes differ: {}", parts.join("; ")))
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
