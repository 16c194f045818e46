//! Tables for people: columns as wide as their widest value.

use std::borrow::Borrow;
use std::io::{self, Write};

use crate::values::output;

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
    ///
    /// # Errors
    /// It cannot be written.
    pub fn print(&self, out: &mut impl Write) -> io::Result<()> {
        self.print_rows(self.rows.iter(), out)
    }

    /// Prints the table with `rows`, which are made once for their widths and once to be printed: there may be more than there is memory for.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn print_rows<R: Borrow<Vec<String>>>(
        &self,
        rows: impl Iterator<Item = R> + Clone,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let heading: Vec<String> = self.columns.iter().map(|(heading, _)| heading.clone()).collect();
        let mut widths: Vec<usize> = heading.iter().map(|text| text.chars().count()).collect();
        for row in rows.clone() {
            for (width, cell) in widths.iter_mut().zip(row.borrow()) {
                *width = (*width).max(cell.chars().count());
            }
        }
        self.line(&heading, &widths, out)?;
        for row in rows {
            self.line(row.borrow(), &widths, out)?;
        }
        Ok(())
    }

    fn line(&self, row: &[String], widths: &[usize], out: &mut impl Write) -> io::Result<()> {
        let mut line = String::new();
        for (at, ((cell, (_, right)), width)) in row.iter().zip(&self.columns).zip(widths).enumerate() {
            let fill = " ".repeat(width.saturating_sub(cell.chars().count()));
            let (before, after) = if *right { (fill.as_str(), "") } else { ("", fill.as_str()) };
            line.extend([if at == 0 { "" } else { "  " }, before, cell, after]);
        }
        output::line(out, line.trim_end())
    }
}

/// `12.345678`: seconds since `base`, six decimals.
pub fn seconds(ts: u64, base: u64) -> String {
    let (sign, ns) = if ts < base { ("-", base - ts) } else { ("", ts - base) };
    let us = ns / 1000 + u64::from(ns % 1000 >= 500);
    format!("{sign}{}.{:06}", us / 1_000_000, us % 1_000_000)
}

/// `1.250`: ms with three decimals; `-` for an unknown value.
pub fn millis_if(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".to_owned(), |ns| millis(ns, ""))
}

/// `ns` in ms with three decimals, with `lead` before it.
pub fn millis(ns: u64, lead: &str) -> String {
    let mut text = Vec::new();
    systape_events::values::num::millis(&mut text, ns, 0, lead);
    String::from_utf8_lossy(&text).into_owned()
}

/// `12.3%`: a part of all.
pub fn share(part: u64, all: u64) -> String {
    format!("{:.1}%", 100.0 * part as f64 / all.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::default().number("ms").word("name").word("file");
        table.row(vec![">=12.5".into(), "a".into(), "/x".into()]);
        table.row(vec!["1".into(), "longer".into(), String::new()]);
        let mut out = Vec::new();
        table.print(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "    ms  name    file\n>=12.5  a       /x\n     1  longer\n");
    }

    #[test]
    fn rows_may_be_made_when_they_are_printed() {
        let table = || Table::default().number("n").word("name");
        let row = |n: u32| vec![(n * n).to_string(), format!("/{n}")];
        let (mut kept, [mut one, mut other]) = (table(), [Vec::new(), Vec::new()]);
        (0..20).for_each(|n| kept.row(row(n)));
        kept.print(&mut one).unwrap();
        table().print_rows((0..20).map(row), &mut other).unwrap();
        assert_eq!(one, other);
    }

    #[test]
    fn times() {
        assert_eq!(seconds(3_000_001_600, 1_000_000_000), "2.000002");
        assert_eq!(seconds(5, 1_000_000_005), "-1.000000");
        assert_eq!((millis_if(Some(1_234_567)), millis_if(None)), ("1.235".into(), "-".into()));
    }
}
