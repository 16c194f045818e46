//! Values of a report's rows as cells of a table: text for people, and a number that the table is sorted by.

use serde_json::Value;

use super::answers::{Row, number, text_of, word};
use crate::render::mark;
use crate::values::num::grouped;
use crate::values::words::{bytes, span};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Names and words.
    Text,
    /// A number that names something.
    Id,
    /// A number of things.
    Count,
    /// Bytes.
    Bytes,
    /// A length of time, ns.
    Span,
    /// A point in time, ns since the tape's start.
    Time,
    /// A part of a whole, 0 to 1.
    Part,
    /// A part of a whole in percent.
    Percent,
}

/// A column of a table.
#[derive(Debug)]
pub(super) struct Column {
    /// Its name in JSON; of an object's member `sender.comm`.
    pub name: &'static str,
    /// Its heading.
    pub heading: &'static str,
    /// What it holds.
    pub kind: Kind,
}

/// A cell.
#[derive(Debug, PartialEq)]
pub(super) struct Cell {
    /// As people read it; with a mark if it is not exact.
    pub text: String,
    /// What the table is sorted by; None: by the text.
    pub key: Option<f64>,
}

impl Kind {
    /// Whether cells of it are numbers.
    pub(super) fn is_number(self) -> bool {
        self != Self::Text
    }
}

/// The cell of `row` in `column`.
pub(super) fn cell(row: &Row, column: &Column) -> Cell {
    let (row, name) = match column.name.split_once('.') {
        Some((group, name)) => match row.get(group).and_then(Value::as_object) {
            Some(object) => (object, name),
            None => return Cell { text: "–".to_owned(), key: None },
        },
        None => (row, column.name),
    };
    match column.kind {
        Kind::Text => {
            let text = word(row, name).unwrap_or_else(|| "–".to_owned());
            Cell { text: if text.is_empty() { "(none)".to_owned() } else { text }, key: None }
        }
        kind => match number(row, name) {
            Some(value) => Cell { text: format!("{}{}", bound(row, name), text(kind, value)), key: Some(value) },
            None => Cell { text: "–".to_owned(), key: None },
        },
    }
}

/// The mark that the row has for its column `name`; "": the value is exact.
pub(super) fn bound(row: &Row, name: &str) -> &'static str {
    let is = |suffix: &str| row.get(&format!("{name}{suffix}")).and_then(Value::as_bool) == Some(true);
    match (is("_at_least"), is("_at_most"), is("_of_known")) {
        (true, ..) => mark::AT_LEAST,
        (_, true, _) => mark::AT_MOST,
        (.., true) => mark::ABOUT,
        _ => "",
    }
}

fn text(kind: Kind, value: f64) -> String {
    match kind {
        Kind::Span => span(value as u64),
        Kind::Bytes => bytes(value as u64),
        Kind::Time => format!("{:.6} s", value / 1e9),
        Kind::Part => format!("{:.1} %", value * 100.0),
        Kind::Percent => format!("{value:.1} %"),
        Kind::Id => format!("{value:.0}"),
        _ => thousands(value),
    }
}

/// `1,234,567`, `-12`.
pub(super) fn thousands(value: f64) -> String {
    let value = value.round_ties_even();
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", grouped(value.abs() as u64))
}

/// Words of an array, with blanks between.
pub(super) fn list(value: &Value) -> String {
    let words = value.as_array().map(Vec::as_slice).unwrap_or_default();
    words.iter().filter_map(text_of).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_are_marked_as_reports_mark_them() {
        let row = json!({"total_ns": 1_500_000, "total_ns_at_least": true, "n": 1_234_567, "min": 3, "min_at_most": true,
            "of": {"comm": {"text": "a\\xff", "hex": "61ff"}}, "avg": 2, "avg_of_known": true, "x": null, "wide": "12"});
        let row = row.as_object().unwrap();
        let text = |name, kind| cell(row, &Column { name, heading: "", kind }).text;
        assert_eq!(text("total_ns", Kind::Span), ">=1.500 ms");
        assert_eq!((text("n", Kind::Count), text("min", Kind::Id)), ("1,234,567".to_owned(), "<=3".to_owned()));
        assert_eq!((text("avg", Kind::Count), text("x", Kind::Count)), ("~2".to_owned(), "–".to_owned()));
        assert_eq!((text("of.comm", Kind::Text), text("no.comm", Kind::Text)), ("a\\xff".to_owned(), "–".to_owned()));
        assert_eq!(cell(row, &Column { name: "wide", heading: "", kind: Kind::Bytes }).key, Some(12.0));
    }
}
