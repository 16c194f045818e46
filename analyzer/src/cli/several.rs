//! The answers of several tapes: one after the other, in one listing, or as the view itself adds them up. At most one tape
//! is open at a time, but for listings.

mod merge;
mod named;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use systape_format::reader::Tape;

use self::named::Named;
use crate::asked::config::Config;
use crate::asked::config::view::{AnswerFn, OfMany, Several};
use crate::cli::answer::{self, check_name};
use crate::cli::nothing;
use crate::cli::views;
use crate::reports::named::TAPES;
use systape_answers::render::form::Format;
use systape_answers::render::out::Out;
use systape_answers::values::bad_usage::BadUsage;
use systape_answers::values::new_file::NewFile;
use systape_answers::values::open::open;
use systape_answers::values::output::{self, line};
use systape_answers::values::say::{Verdict, complain};
use systape_answers::values::spool;

/// Refuses names that stand for no tape among several.
///
/// # Errors
/// One is standard input, or no file's name but a report's.
pub(super) fn check(config: &Config, tapes: &[PathBuf]) -> Result<()> {
    if tapes.iter().any(|path| path == Path::new(spool::STDIN)) {
        if matches!(config.view.run, AnswerFn::Exports { .. } | AnswerFn::Tables { .. }) {
            bail!(
                "'-', standard input, can be read once, and {} reads a tape twice: save it to a file",
                config.view.title()
            );
        }
        if tapes.len() > 1 {
            bail!("'-', standard input, is one tape: save it to a file to read it with others");
        }
    }
    let report = |path: &&PathBuf| path.to_str().is_some_and(|word| views::names().any(|name| name == word));
    if let Some(word) = tapes.iter().filter(|path| !path.exists()).find(report) {
        bail!("'{}' is a report, and no file: its name stands before those of tapes", word.display());
    }
    // what a directory has is told beside the answers
    let named = std::iter::once(&config.file).chain(&config.more).filter(|path| !path.is_dir());
    named.filter(|_| !matches!(config.view.run, AnswerFn::Many(_))).try_for_each(|path| check_name(path))
}

/// Prints the answers for `config` of `tapes`, or writes the one to `file`.
///
/// # Errors
/// Nothing could be written, or the question is wrong. What is wrong with one tape is told, and makes the verdict bad.
pub(super) fn answer(config: &Config, tapes: &[PathBuf], file: Option<&mut NewFile>) -> Result<Verdict> {
    match (config.view.run, config.view.several) {
        (AnswerFn::Exports { run, .. }, _) => {
            // other programs read it
            let verdict = run(config, tapes, file, &mut Out::exact(config.format)?)?;
            tell_nothing(config, tapes)?;
            Ok(verdict)
        }
        (AnswerFn::Many(run), _) | (_, Several::Added(run)) => together(run, config, tapes),
        (_, Several::Merged) => merge::answer(config, tapes),
        (_, Several::AddedBy(run)) if config.is_by_tape() => together(run, config, tapes),
        (_, Several::Each | Several::AddedBy(_)) => each(config, tapes),
    }
}

/// Says why an export of one tape has no rows.
///
/// # Errors
/// The tape cannot be opened.
pub(super) fn tell_nothing(config: &Config, tapes: &[PathBuf]) -> Result<()> {
    if let ([path], true) = (tapes, config.shown.nothing()) {
        nothing::why(config, &open(path)?).iter().for_each(|why| complain(why));
    }
    Ok(())
}

/// One answer of all tapes.
fn together(run: OfMany, config: &Config, tapes: &[PathBuf]) -> Result<Verdict> {
    let mut out = Out::stdout(config.format)?;
    let verdict = run(config, tapes, &mut out)?;
    out.end()?;
    Ok(verdict)
}

/// Whether rows of the view say the machine themselves.
fn has_host(config: &Config) -> bool {
    // what sums of several tapes begin with is none of one tape
    let parts = config.view.tables.iter().flat_map(|rows| rows.parts).filter(|part| part.table().name != TAPES.name);
    parts.flat_map(|part| part.table().columns.iter()).any(|column| column.full_name() == "host")
}

/// One answer after the other.
fn each(config: &Config, tapes: &[PathBuf]) -> Result<Verdict> {
    let (mut out, mut verdict) = (Out::stdout(config.format)?, Verdict::default());
    for (at, path) in tapes.iter().enumerate() {
        let opened = open(path);
        let named = Named::new(path, opened.as_ref().map(|tape| tape.session().hostname.clone()).unwrap_or_default());
        out.begin(&named.name, named.label(has_host(config)));
        if config.format == Format::Text {
            let blank = if at > 0 { "\n" } else { "" };
            line(&mut out, &format!("{blank}==> {} <==", named.heading()))?;
            out.flush()?;
        }
        verdict = verdict.and(of_one(&config.of(path), opened, &mut out)?);
    }
    Ok(verdict)
}

/// The answer for `config` of one of several tapes, to `out`; what is wrong with that is told.
fn of_one(config: &Config, opened: Result<Tape>, out: &mut Out) -> Result<Verdict> {
    match answer::answer(config, opened, None, out) {
        Err(error) if output::is_closed_pipe(&error) || BadUsage::is(&error) => Err(error),
        Err(error) => {
            out.say(&format!("{error:#}"));
            Ok(Verdict { lost: false, bad: true })
        }
        verdict => verdict,
    }
}
