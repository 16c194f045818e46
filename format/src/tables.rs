//! Rows of tables that a tape defines itself.

use std::sync::Arc;

use crate::table::{TableDef, Type};

/// Most tables in a tape.
pub const MAX_TABLES: usize = 80;
/// Most columns of a table.
pub const MAX_COLUMNS: usize = 128;
/// Most rows × columns of all tables of a segment: 16 MiB in memory, however few bytes they take in the tape.
pub const MAX_CELLS: usize = 2 << 20;
/// Most bytes of the name of a table or column.
pub const MAX_TABLE_NAME: usize = 64;
/// Most bytes of the description of a table or column.
pub const MAX_TABLE_DOC: usize = 256;

/// Name of the column with the event's CPU.
pub const CPU: &str = "cpu";

/// One value of a row to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'a> {
    /// A value of any type except str, task, stack and unread; an int as its two's complement.
    Number(u64),
    /// Bytes of a str column.
    Bytes(&'a [u8]),
    /// Task of a task column: the result of [`SegmentBuilder::intern_task`](crate::SegmentBuilder::intern_task).
    Task(u32),
    /// No value of a str, task or stack column: not known, or none. A stack may still be given to the row with
    /// [`SegmentBuilder::push_stack`](crate::SegmentBuilder::push_stack). A number may be unknown if the table has a column of type
    /// unread, whose own value this is too.
    Unknown,
}

/// A segment's rows of one table, by time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRows {
    /// Definition of the table.
    pub def: Arc<TableDef>,
    /// The first column: times of the events, ns; ascending.
    pub ts: Vec<u64>,
    /// The other columns of the definition, as long as `ts`: plain numbers (an int as its two's complement), for a str
    /// 1 + its index in `strings`, for a task 1 + its index in the segment's tasks, for a stack 1 + its index in
    /// [`Stacks::distinct`](crate::model::Stacks::distinct); 0 = none or not known.
    pub columns: Vec<Vec<u64>>,
    /// Distinct strings.
    pub strings: Vec<Vec<u8>>,
}

impl TableRows {
    /// Values of the column called `name`; None = the table has no such column.
    pub fn column(&self, name: &str) -> Option<&[u64]> {
        let at = self.def.columns.iter().skip(1).position(|column| column.name == name)?;
        self.columns.get(at).map(Vec::as_slice)
    }

    /// Values of its stack column: the first, if there are several; None = it has none.
    pub fn stacks(&self) -> Option<&[u64]> {
        let at = self.def.stack_column()?;
        self.columns.get(at.checked_sub(1)?).map(Vec::as_slice)
    }

    /// The bits of its unread column by row; None = all numbers are known.
    pub fn unread(&self) -> Option<&[u64]> {
        let at = self.def.unread_column()?;
        self.columns.get(at.checked_sub(1)?).map(Vec::as_slice)
    }

    /// Whether the number in the column at index `column` of the definition is not known in `row`; there are bits for 64 columns.
    pub fn is_unread(&self, row: usize, column: usize) -> bool {
        let bits = self.unread().and_then(|bits| bits.get(row)).copied().unwrap_or(0);
        // the first bit is that of the second column
        (1..=64).contains(&column) && bits >> (column - 1) & 1 != 0
    }

    /// The highest value of a stack column; 0 = no row has a stack.
    pub(crate) fn last_stack(&self) -> u64 {
        self.stack_columns().flatten().max().copied().unwrap_or(0)
    }

    fn stack_columns(&self) -> impl Iterator<Item = &Vec<u64>> {
        let columns = self.def.columns.iter().skip(1).zip(&self.columns);
        columns.filter(|(column, _)| column.ty == Type::Stack).map(|(_, values)| values)
    }

    /// Replaces each stack by the result of `new`.
    pub(crate) fn map_stacks(&mut self, new: impl Fn(u64) -> u64) {
        let columns = self.def.columns.iter().skip(1).zip(&mut self.columns);
        for (_, values) in columns.filter(|(column, _)| column.ty == Type::Stack) {
            values.iter_mut().for_each(|code| *code = new(*code));
        }
    }

    /// The string for `code`, a value of a str column; None = not known.
    pub fn string(&self, code: u64) -> Option<&[u8]> {
        self.strings.get(usize::try_from(code).ok()?.checked_sub(1)?).map(Vec::as_slice)
    }
}

/// Why a definition cannot be written or read; None = it can.
pub(crate) fn fault(def: &TableDef) -> Option<String> {
    let name = |what: &str, name: &str, doc: &str| {
        let long = |part: &str, len: usize, limit: usize| {
            format!("{part} of {what} '{name}' has {len} bytes, at most {limit} may be")
        };
        match (name.len(), doc.len()) {
            (0, _) => Some(format!("a {what} without a name")),
            // they are printed as they are
            _ if !name.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Some(format!("the name of a {what} has a character that is not a graphic one of ASCII"))
            }
            (len, _) if len > MAX_TABLE_NAME => Some(long("name", len, MAX_TABLE_NAME)),
            (_, len) if len > MAX_TABLE_DOC => Some(long("sentence", len, MAX_TABLE_DOC)),
            _ => None,
        }
    };
    if let Some(why) = name("table", &def.name, &def.doc) {
        return Some(why);
    }
    if !(1..=MAX_COLUMNS).contains(&def.columns.len()) {
        return Some(format!("table '{}' has {} columns, 1 to {MAX_COLUMNS} may be", def.name, def.columns.len()));
    }
    if def.columns.first().is_some_and(|first| first.ty != Type::Time) {
        return Some(format!("the first column of table '{}' is no time", def.name));
    }
    for (at, column) in def.columns.iter().enumerate() {
        if let Some(why) = name("column", &column.name, &column.doc) {
            return Some(format!("table '{}': {why}", def.name));
        }
        if matches!(column.ty, Type::Real | Type::Word | Type::Nested) || !column.group.is_empty() {
            return Some(format!("table '{}': column '{}' is of a type that tapes do not have", def.name, column.name));
        }
        if def.columns.iter().take(at).any(|before| before.name == column.name) {
            return Some(format!("table '{}' has two columns '{}'", def.name, column.name));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::ColumnDef;

    fn column(name: &str, ty: Type) -> ColumnDef {
        ColumnDef::stored(name.to_owned(), ty, None, "x")
    }

    fn table(columns: Vec<ColumnDef>) -> TableDef {
        TableDef { name: "a:b".into(), doc: "x".into(), columns: columns.into() }
    }

    #[test]
    fn definitions_have_limits() {
        let ts = || column("ts", Type::Time);
        assert_eq!(fault(&table(vec![ts(), column("a", Type::Hex)])), None);
        for (columns, why) in [
            (vec![], "0 columns"),
            (vec![column("a", Type::Int)], "no time"),
            (vec![ts(), column("", Type::Int)], "without a name"),
            (vec![ts(), column("a\x1b[1m", Type::Int)], "not a graphic one"),
            (vec![ts(), column(&"n".repeat(65), Type::Int)], "65 bytes"),
            (vec![ts(), column("a", Type::Int), column("a", Type::Int)], "two columns 'a'"),
            (vec![ts(), column("a", Type::Nested)], "do not have"),
            ((0..129).map(|n| column(&format!("c{n}"), Type::Time)).collect(), "129 columns"),
        ] {
            let said = fault(&table(columns)).expect(why);
            assert!(said.contains(why), "{said}");
        }
    }
}
