//! What the scheduler reports share: whether the tape has what they need, what is missing, how rows are printed.

use std::io::{self, Write};

use anyhow::{Result, bail};
use systape_format::model::Family;
use systape_format::reader::Tape;

use super::Context;
use crate::args::Format;
use crate::config::Config;
use crate::output::line;
use crate::render::table::{Csv, Fields, object};
use crate::run::{Verdict, complain};
use crate::runs::feed::recorded;

/// How many lines tell of losses before the rest is only counted.
pub const LOSS_LINES: usize = 12;

/// Binds `config` to a tape that must have scheduler events; `calls`: lost calls touch the answer too.
pub fn context<'a>(config: &'a Config, tape: &'a Tape, calls: bool) -> Result<Context<'a>> {
    let session = tape.session();
    if !recorded(session, Family::Sched) {
        bail!("scheduler events were not recorded in this tape (record needs the family 'sched')");
    }
    let mut families = vec![Family::Sched];
    if calls && recorded(session, Family::Syscall) {
        families.push(Family::Syscall);
    }
    Context::about(config, tape, &families)
}

/// Prints what is missing before the text of a report whose numbers it touches.
pub fn head(context: &Context<'_>, out: &mut impl Write) -> io::Result<()> {
    if context.loss.complete() {
        return Ok(());
    }
    line(out, "Something is missing: every count and time is at least, and what it touches is unknown (?):")?;
    for lost in context.loss.lines(context.tape.session(), LOSS_LINES) {
        line(out, &format!("  {lost}"))?;
    }
    line(out, "")
}

/// The verdict; what is missing is said on stderr when the form has no place for it.
pub fn verdict(context: &Context<'_>, told: bool) -> Verdict {
    let lost = !context.loss.complete();
    if lost && !told {
        for line in context.loss.lines(context.tape.session(), LOSS_LINES) {
            complain(&line);
        }
    }
    Verdict { lost, bad: false }
}

/// Prints rows as JSON or CSV.
pub fn rows(format: Format, out: &mut impl Write, rows: impl Iterator<Item = Fields>) -> io::Result<()> {
    let mut csv = Csv::default();
    for fields in rows {
        match format {
            Format::Csv => csv.row(out, &fields)?,
            Format::Json | Format::Text => object(out, &fields)?,
        }
    }
    Ok(())
}
