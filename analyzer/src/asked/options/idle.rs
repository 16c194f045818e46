//! Whether idle waits have rows of their own.

use anyhow::Result;

use crate::asked::config::{Config, refuse};
use systape_answers::render::form::Format;

/// What is done with rows of nothing but idle waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum IdleRows {
    /// They are rows as others
    List,
    /// One line has their sum
    Fold,
}

/// The option of reports in which threads that wait for work have most of the time.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[group(skip)]
pub(crate) struct Idle {
    /// Idle waits (poll, accept, sleep, a pipe, a terminal): list them, or fold them in one line
    /// [default: fold in text of the whole machine, else list]
    #[arg(long = "idle", value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "list", hide_possible_values = true)]
    idle: Option<IdleRows>,
}

impl Idle {
    /// Rows as others.
    pub(crate) fn listed() -> Self {
        Self { idle: Some(IdleRows::List) }
    }

    /// What was asked for.
    pub(crate) fn asked(self) -> Option<IdleRows> {
        self.idle
    }

    /// Refuses it where it has no effect: rows for programs are all there, and `elsewhere` there are no such rows.
    ///
    /// # Errors
    /// It has none.
    pub(crate) fn check(self, config: &Config, elsewhere: &[(bool, &str)]) -> Result<()> {
        if self.idle.is_none() {
            return Ok(());
        }
        refuse(elsewhere, "it has no idle waits to list or to fold: leave out --idle")?;
        refuse(&[(config.format != Format::Text, "--idle")], "JSON and CSV have every row")
    }
}
