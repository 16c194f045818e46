//! What tells the rows of one of several tapes from those of the others.

use systape_format::table::ColumnDef;

use super::cell::Cell;
use super::form::Format;

/// Columns before a row's own, whose values are the same in all rows of a tape, and what stands before its lines of text.
/// Empty for one tape alone.
#[derive(Clone, Debug, Default)]
pub struct TapeLabel {
    /// The columns and their values.
    pub cells: Vec<(&'static ColumnDef, Cell<'static>)>,
    /// Bytes before each line of text.
    pub text: Vec<u8>,
}

impl TapeLabel {
    /// The bytes before the first column of a row of `format`: `"host":"a",` behind the brace of JSON, `a,` in CSV.
    pub fn lead(&self, format: Format) -> Vec<u8> {
        let mut lead = Vec::new();
        for (column, cell) in &self.cells {
            match format {
                Format::Text => continue,
                Format::Json => {
                    lead.extend_from_slice(format!("\"{}\":", column.name).as_bytes());
                    cell.json(column.ty, &mut lead);
                }
                Format::Csv => cell.csv(column.ty, &mut lead),
            }
            lead.push(b',');
        }
        if format == Format::Text { self.text.clone() } else { lead }
    }

    /// Names of the columns in CSV.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.cells.iter().map(|(column, _)| column.full_name())
    }
}
