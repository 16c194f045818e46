//! `analyze open`: the viewer with a tape in it, for a browser on this machine. What it serves is in [`crate::cli::open`]; here is how it is
//! asked for.

use anyhow::{Result, bail};

use crate::asked::config::view::{AnswerFn, Own, ServedTo, View};
use crate::asked::config::{Config, refuse};
use systape_answers::render::form::Format;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "open",
    about: "Opens a tape in the viewer: serves its page to a browser on this machine, and prints the address",
    own: Own::of::<Options>(),
    examples: [
        ("analyze open app.tape", "an address for a browser; Ctrl-C ends it"),
        ("analyze open --perfetto app.tape", "the same with ui.perfetto.dev, which draws it in the browser"),
    ],
    check,
    run: AnswerFn::Serves(ServedTo::Browser),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Open the trace of 'analyze export perfetto' in ui.perfetto.dev, which draws it in the browser and uploads nothing
    #[arg(long)]
    pub perfetto: bool,
}

fn check(config: &Config) -> Result<()> {
    if config.format != Format::Text {
        bail!("it opens a page and prints no answer: leave out --format");
    }
    if config.is_of_many() {
        bail!("it opens one tape: more can be dropped on its page");
    }
    refuse(&[(config.fail_on_loss, "--fail-on-loss")], "the page says what was lost")
}
