//! `record trigger [NAME]` and `record status`: requests to a recorder that runs.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, anyhow};
use clap::{Parser, Subcommand, ValueEnum, ValueHint};
use systape_abi::plain;
use systape_cli::control::{self, Request};

use crate::flight::request::ask;

/// The first words that are requests; a program of that name stands behind --.
const WORDS: [&str; 2] = ["trigger", "status"];

/// How a status is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Text for people.
    Text,
    /// One object.
    Json,
}

/// A request to the recorder of a directory (record --last or --rotate).
#[derive(Parser, Debug)]
#[command(name = "record", version, max_term_width = 100)]
pub struct Asked {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Have a tape written; prints its path when it is whole
    Trigger {
        /// What it is about, in its name and in its first line of info
        name: Option<String>,
        /// The recorder's directory
        #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
        dir: PathBuf,
    },
    /// Print what a recorder holds, and its last tapes
    Status {
        /// The recorder's directory
        #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
        dir: PathBuf,
        /// How
        #[arg(long, value_enum, default_value = "text")]
        format: Form,
    },
}

/// Whether the command line (without the program's name) is a request.
pub fn is_asked(first: Option<&OsString>) -> bool {
    first.is_some_and(|first| WORDS.iter().any(|word| first == word))
}

/// Asks, and prints the answer.
///
/// # Errors
/// When no recorder runs there, or there is no tape.
pub fn run(asked: Asked, out: &mut impl Write) -> Result<()> {
    match asked.what {
        What::Trigger { name, dir } => {
            let answer = ask(&dir, &Request::Trigger(name))?;
            let tape = control::tape(&answer).map_err(|why| anyhow!("{why}"))?;
            writeln!(out, "{}", plain(&dir.join(tape).to_string_lossy()))?;
        }
        What::Status { dir, format } => {
            let answer = ask(&dir, &Request::Status)?;
            match format {
                Form::Json => writeln!(out, "{}", control::status_json(&answer))?,
                Form::Text => {
                    for line in control::status(&answer) {
                        writeln!(out, "{line}")?;
                    }
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn requests_are_words_of_their_own() {
        Asked::command().debug_assert();
        assert!(is_asked(Some(&"status".into())) && !is_asked(Some(&"--".into())) && !is_asked(None));
        let parsed = Asked::try_parse_from(["record", "trigger", "deploy 7", "--dir", "/x"]).unwrap();
        assert!(matches!(parsed.what, What::Trigger { name: Some(name), .. } if name == "deploy 7"));
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().to_str().unwrap();
        let asked = Asked::try_parse_from(["record", "status", "--dir", dir]).unwrap();
        assert!(run(asked, &mut Vec::new()).unwrap_err().to_string().contains("no record with --last"));
    }
}
