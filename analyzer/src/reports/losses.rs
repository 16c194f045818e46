//! Where reports say what is missing: between the lines of a listing, above a table, or on stderr when the form has no place for it.

use std::io::{self, Write};

use super::Context;
use crate::args::Format;
use crate::output::line;
use crate::render::LineFormat;
use crate::render::json::Json;
use crate::render::text::Text;
use crate::run::complain;
use crate::stream::{Loose, Merger};

/// How many lines tell of losses before the rest is only counted.
pub const LOSS_LINES: usize = 12;

/// Says on stderr what is missing from an answer that has no place for it: the abnormal end, damage, and gaps unless they are `listed`.
pub fn tell(context: &Context<'_>, listed: bool) {
    let mut loss = context.loss.clone();
    if listed {
        loss.gaps.clear();
        loss.holes.clear();
    }
    for line in loss.lines(context.tape.session(), LOSS_LINES) {
        complain(&line);
    }
}

/// Lines above a table, the first one `heading`, an empty one behind them; nothing when nothing is missing.
pub fn head(context: &Context<'_>, heading: &str, out: &mut impl Write) -> io::Result<()> {
    if context.loss.complete() {
        return Ok(());
    }
    line(out, heading)?;
    for lost in context.loss.lines(context.tape.session(), LOSS_LINES) {
        line(out, &format!("  {lost}"))?;
    }
    line(out, "")
}

/// Puts the lines of gaps where they belong among those of a listing; CSV has none.
pub fn push<W: Write>(context: &Context<'_>, merger: &mut Merger<W>) {
    let session = context.tape.session();
    let form: Box<dyn LineFormat + '_> = match context.config.format {
        Format::Text => Box::new(Text::new(session, context.config.look)),
        Format::Json => Box::new(Json::new(session, crate::clock::Clock::default())),
        Format::Csv => return,
    };
    for gap in &context.loss.gaps {
        merger.push(Loose { key: gap.first, tie: (0, 0), line: form.gap(gap) });
    }
}
