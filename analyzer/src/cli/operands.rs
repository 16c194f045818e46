//! The operands behind the options: files.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::asked::args::Args;
use crate::asked::config::Files;
use crate::asked::config::view::{AnswerFn, Operands, View};
use crate::cli::habits;
use crate::cli::views;
use systape_answers::values::open::DEFAULT_TAPE;
use systape_answers::values::spool::{Offered, STDIN};
use systape_events::group::by::GroupKey;

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
        // questions come through standard input
        (Operands::Tapes, ..) if matches!(view.run, AnswerFn::Serves(_)) => Ok(several(".")),
        // standard input cannot be one of several
        (Operands::Tapes, None, []) if matches!(offered(), Offered::Bytes) => {
            bail!(
                "'analyze {}' reads files and directories, and something is piped in: 'analyze info' reads that",
                view.name
            )
        }
        (Operands::Tapes, ..) => Ok(several(".")),
        (Operands::Tape, None, files @ [_, _, ..]) if words == 0 => {
            no_report(files, view)?;
            no_file(files, view, words)?;
            Ok(several(DEFAULT_TAPE))
        }
        (Operands::Tape, None, []) => Ok(several(unnamed(view, offered())?)),
        (Operands::Tape, ..) => {
            no_file(operands, view, words)?;
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
        (Operands::TapeAndFile, None, [tape, file]) | (Operands::TapeAndFile, Some(tape), [file]) => {
            Ok(two((tape, Some(file))))
        }
        (Operands::TapeAndFile, ..) => {
            bail!("'analyze {} TAPE FILE' reads expectations of a tape: name both files", view.name)
        }
        (Operands::Logs, None, []) => {
            bail!("'analyze {} LOG' makes a tape of a log: name the log, or - for standard input", view.name)
        }
        (Operands::Logs, ..) => Ok(several(STDIN)),
        (Operands::Table, input, _) => {
            let tape = |file: &&PathBuf| {
                file.extension().is_some_and(|ending| ending == "tape")
                    || file.components().count() > 1
                    || file.as_os_str() == STDIN
            };
            let (tapes, tables): (Vec<&PathBuf>, Vec<&PathBuf>) = operands.iter().partition(tape);
            match (input.iter().chain(tapes).collect::<Vec<_>>().as_slice(), tables.as_slice()) {
                (tapes @ ([] | [_]), [] | [_]) => {
                    Ok(two((&tapes.first().map_or_else(PathBuf::new, |tape| (*tape).clone()), tables.first().copied())))
                }
                _ => bail!("'analyze {} [TABLE] [TAPE]' shows one table: name one", view.name),
            }
        }
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

/// Refuses numbers and statements where a tape stands.
fn no_name(file: &Path, view: &View) -> Result<()> {
    let one = |option: &str, text: String| view.takes(option).then_some(text);
    let word = file.to_str().unwrap_or_default();
    if ["ns", "us", "ms", "s", "sec", "min"].contains(&word) {
        bail!("'{word}': a time is one word: 10ms, 1.5s");
    }
    let words: Vec<&str> = word.split([',', ' ']).filter(|word| !word.is_empty()).collect();
    if word.contains([',', ' ']) && words.iter().all(|word| Path::new(word).exists()) {
        bail!("'{word}': files are words of their own: {}", words.join(" "));
    }
    if word.starts_with('.') && word.contains(['[', '|', ' ']) {
        bail!("'{word}': fields are chosen by jq: analyze --format json FILE | jq '{word}'");
    }
    if word.contains('.') && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b',') {
        bail!("'{word}': a part of the recording is one word: --time FROM,TO");
    }
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
    Ok(())
}

/// Refuses other files where a tape stands, for what other programs mean by them.
fn no_file(files: &[PathBuf], view: &View, words: usize) -> Result<()> {
    let beside = files.len() > 1;
    for file in files.iter().filter(|file| !file.exists()) {
        no_name(file, view)?;
        let Some(word) = file.to_str() else { continue };
        if view.takes("signal") && (word.starts_with("SIG") || ["KILL", "TERM", "SEGV", "INT", "HUP"].contains(&word)) {
            bail!("{word}: no such file; a signal is chosen by --signal {word}");
        }
        if view.takes("var") && beside {
            bail!("{word}: no such file; a variable is chosen by --var {word}");
        }
        if let Some(key) = GroupKey::meant(word).filter(|_| beside && view.takes("by")) {
            bail!("{word}: no such file; sums by it: --by {key}");
        }
        let name = view.takes("comm") && !word.contains(['.', '/', ' ']) && !views::begins(word);
        if let Some(typed) = habits::instead_of(word, None).filter(|_| beside) {
            let name = if name { format!("; threads are chosen by name: --comm={word}") } else { String::new() };
            bail!("{word}: no such file: {typed}{name}");
        }
        if words == 1 && view.name.starts_with("sched ") && !word.contains(['.', '/']) {
            bail!("'sched {word}' is no report: there are 'analyze sched timehist' and 'analyze sched latency'");
        }
        if (file.is_absolute() || word.contains('*')) && beside && view.takes("paths") {
            bail!("{word}: no such file; calls on this file are chosen by -P {word}");
        }
        if name && files.iter().any(|file| file.exists()) {
            bail!("{word}: no such file; threads are chosen by name: --comm={word}");
        }
    }
    Ok(())
}

/// Refuses a first word that is no file, and the words of other tools' reports.
fn no_report(files: &[PathBuf], view: &View) -> Result<()> {
    let other = |file: &PathBuf| Some((file.display().to_string(), habits::instead_of(file.to_str()?, None)?));
    if let Some((word, typed)) = files.iter().filter(|file| !file.exists()).find_map(other) {
        bail!("'{word}' is no report: {typed}");
    }
    files.iter().filter(|file| !file.exists()).try_for_each(|file| no_name(file, view))?;
    let Some(first) = files.first().filter(|first| !first.exists() && first.as_os_str() != STDIN) else {
        return Ok(());
    };
    let meant = first.to_str().and_then(|word| habits::meant(word, None)).map(|text| format!("{text}; "));
    let name = first.to_str().filter(|word| word.len() > 1 && !word.contains(['.', '/', ' ']));
    let name = || name.map(|name| format!("--comm={name} chooses threads by name; "));
    bail!(
        "'{}' is no report: {}'analyze --help' has them all",
        first.display(),
        meant.or_else(name).unwrap_or_default()
    )
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
        assert!(files("analyze sched x").unwrap_err().to_string().contains("'analyze sched latency'"));
        assert_eq!(first("analyze sched latency x"), PathBuf::from("x"));
        assert_eq!(first("analyze sched ./latency"), PathBuf::from("./latency"));
        assert_eq!(first("analyze --comm x.tape"), PathBuf::from("x.tape"));
        assert!(files("analyze inof x").unwrap_err().to_string().contains("'info'"));
        assert!(files("analyze 0.1 x").unwrap_err().to_string().contains("--time FROM,TO"));
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
        assert_eq!(two("analyze tables a.tape calls"), ("a.tape".into(), Some("calls".into())));
        assert_eq!(two("analyze tables calls a.tape"), ("a.tape".into(), Some("calls".into())));
        assert_eq!(two("analyze tables a.tape"), ("a.tape".into(), None));
        for wrong in ["analyze tables a b", "analyze tables a.tape b.tape", "analyze tables -i a b.tape"] {
            assert!(files(wrong).unwrap_err().to_string().contains("name one"), "{wrong}");
        }
        assert_eq!((two("analyze diff a"), two("analyze diff -i a")), (("a".into(), None), ("a".into(), None)));
        for wrong in ["analyze diff", "analyze diff -i a b", "analyze redact a", "analyze repair a b c"] {
            assert!(files(wrong).unwrap_err().to_string().contains("name both"), "{wrong}");
        }
    }
}
