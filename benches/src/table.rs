//! A table: for a terminal and for Markdown.

/// Rows under a head. Columns of words come first, numbers after them.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    words: usize,
}

impl Table {
    /// Without rows; one column of words.
    pub(crate) fn new(head: &[&str]) -> Self {
        Self { head: head.iter().map(|h| (*h).to_owned()).collect(), rows: Vec::new(), words: 1 }
    }

    /// With so many columns of words.
    pub(crate) fn words(mut self, columns: usize) -> Self {
        self.words = columns;
        self
    }

    /// Adds a row of as many cells as the head has.
    pub(crate) fn push(&mut self, row: Vec<String>) {
        debug_assert_eq!(row.len(), self.head.len());
        self.rows.push(row);
    }

    /// Columns in line, for a terminal.
    pub(crate) fn text(&self) -> String {
        let lines: Vec<_> = [&self.head].into_iter().chain(&self.rows).collect();
        let chars = |cell: &String| cell.chars().count();
        let width = |i: usize| lines.iter().filter_map(|l| l.get(i)).map(chars).max().unwrap_or(0);
        let widths: Vec<_> = (0..self.head.len()).map(width).collect();
        let rule: Vec<_> = widths.iter().map(|w| "-".repeat(*w)).collect();
        let line = |cells: &[String]| {
            let cells = cells.iter().zip(&widths).enumerate();
            let cells = cells.map(|(i, (c, w))| if i < self.words { format!("{c:<w$}") } else { format!("{c:>w$}") });
            format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
        };
        let mut out = line(&self.head);
        out += &line(&rule);
        self.rows.iter().for_each(|row| out += &line(row));
        out
    }

    /// For a page.
    pub(crate) fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule: Vec<_> =
            (0..self.head.len()).map(|i| if i < self.words { "---" } else { "--:" }.to_owned()).collect();
        let mut out = line(&self.head);
        out += &line(&rule);
        self.rows.iter().for_each(|row| out += &line(row));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms() {
        let mut table = Table::new(&["system", "took"]);
        table.push(vec!["bare".into(), "4.20 µs".into()]);
        table.push(vec!["strace".into(), "-".into()]);
        assert_eq!(table.text(), "system     took\n------  -------\nbare    4.20 µs\nstrace        -\n");
        assert_eq!(table.markdown(), "| system | took |\n| --- | --: |\n| bare | 4.20 µs |\n| strace | - |\n");
    }
}
