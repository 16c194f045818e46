//! `analyze export`: the tables of tapes as files, one directory a table, partitioned by host and day.
//!
//! A file appears under its name when it is whole ([`place`]). A tape that is exported again replaces what it left before.
//! Rows of a table with times are in their order ([`ordered`]); memory does not grow with the tape.

mod ordered;
mod place;
mod write;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use systape_analyzer::frames::{self, Bounds, FrameField, Source, Table};

use self::ordered::WaitingRows;
use self::place::Place;
use self::write::{FileEnding, TableWriter};
use crate::args::{Export, Files};
use crate::{columns, say};

/// Columns that are directories.
const PARTITIONS: [&str; 2] = ["host", "date"];

/// Views for reports, and the tables for DuckDB.
const VIEWS: [(&str, &str); 2] = [("views.sql", include_str!("views.sql")), ("duckdb.sql", include_str!("duckdb.sql"))];

/// What an export reads, and where it writes.
pub(crate) struct ExportPaths {
    /// The tapes.
    pub(crate) tapes: Vec<PathBuf>,
    /// The directory, below which all others are.
    pub(crate) dir: PathBuf,
}

/// The paths of `export`; makes the directory. Reads no tape.
///
/// # Errors
/// There is no tape, or no directory can be made.
pub(crate) fn paths(export: &Export) -> Result<ExportPaths> {
    let files = export.files();
    let tapes = frames::tapes(&files.tapes)?;
    std::fs::create_dir_all(&files.dir).with_context(|| format!("cannot make {}", files.dir.display()))?;
    let dir = files.dir.canonicalize().with_context(|| files.dir.display().to_string())?;
    Ok(ExportPaths { tapes, dir })
}

/// Writes the tables; true: something is lost, and that was to be said by the exit status.
///
/// # Errors
/// A tape cannot be read, or a file not be written.
pub(crate) fn run(export: &Export, ExportPaths { tapes, dir }: &ExportPaths) -> Result<bool> {
    let files = export.files();
    let ending = match export {
        Export::Parquet(_) => FileEnding::Parquet,
        Export::Json(_) => FileEnding::Json,
        Export::Csv(_) => FileEnding::Csv,
    };
    let mut lost = false;
    for tape in tapes {
        lost |= one(tape, dir, ending, files).with_context(|| tape.display().to_string())?;
    }
    for (name, text) in VIEWS {
        // nothing of a tape is in them
        place::replace(&dir.join("_systape"), name, text.as_bytes(), 0o666)?;
    }
    Ok(lost && files.fail_on_loss)
}

/// Writes the tables of a tape; true: something is lost.
fn one(tape: &Path, dir: &Path, ending: FileEnding, files: &Files) -> Result<bool> {
    let (source, permissions) = (frames::source(tape)?, frames::permissions_like(tape));
    let unknown = files.tables.iter().find(|name| source.tables().iter().all(|table| table.name != **name));
    if let Some(unknown) = unknown {
        bail!("there is no table {unknown}; 'analyze sql --tables' lists them");
    }
    let mut lost: Vec<(String, Vec<&str>)> = Vec::new();
    let asked = |table: &&Table| files.tables.is_empty() || files.tables.contains(&table.name);
    // what is missing is known when all else has been read
    let (last, first): (Vec<_>, Vec<_>) = source.tables().iter().filter(asked).partition(|table| table.name == "gaps");
    for table in first.into_iter().chain(last) {
        for line in
            export(&source, table, dir, (ending, permissions)).with_context(|| format!("table {}", table.name))?
        {
            match lost.iter_mut().find(|(known, _)| *known == line) {
                Some((_, tables)) => tables.push(&table.name),
                None => lost.push((line, vec![&table.name])),
            }
        }
        give_back();
    }
    for (line, tables) in &lost {
        say(&format!("{}: {line} (of {})", tape.display(), tables.join(", ")));
    }
    Ok(!lost.is_empty())
}

/// What the last table needed is none of the next one's.
fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes a number, and only looks for memory that nobody has.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Writes a table; what is lost of it.
fn export(source: &Source, table: &Table, dir: &Path, (ending, permissions): (FileEnding, u32)) -> Result<Vec<String>> {
    // columns that are directories are none of the file
    let fields: Vec<&FrameField> = table.fields.iter().filter(|field| !PARTITIONS.contains(&&*field.name)).collect();
    let schema = columns::schema(fields.iter().copied());
    let host = source.host().map(frames::utf8);
    let place = Place::new(dir, &table.name, host.as_deref(), source.date(), source.id(), ending.name())
        .readable_by(permissions);
    let mut writer = TableWriter::new(place, ending, &schema, table)?;
    // of what was not recorded there is a file without rows that says so
    let absent = source.require(table).err().map(|error| format!("{error:#}"));
    if absent.is_none() {
        let mut rows = WaitingRows::new(&schema);
        for step in source.steps(table) {
            for part in step.parts {
                let mut fault = None;
                let read = source.read(table, part, &fields, &mut |batch| {
                    let pushed = columns::record_batch(&schema, batch)
                        .map_err(Into::into)
                        .and_then(|batch| rows.push(batch, &mut writer));
                    match pushed {
                        Ok(()) => ControlFlow::Continue(()),
                        Err(error) => {
                            fault = Some(error);
                            ControlFlow::Break(())
                        }
                    }
                });
                match (fault, read) {
                    (Some(fault), _) => return Err(fault),
                    // a report that has no answer for such a tape
                    (None, Err(error)) if table.is_report() => {
                        return finish(writer, source, table, Some(format!("{error:#}")));
                    }
                    (None, read) => read?,
                }
            }
            rows.reached(step.frontier, &mut writer)?;
        }
        rows.end(&mut writer)?;
    }
    finish(writer, source, table, absent)
}

fn finish(writer: TableWriter, source: &Source, table: &Table, absent: Option<String>) -> Result<Vec<String>> {
    let (complete, losses) = source.losses(&[table], &Bounds::default())?;
    let facts = [
        ("systape.table", table.name.clone()),
        ("systape.about", table.doc.clone()),
        ("systape.tape", source.id().to_owned()),
        ("systape.host", source.host().map(frames::utf8).unwrap_or_default()),
        ("systape.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("systape.complete", complete.to_string()),
        ("systape.losses", losses.join("\n")),
        ("systape.absent", absent.unwrap_or_default()),
    ];
    writer.end(&facts)?;
    Ok(if complete { Vec::new() } else { losses })
}

/// The directories of a path that are made below `dir`.
fn below(dir: &Path, parts: &[String]) -> PathBuf {
    parts.iter().fold(dir.to_owned(), |path, part| path.join(part))
}
