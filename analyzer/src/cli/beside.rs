//! Questions that a program of its own answers: `analyze sql` and `analyze export` are `analyze-sql`, which stands beside
//! `analyze`. Its engine is large, so `analyze` is without it.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

/// The program.
const PROGRAM: &str = "analyze-sql";

/// The words that ask it, and what it answers.
pub(crate) const WORDS: [(&str, &str); 2] = [
    ("sql", "Any question about a tape in SQL, over tables of its events and reports (docs/sql.md)"),
    ("export", "The tables of tapes as Parquet, JSON or CSV, for DuckDB, Spark and their like"),
];

/// Becomes that program if `words`, after the name of this one, ask it. Comes back only if it does not; then with the
/// reason, if it should have.
pub(crate) fn asked(words: &[OsString]) -> Option<String> {
    let is = |at: usize| {
        words.get(at).and_then(|word| word.to_str()).filter(|word| WORDS.iter().any(|(name, _)| name == word))
    };
    let (word, rest) = match (is(1), words.get(1).and_then(|word| word.to_str()), is(2)) {
        (Some(word), ..) => (word, words[2..].to_vec()),
        (None, Some("help"), Some(word)) => (word, vec!["--help".into()]),
        _ => return None,
    };
    let program = match path() {
        Ok(program) => program,
        Err(error) => return Some(format!("'analyze {word}': where this program is is not known: {error}")),
    };
    let error = Command::new(&program).arg(word).args(rest).exec();
    Some(match error.kind() {
        io::ErrorKind::NotFound => format!(
            "'analyze {word}' needs the program {PROGRAM} beside this one, and {} is missing ('make build' makes it with Rust 1.94 or newer)",
            program.display()
        ),
        _ => format!("'analyze {word}': cannot start {}: {error}", program.display()),
    })
}

fn path() -> io::Result<PathBuf> {
    // a link may stand elsewhere
    Ok(std::env::current_exe()?.canonicalize()?.with_file_name(PROGRAM))
}
