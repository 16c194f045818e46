//! A report's command line, resolved as `analyze` does.

use systape_analyzer::exercise::{Config, parse};

/// What these words ask for. The tape they would name is never opened.
pub(crate) fn config(words: &[&str]) -> Config {
    let asked = parse(["analyze"].iter().chain(words).map(Into::into)).expect("a command line");
    asked.config().expect("a command line that makes sense")
}
