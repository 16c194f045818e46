//! `systape`: one name for both programs. `systape record ...` is `record ...`, `systape why app.tape` is `analyze why app.tape`.

#![warn(clippy::missing_errors_doc, clippy::print_stderr, clippy::print_stdout)]

mod demo;
mod pages;
mod service;

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Result, anyhow};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use systape_cli::{Generate, Stop, built_from, version};

/// The command line cannot be followed.
const USAGE: u8 = 2;

/// Record what a Linux machine does, and answer questions from the recording later
#[derive(Debug, Parser)]
#[command(
    name = "systape",
    version = version(),
    arg_required_else_help = true,
    after_help = EXAMPLES,
    disable_help_subcommand = true,
    subcommand_value_name = "COMMAND",
    override_usage = "systape record [OPTIONS] [-- COMMAND]\n       systape analyze [REPORT] [OPTIONS] [TAPE]\n       systape REPORT [OPTIONS] [TAPE]\n       systape demo [DIR]"
)]
pub(crate) struct Args {
    /// Print a man page or completions
    #[arg(long, value_enum, value_name = "WHAT", hide = true)]
    generate: Option<Generate>,
    #[command(subcommand)]
    what: Option<What>,
}

const EXAMPLES: &str = "\
Examples:
  systape record -o app.tape -- ./app     record a program and all that it starts
  systape record -p 4711 --for 10s        record a process for 10 seconds
  systape why app.tape                    what was slow, and what broke
  systape report app.tape -o app.html     a page for a browser
  systape --help, systape why --help      what there is to ask";

#[derive(Debug, Subcommand)]
enum What {
    /// Record: `record`, see record(1)
    #[command(disable_help_flag = true)]
    Record {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        words: Vec<OsString>,
    },
    /// Answer a question from a recording: `analyze`, see analyze(1)
    #[command(disable_help_flag = true)]
    Analyze {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        words: Vec<OsString>,
    },
    /// Record a small service with a fault in it, and find that
    Demo {
        /// Directory for the tape and the page [default: a new one in the temporary directory]
        dir: Option<PathBuf>,
    },
    /// The service of the demonstration
    #[command(hide = true, name = service::WORD)]
    Service,
    /// The slow backend of that
    #[command(hide = true, name = service::BACKEND)]
    Backend,
    /// A report of analyze
    #[command(external_subcommand)]
    Report(Vec<OsString>),
}

fn main() -> ExitCode {
    built_from(option_env!("SYSTAPE_REVISION"));
    let command = Args::command();
    let args = match command.clone().try_get_matches().and_then(|matches| Args::from_arg_matches(&matches)) {
        Ok(args) => args,
        Err(error) => match Stop::new(&error, &command) {
            Stop::Printed(text) => return shown(&text),
            Stop::Usage(text) => return fail(&anyhow!("{text} (see 'systape --help')"), USAGE),
        },
    };
    let done = match (args.generate, args.what) {
        (Some(what), _) => return shown(&pages::page(what)),
        (None, Some(What::Record { words })) => Err(become_it("record", words)),
        (None, Some(What::Analyze { words } | What::Report(words))) => Err(become_it("analyze", words)),
        (None, Some(What::Demo { dir })) => demo::run(dir),
        (None, Some(What::Service)) => service::serve(),
        (None, Some(What::Backend)) => service::answer(),
        (None, None) => return shown(&Args::command().render_help().to_string()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error, 1),
    }
}

/// The program `name` beside this one, or the one that a shell would find.
fn beside(name: &str) -> PathBuf {
    let here = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.join(name)));
    here.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(name))
}

/// Becomes the program `name`; returns why it cannot.
fn become_it(name: &str, words: Vec<OsString>) -> anyhow::Error {
    let program = beside(name);
    let error = Command::new(&program).arg0(name).args(words).exec();
    anyhow!("{}: {error}", program.display())
}

/// Prints to standard output; whoever closed it has read enough.
fn shown(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn fail(error: &anyhow::Error, status: u8) -> ExitCode {
    // nobody may listen
    let _ = writeln!(io::stderr(), "systape: {error:#}");
    ExitCode::from(status)
}

/// Prints a line.
///
/// # Errors
/// It cannot be written.
fn line(text: &str) -> Result<()> {
    Ok(writeln!(io::stdout(), "{text}")?)
}
