//! A part of the output: a heading, sentences and tables.

use crate::table::Table;

/// What stands below a heading.
#[derive(Clone, Debug)]
enum SectionBody {
    Text(String),
    Table(Table),
}

/// One heading and what is below it.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    title: String,
    blocks: Vec<SectionBody>,
}

impl Section {
    /// With nothing below the heading.
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), blocks: Vec::new() }
    }

    /// Adds a paragraph.
    pub(crate) fn paragraph(mut self, text: impl Into<String>) -> Self {
        self.blocks.push(SectionBody::Text(text.into()));
        self
    }

    /// Adds a table.
    pub(crate) fn table(mut self, table: Table) -> Self {
        self.blocks.push(SectionBody::Table(table));
        self
    }

    /// The part up to its first table.
    pub(crate) fn up_to_a_table(mut self) -> Self {
        let table = self.blocks.iter().position(|block| matches!(block, SectionBody::Table(_)));
        self.blocks.truncate(table.map_or(usize::MAX, |at| at + 1));
        self
    }

    /// For a terminal.
    pub(crate) fn plain(&self) -> String {
        self.render("==", 100, Table::text)
    }

    /// For a page.
    pub(crate) fn markdown(&self) -> String {
        self.render("##", 160, Table::markdown)
    }

    fn render(&self, mark: &str, width: usize, table: fn(&Table) -> String) -> String {
        let mut out = format!("{mark} {}\n", self.title);
        for block in &self.blocks {
            out += "\n";
            out += &match block {
                SectionBody::Text(text) => wrap(text, width) + "\n",
                SectionBody::Table(rows) => table(rows),
            };
        }
        out
    }
}

/// Breaks lines at spaces.
fn wrap(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always one");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces() {
        assert_eq!(wrap("one two three", 7), "one two\nthree");
        assert_eq!(wrap("overlong on", 4), "overlong\non");
    }

    #[test]
    fn a_page() {
        let mut table = Table::new(&["a"]);
        table.push(vec!["b".into()]);
        let section = Section::new("Title").paragraph("Words.").table(table);
        assert_eq!(section.plain(), "== Title\n\nWords.\n\na\n-\nb\n");
        assert_eq!(section.markdown(), "## Title\n\nWords.\n\n| a |\n| --- |\n| b |\n");
    }
}
