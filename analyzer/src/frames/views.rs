//! Tables that reports make: the report answers as JSON, and its rows are read back by its declaration. So the table and the
//! report cannot differ.

use std::ops::ControlFlow;

use anyhow::{Context as _, Result, bail};
use serde_json::Value as Json;
use systape_format::reader::Tape;
use systape_format::table::{ColumnDef, TableDef, Type};

use super::make::{Common, Maker};
use super::values::Values;
use super::{Batch, fields::Field};
use crate::cli::{ask, views};
use crate::render::by::BY;

/// Rows of a batch.
const BATCH: usize = 8192;

/// A table that a report makes.
#[derive(Debug)]
pub(crate) struct Report {
    /// Its name in SQL.
    pub name: &'static str,
    /// The report as typed.
    pub words: &'static [&'static str],
    /// Its keys, in the order of its JSON.
    pub keys: &'static [&'static str],
    /// The table of the report that has its other columns.
    pub columns: &'static str,
}

impl Report {
    /// The declaration of all its columns.
    pub(crate) fn def(&self) -> TableDef {
        let key = |name: &&str| BY.columns.iter().find(|column| column.name == *name).cloned();
        let keys = self.keys.iter().filter_map(key);
        let parts = views::tables().flat_map(|rows| rows.parts).map(|part| part.table());
        let own = parts.into_iter().find(|table| table.name == self.columns);
        debug_assert!(own.is_some(), "no report has a table {}", self.columns);
        let (columns, doc) = own.map(|own| (&*own.columns, own.doc.trim())).unwrap_or_default();
        let columns: Vec<ColumnDef> = keys.chain(columns.iter().cloned()).collect();
        let doc = format!("{doc} The rows of 'analyze {}'.", self.words.join(" "));
        TableDef { name: self.name.into(), doc: doc.into(), columns: columns.into() }
    }

    /// Passes its rows to `each`, batch by batch.
    pub(crate) fn rows(
        &self,
        def: &TableDef,
        tape: &Tape,
        common: &Common,
        wanted: &[&Field],
        each: &mut dyn FnMut(Batch) -> ControlFlow<()>,
    ) -> Result<()> {
        let words: Vec<String> = self.words.iter().map(|word| (*word).to_owned()).collect();
        let mut rows: Vec<Json> = Vec::new();
        let mut pass = |rows: &mut Vec<Json>| each(batch(&std::mem::take(rows), def, tape, common, wanted));
        let asked = ask::ask(&words, tape, &mut |line| {
            rows.extend(row(line, def)?);
            Ok(if rows.len() == BATCH { pass(&mut rows) } else { ControlFlow::Continue(()) })
        });
        asked.with_context(|| format!("table {}", self.name))?;
        if !rows.is_empty() {
            let _ = pass(&mut rows);
        }
        Ok(())
    }
}

/// The row of `def` on a line of a report's JSON; None: it is a loss, which is told otherwise.
fn row(line: &[u8], def: &TableDef) -> Result<Option<Json>> {
    let row: Json = serde_json::from_slice(line).context("a report's row")?;
    let Some(object) = row.as_object() else { bail!("a report's row is no object") };
    let name = |column: &ColumnDef| if column.group.is_empty() { column.name.clone() } else { column.group.clone() };
    let ours = def.columns.iter().all(|column| object.contains_key(&*name(column)));
    Ok(ours.then_some(row))
}

fn batch(rows: &[Json], def: &TableDef, tape: &Tape, common: &Common, wanted: &[&Field]) -> Batch {
    let open = tape.session().window_open;
    let mut maker = Maker::new(def, wanted.iter().copied(), common, rows.len());
    for column in def.columns.iter() {
        let value = |row: usize, suffix: &str| {
            let name = format!("{}{suffix}", column.name);
            match &*column.group {
                "" => rows[row].get(&*name),
                group => rows[row].get(group).and_then(|object| object.get(&*name)),
            }
        };
        let of = |row: usize| value(row, "").filter(|value| !value.is_null());
        let make = || values(column.ty, rows.len(), open, &of);
        match column.short.suffix() {
            None => maker.put(&column.full_name(), make),
            Some(suffix) => maker.bound(&column.full_name(), || {
                (make(), (0..rows.len()).map(|row| value(row, suffix).and_then(Json::as_bool)).collect())
            }),
        }
    }
    Batch { rows: rows.len(), columns: maker.fields(wanted) }
}

fn values<'j>(ty: Type, rows: usize, open: u64, of: &dyn Fn(usize) -> Option<&'j Json>) -> Values {
    let all = 0..rows;
    match ty {
        Type::Time => {
            let ts = |row| Some(i128::from(open.wrapping_add_signed(of(row)?.as_i64()?)));
            Values::Wide(all.map(ts).collect())
        }
        Type::Wide | Type::Unread => Values::Wide(all.map(|row| of(row)?.as_str()?.parse().ok()).collect()),
        Type::Real => Values::Real(all.map(|row| of(row)?.as_f64()).collect()),
        Type::Flag => Values::Flag(all.map(|row| of(row)?.as_bool()).collect()),
        Type::Str => Values::texts(all.map(|row| bytes(of(row)?))),
        Type::Word | Type::Hex => Values::texts(all.map(|row| Some(of(row)?.as_str()?.as_bytes().to_vec()))),
        Type::Nested | Type::Task | Type::Stack => {
            Values::texts(all.map(|row| Some(of(row)?.to_string().into_bytes())))
        }
        Type::Duration | Type::Count | Type::Bytes | Type::Int => {
            Values::Int(all.map(|row| of(row)?.as_i64()).collect())
        }
    }
}

/// The bytes of a name: a string, or an object with all of them in hexadecimal digits.
fn bytes(name: &Json) -> Option<Vec<u8>> {
    match name {
        Json::String(text) => Some(text.as_bytes().to_vec()),
        Json::Object(object) => {
            let hex = object.get("hex")?.as_str()?;
            let byte = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
            (0..hex.len()).step_by(2).map(byte).collect()
        }
        _ => None,
    }
}
