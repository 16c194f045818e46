//! Rows as lines of text in columns that a tool has: what `analyze biosnoop` and others by the names of tools print.

use std::io::{self, Write};

use systape_format::reader::Tape;
use systape_format::table::TableDef;

use super::cell::{Cell, Known};
use super::fields::{TextColumn, TextColumns};
use super::mark;
use super::row::Row;
use super::sink::Sink;
use super::stamp::{self, Stamps, TimeBase};
use super::table;
use systape_events::values::words::escaped;

/// What the lines of a tool look like.
#[derive(Debug)]
pub struct Layout {
    /// When: the column of the table that holds it, and how it is printed; None: rows have no time.
    pub time: Option<(&'static str, stamp::Column)>,
    /// Whether its times are printed also if no clock is asked for.
    pub always_timed: bool,
    /// The columns behind it.
    pub columns: &'static [Column],
    /// Rows without a line; they are in JSON and CSV.
    pub omits: fn(&Line<'_>) -> bool,
}

/// One column.
#[derive(Debug)]
pub struct Column {
    /// How it looks.
    field: TextColumn,
    /// What stands there.
    text: fn(&Line<'_>) -> String,
}

impl Column {
    /// A column aligned left.
    pub const fn left(heading: &'static str, width: usize, text: fn(&Line<'_>) -> String) -> Self {
        Self { field: TextColumn::left(heading, width), text }
    }

    /// A column aligned right.
    pub const fn right(heading: &'static str, width: usize, text: fn(&Line<'_>) -> String) -> Self {
        Self { field: TextColumn::right(heading, width), text }
    }

    /// Has its texts shortened on a narrow terminal: they are no numbers.
    pub const fn shortens(self) -> Self {
        Self { field: self.field.shortens(), ..self }
    }

    /// Has it left out on a narrow terminal, the one with 1 first.
    pub const fn leaves(self, order: u8) -> Self {
        Self { field: self.field.leaves(order), ..self }
    }
}

/// A row whose values are looked up by the full names of their columns.
#[derive(Clone, Copy, Debug)]
pub struct Line<'r>(&'r Row<'r>);

impl<'r> Line<'r> {
    /// Makes the line of `row`.
    pub fn new(row: &'r Row<'r>) -> Self {
        Self(row)
    }

    /// The value, and whether it is exact.
    fn cell(&self, name: &str) -> (&'r Cell<'r>, Known) {
        let found = self.0.value(name);
        debug_assert!(found.is_some(), "table {} has no column {name}", self.0.table().name);
        found.unwrap_or((&Cell::Null, Known::Unknown))
    }

    /// A number; None: not known, or none.
    pub fn number(&self, name: &str) -> Option<i128> {
        match self.cell(name).0 {
            Cell::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// Text, for a terminal; None: not known, or none.
    pub fn text(&self, name: &str) -> Option<String> {
        match self.cell(name).0 {
            Cell::Text(text) => Some(escaped(text)),
            _ => None,
        }
    }

    /// Text or a number; `?`: not known.
    pub fn word(&self, name: &str) -> String {
        let number = || self.number(name).map(|number| number.to_string());
        self.text(name).or_else(number).unwrap_or_else(|| "?".to_owned())
    }

    /// A number as `text` writes it, with the mark of a lower bound before it; `-`: not known.
    pub fn counted(&self, name: &str, text: fn(i128) -> String) -> String {
        let lead = mark::at_least(self.cell(name).1 == Known::Short);
        self.number(name).map_or_else(|| "-".to_owned(), |number| format!("{lead}{}", text(number)))
    }

    /// A member of an object; None: there is none.
    pub fn member(&self, name: &str, member: &str) -> Option<serde_json::Value> {
        self.cell(name).0.nested()?.get(member).cloned()
    }
}

/// ns as ms with three decimals, as in every other report.
pub fn millis(ns: i128) -> String {
    table::millis(u64::try_from(ns).unwrap_or(u64::MAX), "")
}

/// ns as µs with three decimals.
pub fn micros(ns: i128) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

/// A number as it is.
pub fn plain(number: i128) -> String {
    number.to_string()
}

/// Bytes as whole KiB.
pub fn kilobytes(bytes: i128) -> String {
    (bytes / 1024).to_string()
}

/// Lines of one form: a report's own text, a tool's columns, or rows.
#[derive(Debug)]
pub enum Lines {
    /// The report's own.
    Own,
    /// A tool's.
    Tool(&'static Layout, Stamps),
    /// JSON or CSV.
    Rows(Sink),
}

impl Lines {
    /// The heading; `own`: the report's.
    pub fn head(&self, own: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
        match self {
            Self::Own => own(),
            Self::Tool(layout, stamps) => {
                let mut out = Vec::new();
                layout.head(stamps, &mut out);
                out
            }
            Self::Rows(sink) => sink.head(),
        }
    }

    /// Has lines with the columns of `more` behind those of rows, which [`Lines::line_and`] is given.
    pub fn wider(self, more: &TableDef) -> Self {
        match self {
            Self::Rows(sink) => Self::Rows(sink.wider(more)),
            other => other,
        }
    }

    /// Appends a line; false: it has none.
    pub fn line<'a>(&self, out: &mut Vec<u8>, own: impl FnOnce(&mut Vec<u8>), row: impl FnOnce() -> Row<'a>) -> bool {
        self.line_and(out, own, row, &[])
    }

    /// Appends a line with `more`: columns behind those of rows, or lines below text. False: it has none.
    pub fn line_and<'a>(
        &self,
        out: &mut Vec<u8>,
        own: impl FnOnce(&mut Vec<u8>),
        row: impl FnOnce() -> Row<'a>,
        more: &[u8],
    ) -> bool {
        match self {
            Self::Own => own(out),
            Self::Tool(layout, stamps) => {
                if !layout.line(&row(), stamps, out) {
                    return false;
                }
            }
            Self::Rows(sink) => {
                sink.row_and(out, &row(), more);
                return true;
            }
        }
        out.extend_from_slice(more);
        true
    }
}

impl Layout {
    /// No columns, no time, and a line for each row.
    pub const PLAIN: Self = Self { time: None, always_timed: false, columns: &[], omits: |_| false };

    /// Clocks of the columns on `tape`: `base`, if one is asked for.
    pub fn stamps(&self, base: Option<TimeBase>, tape: &Tape) -> Stamps {
        let base = base.or(self.always_timed.then(TimeBase::default));
        Stamps::new(base.as_slice(), tape)
    }

    /// Prints `rows` below the heading.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn print<'a>(&self, rows: impl Iterator<Item = Row<'a>>, out: &mut impl Write) -> io::Result<()> {
        let (stamps, mut text) = (Stamps::none(), Vec::new());
        self.head(&stamps, &mut text);
        for row in rows {
            self.line(&row, &stamps, &mut text);
        }
        out.write_all(&text)
    }

    /// Appends the heading.
    pub fn head(&self, stamps: &Stamps, out: &mut Vec<u8>) {
        let time = self.time.map(|(_, column)| stamps.heading(column));
        out.extend_from_slice(self.fields(time).head().as_bytes());
        out.push(b'\n');
    }

    /// Appends the line of `row`; false: it has none.
    pub fn line(&self, row: &Row<'_>, stamps: &Stamps, out: &mut Vec<u8>) -> bool {
        let line = Line::new(row);
        if (self.omits)(&line) {
            return false;
        }
        let since = |name| line.number(name).and_then(|since| i64::try_from(since).ok());
        let time = self.time.map(|(name, column)| match since(name) {
            Some(since) => stamps.text_since(column, since),
            None => stamps.word(column, "?"),
        });
        let texts: Vec<String> = self.columns.iter().map(|column| (column.text)(&line)).collect();
        out.extend_from_slice(self.fields(time).line(&texts).as_bytes());
        out.push(b'\n');
        true
    }

    /// Its columns behind that time, or its heading.
    fn fields(&self, time: Option<String>) -> TextColumns {
        TextColumns::timed(time.unwrap_or_default(), self.columns.iter().map(|column| column.field))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    systape_format::tables! {
        /// One row a file.
        FILES = "files" {
            ts_ns: Time "when"
            owner.pid: Int "who"
            name: Str "its name"
            bytes ? AtLeast: Wide "what was read"
        }
    }

    #[test]
    fn values_are_found_by_their_names() {
        let mut row = Row::new(&FILES);
        row.set("ts_ns", 1_999_999).set("owner_pid", 7).set("name", &b"a\x1b"[..]).bound("bytes", 4096, true);
        let line = Line::new(&row);
        assert_eq!((line.word("owner_pid"), line.word("name")), ("7".into(), "a\\x1b".into()));
        assert_eq!(line.counted("bytes", kilobytes), ">=4");
        let mut row = Row::new(&FILES);
        row.set("ts_ns", None::<i64>).absent("owner").set("name", None::<&str>).bound("bytes", None::<u64>, false);
        let line = Line::new(&row);
        assert_eq!((line.word("owner_pid"), line.word("name")), ("?".into(), "?".into()));
        assert_eq!(line.counted("bytes", kilobytes), "-");
        assert_eq!(millis(1_999_999), "2.000");
    }
}
