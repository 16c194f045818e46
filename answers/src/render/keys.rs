//! Tables whose columns depend on the options: keys of `--by`, then sums.

use std::borrow::Cow;

use systape_format::table::{ColumnDef, TableDef};

/// `table` with `before` in front of its columns.
pub fn with_keys(before: impl IntoIterator<Item = ColumnDef>, table: &TableDef) -> TableDef {
    let columns: Vec<ColumnDef> = before.into_iter().chain(table.columns.iter().cloned()).collect();
    TableDef { name: table.name.clone(), doc: table.doc.clone(), columns: Cow::Owned(columns) }
}

/// `table` followed by the columns of each of `parts`.
pub fn with_parts<'a>(table: &TableDef, parts: impl IntoIterator<Item = &'a TableDef>) -> TableDef {
    let more = parts.into_iter().flat_map(|part| part.columns.iter().cloned());
    let columns: Vec<ColumnDef> = table.columns.iter().cloned().chain(more).collect();
    TableDef { name: table.name.clone(), doc: table.doc.clone(), columns: Cow::Owned(columns) }
}

/// The columns of `table` with these names, in this order.
pub fn columns<'a>(table: &TableDef, names: impl IntoIterator<Item = &'a str>) -> Vec<ColumnDef> {
    let named = |name: &str| table.columns.iter().find(|column| column.name == name).cloned();
    names.into_iter().filter_map(named).collect()
}
