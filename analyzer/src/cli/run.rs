//! One run: resolve, open, report, exit status.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use systape_cli::Stop;
use systape_format::reader::Tape;

use crate::asked::config::Config;
#[cfg(unix)]
use crate::asked::config::view::ServedTo;
use crate::asked::config::view::{AnswerFn, WriteTables};
use crate::cli::answer::{self, check_name};
use crate::cli::beside;
use crate::cli::card;
use crate::cli::follow;
use crate::cli::generate;
use crate::cli::parse::{self, Asked};
use crate::cli::sandbox;
use crate::cli::sandbox::RemainingRights;
use crate::cli::several;
use crate::cli::views;
#[cfg(unix)]
use crate::cli::{mcp, open as cli_open};
#[cfg(unix)]
use crate::tui;
use systape_answers::render::form::Format;
use systape_answers::render::out::Out;
use systape_answers::values::bad_usage::BadUsage;
use systape_answers::values::debuginfod;
use systape_answers::values::memory;
use systape_answers::values::open::{DEFAULT_TAPE, open};
use systape_answers::values::output;
use systape_answers::values::progress;
use systape_answers::values::say::{Verdict, complain};
use systape_answers::values::spool::{self, Spool};
use systape_answers::values::tapes;
use systape_events::values::spill;

/// The question could not be answered.
const FAILED: u8 = 1;
/// The command line was wrong.
const USAGE: u8 = 2;
/// Answered, with `--fail-on-loss`, and a loss could change the answer.
const LOSS: u8 = 3;

/// Executes the command line, in a [`sandbox`] unless it says otherwise; messages go to stderr. This thread and those
/// made later stay in the sandbox: only for a process that does nothing else. Tables are written by `tables`.
pub(crate) fn run_confined(words: impl IntoIterator<Item = OsString>, tables: WriteTables) -> ExitCode {
    memory::keep_freed();
    let words: Vec<OsString> = words.into_iter().collect();
    match beside::asked(&words) {
        beside::Asked::Here => resolve(words, true, tables),
        beside::Asked::Overview(text) => print(|out| out.write_all(text.as_bytes())),
        beside::Asked::Unknown(text) => {
            complain(&format!("{text} (see 'analyze export --help')"));
            ExitCode::from(USAGE)
        }
        beside::Asked::There(word, rest) => {
            complain(&beside::become_it(word, &rest));
            ExitCode::from(FAILED)
        }
    }
}

/// Executes the command line, without a sandbox; messages go to stderr. Tables are written by `tables`.
pub(crate) fn run(words: impl IntoIterator<Item = OsString>, tables: WriteTables) -> ExitCode {
    resolve(words, false, tables)
}

fn resolve(words: impl IntoIterator<Item = OsString>, confined: bool, tables: WriteTables) -> ExitCode {
    let words: Vec<OsString> = words.into_iter().collect();
    let names_tape = card::is_asked(&words);
    let help = parse::help_for(&words);
    let asked = match parse::parse(card::without_trace(words)) {
        Ok(asked) => asked,
        Err(Stop::Printed(text)) => return print(|out| out.write_all(text.as_bytes())),
        Err(Stop::Usage(text)) => {
            complain(&format!("{text} (see '{help}')"));
            return ExitCode::from(USAGE);
        }
    };
    let Asked { view, args, .. } = &asked;
    if let Some(what) = args.generate {
        return print(|out| generate::generate(what, view, out));
    }
    let confined = confined && !args.no_sandbox;
    let mut config = match asked.config() {
        Ok(config) => config,
        Err(error) => {
            complain(&format!("{error:#} (see '{help}')"));
            return ExitCode::from(USAGE);
        }
    };
    if names_tape && config.view.name.is_empty() && !config.is_of_many() {
        config.view = &card::CARD;
    }
    for note in config.filters.selection.notes() {
        complain(&note);
    }
    if asked.names_none() && config.file == Path::new(DEFAULT_TAPE) && config.file.exists() {
        complain(&format!("reads {DEFAULT_TAPE}, as no tape is named"));
    }
    let answered = answer(&config, confined, tables);
    let spilled = |verdict| {
        spill::end()?.iter().for_each(|text| complain(text));
        Ok(verdict)
    };
    // an expectation of which nothing is known is not met
    let fail_on_loss = config.fail_on_loss || matches!(config.view.run, AnswerFn::Asks(_));
    status(answered.and_then(spilled), fail_on_loss, &help)
}

/// Prints output that needs no tape.
fn print(write: impl FnOnce(&mut Out) -> io::Result<()>) -> ExitCode {
    let printed = Out::stdout(Format::Text).and_then(|mut out| write(&mut out).and_then(|()| out.flush()));
    status(printed.map(|()| Verdict::default()).map_err(Into::into), false, "analyze --help")
}

/// `help`: the command whose help has what can be typed instead of words that were wrong.
fn status(result: Result<Verdict>, fail_on_loss: bool, help: &str) -> ExitCode {
    match result {
        Ok(verdict) if verdict.bad => ExitCode::from(FAILED),
        Ok(verdict) if verdict.lost && fail_on_loss => ExitCode::from(LOSS),
        Ok(_) => ExitCode::SUCCESS,
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) if BadUsage::is(&error) => {
            complain(&format!("{error:#} (see '{help}')"));
            ExitCode::from(USAGE)
        }
        Err(error) => {
            complain(&format!("{error:#}"));
            ExitCode::from(FAILED)
        }
    }
}

fn answer(config: &Config, confined: bool, write: WriteTables) -> Result<Verdict> {
    if let (AnswerFn::Lists(run), true) = (config.view.run, config.file.as_os_str().is_empty()) {
        return run(config, views::VIEWS, None, &mut Out::stdout(config.format)?);
    }
    // while a file can be made, and a server be asked
    spill::begin(config.memory);
    if let Some(sources) = (config.view.reads)(config)?.fetch {
        debuginfod::begin(&sources)?;
    }
    if let AnswerFn::Serves(client) = config.view.run {
        #[cfg(unix)]
        return match client {
            ServedTo::Model => mcp::serve(config, confined),
            ServedTo::Browser => cli_open::serve(config, confined),
            ServedTo::Terminal => {
                tui::check(config)?;
                check_name(&config.file)?;
                if confined {
                    let needs = RemainingRights::of(config, std::iter::empty())?;
                    sandbox::enter(&RemainingRights { terminal: true, ..needs });
                }
                tui::run(config, answer::config_of)
            }
        };
        #[cfg(not(unix))]
        anyhow::bail!("'analyze {}' serves others ({client:?}), and nobody can be served from here", config.view.name);
    }
    if let AnswerFn::Imports { find, make, run } = config.view.run {
        let logs = find(config)?;
        let mut file = make(config)?;
        if confined {
            sandbox::enter(&RemainingRights::of_import(logs.iter().map(|log| log.path.clone()), &file));
        }
        return run(config, &logs, &mut file, &mut Out::stdout(config.format)?);
    }
    let exports = matches!(config.view.run, AnswerFn::Exports { .. } | AnswerFn::Tables { .. });
    if config.is_of_many() || exports {
        let tapes = tapes::found(std::iter::once(&config.file).chain(&config.more))?;
        several::check(config, &tapes)?;
        let mut file = match config.view.run {
            AnswerFn::Exports { make, .. } | AnswerFn::Tables { make, .. } => make(config)?,
            _ => None,
        };
        if confined {
            let needs = RemainingRights::of(config, file.iter())?;
            sandbox::enter(&RemainingRights { read: tapes.iter().cloned().chain(needs.read).collect(), ..needs });
        }
        if let AnswerFn::Tables { asked, .. } = config.view.run {
            let verdict = write(config, asked(config, file)?, &tapes)?;
            several::tell_nothing(config, &tapes)?;
            return Ok(verdict);
        }
        return several::answer(config, &tapes, file.as_mut());
    }
    if let (true, Some(begin)) = (config.follow, config.view.follow) {
        let file = follow::open(config)?;
        if confined {
            sandbox::enter(&RemainingRights::of(config, std::iter::empty())?);
        }
        return follow::answer(config, begin, file);
    }
    let input = if config.file == Path::new(spool::STDIN) { Some(Spool::open()?) } else { None };
    if input.is_none() {
        check_name(&config.file)?;
    }
    // what is to be written is made while that can be done
    let mut file = match config.view.run {
        AnswerFn::Writes { make, .. } => make(config)?,
        AnswerFn::Composes { make, .. } => Some(make(config)?),
        AnswerFn::Prints(_)
        | AnswerFn::Lists(_)
        | AnswerFn::Many(_)
        | AnswerFn::Serves(_)
        | AnswerFn::Asks(_)
        | AnswerFn::Judges { .. }
        | AnswerFn::Imports { .. }
        | AnswerFn::Exports { .. }
        | AnswerFn::Tables { .. } => None,
    };
    if confined {
        sandbox::enter(&RemainingRights::of(config, file.iter())?);
    }
    // one that judges a tape shows how far it is
    if !matches!(config.view.run, AnswerFn::Judges { .. }) {
        progress::begin(systape_events::values::words::escaped(config.file.as_os_str().as_encoded_bytes()));
    }
    let opened = match input {
        Some(input) => input.fill().and_then(|file| Tape::from_file(file).context("standard input")),
        None => open(&config.file),
    };
    let verdict = answer::answer(config, opened, file.as_mut(), &mut Out::stdout(config.format)?);
    progress::end();
    verdict
}
