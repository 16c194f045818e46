//! `analyze-sql`: answers SQL about tapes, and writes their tables as files. `analyze sql` and `analyze export` start it, from
//! their own directory, with the same words.
//!
//! [`check`] says which queries are answered, [`engine`] runs them over [`tables`], whose reading is a step of its plan ([`plan`]),
//! [`export`] writes files. Everything runs in `analyze`'s sandbox: only the named tapes are read, and only below the named
//! directory is anything written.

#![warn(clippy::missing_errors_doc, clippy::print_stderr, clippy::print_stdout)]

mod args;
mod bounds;
mod check;
mod columns;
mod engine;
mod exact;
mod export;
mod headings;
mod out;
mod pairs;
mod plan;
mod query;
mod tables;
mod texts;

use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;
use systape_analyzer::frames;

use crate::args::{Args, Asked, Export, Sql};

/// Answered, with `--fail-on-loss`, and a loss could change the answer.
const LOSS: u8 = 3;
/// The command line was wrong.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let told = std::panic::take_hook();
    // nothing is unwound (Cargo.toml): an error of ours ends as others do, without a core
    std::panic::set_hook(Box::new(move |panic| {
        told(panic);
        std::process::exit(1);
    }));
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // a closed pipe is no error
            let _ = error.print();
            let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            return if asked { ExitCode::SUCCESS } else { ExitCode::from(USAGE) };
        }
    };
    let work = match confined(args.asked) {
        Ok(work) => work,
        Err(error) => {
            say(&format!("{error:#}"));
            return ExitCode::FAILURE;
        }
    };
    // queries are walked by recursion: a thread with room for the deepest that is answered
    let work = std::thread::Builder::new().stack_size(engine::STACK).spawn(move || match work {
        SqlCommand::Sql(sql, asked) => query::run(&sql, asked),
        SqlCommand::Export(export, paths) => export::run(&export, &paths),
    });
    let done = work.map(|work| work.join().expect("a panic ends the program"));
    match done {
        Ok(Ok(lost)) => {
            if lost {
                ExitCode::from(LOSS)
            } else {
                ExitCode::SUCCESS
            }
        }
        Ok(Err(error)) if closed(&error) => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            say(&format!("{error:#}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            say(&format!("no thread can be made: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// What is to be done, and the files for it.
enum SqlCommand {
    Sql(Sql, query::Asked),
    Export(Export, export::ExportPaths),
}

/// Finds the files that are asked about and gives up all rights but to these: those of this thread, which is the only one,
/// and so of all that come. No byte of a tape was read.
///
/// # Errors
/// It is not said what is asked, or there is no tape.
fn confined(asked: Asked) -> anyhow::Result<SqlCommand> {
    Ok(match asked {
        Asked::Sql(sql) => {
            let asked = query::asked(&sql)?;
            if !sql.no_sandbox {
                frames::confine(asked.tape.as_slice(), &[]);
            }
            SqlCommand::Sql(sql, asked)
        }
        Asked::Export(export) => {
            let paths = export::paths(&export)?;
            if !export.files().no_sandbox {
                frames::confine(&paths.tapes, std::slice::from_ref(&paths.dir));
            }
            SqlCommand::Export(export, paths)
        }
    })
}

/// Whether the reader of the output has gone.
fn closed(error: &anyhow::Error) -> bool {
    let is = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(is)
            || cause
                .downcast_ref::<serde_json::Error>()
                .is_some_and(|error| error.io_error_kind() == Some(std::io::ErrorKind::BrokenPipe))
    })
}

/// Prints a message; a closed stderr is no error.
fn say(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "analyze: {}", frames::plain(text));
}
