//! The report without a name: the listing, the summary, or one after the other.

use std::io::Write as _;

use anyhow::Result;
use systape_format::reader::Tape;

use super::{Context, listing, summary};
use crate::args::Format;
use crate::config::Config;
use crate::output;
use crate::run::{Verdict, complain};

/// How many lines tell of losses before the rest is only counted.
const LOSS_LINES: usize = 12;

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
        tell(&context);
    }
    Ok(Verdict { lost, bad: false })
}

/// Says on stderr what is missing from an answer that has no place for it: the abnormal end, damage, and gaps in CSV.
fn tell(context: &Context<'_>) {
    let mut loss = context.loss.clone();
    if context.config.format != Format::Csv && context.config.listing {
        // these have their lines in the listing
        loss.gaps.clear();
        loss.holes.clear();
    }
    for line in loss.lines(context.tape.session(), LOSS_LINES) {
        complain(&line);
    }
}
