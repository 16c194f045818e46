//! A report's command line, resolved as `analyze` does.

use clap::Parser;
use systape_analyzer::args::Args;
use systape_analyzer::config::Config;

/// What these words ask for. The tape they would name is never opened.
pub(crate) fn config(words: &[&str]) -> Config {
    let args = Args::try_parse_from(["analyze"].iter().chain(words)).expect("a command line");
    Config::resolve(&args).expect("a command line that makes sense")
}
