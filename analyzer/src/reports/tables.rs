//! `analyze tables`: what JSON and CSV hold, from the declarations that also print: every table of every report, and those that a tape defines.

use std::collections::BTreeMap;
use std::io::Write as _;

use anyhow::{Result, bail};
use systape_format::model::Family;
use systape_format::reader::Tape;
use systape_format::table::{ColumnDef, TableDef};

use super::{Context, losses};
use crate::asked::config::Config;
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{AnswerFn, Operands, Own, Rows, View};
use systape_answers::render::out::{Out, TopRows};
use systape_answers::render::row::{Judgement, Row};
use systape_answers::render::table::Table;
use systape_answers::values::bad_usage::BadUsage;
use systape_answers::values::output::line;
use systape_answers::values::say::Verdict;
use systape_events::loss::ListedLoss;
use systape_events::scan::Scan;
use systape_events::values::words::escaped;

systape_format::tables! {
    /// One row for each table of the answers, then for each one that the tape defines (`-i TAPE`).
    pub TABLES = "tables" {
        table: Word key "its name"
        of: Word "`answers`, or `tape`: events that `-e TABLE` lists"
        reports: Nested "the reports that print it as JSON and CSV, as typed; `listing` without a name"
        columns: Count "its columns"
        rows ? AtLeast: Count "rows in the tape; null: it is one of answers"
        about: Word "what a row is"
    }
    /// One row a column (`analyze tables TABLE`, `--of REPORT`), in their order.
    pub COLUMNS = "columns" {
        table: Word key "the table"
        column: Word key "its name; in an object of JSON, that and `_` before it as in CSV"
        object: Word "the object of JSON that it stands in; null: in none"
        type: Word "what its values are: `time`, `duration`, `count`, `bytes`, `int`, `wide` (64 bits), `hex`, `real`, `flag`, `str` (bytes), `word` (UTF-8), `task`, `stack`, `nested`"
        json: Word "what a value is in JSON"
        unit: Word "its unit; null: it has none"
        key: Flag "it is one of the columns that say which row is which; of columns that were asked for (`by`) all are"
        inexact: Word "name of the boolean beside it that says whether it is off, and so in which way: `x_at_least`, `x_at_most`, `x_of_known`; null: it never is"
        class: Word "what it tells of people and machines: `path`, `string`, `command`, `comm`, `address`, `host`, `user`; null: nothing"
        about: Word "what it is"
    }
}

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "tables",
    about: "The tables of JSON and CSV: which report prints them, their columns, types and units",
    operands: Operands::Table,
    own: Own::of::<Options>(),
    examples: [
        ("analyze tables sched_latency", "the columns of a table"),
        ("analyze tables --of kills --format json", "those of all tables of a report"),
    ],
    tables: &[Rows::of("tables", &[All(&TABLES)]), Rows::of("tables TABLE", &[All(&COLUMNS)])],
    check: |config| match (&config.second, config.own::<Options>()?.of) {
        (Some(_), Some(_)) => bail!("--of REPORT shows the columns of all its tables: leave out the name of one"),
        _ => Ok(()),
    },
    run: AnswerFn::Lists(run),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// The columns of this report's tables
    #[arg(long, value_name = "REPORT")]
    of: Option<String>,
}

/// A table, and where it comes from.
struct Found<'a> {
    def: &'a TableDef,
    /// The reports of an answer's.
    reports: Vec<&'static str>,
    /// The rows that a tape's has.
    rows: Option<u64>,
}

/// How the report of `rows` is called.
fn report(rows: &Rows) -> &'static str {
    if rows.report.is_empty() { "listing" } else { rows.report }
}

/// Prints what `config` asks for about the answers of `views`, and about what `tape` defines.
fn run(config: &Config, views: &'static [&'static View], tape: Option<&Tape>, out: &mut Out) -> Result<Verdict> {
    let mut found: Vec<Found<'_>> = Vec::new();
    for rows in views.iter().flat_map(|view| view.tables) {
        for def in rows.parts.iter().map(|part| part.table()) {
            match found.iter_mut().find(|found| found.def.name == def.name) {
                Some(found) if found.reports.contains(&report(rows)) => {}
                Some(found) => found.reports.push(report(rows)),
                None => found.push(Found { def, reports: vec![report(rows)], rows: None }),
            }
        }
    }
    let stored = tape.map(|tape| StoredTables::of(config, tape)).transpose()?;
    if let (Some(tape), Some(StoredTables { counts, .. })) = (tape, &stored) {
        let defined: BTreeMap<_, _> = tape.table_defs().values().map(|def| (&def.name, &**def)).collect();
        let rows = |def: &TableDef| Some(counts.get(&*def.name).copied().unwrap_or(0));
        found.extend(defined.into_values().map(|def| Found { def, reports: Vec::new(), rows: rows(def) }));
    }
    let judged = stored.as_ref().map_or(Judgement::Touched(false), |stored| stored.context.judged());
    let name = config.second.as_ref().map(|name| name.to_string_lossy());
    match (&name, config.own::<Options>()?.of) {
        (None, None) => list(&found, judged, out)?,
        (Some(name), _) => {
            let is = |found: &Found<'_>| *found.def.name == **name;
            columns(&chosen(&found, is, "table", name)?, out)?;
        }
        (None, Some(of)) => {
            let named = views.iter().find(|view| view.name == of).map_or(&[][..], |view| view.tables);
            let is = |name: &&str| {
                *name == of
                    || name.split_once(' ').is_some_and(|(word, _)| word == of)
                    || named.iter().any(|rows| report(rows) == *name)
            };
            columns(&chosen(&found, |found| found.reports.iter().any(&is), "report", &of)?, out)?;
        }
    }
    match &stored {
        Some(stored) => losses::end(&stored.context, out, false, ListedLoss::Nothing),
        None => Ok(out.flush().map(|()| Verdict::default())?),
    }
}

/// Those of `found` that are asked for, which are some.
fn chosen<'f, 'a>(
    found: &'f [Found<'a>],
    asked: impl Fn(&Found<'a>) -> bool,
    what: &str,
    name: &str,
) -> Result<Vec<&'f Found<'a>>> {
    let chosen: Vec<_> = found.iter().filter(|found| asked(found)).collect();
    if chosen.is_empty() {
        let names = found.iter().flat_map(|found| match what {
            "table" => vec![&*found.def.name],
            _ => found.reports.clone(),
        });
        let near = systape_abi::nearest(name, names);
        let near =
            near.first().map(|near| format!("; did you mean '{}'?", escaped(near.as_bytes()))).unwrap_or_default();
        let of = what == "table" && found.iter().any(|found| found.reports.contains(&name));
        let near = if of { format!("; 'analyze tables --of {name}' has those of that report") } else { near };
        return Err(BadUsage(format!("'analyze tables' has no {what} '{}'{near}", escaped(name.as_bytes()))).into());
    }
    Ok(chosen)
}

/// What a tape has in the tables it defines.
struct StoredTables<'a> {
    context: Context<'a>,
    counts: BTreeMap<String, u64>,
}

impl<'a> StoredTables<'a> {
    fn of(config: &'a Config, tape: &'a Tape) -> Result<Self> {
        // a table of which every row is lost is defined nowhere
        let families: Vec<Family> = Family::ALL.iter().copied().filter(|family| family.has_tables()).collect();
        let mut context = Context::about(config, tape, &families)?;
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        let (parts, coverage) = Scan::all(tape).fold(Vec::new, |counts: &mut Vec<_>, segment, coverage| match segment
            .dict()
            .and_then(|dict| segment.tables(&dict))
        {
            Ok(tables) => counts.extend(tables.iter().map(|table| (table.def.name.to_string(), table.ts.len()))),
            Err(error) => coverage.finding(segment, "tables", &error),
        });
        for (name, rows) in parts.into_iter().flatten() {
            *counts.entry(name).or_default() += rows as u64;
        }
        coverage.tell(&mut context.question.loss);
        Ok(Self { context, counts })
    }
}

/// A line a table.
fn list(found: &[Found<'_>], judged: Judgement, out: &mut Out) -> Result<()> {
    let top = TopRows {
        table: &TABLES,
        judged,
        headings: Table::default()
            .word("table")
            .number("columns")
            .word("printed by")
            .prose("a row is")
            .leaving(&["columns"]),
        all: found.len(),
        limit: usize::MAX,
    };
    Ok(out.ranking(top, found.iter(), Found::row, Found::cells)?)
}

impl Found<'_> {
    fn row(&self) -> Row<'_> {
        let Self { def, reports, rows } = self;
        let mut row = Row::new(&TABLES);
        row.set("table", &*def.name).set("of", if rows.is_some() { "tape" } else { "answers" });
        row.set("reports", serde_json::Value::from(reports.clone())).set("columns", def.columns.len());
        row.set("rows", *rows).set("about", def.doc.trim());
        row
    }

    fn cells(&self) -> Vec<String> {
        let Self { def, reports, rows } = self;
        let by = match (rows, reports.as_slice()) {
            (Some(rows), _) => format!("-e {} ({rows} rows)", escaped(def.name.as_bytes())),
            // nearly every report prints losses
            (None, [first, second, _, rest @ ..]) if !rest.is_empty() => {
                format!("{first}, {second} and {} more", rest.len() + 1)
            }
            (None, _) => reports.join(", "),
        };
        let about = escaped(def.doc.trim().as_bytes());
        let about = about.split_once(". ").map_or(&*about, |(first, _)| first).trim_end_matches('.').to_owned();
        vec![escaped(def.name.as_bytes()), def.columns.len().to_string(), by, about]
    }
}

/// A line a column, below what its table is.
fn columns(found: &[&Found<'_>], out: &mut Out) -> Result<()> {
    if !out.is_text() {
        let rows = found.iter().flat_map(|found| found.def.columns.iter().map(|column| row(found.def, column)));
        return Ok(out.rows(&COLUMNS, Judgement::Each, rows)?);
    }
    for (at, Found { def, .. }) in found.iter().enumerate() {
        line(
            out,
            &format!(
                "{}{}: {}",
                if at > 0 { "\n" } else { "" },
                escaped(def.name.as_bytes()),
                escaped(def.doc.trim().as_bytes())
            ),
        )?;
        let mut table = Table::default().word("column").word("type").word("unit").word("may be").prose("what it is");
        for column in def.columns.iter() {
            let inexact = column.short.suffix().unwrap_or_default().replace('_', " ");
            let [name, about] = [&column.full_name(), &*column.doc].map(|text| escaped(text.as_bytes()));
            table.row(vec![name, column.ty.name().into(), column.ty.unit().into(), inexact.trim().into(), about]);
        }
        table.print(out)?;
    }
    Ok(())
}

fn row<'a>(table: &'a TableDef, column: &'a ColumnDef) -> Row<'a> {
    let some = |text: &'a str| Some(text).filter(|text| !text.is_empty());
    let mut row = Row::new(&COLUMNS);
    row.set("table", &*table.name).set("column", column.full_name()).set("object", some(&column.group));
    row.set("type", column.ty.name()).set("json", column.ty.json()).set("unit", some(column.ty.unit()));
    row.set("key", column.key);
    row.set("inexact", column.short.suffix().map(|suffix| format!("{}{suffix}", column.full_name())));
    row.set("class", column.class.map(systape_format::class::Class::name)).set("about", &*column.doc);
    row
}
