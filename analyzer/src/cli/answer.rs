//! The answer of one tape: checks that it can be asked, calls the view, and tells what could not be read.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use systape_format::reader::{Misses, Tape};

use crate::asked::config::Config;
use crate::asked::config::view::{AnswerFn, View};
use crate::asked::other;
use crate::cli::{habits, nothing, parse, views};
use crate::reports::losses;
use systape_answers::render::form::Format;
use systape_answers::render::out::{Out, TakesRows};
use systape_answers::render::stamp::TimeBase;
use systape_answers::values::bad_usage::BadUsage;
use systape_answers::values::new_file::NewFile;
use systape_answers::values::open::look;
use systape_answers::values::say::Verdict;
use systape_cli::Stop;
use systape_events::fired;
use systape_events::kin;
use systape_events::question;
use systape_events::values::words::shell;

/// Refuses a file that cannot be a tape, and names the report that it resembles.
pub(crate) fn check_name(file: &Path) -> Result<()> {
    if let (false, Some(typed)) = (file.exists(), file.to_str().and_then(|word| habits::instead_of(word, None))) {
        bail!("{}: no such file, and no report: {typed}", file.display());
    }
    if let (false, Some(name)) = (file.exists(), views::nearest(file)) {
        bail!("{}: no such file; did you mean the report '{name}'?", file.display());
    }
    if !file.exists() && file.to_str().is_some_and(|name| name.contains('*')) {
        bail!("{}: no such file, and the shell found none that fits", file.display());
    }
    look(file)
}

/// Reports the blocks that could not be read and that the report has not mentioned, and marks the answer as incomplete.
fn with_misses(result: Result<Verdict>, misses: &Misses, out: &mut Out) -> Result<Verdict> {
    let told = losses::damage(misses, Verdict::default(), out);
    result.map(|verdict| verdict.doubted(told.lost))
}

/// Refuses a clock that the tape does not have.
pub(crate) fn no_wall_clock(config: &Config, tape: &Tape) -> Result<()> {
    if config.base() == Some(TimeBase::Wall) && question::clock(tape).samples() == 0 {
        let text = "--clock wall: this tape has no clock sample, so no time of day is known; --clock mono prints CLOCK_MONOTONIC";
        return Err(BadUsage(text.to_owned()).into());
    }
    let imported = &tape.session().imported;
    if config.base() == Some(TimeBase::Mono) && !imported.is_empty() {
        let text = "-T, --clock mono: this tape was imported from a log, which does not say CLOCK_MONOTONIC; --clock wall prints times of day";
        return Err(BadUsage(text.to_owned()).into());
    }
    Ok(())
}

/// Writes the answer for `config`, of the tape that was `opened`, to `out`; `file`: the file that it is to write.
pub(crate) fn answer(
    config: &Config,
    opened: Result<Tape>,
    file: Option<&mut NewFile>,
    out: &mut Out,
) -> Result<Verdict> {
    let tape = match (opened.map_err(|error| other::exact(error, &config.file, config)), config.view.run) {
        (Ok(tape), _) => tape,
        (Err(error), AnswerFn::Judges { not_a_tape: judge, .. }) => match not_a_tape(&error) {
            Some(why) => return judge(config, &why, out),
            None => return Err(error),
        },
        (Err(error), _) => return Err(error),
    };
    no_wall_clock(config, &tape)?;
    out.count_in(&config.shown);
    // a report that asks for events by itself says what it lacks
    if config.view.events.is_empty() {
        let notes = config.events.check(|| tape.table_defs().values().map(|def| &**def).collect())?;
        notes.iter().for_each(|note| out.say(note));
    }
    if let Some(hint) = triggered(config, &tape) {
        out.say(&hint);
    }
    let (result, told) = match config.view.answers(&tape) {
        AnswerFn::Prints(run) => (run(config, &tape, out), false),
        AnswerFn::Lists(run) => (run(config, views::VIEWS, Some(&tape), out), false),
        AnswerFn::Many(run) => (run(config, std::slice::from_ref(&config.file), out), true),
        AnswerFn::Exports { run, .. } => (run(config, std::slice::from_ref(&config.file), file, out), true),
        AnswerFn::Writes { run, tells_damage, .. } => (run(config, &tape, file, out), tells_damage),
        AnswerFn::Asks(run) => (run(config, &tape, &|words, rows| ask_of_events(words, &tape, rows), out), false),
        AnswerFn::Composes { run, .. } => match file {
            Some(file) => (run(config, &tape, file, &|words, rows| ask(words, &tape, rows), out), false),
            // several tapes are refused where options are checked
            None => bail!("{} makes one file of one tape", config.view.title()),
        },
        AnswerFn::Judges { run, .. } => (run(config, &tape, out), true),
        AnswerFn::Tables { .. } => bail!("{} writes tables of tapes, which it opens itself", config.view.title()),
        AnswerFn::Imports { .. } => bail!("{} reads logs, and no tape", config.view.title()),
        AnswerFn::Serves(_) => bail!("{} is asked by a client, about no tape alone", config.view.title()),
    };
    // before what is said beside it
    let flushed = out.end();
    let result = result.and_then(|verdict| Ok(flushed.map(|()| verdict)?));
    let result = if told { result } else { with_misses(result, tape.misses(), out) };
    let filters = &config.filters;
    // what a process has open is asked of that one
    if result.is_ok()
        && !config.tree
        && !filters.pids.is_empty()
        && config.view.takes("tree")
        && config.view.name != "fds"
    {
        kin::note(&filters.pids, kin::below(&tape, &filters.pids).len()).iter().for_each(|note| out.say(note));
    }
    if result.is_ok() && config.shown.nothing() {
        nothing::why(config, &tape).iter().for_each(|why| out.say(why));
    } else if result.is_ok() && config.view.name == "why" {
        // that nothing was found is an answer about somebody, who has to be there
        nothing::blamed(config, &tape).iter().for_each(|why| out.say(why));
    }
    result
}

/// Passes the rows of the answer to `words` (`["top", "--by", "comm"]`) about `tape` to `rows`, as values: they are those that the view
/// prints.
///
/// # Errors
/// The view has no answer, or one that is no rows.
pub(crate) fn ask(words: &[String], tape: &Tape, rows: &mut dyn TakesRows) -> Result<Verdict> {
    pass(words, tape, rows, |view| view.answers(tape))
}

/// Passes rows of events alone, for who takes figures for exact: where looks give estimates, there is no answer.
///
/// # Errors
/// Those of [`ask`].
pub(crate) fn ask_of_events(words: &[String], tape: &Tape, rows: &mut dyn TakesRows) -> Result<Verdict> {
    pass(words, tape, rows, |view| view.run)
}

fn pass(
    words: &[String],
    tape: &Tape,
    rows: &mut dyn TakesRows,
    answers: impl Fn(&View) -> AnswerFn,
) -> Result<Verdict> {
    let typed = words.iter().map(String::as_str).chain(["--format", "json", "-i", "-"]);
    let typed = std::iter::once("analyze").chain(typed).map(OsString::from);
    let wrong = |why: String| anyhow!(BadUsage(why));
    let asked = parse::parse(typed).map_err(|stop| match stop {
        Stop::Usage(why) => wrong(why),
        Stop::Printed(_) => wrong("it asks for help".to_owned()),
    })?;
    if asked.has_operands() {
        return Err(wrong(format!("'{}' names no report of the tape", words.join(" "))));
    }
    let config = asked.config().map_err(|error| wrong(format!("{error:#}")))?;
    let mut out = Out::values(rows);
    match answers(config.view) {
        AnswerFn::Prints(run) => run(&config, tape, &mut out),
        // without its file it prints
        AnswerFn::Writes { run, .. } => run(&config, tape, None, &mut out),
        _ => Err(wrong(format!("'analyze {}' has no rows", words.join(" ")))),
    }
}

/// Reads a command line of `words` (`["trace", "-e", "openat"]`) about the tape `file`, for an answer of text without colours, or of rows.
///
/// # Errors
/// It is none, or names another tape.
#[cfg(unix)]
pub(crate) fn config_of(words: &[String], file: &Path, text: bool) -> Result<Config> {
    let form: &[&str] = if text { &["--color", "never"] } else { &["--format", "json"] };
    let typed = std::iter::once("analyze").chain(words.iter().map(String::as_str)).chain(form.iter().copied());
    let typed: Vec<OsString> = typed.chain(["-i"]).map(OsString::from).chain([file.as_os_str().to_owned()]).collect();
    let asked = parse::parse(crate::cli::card::without_trace(typed)).map_err(|stop| match stop {
        Stop::Usage(why) => anyhow!(BadUsage(why)),
        Stop::Printed(_) => anyhow!(BadUsage("it asks for help".to_owned())),
    })?;
    if asked.has_operands() {
        bail!(BadUsage(format!("'{}' names another tape", words.join(" "))));
    }
    asked.config()
}

/// For the listing of a whole tape that a trigger began: what fired, and where to look.
fn triggered(config: &Config, tape: &Tape) -> Option<String> {
    if !config.view.name.is_empty() || config.format != Format::Text || config.filters.time != (None, None) {
        return None;
    }
    let (all, open) = (fired::fired(tape), tape.session().window_open);
    let text = fired::summary(&all, open)?;
    let first = all.first()?;
    if tape.session().cut.is_some_and(|cut| !cut.has(first.ts)) {
        return None;
    }
    let window = first.window(open);
    let file = config.file.as_os_str().as_encoded_bytes().to_vec();
    Some(format!("a trigger began this tape: {text}: analyze why --time {window} {}", shell(&[file])))
}

/// Why a file holds no tape, if that is the error: not an unreadable file or a newer version.
fn not_a_tape(error: &anyhow::Error) -> Option<String> {
    use systape_format::Error::{BadHeader, Empty, NotATape, Other};
    match error.downcast_ref()? {
        // its text begins with the grade
        e @ (NotATape { .. } | Other(_)) => Some(e.to_string().trim_start_matches("not a tape: ").to_owned()),
        e @ (Empty | BadHeader { .. }) => Some(e.to_string()),
        _ => None,
    }
}
