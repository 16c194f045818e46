//! Tables for people: columns as wide as their widest value.

use std::borrow::Borrow;
use std::io::{self, Write};

use super::fields::{FAIR, Want, least, put, widths};
use crate::values::fit::{cells, middle};
use crate::values::output;

/// Between two columns.
const GAP: &str = "  ";
/// Cells that a column of sentences keeps before another column leaves.
const PROSE: usize = 28;

/// A column of a [`Table`].
#[derive(Clone, Debug, Default)]
struct Column {
    heading: String,
    /// Aligned right.
    right: bool,
    /// Its texts may be shortened.
    shortens: bool,
    /// Its texts are sentences: the terminal has them on several lines.
    prose: bool,
    /// When it is left out on a narrow terminal: the lowest first; None: never.
    leaves: Option<usize>,
}

/// A table for people.
#[derive(Debug, Default)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Adds a column of numbers.
    pub fn number(mut self, heading: &str) -> Self {
        self.columns.push(Column { heading: heading.to_owned(), right: true, ..Column::default() });
        self
    }

    /// Adds a column of words, which a narrow terminal shows with their middle left out.
    pub fn word(mut self, heading: &str) -> Self {
        self.columns.push(Column { heading: heading.to_owned(), shortens: true, ..Column::default() });
        self
    }

    /// Adds a column of words that are numbers, or as good as: times of day.
    pub fn whole(mut self, heading: &str) -> Self {
        self.columns.push(Column { heading: heading.to_owned(), ..Column::default() });
        self
    }

    /// Adds a column of sentences, the last one, which a narrow terminal shows on several lines.
    pub fn prose(mut self, heading: &str) -> Self {
        self.columns.push(Column { heading: heading.to_owned(), shortens: true, prose: true, ..Column::default() });
        self
    }

    /// Has the columns in these places left out where the terminal has no room for all, the first of them first.
    pub fn leaving_at(mut self, places: &[usize]) -> Self {
        for (order, place) in places.iter().enumerate() {
            if let Some(column) = self.columns.get_mut(*place) {
                column.leaves = Some(order);
            }
        }
        self
    }

    /// Has the columns with these headings left out where the terminal has no room for all, the first of them first.
    pub fn leaving(mut self, headings: &[&str]) -> Self {
        for column in &mut self.columns {
            column.leaves = headings.iter().position(|heading| *heading == column.heading);
        }
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

    /// Prints the table with `rows`, and nothing if there are none: headings alone are no answer. Rows are made once for their widths and once
    /// to be printed: there may be more than there is memory for.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn print_rows<R: Borrow<Vec<String>>>(
        &self,
        rows: impl Iterator<Item = R> + Clone,
        out: &mut impl Write,
    ) -> io::Result<()> {
        if rows.clone().next().is_none() {
            return Ok(());
        }
        let heading: Vec<String> = self.columns.iter().map(|column| column.heading.clone()).collect();
        let mut all: Vec<(usize, usize)> = heading.iter().map(|text| (cells(text), least(text))).collect();
        for row in rows.clone() {
            for ((width, needs), cell) in all.iter_mut().zip(row.borrow()) {
                *width = (*width).max(cells(cell));
                *needs = (*needs).max(least(cell));
            }
        }
        let widths = match output::room() {
            Some(room) => self.fitting(&all, room),
            None => all.into_iter().map(|(width, _)| Some(width)).collect(),
        };
        self.line(&heading, &widths, out)?;
        for row in rows {
            self.line(row.borrow(), &widths, out)?;
        }
        Ok(())
    }

    /// The widths on a terminal, of columns that take so many cells and need at least so many; None: the column is left out, which is
    /// told at the end.
    fn fitting(&self, all: &[(usize, usize)], room: usize) -> Vec<Option<usize>> {
        let wants = self.columns.iter().zip(all);
        let wants = wants.map(|(column, (all, least))| Want {
            all: *all,
            least: column.shortens.then_some(*least),
            fair: if column.prose { PROSE } else { FAIR },
            leaves: column.leaves,
        });
        let widths = widths(&wants.collect::<Vec<_>>(), GAP.len(), room);
        let left_out = self.columns.iter().zip(&widths).filter(|(_, width)| width.is_none());
        left_out.for_each(|(column, _)| output::leave_out(column.heading.trim()));
        widths
    }

    fn line(&self, row: &[String], widths: &[Option<usize>], out: &mut impl Write) -> io::Result<()> {
        let mut line = String::new();
        let kept = row.iter().zip(&self.columns).zip(widths).filter_map(|(of, width)| Some((of, (*width)?)));
        for (at, ((cell, column), width)) in kept.enumerate() {
            line.push_str(if at == 0 { "" } else { GAP });
            if column.prose {
                line.extend([output::hang(), cell]);
                continue;
            }
            put(&mut line, &middle(cell, width, output::cut_mark()), width, column.right);
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
