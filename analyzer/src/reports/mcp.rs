//! `analyze mcp`: tapes as tools of the Model Context Protocol, for programs that let a language model ask. What is asked and answered is in
//! [`crate::cli::mcp`]; here is how it is begun.

use anyhow::{Result, bail};

use super::repair::RedactLevel;
use crate::asked::config::view::{AnswerFn, Operands, Own, ServedTo, View};
use crate::asked::config::{Config, refuse};
use systape_answers::render::form::Format;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "mcp",
    about: "Lets a language model's client ask tapes: a server of the Model Context Protocol",
    operands: Operands::Tapes,
    own: Own::of::<Options>(),
    examples: [
        ("analyze mcp app.tape", "what a client starts: docs/guides/agents.md"),
        ("analyze mcp --redact /var/lib/systape", "tapes of a directory, without names"),
    ],
    check,
    run: AnswerFn::Serves(ServedTo::Model),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Answer as if the tapes had gone through 'analyze redact --level LEVEL' [default of LEVEL: all]
    #[arg(long, value_enum, value_name = "LEVEL", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub redact: Option<RedactLevel>,
}

fn check(config: &Config) -> Result<()> {
    if config.format != Format::Text {
        bail!("answers have the form that the protocol says: leave out --format");
    }
    refuse(&[(config.fail_on_loss, "--fail-on-loss")], "each answer says whether lost events could change it")
}
