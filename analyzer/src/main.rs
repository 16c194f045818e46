//! `analyze`: answers questions from a tape.

#![warn(clippy::missing_errors_doc, clippy::print_stderr, clippy::print_stdout)]

use std::process::ExitCode;

fn main() -> ExitCode {
    systape_cli::built_from(option_env!("SYSTAPE_REVISION"));
    #[cfg(target_os = "linux")]
    if std::env::args_os().nth(1).is_some_and(|word| word == systape_analyzer::READER) {
        return systape_symbols::run_child();
    }
    #[cfg(target_os = "linux")]
    if std::env::args_os().nth(1).is_some_and(|word| word == systape_analyzer::FETCHER) {
        return systape_analyzer::run_fetcher();
    }
    #[cfg(unix)]
    if std::env::args_os().nth(1).is_some_and(|word| word == systape_analyzer::SQL_STARTER) {
        return systape_analyzer::run_sql_starter();
    }
    systape_analyzer::run_confined(std::env::args_os())
}
