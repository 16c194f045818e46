//! Answers of questions, as frames.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Error, Result, anyhow, bail};
use serde_json::{Value, json};
use systape_analyzer::frames::arrow::{BatchBody, BatchColumn, TextForm};
use systape_analyzer::frames::{
    self, Batch, Bounds, FrameField, Kind, PASSED, RowPicks, Source, Table, TableReading, Values,
};

use crate::child;
use crate::question::{QuestionKind, TapeQuestion};
use crate::wire::{self, FrameKind};

/// Who asked wants no more.
#[derive(Debug)]
struct Gone;

impl std::fmt::Display for Gone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("who asked has gone")
    }
}

impl std::error::Error for Gone {}

/// A column of an answer.
struct AnswerColumn<'a> {
    name: &'a str,
    kind: Kind,
    unit: &'a str,
    doc: &'a str,
}

impl<'a> From<&'a FrameField> for AnswerColumn<'a> {
    fn from(field: &'a FrameField) -> Self {
        Self { name: &field.name, kind: field.kind, unit: field.unit, doc: &field.doc }
    }
}

/// The columns of losses.
const LOSSES: [(&str, Kind, &str); 6] = [
    ("host", Kind::Text, "name of the recorded machine; NULL: not known"),
    ("tape", Kind::Text, "id of the tape, 32 hexadecimal digits"),
    ("file", Kind::Text, "file of the tape"),
    ("table", Kind::Text, "table that it changes"),
    ("complete", Kind::Flag, "nothing of the table is missing: the sentence says something else"),
    ("about", Kind::Text, "what is missing, and why"),
];

/// The word of a kind, which the other side knows.
pub(crate) const KINDS: [(Kind, &str); 7] = [
    (Kind::Int, "int"),
    (Kind::Wide, "wide"),
    (Kind::Real, "real"),
    (Kind::Flag, "flag"),
    (Kind::Text, "text"),
    (Kind::Instant, "instant"),
    (Kind::Map, "map"),
];

fn columns_json<'a>(columns: impl IntoIterator<Item = AnswerColumn<'a>>) -> Value {
    let word = |kind: Kind| KINDS.iter().find(|(of, _)| *of == kind).map(|(_, word)| *word);
    let one = |column: AnswerColumn<'_>| json!({"name": column.name, "kind": word(column.kind), "unit": column.unit, "doc": column.doc});
    columns.into_iter().map(one).collect()
}

/// Writes frames.
struct AnswerOut<'a> {
    out: &'a mut (dyn Write + Send),
}

impl AnswerOut<'_> {
    fn json(&mut self, kind: FrameKind, value: &Value) -> Result<()> {
        wire::write(self.out, kind, value.to_string().as_bytes()).map_err(|_| Gone.into())
    }

    fn head<'c>(&mut self, table: &str, doc: &str, columns: impl IntoIterator<Item = AnswerColumn<'c>>) -> Result<()> {
        self.json(FrameKind::Head, &json!({"table": table, "doc": doc, "columns": columns_json(columns)}))
    }

    fn rows(&mut self, columns: &[BatchColumn], picks: &RowPicks<'_>) -> Result<()> {
        let BatchBody { bytes, nodes, buffers } = BatchBody::new(columns.iter().copied(), picks, TextForm::Coded)?;
        let counts = [picks.len() as i64, nodes.len() as i64];
        let numbers = counts.into_iter().chain(nodes.into_iter().flatten()).chain(buffers.into_iter().flatten());
        let layout = wire::longs(numbers);
        let written = wire::write(self.out, FrameKind::Layout, &layout)
            .and_then(|()| wire::write(self.out, FrameKind::Buffers, &bytes));
        written.map_err(|_| Gone.into())
    }
}

/// What is lost, and what was said.
#[derive(Default)]
struct Said {
    lost: Vec<String>,
    notes: Vec<String>,
}

/// Answers `question`; `confined`: after giving up all rights but to read its tapes. An answer that fails ends with an error.
///
/// # Errors
/// It cannot be written.
pub(crate) fn to(question: &TapeQuestion, confined: bool, out: &mut (dyn Write + Send)) -> io::Result<()> {
    match answer(question, confined, out) {
        Err(error) if error.is::<Gone>() => Ok(()),
        Err(error) => refuse(&error, out),
        Ok(()) => Ok(()),
    }
}

/// Says why there is no answer.
///
/// # Errors
/// It cannot be written.
pub(crate) fn refuse(error: &Error, out: &mut (dyn Write + Send)) -> io::Result<()> {
    wire::write(out, FrameKind::Error, frames::plain(&format!("{error:#}")).as_bytes())
}

fn answer(question: &TapeQuestion, confined: bool, out: &mut (dyn Write + Send)) -> Result<()> {
    let paths = frames::tapes(&question.tapes)?;
    if confined {
        child::confine(&paths);
    }
    let open = |path: &PathBuf| frames::source(path).with_context(|| path.display().to_string());
    let mut out = AnswerOut { out };
    let mut said = Said::default();
    match &question.kind {
        QuestionKind::Tapes => {
            let sources = paths.iter().map(|path| Ok((path, open(path)?))).collect::<Result<Vec<_>>>()?;
            let tapes = sources.iter().map(|(path, source)| about(path, source)).collect::<Result<Value>>()?;
            out.json(FrameKind::End, &json!({"lost": [], "notes": [], "tapes": tapes}))?;
            return Ok(());
        }
        QuestionKind::Table { table, columns, bounds, ordered, most } => {
            let sources = paths.iter().map(open).collect::<Result<Vec<_>>>()?;
            let wanted = wanted(&sources, table, columns.as_deref())?;
            out.head(&wanted.0, &wanted.1, wanted.2.iter().map(AnswerColumn::from))?;
            let mut left = most.unwrap_or(u64::MAX);
            let tables = with_rows(&sources, &paths, table, &mut said)?;
            for (source, path, table) in tables {
                rows_of_tape(source, table, &wanted.2, (bounds, *ordered), &mut left, &mut out)
                    .with_context(|| path.display().to_string())?;
                let (complete, lines) = source.losses(&[table], &Bounds::default())?;
                let named = lines.into_iter().map(|line| named(line, path, paths.len()));
                if complete { said.notes.extend(named) } else { said.lost.extend(named) }
            }
        }
        QuestionKind::Report(words) => {
            let mut heads: Vec<(String, Value)> = Vec::new();
            let mut failed: Vec<Error> = Vec::new();
            for path in &paths {
                let report = match open(path)?.report(words).with_context(|| path.display().to_string()) {
                    Ok(report) => report,
                    Err(error) => {
                        failed.push(error);
                        continue;
                    }
                };
                for table in &report.tables {
                    let head = (table.name.clone(), columns_json(table.fields.iter().map(AnswerColumn::from)));
                    if heads.last() != Some(&head) {
                        out.head(&table.name, &table.doc, table.fields.iter().map(AnswerColumn::from))?;
                        heads.push(head);
                    }
                    let columns: Vec<_> = BatchColumn::in_order(table.fields.iter().map(|field| field.kind)).collect();
                    for batch in &table.batches {
                        RowPicks::all(batch, PASSED).try_for_each(|picks| out.rows(&columns, &picks))?;
                    }
                }
                let notes = report.notes.into_iter().map(|note| named(note, path, paths.len()));
                if report.lost { said.lost.extend(notes) } else { said.notes.extend(notes) }
            }
            said.lost.extend(failed.iter().map(|error| format!("{error:#}")));
            // what none of them answers is no question for them
            if failed.len() == paths.len() {
                return failed.into_iter().next().map_or(Ok(()), Err);
            }
        }
        QuestionKind::Losses(tables) => {
            let sources = paths.iter().map(open).collect::<Result<Vec<_>>>()?;
            let column = |(name, kind, doc)| AnswerColumn { name, kind, unit: "", doc };
            out.head("losses", "One row for each loss and each table that it changes.", LOSSES.map(column))?;
            let batch = losses(&sources, &paths, tables.as_deref())?;
            let columns: Vec<_> = BatchColumn::in_order(LOSSES.map(|(_, kind, _)| kind)).collect();
            RowPicks::all(&batch, PASSED).try_for_each(|picks| out.rows(&columns, &picks))?;
        }
        QuestionKind::Command(_) => bail!("a command line is answered by a process of its own"),
    }
    out.json(FrameKind::End, &json!({"lost": said.lost, "notes": said.notes}))
}

fn named(line: String, path: &Path, of: usize) -> String {
    if of > 1 { format!("{}: {line}", path.display()) } else { line }
}

/// What a tape is, its tables, and what is lost of each.
fn about(path: &Path, source: &Source) -> Result<Value> {
    let table = |table: &Table| -> Result<Value> {
        let (complete, lines) = source.losses(&[table], &Bounds::default())?;
        Ok(json!({
            "name": table.name,
            "doc": table.doc,
            "columns": columns_json(table.fields.iter().map(AnswerColumn::from)),
            "families": table.families(),
            "is_report": table.is_report(),
            "absent": source.require(table).err().map(|error| format!("{error:#}")),
            "lost": if complete { Vec::new() } else { lines },
        }))
    };
    Ok(json!({
        "file": path.to_string_lossy(),
        "tape": source.id(),
        "host": source.host().map(frames::utf8),
        "date": source.date(),
        "segments": source.segments(),
        "tables": source.tables().iter().map(table).collect::<Result<Value>>()?,
    }))
}

/// The tapes whose table `name` has rows, and the table of each. Of others that has to be said, if there are any.
///
/// # Errors
/// None has: its events were not recorded.
fn with_rows<'s>(
    sources: &'s [Source],
    paths: &'s [PathBuf],
    name: &str,
    said: &mut Said,
) -> Result<Vec<(&'s Source, &'s PathBuf, &'s Table)>> {
    let (mut with, mut without) = (Vec::new(), None);
    for (source, path) in sources.iter().zip(paths) {
        let Some(table) = source.tables().iter().find(|there| there.name == name) else { continue };
        match source.require(table).with_context(|| path.display().to_string()) {
            Ok(()) => with.push((source, path, table)),
            Err(error) => {
                said.lost.push(format!("{error:#}"));
                without.get_or_insert(error);
            }
        }
    }
    match without.filter(|_| with.is_empty()) {
        Some(error) => Err(error),
        None => Ok(with),
    }
}

/// Name, sentence and columns of a table of several tapes: those of all of them, in the order in which they are met.
type WantedTable = (String, String, Vec<FrameField>);

fn wanted(sources: &[Source], name: &str, columns: Option<&[String]>) -> Result<WantedTable> {
    let tables: Vec<&Table> =
        sources.iter().flat_map(|source| source.tables().iter().find(|table| table.name == name)).collect();
    let Some(first) = tables.first() else { bail!("there is no table {}", frames::plain(name)) };
    let mut all: Vec<FrameField> = first.fields.clone();
    for field in tables.iter().skip(1).flat_map(|table| &table.fields) {
        match all.iter().find(|there| there.name == field.name) {
            Some(there) if there.kind == field.kind => {}
            Some(_) => bail!("column {} of table {name} has not the same type in all tapes", field.name),
            None => all.push(field.clone()),
        }
    }
    let fields = match columns {
        None => all,
        Some(columns) => {
            let of = |column: &String| all.iter().find(|field| field.name == *column).cloned();
            let of = |column: &String| {
                of(column).ok_or_else(|| anyhow!("table {name} has no column {}", frames::plain(column)))
            };
            columns.iter().map(of).collect::<Result<_>>()?
        }
    };
    Ok((first.name.clone(), first.doc.clone(), fields))
}

/// Passes on the rows of a tape, `left` so many at most. A column that the tape has not is NULL.
fn rows_of_tape(
    source: &Source,
    table: &Table,
    wanted: &[FrameField],
    (bounds, ordered): (&Bounds, bool),
    left: &mut u64,
    out: &mut AnswerOut<'_>,
) -> Result<()> {
    let there = |field: &FrameField| table.fields.iter().find(|there| there.name == field.name);
    let fields: Vec<&FrameField> = wanted.iter().filter_map(there).collect();
    let at = |field: &FrameField| fields.iter().position(|there| there.name == field.name);
    let columns: Vec<BatchColumn> =
        wanted.iter().map(|field| BatchColumn { kind: field.kind, at: at(field) }).collect();
    let reading = TableReading { table, fields, bounds: bounds.clone(), ordered };
    let mut fault = None;
    source.rows(&reading, &mut |picks| {
        let few = usize::try_from(*left).unwrap_or(usize::MAX);
        let written = match picks.first(few) {
            Some(picks) => out.rows(&columns, &picks),
            None => return ControlFlow::Break(()),
        };
        *left = left.saturating_sub(picks.len() as u64);
        match written {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                fault = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    fault.map_or(Ok(()), Err)
}

/// The rows of losses.
fn losses(sources: &[Source], paths: &[PathBuf], tables: Option<&[String]>) -> Result<Batch> {
    let mut rows: Vec<[Option<String>; 5]> = Vec::new();
    let mut complete = Vec::new();
    let mut unknown: BTreeSet<&String> = tables.unwrap_or_default().iter().collect();
    // a table that no tape has is not one that misses something
    let has = |source: &Source, name: &str| {
        source.tables().iter().any(|table| table.name == name && source.require(table).is_ok())
    };
    let recorded = |name: &str| sources.iter().any(|source| has(source, name));
    for (source, path) in sources.iter().zip(paths) {
        for table in source.tables().iter().filter(|table| tables.is_none_or(|tables| tables.contains(&table.name))) {
            unknown.remove(&table.name);
            let (whole, lines) = match source.require(table) {
                Err(error) if recorded(&table.name) => (false, vec![format!("{error:#}")]),
                _ => source.losses(&[table], &Bounds::default())?,
            };
            for line in lines {
                let (host, id) = (source.host().map(frames::utf8), source.id().to_owned());
                let file = path.to_string_lossy().into_owned();
                rows.push([host, Some(id), Some(file), Some(table.name.clone()), Some(line)]);
                complete.push(Some(whole));
            }
        }
    }
    if let Some(unknown) = unknown.first() {
        bail!("there is no table {}", frames::plain(unknown));
    }
    let text = |at: usize| Values::of_texts(rows.iter().map(|row| row[at].as_deref().map(str::as_bytes)));
    let columns = vec![text(0), text(1), text(2), text(3), Values::Flag(complete.into_iter().collect()), text(4)];
    Ok(Batch { rows: rows.len(), columns })
}
