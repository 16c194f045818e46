//! `analyze sql`.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, bail};
use systape_analyzer::frames::{self, Bounds, Source, Table};

use crate::args::Sql;
use crate::out::{AnswerWriter, Form};
use crate::tables::{Taped, UsedTable};
use crate::{check, engine, say};

/// The tape that is read when none is named.
const DEFAULT_TAPE: &str = "trace.tape";

/// What the words of a command line say.
pub(crate) struct Asked {
    /// The query; None = a list is asked for.
    query: Option<String>,
    /// The tape; None = the list is of none.
    pub(crate) tape: Option<PathBuf>,
}

/// What `sql` asks, and of which tape. Reads neither.
///
/// # Errors
/// There is no query, or more than one tape.
pub(crate) fn asked(sql: &Sql) -> Result<Asked> {
    let listing = sql.tables || sql.schema.is_some();
    let mut words = sql.words.clone();
    let query = if listing { None } else { Some(take(&mut words)?) };
    let tape = match (&sql.input, words.as_slice()) {
        (Some(input), []) => Some(input.clone()),
        (None, [file]) => Some(PathBuf::from(file)),
        (None, []) if listing => None,
        (None, []) => Some(PathBuf::from(DEFAULT_TAPE)),
        _ => bail!("one tape is asked at a time; to ask several, export them (docs/guides/sql.md)"),
    };
    Ok(Asked { query, tape })
}

/// Answers the query; true: something is lost, and that was to be said by the exit status.
///
/// # Errors
/// There is no answer.
pub(crate) fn run(sql: &Sql, Asked { query, tape: path }: Asked) -> Result<bool> {
    let statement = query.as_deref().map(check::parse).transpose()?;
    let Some(statement) = statement else {
        return list(sql, path.as_deref()).map(|()| false);
    };
    let source = frames::source(path.as_deref().unwrap_or(Path::new(DEFAULT_TAPE)))?;
    let taped = Arc::new(Taped { source, used: Mutex::default(), read_all: sql.read_all });
    let mut out = AnswerWriter::new(sql.format, BufWriter::new(io::stdout().lock()));
    engine::run(&taped, statement, &mut |schema, batch| {
        match batch {
            _ if sql.explain => return Ok(false),
            None => out.begin(schema)?,
            Some(batch) => out.batch(&batch)?,
        }
        Ok(true)
    })?;
    let used = taped.used.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if sql.explain {
        drop(out);
        explain(&taped.source, &used, &mut io::stdout().lock())?;
        return Ok(false);
    }
    let (complete, lost) = losses(&taped.source, &used)?;
    out.end(complete, &lost)?;
    for line in &lost {
        say(line);
    }
    if !complete {
        say("numbers of this answer are lower bounds: see above and table gaps");
    }
    Ok(sql.fail_on_loss && !complete)
}

fn take(words: &mut Vec<String>) -> Result<String> {
    if words.is_empty() {
        bail!("no query: analyze sql 'SELECT ...' (--tables lists the tables)");
    }
    Ok(words.remove(0))
}

/// Whether nothing is lost of what was read, and the sentences about it.
fn losses(source: &Source, used: &[UsedTable]) -> Result<(bool, Vec<String>)> {
    let (mut complete, mut lines) = (true, Vec::new());
    for one in used {
        let (whole, lost) = source.losses(&[&source.tables()[one.table]], &one.bounds)?;
        complete &= whole;
        lines.extend(lost.into_iter().filter(|line| !lines.contains(line)).collect::<Vec<_>>());
    }
    Ok((complete, lines))
}

fn explain(source: &Source, used: &[UsedTable], out: &mut impl Write) -> io::Result<()> {
    for UsedTable { table, columns, bounds, filters, cost } in used {
        let some = |words: &[String], between: &str, none: &str| {
            if words.is_empty() { none.to_owned() } else { words.join(between) }
        };
        writeln!(out, "table {}", source.tables()[*table].name)?;
        writeln!(out, "  columns   {}", some(columns, ", ", "none"))?;
        writeln!(out, "  leaves out segments by  {}", some(filters, " AND ", "nothing"))?;
        if bounds != &Bounds::default() {
            writeln!(out, "  bounds    {bounds:?}")?;
        }
        writeln!(out, "  segments  {} of {}", cost.segments, cost.of_segments)?;
        writeln!(out, "  bytes     {} of {}", cost.bytes, cost.of_bytes)?;
    }
    Ok(())
}

/// Lists tables, or the columns of one.
fn list(sql: &Sql, path: Option<&Path>) -> Result<()> {
    let source = path.map(frames::source).transpose()?;
    let every = frames::names();
    let tables: &[Table] = source.as_ref().map_or(&every, |source| source.tables());
    let rows = match &sql.schema {
        Some(name) => {
            let found = tables.iter().find(|table| table.name == *name);
            let Some(table) = found else { bail!("there is no table {name}; --tables lists them") };
            columns(table)
        }
        None => {
            tables.iter().map(|table| vec![table.name.clone(), table.families().join(" "), table.doc.clone()]).collect()
        }
    };
    let heads: &[&str] = match sql.schema {
        Some(_) => &["column", "type", "unit", "class", "about"],
        None => &["table", "losses_of", "a_row_is"],
    };
    print(sql.format, heads, rows)
}

fn columns(table: &Table) -> Vec<Vec<String>> {
    let row = |field: &frames::FrameField| {
        vec![
            field.name.clone(),
            field.kind.name().to_owned(),
            field.unit.to_owned(),
            field.class.map_or_else(String::new, |class| class.name().to_owned()),
            field.doc.clone(),
        ]
    };
    table.fields.iter().map(row).collect()
}

fn print(form: Form, heads: &[&str], rows: Vec<Vec<String>>) -> Result<()> {
    use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
    let column = |at: usize| Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row[at]))) as ArrayRef;
    let batch = RecordBatch::try_from_iter(heads.iter().enumerate().map(|(at, head)| (*head, column(at))))?;
    let mut out = AnswerWriter::new(form, BufWriter::new(io::stdout().lock()));
    out.begin(&batch.schema())?;
    out.batch(&batch)?;
    match form {
        // the rows alone: nothing of a list is lost
        Form::Json => Ok(()),
        Form::Text | Form::Csv => out.end(true, &[]),
    }
}
