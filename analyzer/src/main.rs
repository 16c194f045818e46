//! `analyze`: answers questions from a tape.

use std::process::ExitCode;

use systape_analyzer::cli::run;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if std::env::args_os().nth(1).is_some_and(|word| word == systape_analyzer::derive::stacks::debug_files::READER) {
        return systape_symbols::run_child();
    }
    run::run_confined(std::env::args_os())
}
