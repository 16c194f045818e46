//! `analyze open`: the viewer with a tape in it, for a browser on this machine. What it serves is in [`crate::cli::open`]; here is how it is
//! asked for.

use anyhow::{Result, bail};

use crate::asked::config::view::{AnswerFn, ServedTo, View};
use crate::asked::config::{Config, refuse};
use systape_answers::render::form::Format;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "open",
    about: "Opens a tape in the viewer: serves its page to a browser on this machine, and prints the address",
    examples: [
        ("analyze open app.tape", "an address for a browser; Ctrl-C ends it"),
        ("SYSTAPE_VIEWER=systape.html analyze open app.tape", "with a viewer that is somewhere else"),
    ],
    check,
    run: AnswerFn::Serves(ServedTo::Browser),
    ..View::PLAIN
};

fn check(config: &Config) -> Result<()> {
    if config.format != Format::Text {
        bail!("it opens a page and prints no answer: leave out --format");
    }
    if config.is_of_many() {
        bail!("it opens one tape: more can be dropped on its page");
    }
    refuse(&[(config.fail_on_loss, "--fail-on-loss")], "the page says what was lost")
}
