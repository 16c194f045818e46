//! The command `record`.

#![warn(clippy::missing_errors_doc, clippy::print_stderr, clippy::print_stdout)]

use std::fmt::Display;
use std::io::{self, Stdout, Write};
use std::process::ExitCode;

use systape_cli::Stop;
use systape_recorder::commands::generate::generate;
use systape_recorder::commands::{ask, cli, opening};
use systape_recorder::config::RecordConfig;
use systape_recorder::config::rights;
use systape_recorder::escalation::launcher;
use systape_recorder::foreign;
use systape_recorder::own::memory;
use systape_recorder::own::say::say;
use systape_recorder::run::{self, FAILED};

/// The command line cannot be followed.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    systape_cli::built_from(option_env!("SYSTAPE_REVISION"));
    if let Err(e) = rights::refuse_borrowed() {
        return fail(FAILED, format_args!("{e:#}"));
    }
    if std::env::args_os().nth(1).is_some_and(|arg| arg == foreign::CHILD) {
        // it gets open files, and gives up everything else before it reads the first
        return systape_symbols::run_child();
    }
    if std::env::args_os().nth(1).is_some_and(|arg| arg == foreign::OPENER) {
        return opening::run();
    }
    if std::env::args_os().nth(1).is_some_and(|arg| arg == launcher::WORD) {
        return launcher::run(std::env::args_os().skip(2));
    }
    if ask::is_asked(std::env::args_os().nth(1).as_ref()) {
        let asked = match cli::parse_request(std::env::args_os()) {
            Ok(asked) => asked,
            Err(Stop::Printed(text)) => return shown(|out| out.write_all(text.as_bytes())),
            Err(Stop::Usage(text)) => return fail(USAGE, text),
        };
        return match ask::run(asked, &mut io::stdout()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(e) => fail(1, format_args!("{e:#}")),
        };
    }
    let args = match cli::parse(std::env::args_os()) {
        Ok(args) => args,
        Err(Stop::Printed(text)) => return shown(|out| out.write_all(text.as_bytes())),
        Err(Stop::Usage(text)) => return fail(USAGE, format_args!("{text} (see 'record --help')")),
    };
    if let Some(what) = args.generate {
        return shown(|out| generate(what, out));
    }
    let config = match RecordConfig::new(args) {
        Ok(config) => config,
        Err(e) => return fail(USAGE, format_args!("{e:#}")),
    };
    config.notes().iter().for_each(say);
    memory::keep();
    match run::record(&config) {
        Ok(status) => ExitCode::from(status),
        // with a command, 1 would look like the command's own status
        Err(e) => fail(if config.command.is_empty() { 1 } else { FAILED }, format_args!("{e:#}")),
    }
}

/// Prints what needs no recording.
fn shown(print: impl FnOnce(&mut Stdout) -> io::Result<()>) -> ExitCode {
    if print(&mut io::stdout()).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn fail(status: u8, why: impl Display) -> ExitCode {
    say(why);
    ExitCode::from(status)
}
