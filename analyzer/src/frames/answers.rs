//! The answer of any report as tables: the columns that its JSON has, by the declarations of its rows.

use std::ops::ControlFlow;

use anyhow::{Result, bail};
use systape_answers::render::cell::{Cell, Known};
use systape_answers::render::out::TakesRows;
use systape_answers::render::row::Row;
use systape_format::table::TableDef;

use super::fields;
use super::make::{CommonValues, Maker};
use super::values::Values;
use super::{Batch, FrameField, Source};
use crate::asked::config::view::Part;
use crate::cli::{answer, views};
use systape_answers::values::open::open;
use systape_events::loss::damage_text;

/// Most rows of an answer: they are kept in memory.
const MOST_ROWS: usize = 1 << 20;
/// Rows of a batch.
const BATCH: usize = 8192;

/// The answer of a report.
#[derive(Debug)]
pub struct ReportAnswer {
    /// Tables of the answer, the main one first.
    pub tables: Vec<ReportTable>,
    /// What was said beside the rows.
    pub notes: Vec<String>,
    /// Whether something is lost that could change it.
    pub lost: bool,
}

/// Rows of a report of one kind.
#[derive(Debug)]
pub struct ReportTable {
    /// Name of the declaration.
    pub name: String,
    /// What a row is.
    pub doc: String,
    /// Columns of the rows.
    pub fields: Vec<FrameField>,
    /// The rows.
    pub batches: Vec<Batch>,
}

/// A value and whether it is exact.
pub(super) type Told = (Cell<'static>, Known);

/// Rows of an answer by their declarations.
#[derive(Default)]
struct GatheredTables {
    tables: Vec<(TableDef, Vec<Vec<Told>>)>,
    notes: Vec<String>,
    rows: usize,
}

impl TakesRows for GatheredTables {
    fn row(&mut self, row: Row<'_>) -> ControlFlow<()> {
        let def = row.table();
        let same = |(there, _): &(TableDef, Vec<Vec<Told>>)| there.name == def.name && there.columns == def.columns;
        let at = match self.tables.iter().rposition(same) {
            Some(at) => at,
            None => {
                self.tables.push((def.clone(), Vec::new()));
                self.tables.len() - 1
            }
        };
        self.tables[at].1.push(row.into_cells().collect());
        self.rows += 1;
        if self.rows > MOST_ROWS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }
}

impl Source {
    /// The answer to `words`, a report as typed behind `analyze` (`["top", "--by", "comm"]`).
    ///
    /// # Errors
    /// The words are no report that has rows, it has no answer, or more rows than are kept.
    pub fn report(&self, words: &[String]) -> Result<ReportAnswer> {
        // a report says of damage what nobody has said before, so its tape is one that nobody has read
        let tape = open(&self.path)?;
        let mut gathered = GatheredTables::default();
        let verdict = answer::ask(words, &tape, &mut gathered)?;
        if gathered.rows > MOST_ROWS {
            bail!("'analyze {}' has more than {MOST_ROWS} rows: ask a table, or narrow it", words.join(" "));
        }
        let misses = tape.misses().all();
        gathered.notes.extend(misses.iter().map(damage_text));
        if gathered.tables.is_empty() {
            gathered.tables.extend(declared(words).map(|def| (def, Vec::new())));
        }
        let tables = gathered.tables.into_iter().map(|(def, rows)| made(&def, &rows, &self.common)).collect();
        Ok(ReportAnswer { tables, notes: gathered.notes, lost: verdict.lost || !misses.is_empty() })
    }
}

/// The declaration of the rows that a report without any would have.
fn declared(words: &[String]) -> Option<TableDef> {
    let (view, _) = views::named(words.iter().map(String::as_str))?;
    let parts = view.tables.first()?.parts.iter();
    let all: Vec<&TableDef> =
        parts.filter_map(|part| if let Part::All(table) = part { Some(&**table) } else { None }).collect();
    let columns = all.iter().flat_map(|table| table.columns.iter().cloned()).collect();
    let first = all.first()?;
    Some(TableDef { name: first.name.clone(), doc: first.doc.clone(), columns })
}

fn made(def: &TableDef, rows: &[Vec<Told>], common: &CommonValues) -> ReportTable {
    let fields = fields::of(def);
    let wanted: Vec<&FrameField> = fields.iter().collect();
    let batches = rows.chunks(BATCH).map(|rows| batch(def, &wanted, common, rows)).collect();
    ReportTable { name: def.name.to_string(), doc: def.doc.trim().to_owned(), fields, batches }
}

/// The columns `wanted` of `rows`, each of which has the values that `def` declares.
pub(super) fn batch(def: &TableDef, wanted: &[&FrameField], common: &CommonValues, rows: &[Vec<Told>]) -> Batch {
    let mut maker = Maker::new(def, wanted.iter().copied(), common, rows.len());
    for (at, column) in def.columns.iter().enumerate() {
        let make = || Values::of_cells(column.ty, common.open, rows.iter().map(|row| &row[at].0));
        match column.short.suffix() {
            None => maker.put(&column.full_name(), make),
            Some(_) => maker.bound(&column.full_name(), || (make(), rows.iter().map(|row| row[at].1.flag()).collect())),
        }
    }
    Batch { rows: rows.len(), columns: maker.fields(wanted) }
}
