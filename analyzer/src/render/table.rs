//! Rows of a report that is no listing: columns as wide as their widest value, or objects with their fields in order.

use std::io::{self, Write};

use serde_json::Value;

use super::csv;

/// A table for people.
#[derive(Debug, Default)]
pub struct Table {
    /// (heading, whether it is aligned right).
    columns: Vec<(String, bool)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Adds a column of numbers.
    pub fn number(mut self, heading: &str) -> Self {
        self.columns.push((heading.to_owned(), true));
        self
    }

    /// Adds a column of words.
    pub fn word(mut self, heading: &str) -> Self {
        self.columns.push((heading.to_owned(), false));
        self
    }

    /// Adds a row: one text per column.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Prints it; the last column is never filled up.
    pub fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let heading: Vec<String> = self.columns.iter().map(|(heading, _)| heading.clone()).collect();
        let mut widths: Vec<usize> = heading.iter().map(|text| text.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        for row in std::iter::once(&heading).chain(&self.rows) {
            let mut line = String::new();
            for (at, ((cell, (_, right)), width)) in row.iter().zip(&self.columns).zip(&widths).enumerate() {
                let fill = " ".repeat(width.saturating_sub(cell.chars().count()));
                let (before, after) = if *right { (fill.as_str(), "") } else { ("", fill.as_str()) };
                line.extend([if at == 0 { "" } else { "  " }, before, cell, after]);
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Fields of a row, in order.
pub type Fields = Vec<(&'static str, Value)>;

/// Prints a row as one JSON object.
pub fn object(out: &mut impl Write, fields: &Fields) -> io::Result<()> {
    for (at, (name, value)) in fields.iter().enumerate() {
        write!(out, "{}\"{name}\":{value}", if at == 0 { '{' } else { ',' })?;
    }
    out.write_all(b"}\n")
}

/// Prints rows as CSV: names, then values.
#[derive(Debug, Default)]
pub struct Csv {
    header: bool,
}

impl Csv {
    /// Prints a row.
    pub fn row(&mut self, out: &mut impl Write, fields: &Fields) -> io::Result<()> {
        if !std::mem::replace(&mut self.header, true) {
            let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
            writeln!(out, "{}", names.join(","))?;
        }
        let mut line = Vec::new();
        for (at, (_, value)) in fields.iter().enumerate() {
            if at > 0 {
                line.push(b',');
            }
            csv::field(&mut line, csv::text(value).as_bytes());
        }
        line.push(b'\n');
        out.write_all(&line)
    }
}

/// `12.345678`: seconds since `base`, six decimals.
pub fn seconds(ts: u64, base: u64) -> String {
    let (sign, ns) = if ts < base { ("-", base - ts) } else { ("", ts - base) };
    let us = ns / 1000 + u64::from(ns % 1000 >= 500);
    format!("{sign}{}.{:06}", us / 1_000_000, us % 1_000_000)
}

/// `1.250`: ms with three decimals; `-` for what is not known.
pub fn millis_if(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".to_owned(), |ns| millis(ns, ""))
}

/// `ns` in ms with three decimals, with `lead` before it.
pub fn millis(ns: u64, lead: &str) -> String {
    let mut text = Vec::new();
    crate::num::millis(&mut text, ns, 0, lead);
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::default().number("ms").word("name").word("file");
        table.row(vec!["≥12.5".into(), "a".into(), "/x".into()]);
        table.row(vec!["1".into(), "longer".into(), String::new()]);
        let mut out = Vec::new();
        table.print(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "   ms  name    file\n≥12.5  a       /x\n    1  longer\n");
    }

    #[test]
    fn times() {
        assert_eq!(seconds(3_000_001_600, 1_000_000_000), "2.000002");
        assert_eq!(seconds(5, 1_000_000_005), "-1.000000");
        assert_eq!((millis_if(Some(1_234_567)), millis_if(None)), ("1.235".into(), "-".into()));
    }

    #[test]
    fn fields_keep_their_order() {
        let fields: Fields = vec![("z", 1.into()), ("a", "x,y".into()), ("m", Value::Null)];
        let (mut json, mut csv) = (Vec::new(), Vec::new());
        object(&mut json, &fields).unwrap();
        Csv::default().row(&mut csv, &fields).unwrap();
        assert_eq!(String::from_utf8(json).unwrap(), "{\"z\":1,\"a\":\"x,y\",\"m\":null}\n");
        assert_eq!(String::from_utf8(csv).unwrap(), "z,a,m\n1,\"x,y\",\n");
    }
}
