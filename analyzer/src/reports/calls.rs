//! The report without a name: the listing, the summary, or one after the other.

use std::io::Write as _;

use anyhow::Result;
use systape_format::reader::Tape;

use super::{Context, listing, losses, summary};
use crate::args::Format;
use crate::config::Config;
use crate::output;
use crate::run::Verdict;

/// Prints what `config` asks for.
pub fn run(config: &Config, tape: &Tape) -> Result<Verdict> {
    let mut context = Context::new(config, tape)?;
    let mut out = output::stdout()?;
    if config.listing {
        listing::run(&mut context, &mut out)?;
    }
    if config.summary {
        summary::run(&mut context, &mut out)?;
    }
    out.flush()?;
    let lost = !context.loss.complete();
    // where the answer itself has no line for it
    let silent = config.format != Format::Text || !config.summary;
    if lost && silent {
        losses::tell(&context, config.format != Format::Csv && config.listing);
    }
    Ok(Verdict { lost, bad: false })
}
