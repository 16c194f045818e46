//! Puts the tables into a page of the manual, between two marks; what is written by hand around them stays.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::section::Section;

const BEGIN: &str = "<!-- bench-peers: from here to the end mark written by `make bench-peers` -->";
const END: &str = "<!-- bench-peers: end -->";

/// Replaces what is between the marks.
pub(crate) fn fill(file: &Path, sections: &[Section]) -> Result<()> {
    let page = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let text: Vec<_> = sections.iter().map(Section::markdown).collect();
    let page = replace(&page, &text.join("\n")).with_context(|| file.display().to_string())?;
    fs::write(file, page).with_context(|| file.display().to_string())
}

fn replace(page: &str, text: &str) -> Result<String> {
    let Some((before, rest)) = page.split_once(BEGIN) else { bail!("no line {BEGIN}") };
    let Some((_, after)) = rest.split_once(END) else { bail!("no line {END} after the first mark") };
    Ok(format!("{before}{BEGIN}\n\n{text}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks() {
        let page = format!("above\n{BEGIN}\nold\n{END}\nbelow\n");
        let once = replace(&page, "new\n").expect("marks");
        assert_eq!(once, format!("above\n{BEGIN}\n\nnew\n\n{END}\nbelow\n"));
        assert_eq!(replace(&once, "new\n").expect("marks"), once);
        assert!(replace("nothing", "new").is_err());
        assert!(replace(&format!("{END}\n{BEGIN}\n"), "new").is_err());
    }
}
