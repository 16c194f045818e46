//! Questions that a program of its own answers: `analyze sql`, and exports of tables, are `analyze-sql`, which stands beside
//! `analyze`. Its engine is large, so `analyze` is without it. Other exports are views of `analyze` itself.

use std::ffi::OsString;
#[cfg(unix)]
use std::io;
#[cfg(unix)]
use std::path::Path;
use std::path::PathBuf;

use crate::cli::views::VIEWS;
use systape_events::values::words::escaped;

/// The program.
const PROGRAM: &str = "analyze-sql";

/// The words that ask it, and what it answers.
pub(crate) const WORDS: [(&str, &str); 4] = [
    ("sql", "Any question about a tape in SQL, over tables of its events and reports (docs/guides/sql.md)"),
    ("export parquet", "The tables of tapes as Parquet, for DuckDB, Spark and their like (docs/guides/sql.md)"),
    ("export json", "The same as JSON lines"),
    ("export csv", "The same as CSV"),
];

/// Forms that are made by another word.
const OTHERS: &systape_abi::Habits = &[
    (&["html", "page", "report"], "analyze report -o FILE"),
    (&["svg", "flamegraph", "flame"], "analyze callgraph --svg FILE"),
    (&["folded", "speedscope", "collapsed", "stackcollapse"], "analyze callgraph --folded"),
    (&["chrome", "systrace", "ftrace", "trace", "pftrace", "ctf", "otel", "jaeger"], "analyze export perfetto -o FILE"),
    (&["jsonl", "ndjson"], "analyze export json DIR FILE"),
    (&["sqlite", "duckdb", "sql"], "analyze export parquet DIR FILE"),
    (&["feather", "ipc", "polars", "pandas"], "analyze export arrow -o OUT FILE"),
    (&["text", "txt"], "analyze FILE"),
];

/// What becomes of a command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Words for this program.
    Here,
    /// A question what can be exported: this says it.
    Overview(String),
    /// A form that there is not: this says it.
    Unknown(String),
    /// Words for the other program: the word that asks it, and the words behind that.
    There(&'static str, Vec<OsString>),
}

/// Whom `words`, after the name of this program, ask.
pub(crate) fn asked(words: &[OsString]) -> Asked {
    let typed: Vec<&str> = words.iter().skip(1).map(|word| word.to_str().unwrap_or_default()).collect();
    let (helps, typed) = match &*typed {
        ["help", rest @ ..] => (true, rest),
        all => (false, all),
    };
    // what stands behind the words that were looked at
    let rest = |looked: usize| {
        let help = helps.then(|| "--help".into());
        help.map_or_else(|| words[1 + looked..].to_vec(), |help| vec![help])
    };
    match *typed {
        ["sql", ..] => Asked::There("sql", rest(1)),
        // the tape may stand in front
        [tape, "sql", ..] if PathBuf::from(tape).exists() => {
            Asked::There("sql", rest(2).into_iter().chain([tape.into()]).collect())
        }
        ["export"] | ["export", "-h" | "--help", ..] => Asked::Overview(overview()),
        ["export", form, ..] if VIEWS.iter().any(|view| view.name.split_once(' ') == Some(("export", form))) => {
            Asked::Here
        }
        ["export", option, ..] if option.starts_with('-') => {
            let form = typed.iter().find(|word| forms().any(|(form, _)| form == **word)).unwrap_or(&"FORM");
            Asked::Unknown(format!(
                "the form stands behind 'export', options behind that: analyze export {form} {} ...",
                escaped(option.as_bytes())
            ))
        }
        ["export", form, ..] if !WORDS.iter().any(|(name, _)| name.strip_prefix("export ") == Some(form)) => {
            let known: Vec<&str> = forms().map(|(form, _)| form).collect();
            let near = systape_abi::nearest(form, known.iter().copied());
            let near = near.first().map(|name| format!("; did you mean '{name}'?"));
            let other = || systape_abi::instead_of(OTHERS, form).map(|text| format!("; type '{text}'"));
            let near = near.or_else(other).unwrap_or_default();
            Asked::Unknown(format!("there is no export '{}': {}{near}", escaped(form.as_bytes()), known.join(", ")))
        }
        ["export", form, ..] if helps => Asked::There("export", vec![form.into(), "--help".into()]),
        ["export", ..] => Asked::There("export", rest(1)),
        _ => Asked::Here,
    }
}

/// The forms of export, and what each is.
fn forms() -> impl Iterator<Item = (&'static str, &'static str)> {
    let own = VIEWS.iter().map(|view| (view.name, view.about));
    own.chain(WORDS).filter_map(|(name, about)| Some((name.strip_prefix("export ")?, about)))
}

/// A line about each form of export.
fn overview() -> String {
    let mut text = "Writes tapes in the form of another program (analyze export FORM --help):\n".to_owned();
    forms().for_each(|(form, about)| text.push_str(&format!("  {form:<9} {about}\n")));
    text
}

/// Becomes that program, asked by `word`. Comes back only with the reason why it could not.
#[cfg(unix)]
pub(crate) fn become_it(word: &str, rest: &[OsString]) -> String {
    let program = match path() {
        Ok(program) => program,
        Err(error) => return format!("'analyze {word}': where this program is is not known: {error}"),
    };
    let mut other = std::process::Command::new(&program);
    let error = std::os::unix::process::CommandExt::exec(other.arg(word).args(rest));
    cannot_start(word, &program, &error)
}

/// Why there is no other program: only unix has one become another.
#[cfg(not(unix))]
pub(crate) fn become_it(word: &str, _rest: &[OsString]) -> String {
    format!(
        "'analyze {word}' is answered by the program {PROGRAM}, which is not part of this page: ask it on a machine that has it"
    )
}

/// Why `program` could not be started for `word`.
#[cfg(unix)]
pub(crate) fn cannot_start(word: &str, program: &Path, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!(
            "'analyze {word}' needs the program {PROGRAM} beside this one, and {} is missing: install the package systape-sql, or run 'make build' \
             in a clone (Rust 1.94 or newer)",
            program.display()
        ),
        _ => format!("'analyze {word}': cannot start {}: {error}", program.display()),
    }
}

/// Path of the program.
#[cfg(unix)]
///
/// # Errors
/// The path of this one is not known.
pub(crate) fn path() -> io::Result<PathBuf> {
    // a link may stand elsewhere
    Ok(std::env::current_exe()?.canonicalize()?.with_file_name(PROGRAM))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_exported_by_the_other_program() {
        let asked = |words: &str| asked(&words.split(' ').map(OsString::from).collect::<Vec<_>>());
        let there = |word, rest: &[&str]| Asked::There(word, rest.iter().map(OsString::from).collect());
        assert_eq!(asked("analyze export strace t.tape"), Asked::Here);
        assert_eq!(asked("analyze help export strace"), Asked::Here);
        assert_eq!(asked("analyze t.tape export"), Asked::Here);
        assert_eq!(asked("analyze export parquet out t.tape"), there("export", &["parquet", "out", "t.tape"]));
        assert_eq!(asked("analyze help export csv"), there("export", &["csv", "--help"]));
        let unknown = Asked::Unknown(
            "there is no export 'straces': perfetto, firefox, strace, pprof, arrow, parquet, json, csv; did you mean 'strace'?"
                .to_owned(),
        );
        assert_eq!(asked("analyze export straces t.tape"), unknown);
        assert_eq!(asked("analyze sql --tables"), there("sql", &["--tables"]));
        assert_eq!(asked("analyze help sql"), there("sql", &["--help"]));
        for words in ["analyze export", "analyze export --help", "analyze help export"] {
            let Asked::Overview(text) = asked(words) else { panic!("{words}") };
            for form in ["perfetto", "firefox", "strace", "pprof", "arrow", "parquet", "json", "csv"] {
                assert!(text.contains(&format!("\n  {form} ")), "{text}");
            }
        }
    }
}
