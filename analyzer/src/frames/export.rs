//! `analyze export arrow`: a table of tapes as Arrow's format, from the columns that SQL and Parquet are made of.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use systape_answers::render::form::Format;
use systape_answers::render::out::Out;
use systape_answers::values::bad_usage::BadUsage;
use systape_answers::values::new_file::NewFile;
use systape_answers::values::say::{Verdict, complain};

use super::arrow::{ArrowForm, ArrowWriter};
use super::{Bounds, FrameField, Source, Table, TableReading, plain, source};
use crate::asked::config::Config;
use crate::asked::config::view::TablesAsked;

/// Bytes collected before a write.
const BUFFER: usize = 1 << 20;

/// Where messages go.
enum ArrowOut<'f> {
    Stream(Out<'static>),
    File(BufWriter<&'f File>),
}

impl Write for ArrowOut<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Stream(out) => out.write(bytes),
            Self::File(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Stream(out) => out.flush(),
            Self::File(out) => out.flush(),
        }
    }
}

/// Writes the table that is `asked`, of the rows of `tapes` that pass the filters of `config`.
///
/// # Errors
/// There is no such table or column, a tape cannot be read, or the answer not be written.
pub(crate) fn write(config: &Config, mut asked: TablesAsked, tapes: &[PathBuf]) -> Result<Verdict> {
    // a file that is there stays if one of them is no tape
    let sources = tapes
        .iter()
        .map(|path| narrowed(config, path).with_context(|| path.display().to_string()))
        .collect::<Result<Vec<Source>>>()?;
    let Some(first) = sources.first() else { return Ok(Verdict::default()) };
    let (table, fields) = chosen(config, first, &asked)?;
    let cannot = |file: &NewFile| format!("cannot write {}", file.path().display());
    let (out, form) = match &asked.file {
        Some(file) => {
            file.file().set_len(0).with_context(|| cannot(file))?;
            (ArrowOut::File(BufWriter::with_capacity(BUFFER, file.file())), ArrowForm::File)
        }
        None => (ArrowOut::Stream(Out::exact(Format::Text)?), ArrowForm::Stream),
    };
    let facts = [("systape.table", table.name.clone()), ("systape.about", table.doc.clone())];
    let mut writer = ArrowWriter::new(out, form, &fields, &facts)?;
    let mut lost: Vec<String> = Vec::new();
    for (source, path) in sources.iter().zip(tapes) {
        let (said, there) =
            of_tape(config, source, &asked, &fields, &mut writer).with_context(|| path.display().to_string())?;
        let named = |line: String| if tapes.len() > 1 { format!("{}: {line}", path.display()) } else { line };
        said.into_iter().map(named).for_each(|line| {
            complain(&line);
            lost.extend(there.then_some(line));
        });
    }
    let facts = [("systape.complete", lost.is_empty().to_string()), ("systape.losses", lost.join("\n"))];
    writer.end(&facts)?;
    if let Some(file) = &mut asked.file {
        file.keep();
    }
    Ok(Verdict { lost: !lost.is_empty(), bad: false })
}

fn narrowed(config: &Config, path: &Path) -> Result<Source> {
    source(path)?.narrowed(config.filters.clone())
}

/// The table of `source` that is asked for, and its columns.
fn chosen<'s>(config: &Config, source: &'s Source, asked: &TablesAsked) -> Result<(&'s Table, Vec<&'s FrameField>)> {
    let table = named(source, &asked.table)?;
    let filters = &config.filters;
    let narrowed = [
        (filters.longer_than.is_some(), "--duration", table.is_of_calls()),
        (filters.failure, "--failure", table.is_of_calls()),
        (filters.selects, "-e", table.is_of_calls()),
        (filters.by_task(), "a filter on processes, users or cgroups", table.is_of_calls()),
        (filters.time != (None, None), "--time", table.is_of_events()),
    ];
    if let Some((_, option, _)) = narrowed.into_iter().find(|(given, _, takes)| *given && !takes) {
        let why = if table.is_report() { "ask the report itself" } else { "it narrows calls and other events" };
        return Err(BadUsage(format!("{option} has no effect on table {}: {why}", table.name)).into());
    }
    let column = |name: &String| match table.fields.iter().find(|field| field.name == *name) {
        Some(field) => Ok(field),
        None => {
            let names = table.fields.iter().map(|field| &*field.name);
            Err(BadUsage(format!("table {} has no column {}{}", table.name, plain(name), meant(name, names))))
        }
    };
    let fields = match asked.columns.is_empty() {
        true => table.fields.iter().collect(),
        false => asked.columns.iter().map(column).collect::<Result<Vec<_>, _>>()?,
    };
    if let Some(at) = (1..fields.len()).find(|at| fields[..*at].iter().any(|field| field.name == fields[*at].name)) {
        return Err(BadUsage(format!("column {} is named twice", fields[at].name)).into());
    }
    Ok((table, fields))
}

/// What may have been meant by `name`, for the end of a sentence.
fn meant<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> String {
    systape_abi::nearest(name, names).first().map(|near| format!("; did you mean '{near}'?")).unwrap_or_default()
}

fn named<'s>(source: &'s Source, name: &str) -> Result<&'s Table> {
    let found = source.tables().iter().find(|table| table.name == name);
    found.ok_or_else(|| {
        let near = meant(name, source.tables().iter().map(|table| &*table.name));
        BadUsage(format!("there is no table {}{near}; docs/guides/sql.md lists them", plain(name))).into()
    })
}

/// Writes the rows of one tape; what is said of them, and whether that is a loss.
fn of_tape<W: Write + Send>(
    config: &Config,
    source: &Source,
    asked: &TablesAsked,
    fields: &[&FrameField],
    writer: &mut ArrowWriter<'_, W>,
) -> Result<(Vec<String>, bool)> {
    let table = named(source, &asked.table)?;
    let of = |wanted: &&FrameField| {
        let same = table.fields.iter().find(|field| field.name == wanted.name && field.kind == wanted.kind);
        same.with_context(|| format!("table {} has no such column {} in this tape", table.name, wanted.name))
    };
    let fields = fields.iter().map(of).collect::<Result<Vec<_>>>()?;
    source.require(table)?;
    let reading = TableReading { table, fields, bounds: Bounds::default(), ordered: asked.ordered };
    let (mut fault, mut rows) = (None, 0);
    source.rows(&reading, &mut |picks| match writer.rows(picks) {
        Ok(()) => {
            rows += picks.len();
            ControlFlow::Continue(())
        }
        Err(error) => {
            fault = Some(error);
            ControlFlow::Break(())
        }
    })?;
    // of other tables filters narrow nothing
    if table.is_of_events() {
        config.shown.rows(rows);
    }
    match fault {
        Some(fault) => Err(fault),
        None => source.losses(&[table], &Bounds::default()).map(|(complete, lines)| (lines, !complete)),
    }
}
