//! The operands behind the options: files.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::asked::args::Args;
use crate::asked::config::Files;
use crate::asked::config::view::{Operands, View};
use crate::cli::habits;
use crate::cli::views;
use crate::values::open::DEFAULT_TAPE;
use crate::values::spool::{Offered, STDIN};

/// The files for `view`; the first `words` of `args` name the view. `offered` says what standard input has, if nothing is named.
///
/// # Errors
/// There are too few or too many, or the first is meant as a report's name.
pub(crate) fn files(args: &Args, view: &View, words: usize, offered: impl Fn() -> Offered) -> Result<Files> {
    let operands = args.words.get(words..).unwrap_or_default();
    let several = |otherwise: &str| {
        let mut all = args.input.iter().chain(operands).cloned();
        let file = all.next().unwrap_or_else(|| PathBuf::from(otherwise));
        Files { file, second: None, more: all.collect() }
    };
    let two = |(file, second): (&PathBuf, Option<&PathBuf>)| Files {
        file: file.clone(),
        second: second.cloned(),
        more: Vec::new(),
    };
    match (view.operands, &args.input, operands) {
        (Operands::Tapes, ..) => Ok(several(".")),
        (Operands::Tape, None, files @ [_, _, ..]) if words == 0 => {
            no_report(files)?;
            no_file(files, view)?;
            Ok(several(DEFAULT_TAPE))
        }
        (Operands::Tape, None, []) => Ok(several(unnamed(view, offered())?)),
        (Operands::Tape, ..) => {
            no_file(operands, view)?;
            Ok(several(DEFAULT_TAPE))
        }
        (Operands::TwoTapes, None, [before, after]) => Ok(two((before, Some(after)))),
        // two stretches of one
        (Operands::TwoTapes, None, [tape]) | (Operands::TwoTapes, Some(tape), []) => Ok(two((tape, None))),
        (Operands::TwoTapes, ..) => bail!("'analyze {} BEFORE AFTER' compares two tapes: name both", view.name),
        (Operands::TapeAndCopy, None, [from, to]) | (Operands::TapeAndCopy, Some(from), [to]) => {
            Ok(two((from, Some(to))))
        }
        (Operands::TapeAndCopy, ..) if view.takes("level") => {
            bail!("'analyze redact IN OUT' copies a tape without what --level takes out: name both files")
        }
        (Operands::TapeAndCopy, ..) if view.takes("time") => {
            bail!("'analyze cut IN OUT --time FROM,TO' copies a part of a tape: name both files")
        }
        (Operands::TapeAndCopy, ..) => {
            bail!("'analyze {} IN OUT' copies what is whole of a tape: name both files", view.name)
        }
        (Operands::Table, input, [] | [_]) => Ok(two((&input.clone().unwrap_or_default(), operands.first()))),
        (Operands::Table, ..) => bail!("'analyze {} [TABLE]' shows one table: name one", view.name),
    }
}

/// The tape of who named none: the one that is piped in, else the one that `record` writes.
///
/// # Errors
/// There is a pipe that says nothing: nobody knows whether it is meant, and to wait for it could be for ever.
fn unnamed(view: &View, offered: Offered) -> Result<&'static str> {
    let words = if view.name.is_empty() { String::new() } else { format!(" {}", view.name) };
    match offered {
        Offered::Bytes => Ok(STDIN),
        Offered::Nothing => Ok(DEFAULT_TAPE),
        Offered::Silence => bail!(
            "no tape is named, and the pipe at standard input has nothing to read yet: 'analyze{words} -' waits for it, 'analyze{words} {DEFAULT_TAPE}' reads the file"
        ),
    }
}

/// Refuses numbers, statements and other files where a tape stands, for what other programs mean by them.
fn no_file(files: &[PathBuf], view: &View) -> Result<()> {
    let one = |option: &str, text: String| view.takes(option).then_some(text);
    for file in files.iter().filter(|file| !file.exists()) {
        let Some(word) = file.to_str() else { continue };
        if !word.is_empty() && word.len() < 10 && word.bytes().all(|byte| byte.is_ascii_digit()) {
            let meant = [
                one("top", format!("--top {word} prints {word} rows")),
                one("pids", format!("-p {word} chooses a process")),
                one("time", "--time FROM,TO a part of the recording".to_owned()),
            ];
            let meant: Vec<String> = meant.into_iter().flatten().collect();
            bail!("{word}: no such file; a tape is asked once, not at intervals; {}", meant.join(", "));
        }
        if word.trim_start().get(..7).is_some_and(|start| start.eq_ignore_ascii_case("select ")) {
            bail!("a question in SQL stands behind a word of its own: analyze sql '{word}' FILE");
        }
        if let Some(typed) = habits::instead_of(word, None).filter(|_| files.len() > 1) {
            bail!("{word}: no such file: {typed}");
        }
        if file.is_absolute() && files.len() > 1 && view.takes("paths") {
            bail!("{word}: no such file; calls on this file are chosen by -P {word}");
        }
    }
    Ok(())
}

/// Refuses a first word that is no file, and the words of other tools' reports.
fn no_report(files: &[PathBuf]) -> Result<()> {
    let other = |file: &PathBuf| Some((file.display().to_string(), habits::instead_of(file.to_str()?, None)?));
    if let Some((word, typed)) = files.iter().filter(|file| !file.exists()).find_map(other) {
        bail!("'{word}' is no report: {typed}");
    }
    let Some(first) = files.first().filter(|first| !first.exists()) else { return Ok(()) };
    let near = views::nearest(first).map(|name| format!("did you mean '{name}'? ")).unwrap_or_default();
    bail!("'{}' is no report: {near}'analyze --help' has them all", first.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::parse;

    fn files(words: &str) -> Result<(PathBuf, Option<PathBuf>)> {
        let asked = parse::parse(words.split(' ').map(Into::into)).map_err(|stop| anyhow::anyhow!("{stop:?}"))?;
        super::files(&asked.args, asked.view, asked.words, || Offered::Nothing).map(|files| (files.file, files.second))
    }

    #[test]
    fn the_first_word_is_a_report_or_the_tape() {
        let first = |words| files(words).unwrap().0;
        assert_eq!(first("analyze"), PathBuf::from("trace.tape"));
        assert_eq!(first("analyze info"), PathBuf::from("trace.tape"));
        assert_eq!(first("analyze ./info"), PathBuf::from("./info"));
        assert_eq!(first("analyze check x"), PathBuf::from("x"));
        assert_eq!(first("analyze -s -i y"), PathBuf::from("y"));
        assert_eq!(first("analyze sched"), PathBuf::from("trace.tape"));
        assert_eq!(first("analyze sched latency x"), PathBuf::from("x"));
        assert_eq!(first("analyze sched ./latency"), PathBuf::from("./latency"));
        assert_eq!(first("analyze --comm x.tape"), PathBuf::from("x.tape"));
        assert!(files("analyze inof x").unwrap_err().to_string().contains("'info'"));
        assert!(files("analyze ./x y").unwrap_err().to_string().contains("'./x' is no report"));
    }

    #[test]
    fn a_pipe_is_read_refused_or_not_there() {
        let kills = parse::parse(["analyze", "kills"].map(Into::into)).unwrap().view;
        assert_eq!(unnamed(kills, Offered::Bytes).unwrap(), "-");
        assert_eq!(unnamed(kills, Offered::Nothing).unwrap(), "trace.tape");
        let refused = unnamed(kills, Offered::Silence).unwrap_err().to_string();
        assert!(refused.contains("'analyze kills -'") && refused.contains("'analyze kills trace.tape'"), "{refused}");
    }

    #[test]
    fn a_copy_is_named_as_of_other_programs_too() {
        for words in ["analyze redact a -o b", "analyze cut -o b a --time 1,2", "analyze repair -i a -o b"] {
            let asked = parse::parse(words.split(' ').map(Into::into)).unwrap();
            let config = asked.config().unwrap();
            assert_eq!((config.file, config.second), ("a".into(), Some("b".into())), "{words}");
        }
        let both = parse::parse("analyze redact a b -o c".split(' ').map(Into::into)).unwrap().config();
        assert!(both.unwrap_err().to_string().contains("name both"));
    }

    #[test]
    fn a_list_takes_any_number() {
        let all = |words: &str| {
            let asked = parse::parse(words.split(' ').map(Into::into)).unwrap();
            let files = super::files(&asked.args, asked.view, asked.words, || Offered::Nothing).unwrap();
            std::iter::once(files.file).chain(files.more).collect::<Vec<_>>()
        };
        assert_eq!(all("analyze list"), [PathBuf::from(".")]);
        assert_eq!(all("analyze list a"), [PathBuf::from("a")]);
        assert_eq!(all("analyze list -i a b c"), ["a", "b", "c"].map(PathBuf::from));
        assert_eq!(all("analyze kills a b"), ["a", "b"].map(PathBuf::from));
        assert_eq!(all("analyze -s -i a b"), ["a", "b"].map(PathBuf::from));
    }

    #[test]
    fn some_reports_take_two_files() {
        let two = |words| files(words).unwrap();
        assert_eq!(two("analyze diff a b"), ("a".into(), Some("b".into())));
        assert_eq!(two("analyze repair -i a b"), ("a".into(), Some("b".into())));
        assert_eq!(two("analyze tables"), ("".into(), None));
        assert_eq!(two("analyze tables -i a calls"), ("a".into(), Some("calls".into())));
        assert!(files("analyze tables a b").unwrap_err().to_string().contains("name one"));
        assert_eq!((two("analyze diff a"), two("analyze diff -i a")), (("a".into(), None), ("a".into(), None)));
        for wrong in ["analyze diff", "analyze diff -i a b", "analyze redact a", "analyze repair a b c"] {
            assert!(files(wrong).unwrap_err().to_string().contains("name both"), "{wrong}");
        }
    }
}
