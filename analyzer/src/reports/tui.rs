//! `analyze tui`: a tape in a terminal. Screens and keys are in `crate::tui`; here is how it is asked for.

use anyhow::{Result, bail};

use crate::asked::config::view::{AnswerFn, ServedTo, View};
use crate::asked::config::{Config, refuse};
use systape_answers::render::form::Format;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "tui",
    about: "Shows a tape in the terminal: overview, processes, calls, lanes of threads, each with its command",
    examples: [
        ("analyze tui app.tape", "? has the keys, q ends it"),
        ("ssh -t server analyze tui app.tape", "of a tape on another machine"),
    ],
    check,
    run: AnswerFn::Serves(ServedTo::Terminal),
    ..View::PLAIN
};

fn check(config: &Config) -> Result<()> {
    if config.format != Format::Text {
        bail!("it shows screens and prints no answer: leave out --format");
    }
    if config.is_of_many() {
        bail!("it shows one tape");
    }
    refuse(&[(config.fail_on_loss, "--fail-on-loss")], "screens say what was lost")
}
