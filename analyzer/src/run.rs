//! One run: resolve, open, report, exit status.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow, bail};
use systape_format::reader::{Misses, Tape};

use crate::args::Args;
use crate::config::{self, Config, Report};
use crate::loss::miss_text;
use crate::output::NewFile;
use crate::sandbox::Needs;
use crate::{generate, output, reports, sandbox};

/// The question could not be answered.
const FAILED: u8 = 1;
/// The command line was wrong.
const USAGE: u8 = 2;
/// Answered, but something that touches the answer was lost, and `--fail-on-loss` was given.
const LOSS: u8 = 3;

/// What a report has to say beyond what it printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Something that touches the answer is missing.
    pub lost: bool,
    /// The report's own answer is no: a tape that does not check.
    pub bad: bool,
}

/// Does what `args` say, in a [`sandbox`] unless they say otherwise; messages go to stderr. This thread and those made later stay in it:
/// it is for a process that does nothing else.
pub fn run_confined(args: &Args) -> ExitCode {
    resolve(args, !args.no_sandbox)
}

/// Does what `args` say, with the rights there are; messages go to stderr.
pub fn run(args: &Args) -> ExitCode {
    resolve(args, false)
}

fn resolve(args: &Args, confined: bool) -> ExitCode {
    if let Some(what) = args.generate {
        let result = output::stdout().and_then(|mut out| generate::generate(what, &mut out).and_then(|()| out.flush()));
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

/// Tells the user something that is not part of the answer; that stderr is closed is no reason to fail.
pub fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "analyze: {text}");
}

fn status(result: Result<Verdict>, fail_on_loss: bool) -> ExitCode {
    match result {
        Ok(verdict) if verdict.bad => ExitCode::from(FAILED),
        Ok(verdict) if verdict.lost && fail_on_loss => ExitCode::from(LOSS),
        Ok(_) => ExitCode::SUCCESS,
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("{error:#}"));
            ExitCode::from(FAILED)
        }
    }
}

fn answer(config: &Config, confined: bool) -> Result<Verdict> {
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

/// Opens the tape, or says in one line what is at `file` instead.
///
/// # Errors
/// What is there is no tape, or nothing is.
pub fn open(file: &Path) -> Result<Tape> {
    look(file)?;
    Tape::open(file).with_context(|| file.display().to_string())
}

/// Says in one line what is at `file` when it cannot be a tape.
fn look(file: &Path) -> Result<()> {
    let metadata = match std::fs::metadata(file) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(missing(file)),
        Err(error) => return Err(error).with_context(|| format!("cannot open {}", file.display())),
    };
    if metadata.is_dir() {
        bail!("{} is a directory, not a tape", file.display());
    }
    if !metadata.is_file() {
        // opening a pipe would wait for its writer
        bail!("{} is not a regular file: save the tape to one first", file.display());
    }
    Ok(())
}

fn missing(file: &Path) -> anyhow::Error {
    let name = file.display();
    if let Some(report) = config::nearest_report(file) {
        anyhow!("{name}: no such file; did you mean the report '{report}'?")
    } else if file == Path::new(config::DEFAULT_TAPE) {
        anyhow!("{name}: no such file; record one with 'record -- COMMAND', or name a tape: 'analyze FILE'")
    } else {
        anyhow!("{name}: no such file")
    }
}
