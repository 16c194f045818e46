//! The manual beside `record`: its page of options is what `--help` prints, and each command that a page shows is taken.
//! `UPDATE_GOLDEN=1 cargo test --workspace --test manual` writes the page anew.

#[path = "../../analyzer/tests/analyze/manual/pages.rs"]
mod pages;

use std::ffi::OsString;
use std::fs;
use std::process::{Command, Stdio};

use systape_cli::Stop;
use systape_recorder::commands::cli;

use pages::{pages, root};

/// The first line of the page.
const MARK: &str = "<!-- generated from --help: UPDATE_GOLDEN=1 cargo test --workspace --test manual -->";

/// What `record` with `words` is answered before anything is recorded.
fn asked(words: &[String]) -> Result<(), String> {
    match cli::parse(words.iter().map(OsString::from)) {
        Ok(_) | Err(Stop::Printed(_)) => Ok(()),
        Err(Stop::Usage(text)) => Err(text),
    }
}

#[test]
fn the_page_of_options_is_the_help() {
    // without a terminal at any end: lines are as wide as for everybody
    let mut help = Command::new(env!("CARGO_BIN_EXE_record"));
    let help = help.arg("--help").stdin(Stdio::null()).stderr(Stdio::piped()).env_remove("COLUMNS").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let page = format!("{MARK}\n\n# record\n\nAll options of `record`.\n\n```text\n{}\n```\n", help.trim_end());
    let file = root().join("docs/reference/record.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&file, &page).unwrap();
    }
    assert_eq!(fs::read_to_string(&file).unwrap_or_default(), page, "docs/reference/record.md: UPDATE_GOLDEN=1");
}

#[test]
fn record_takes_every_command() {
    let (mut wrong, mut looked) = (Vec::new(), 0);
    for page in pages().iter().filter(|page| !page.is_generated()) {
        for (place, words) in page.commands("record") {
            looked += 1;
            if let Err(error) = asked(&words) {
                wrong.push(format!("{place}: {error}"));
            }
        }
    }
    assert!(looked > 50 && wrong.is_empty(), "{looked} commands\n{}", wrong.join("\n"));
}
