//! Values of a report's rows as cells of a table: text for people, and a number that the table is sorted by.

use serde_json::Value;

use super::answers::{Row, text_of};
use systape_events::values::num::grouped;
use systape_events::values::words::{bytes, span};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Names and words.
    Text,
    /// A number that names something.
    Id,
    /// A number of things.
    Count,
    /// A number of things on average.
    Average,
    /// Number of bytes.
    Bytes,
    /// A length of time, ns.
    Span,
    /// A point in time, ns since the tape's start.
    Time,
    /// A part of a whole, 0 to 1.
    Part,
    /// A part of a whole in percent.
    Percent,
    /// Name and pid of the process in the object of that name.
    Party,
    /// What came of a signal, in the object of that name.
    Outcome,
}

/// A column of a table.
#[derive(Debug)]
pub(super) struct Column {
    /// Full name of the column: `sender_comm` in an object.
    pub name: &'static str,
    /// Heading of the column.
    pub heading: &'static str,
    /// What it holds.
    pub kind: Kind,
}

/// A cell.
#[derive(Debug, PartialEq)]
pub(super) struct FigureCell {
    /// Text as people read it; with a mark if it is not exact.
    pub text: String,
    /// What the table is sorted by; None: by the text.
    pub key: Option<f64>,
}

impl Kind {
    /// Whether cells of it are numbers.
    pub(super) fn is_number(self) -> bool {
        !matches!(self, Self::Text | Self::Party | Self::Outcome)
    }
}

/// The cell of `row` in `column`.
pub(super) fn cell(row: &Row, column: &Column) -> FigureCell {
    let name = column.name;
    let words = |text: Option<String>| {
        let text = text.unwrap_or_else(|| "–".to_owned());
        FigureCell { text: if text.is_empty() { "(none)".to_owned() } else { text }, key: None }
    };
    match column.kind {
        Kind::Text => words(row.word(name)),
        Kind::Party => words(party(row, name)),
        Kind::Outcome => words(row.has(name).then(|| outcome(row))),
        kind => match row.number(name) {
            Some(value) => FigureCell { text: format!("{}{}", row.bound(name), text(kind, value)), key: Some(value) },
            None => FigureCell { text: "–".to_owned(), key: None },
        },
    }
}

/// `sh 127`: the process in the object `group`; None: there is none.
pub(super) fn party(row: &Row, group: &str) -> Option<String> {
    let text = |name: &str| row.word(&format!("{group}_{name}")).unwrap_or_else(|| "?".to_owned());
    row.has(group).then(|| format!("{} {}", text("comm"), text("pid")))
}

/// `ended by signal 15 after 2.634 ms`.
fn outcome(row: &Row) -> String {
    let mut text = match (row.ns("outcome_exit_signal"), row.ns("outcome_exit_code")) {
        (Some(signal), _) => format!("ended by signal {signal}"),
        (None, Some(code)) => format!("exited with {code}"),
        (None, None) if row.is("outcome_exited") => "ended".to_owned(),
        (None, None) if row.is("outcome_stopped") => "stopped".to_owned(),
        (None, None) => "no end is known".to_owned(),
    };
    if let Some(latency) = row.ns("outcome_latency_ns") {
        text.push_str(&format!(" after {}", span(latency)));
    }
    if row.is("outcome_core_dumped") {
        text.push_str(", with a core dump");
    }
    text
}

fn text(kind: Kind, value: f64) -> String {
    match kind {
        Kind::Span => span(value as u64),
        Kind::Bytes => bytes(value as u64),
        Kind::Time => format!("{:.6} s", value / 1e9),
        Kind::Average => format!("{value:.3}"),
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
    use super::*;
    use systape_answers::render::row;

    systape_format::tables! {
        /// One row.
        SUMS = "sums" {
            total_ns ? AtLeast: Duration "time"
            n: Count "how many"
            min ? AtMost: Int "least"
            of.comm: Str "who"
            of.pid: Int "which"
            avg ? OfKnown: Real "mean"
            none: Count "nothing"
            wide: Wide "bytes"
            no.comm: Str "nobody"
            no.pid: Int "nobody"
        }
    }

    #[test]
    fn cells_are_marked_as_reports_mark_them() {
        let mut sums = row::Row::new(&SUMS);
        sums.bound("total_ns", 1_500_000, true).set("n", 1_234_567).bound("min", 3, true);
        sums.set("of_comm", &b"a\xff"[..]).set("of_pid", 7).bound("avg", 2.0, true).set("none", None::<u64>);
        sums.set("wide", 12).absent("no");
        let row = Row::of(sums);
        let text = |name, kind| cell(&row, &Column { name, heading: "", kind }).text;
        assert_eq!(text("total_ns", Kind::Span), ">=1.500 ms");
        assert_eq!((text("n", Kind::Count), text("min", Kind::Id)), ("1,234,567".to_owned(), "<=3".to_owned()));
        assert_eq!((text("avg", Kind::Count), text("none", Kind::Count)), ("~2".to_owned(), "–".to_owned()));
        assert_eq!((text("of_comm", Kind::Text), text("no_comm", Kind::Text)), ("a\\xff".to_owned(), "–".to_owned()));
        assert_eq!((text("of", Kind::Party), text("no", Kind::Party)), ("a\\xff 7".to_owned(), "–".to_owned()));
        assert_eq!(cell(&row, &Column { name: "wide", heading: "", kind: Kind::Bytes }).key, Some(12.0));
    }
}
