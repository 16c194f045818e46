//! One run: resolve, open, report, exit status.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use systape_cli::Stop;
use systape_format::reader::{Misses, Tape};

use crate::asked::config::Config;
use crate::asked::config::view::Run;
use crate::cli::generate;
use crate::cli::habits;
use crate::cli::nothing;
use crate::cli::parse::{self, Asked};
use crate::cli::sandbox;
use crate::cli::sandbox::Needs;
use crate::cli::views;
use crate::render::stamp::TimeBase;
use crate::table::loss::miss_text;
use crate::table::question;
use crate::values::open::{look, open};
use crate::values::output;
use crate::values::output::NewFile;
use crate::values::progress;
use crate::values::say::{BadUsage, Verdict, complain};
use crate::values::spool;
use crate::values::tapes;

/// The question could not be answered.
const FAILED: u8 = 1;
/// The command line was wrong.
const USAGE: u8 = 2;
/// Answered, with `--fail-on-loss`, and a loss could change the answer.
const LOSS: u8 = 3;

/// Executes the command line, in a [`sandbox`] unless it says otherwise; messages go to stderr. This thread and those
/// made later stay in the sandbox: only for a process that does nothing else.
pub fn run_confined(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    resolve(words, true)
}

/// Executes the command line, without a sandbox; messages go to stderr.
pub fn run(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    resolve(words, false)
}

fn resolve(words: impl IntoIterator<Item = OsString>, confined: bool) -> ExitCode {
    let asked = match parse::parse(words) {
        Ok(asked) => asked,
        Err(Stop::Printed(text)) => return print(|out| out.write_all(text.as_bytes())),
        Err(Stop::Usage(text)) => {
            complain(&format!("{text} (see 'analyze --help')"));
            return ExitCode::from(USAGE);
        }
    };
    let Asked { view, args, .. } = &asked;
    if let Some(what) = args.generate {
        return print(|out| generate::generate(what, view, out));
    }
    let confined = confined && !args.no_sandbox;
    let config = match asked.config() {
        Ok(config) => config,
        Err(error) => {
            complain(&format!("{error:#} (see 'analyze --help')"));
            return ExitCode::from(USAGE);
        }
    };
    for note in config.filters.selection.notes() {
        complain(note);
    }
    status(answer(&config, confined), config.fail_on_loss)
}

/// Prints output that needs no tape.
fn print(write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> ExitCode {
    let printed = output::stdout().and_then(|mut out| write(&mut out).and_then(|()| out.flush()));
    status(printed.map(|()| Verdict::default()).map_err(Into::into), false)
}

fn status(result: Result<Verdict>, fail_on_loss: bool) -> ExitCode {
    match result {
        Ok(verdict) if verdict.bad => ExitCode::from(FAILED),
        Ok(verdict) if verdict.lost && fail_on_loss => ExitCode::from(LOSS),
        Ok(_) => ExitCode::SUCCESS,
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) if error.is::<BadUsage>() => {
            complain(&format!("{error:#} (see 'analyze --help')"));
            ExitCode::from(USAGE)
        }
        Err(error) => {
            complain(&format!("{error:#}"));
            ExitCode::from(FAILED)
        }
    }
}

fn answer(config: &Config, confined: bool) -> Result<Verdict> {
    if let (Run::Lists(run), true) = (config.view.run, config.file.as_os_str().is_empty()) {
        return run(config, views::VIEWS, None);
    }
    let many = match config.view.run {
        Run::Many(run) => Some(run),
        _ => config.view.many.filter(|_| config.is_of_many()),
    };
    if let Some(run) = many {
        let tapes = tapes::found(std::iter::once(&config.file).chain(&config.more))?;
        if confined {
            sandbox::enter(&Needs { read: tapes.clone(), ..Needs::default() });
        }
        return run(config, &tapes);
    }
    let input = if config.file == Path::new(spool::STDIN) { Some(spool::stdin()?) } else { None };
    if input.is_none() {
        check_name(config)?;
    }
    // what is to be written is made while that can be done
    let mut file = match config.view.run {
        Run::Writes { make, .. } => make(config)?,
        Run::Prints(_) | Run::Lists(_) | Run::Many(_) | Run::Judges { .. } => None,
    };
    if confined {
        sandbox::enter(&Needs::of(config, file.iter())?);
    }
    // one that judges a tape shows how far it is
    if !matches!(config.view.run, Run::Judges { .. }) {
        progress::begin(crate::values::words::escaped(config.file.as_os_str().as_encoded_bytes()));
    }
    let verdict = report(config, input, file.as_mut());
    progress::end();
    verdict
}

/// Refuses a file that cannot be a tape, and names the report that it resembles.
fn check_name(config: &Config) -> Result<()> {
    if let (false, Some(name)) = (config.file.exists(), views::nearest(&config.file)) {
        bail!("{}: no such file; did you mean the report '{name}'?", config.file.display());
    }
    if let (false, Some(typed)) = (config.file.exists(), config.file.to_str().and_then(habits::instead_of)) {
        bail!("{}: no such file, and no report: {typed}", config.file.display());
    }
    look(&config.file)
}

/// Reports the blocks that could not be read and that the report has not mentioned, and marks the answer as incomplete.
fn with_misses(result: Result<Verdict>, misses: &Misses) -> Result<Verdict> {
    for miss in misses.tell() {
        complain(&format!("DAMAGED: {}", miss_text(&miss)));
    }
    result.map(|verdict| Verdict { lost: verdict.lost || !misses.is_empty(), ..verdict })
}

fn report(config: &Config, input: Option<File>, file: Option<&mut NewFile>) -> Result<Verdict> {
    let opened = match input {
        Some(input) => Tape::from_file(input).context("standard input"),
        None => open(&config.file),
    };
    let tape = match (opened, config.view.run) {
        (Ok(tape), _) => tape,
        (Err(error), Run::Judges { not_a_tape: judge, .. }) => match not_a_tape(&error) {
            Some(why) => return judge(config, &why),
            None => return Err(error),
        },
        (Err(error), _) => return Err(error),
    };
    if config.base() == Some(TimeBase::Wall) && question::clock(&tape).samples() == 0 {
        let text = "--clock wall: this tape has no clock sample, so no time of day is known; --clock mono prints CLOCK_MONOTONIC";
        return Err(BadUsage(text.to_owned()).into());
    }
    // a report that asks for events by itself says what it lacks
    if config.view.events.is_empty() {
        config.events.check(|| tape.table_defs().values().map(|def| &*def.name).collect())?;
    }
    let (result, told) = match config.view.run {
        Run::Prints(run) => (run(config, &tape), false),
        Run::Lists(run) => (run(config, views::VIEWS, Some(&tape)), false),
        Run::Many(run) => (run(config, std::slice::from_ref(&config.file)), true),
        Run::Writes { run, tells_damage, .. } => (run(config, &tape, file), tells_damage),
        Run::Judges { run, .. } => (run(config, &tape), true),
    };
    let result = if told { result } else { with_misses(result, tape.misses()) };
    if result.is_ok() && config.shown.nothing() {
        nothing::why(config, &tape).iter().for_each(|why| complain(why));
    }
    result
}

/// Why a file holds no tape, if that is the error: not an unreadable file or a newer version.
fn not_a_tape(error: &anyhow::Error) -> Option<String> {
    use systape_format::Error::{BadHeader, Empty, NotATape};
    match error.downcast_ref()? {
        // its text begins with the grade
        e @ NotATape { .. } => Some(e.to_string().trim_start_matches("not a tape: ").to_owned()),
        e @ (Empty | BadHeader { .. }) => Some(e.to_string()),
        _ => None,
    }
}
