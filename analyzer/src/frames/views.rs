//! Tables that reports make: the report hands over its rows, by its declaration. So the table and the report cannot differ.

use std::ops::ControlFlow;

use anyhow::{Context as _, Result};
use systape_format::reader::Tape;
use systape_format::table::{ColumnDef, TableDef};

use super::answers::{Told, batch};
use super::make::CommonValues;
use super::{Batch, fields::FrameField};
use crate::cli::{answer, views};
use systape_answers::render::by::BY;
use systape_answers::render::out::TakesRows;
use systape_answers::render::row::Row;

/// Rows of a batch.
const BATCH: usize = 8192;

/// A table that a report makes.
#[derive(Debug)]
pub(crate) struct Report {
    /// Name of the table in SQL.
    pub name: &'static str,
    /// The report as typed.
    pub words: &'static [&'static str],
    /// Keys of the table, in the order of its JSON.
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
        common: &CommonValues,
        wanted: &[&FrameField],
        each: &mut (dyn FnMut(Batch) -> ControlFlow<()> + Send),
    ) -> Result<()> {
        let words: Vec<String> = self.words.iter().map(|word| (*word).to_owned()).collect();
        let mut batches = ReportBatches { def, common, wanted, each, places: (String::new(), None), rows: Vec::new() };
        answer::ask_of_events(&words, tape, &mut batches).with_context(|| format!("table {}", self.name))?;
        if !batches.rows.is_empty() {
            let _ = batches.pass();
        }
        Ok(())
    }
}

/// Makes batches of the rows of a report.
struct ReportBatches<'a> {
    def: &'a TableDef,
    common: &'a CommonValues,
    wanted: &'a [&'a FrameField],
    each: &'a mut (dyn FnMut(Batch) -> ControlFlow<()> + Send),
    /// Of the table with this name where each column of `def` is; None: it lacks one, so its rows are other ones.
    places: (String, Option<Vec<usize>>),
    rows: Vec<Vec<Told>>,
}

impl TakesRows for ReportBatches<'_> {
    fn row(&mut self, row: Row<'_>) -> ControlFlow<()> {
        let table = row.table();
        if self.places.0 != table.name {
            let place = |column: &ColumnDef| {
                table.columns.iter().position(|of| (&of.group, &of.name) == (&column.group, &column.name))
            };
            self.places = (table.name.to_string(), self.def.columns.iter().map(place).collect());
        }
        // losses are told otherwise
        let Some(places) = &self.places.1 else { return ControlFlow::Continue(()) };
        let mut told: Vec<Told> = row.into_cells().collect();
        self.rows.push(places.iter().map(|place| std::mem::take(&mut told[*place])).collect());
        if self.rows.len() == BATCH { self.pass() } else { ControlFlow::Continue(()) }
    }
}

impl ReportBatches<'_> {
    fn pass(&mut self) -> ControlFlow<()> {
        let rows = std::mem::take(&mut self.rows);
        (self.each)(batch(self.def, self.wanted, self.common, &rows))
    }
}
