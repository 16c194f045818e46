//! One run: resolve, open, report, exit status.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use systape_format::reader::Misses;

use crate::args::Args;
use crate::cli::{self, Stop};
use crate::config::Config;
use crate::loss::miss_text;
use crate::open::{look, open};
use crate::output::NewFile;
use crate::report::Report;
use crate::sandbox::Needs;
use crate::say::{BadUsage, Verdict, complain};
use crate::{generate, output, reports, sandbox, views};

/// The question could not be answered.
const FAILED: u8 = 1;
/// The command line was wrong.
const USAGE: u8 = 2;
/// Answered, but something that touches the answer was lost, and `--fail-on-loss` was given.
const LOSS: u8 = 3;

/// Does what the command line says, in a [`sandbox`] unless it says otherwise; messages go to stderr. This thread and those made later
/// stay in it: it is for a process that does nothing else.
pub fn run_confined(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    match cli::parse(words) {
        Ok(args) => resolve(&args, !args.no_sandbox),
        Err(Stop::Printed(text)) => {
            let print =
                || output::stdout().and_then(|mut out| out.write_all(text.as_bytes()).and_then(|()| out.flush()));
            status(print().map(|()| Verdict::default()).map_err(Into::into), false)
        }
        Err(Stop::Usage(text)) => {
            complain(&format!("{text} (see 'analyze --help')"));
            ExitCode::from(USAGE)
        }
    }
}

/// Does what `args` say, with the rights there are; messages go to stderr.
pub fn run(args: &Args) -> ExitCode {
    resolve(args, false)
}

fn resolve(args: &Args, confined: bool) -> ExitCode {
    if let Some(what) = args.generate {
        let result = output::stdout()
            .and_then(|mut out| generate::generate(what, views::chosen(args), &mut out).and_then(|()| out.flush()));
        return status(result.map(|()| Verdict::default()).map_err(Into::into), false);
    }
    let config = match Config::resolve(args) {
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
    if let (false, Some(name)) = (config.file.exists(), views::nearest(&config.file)) {
        bail!("{}: no such file; did you mean the report '{name}'?", config.file.display());
    }
    look(&config.file)?;
    // what is to be written is made while that can be done
    let mut copy = config.report.makes_a_copy().then(|| reports::repair::create(config)).transpose()?;
    let mut svg = match config.stacks.svg.as_deref() {
        Some(path) => Some(NewFile::replacing(path).with_context(|| format!("cannot write {}", path.display()))?),
        None => None,
    };
    if confined {
        sandbox::enter(&Needs::of(config, copy.iter().chain(&svg)));
    }
    report(config, copy.as_mut(), svg.as_mut())
}

/// Sees to it that no report forgets what it could not read: blocks it has not told of are told here, and the answer is touched.
fn with_misses(result: Result<Verdict>, misses: &Misses) -> Result<Verdict> {
    for miss in misses.tell() {
        complain(&format!("DAMAGED: {}", miss_text(&miss)));
    }
    result.map(|verdict| Verdict { lost: verdict.lost || !misses.is_empty(), ..verdict })
}

fn report(config: &Config, copy: Option<&mut NewFile>, svg: Option<&mut NewFile>) -> Result<Verdict> {
    let tape = match open(&config.file) {
        Ok(tape) => tape,
        Err(error) => match not_a_tape(&error).filter(|_| config.report == Report::Check) {
            Some(why) => return reports::check::not_a_tape(config, &why),
            None => return Err(error),
        },
    };
    config.events.check(|| tape.table_defs().values().map(|def| &*def.name).collect())?;
    let result = match config.report {
        // these are about what cannot be read, and say all of it
        Report::Check => return reports::check::run(config, &tape),
        Report::Repair | Report::Redact => return reports::repair::run(config, &tape, copy),
        Report::Calls => reports::calls::run(config, &tape),
        Report::Info => reports::info::run(config, &tape),
        Report::Block => reports::block::run(config, &tape),
        Report::Exec => reports::exec::run(config, &tape),
        Report::Kills => reports::kills::run(config, &tape),
        Report::Net => reports::net::run(config, &tape),
        Report::Offcpu => reports::offcpu::run(config, &tape),
        Report::Runqlat => reports::runqlat::run(config, &tape),
        Report::Sched => reports::sched::run(config, &tape),
        Report::States => reports::states::run(config, &tape),
        Report::Diff => reports::diff::run(config, &tape),
        Report::Callgraph => reports::callgraph::run(config, &tape, svg),
    };
    with_misses(result, tape.misses())
}

/// Why a file holds no tape, if that is what is wrong: not that it cannot be read, or needs a newer program.
fn not_a_tape(error: &anyhow::Error) -> Option<String> {
    use systape_format::Error::{BadHeader, Empty, NotATape};
    match error.downcast_ref()? {
        // its text begins with the grade
        e @ NotATape { .. } => Some(e.to_string().trim_start_matches("not a tape: ").to_owned()),
        e @ (Empty | BadHeader { .. }) => Some(e.to_string()),
        _ => None,
    }
}
