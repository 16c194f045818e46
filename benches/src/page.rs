//! Puts the tables into a page of the manual, between two marks; what is written by hand around them stays.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::section::Section;

/// Two lines of a page, between which tables are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageMarks {
    /// The line before them.
    pub begin: &'static str,
    /// The line behind them.
    pub end: &'static str,
}

/// The marks of docs/performance.md.
pub(crate) const PEERS: PageMarks = PageMarks {
    begin: "<!-- bench-peers: from here to the end mark written by `make bench-peers` -->",
    end: "<!-- bench-peers: end -->",
};

/// Replaces what is between the marks.
pub(crate) fn fill(file: &Path, marks: &PageMarks, sections: &[Section]) -> Result<()> {
    let page = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let text: Vec<_> = sections.iter().map(Section::markdown).collect();
    let page = replace(&page, marks, &text.join("\n")).with_context(|| file.display().to_string())?;
    fs::write(file, page).with_context(|| file.display().to_string())
}

fn replace(page: &str, PageMarks { begin, end }: &PageMarks, text: &str) -> Result<String> {
    let Some((before, rest)) = page.split_once(begin) else { bail!("no line {begin}") };
    let Some((_, after)) = rest.split_once(end) else { bail!("no line {end} after the first mark") };
    Ok(format!("{before}{begin}\n\n{text}\n{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks() {
        let PageMarks { begin, end } = PEERS;
        let page = format!("above\n{begin}\nold\n{end}\nbelow\n");
        let once = replace(&page, &PEERS, "new\n").expect("marks");
        assert_eq!(once, format!("above\n{begin}\n\nnew\n\n{end}\nbelow\n"));
        assert_eq!(replace(&once, &PEERS, "new\n").expect("marks"), once);
        assert!(replace("nothing", &PEERS, "new").is_err());
        assert!(replace(&format!("{end}\n{begin}\n"), &PEERS, "new").is_err());
    }
}
