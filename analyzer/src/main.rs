//! `analyze`: answers questions from a tape.

use std::process::ExitCode;

use systape_analyzer::{args::Args, run};

fn main() -> ExitCode {
    run::run(&Args::from_env())
}
