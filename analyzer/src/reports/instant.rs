//! The moment of `--at TIME`, and what is said where nobody that is asked for lived then.

use anyhow::{Context as _, Result, bail};
use systape_answers::derive::processes::read;
use systape_answers::render::out::Out;
use systape_answers::render::stamp::{Stamps, TimeBase};
use systape_answers::render::table::seconds;
use systape_events::filter;
use systape_events::question::clock;
use systape_events::values::clock::Clock;
use systape_events::values::timespec::Edge;
use systape_format::reader::Tape;

use super::Context;

/// When `edge` is: at the end of the tape, if it is behind that.
///
/// # Errors
/// It is before the tape began, or the tape has no clock for it.
pub(super) fn instant(tape: &Tape, edge: Edge, out: &mut Out) -> Result<u64> {
    let (open, end) = (tape.session().window_open, tape.complete_until());
    let clock = if edge.needs_clock() { clock(tape) } else { Clock::default() };
    let (from, to) = filter::place(edge, tape.session(), end, &clock).context("--at")?;
    if to < open {
        bail!("--at is before the tape began: the tape is from {}", length(tape, edge.needs_clock()));
    }
    if from > end {
        let length = length(tape, edge.needs_clock());
        out.say(&format!("--at is after the end of the tape: this is its end; the tape is from {length}"));
    }
    Ok(from.clamp(open, end))
}

/// `0 to 1.782008 s`; with `by_day` the time of day before it.
pub(crate) fn length(tape: &Tape, by_day: bool) -> String {
    let (open, end) = (tape.session().window_open, tape.complete_until());
    let seconds = format!("0 to {} s", seconds(end, open));
    match by_day {
        true => format!("{} ({seconds})", Stamps::new(&[TimeBase::Wall], tape).span(open, end)),
        false => seconds,
    }
}

/// A sentence that all recorded processes that are asked for had ended by `at`, with a moment at which one of them lived; None: not so, or
/// not known.
pub(super) fn all_ended(context: &Context<'_>, at: u64) -> Option<String> {
    const BEFORE: u64 = 1_000_000;
    let (tape, scope) = (context.question.tape, &context.question.scope);
    let processes = read::read(tape, &mut Vec::new());
    let asked = processes.all.iter().filter(|process| process.followed && scope.task(&process.task));
    let ends: Option<Vec<u64>> = asked.map(|process| process.end().map(|end| end.ts).filter(|ts| *ts <= at)).collect();
    let (last, open) = (ends?.into_iter().max()?, tape.session().window_open);
    // a moment before, in whole milliseconds of the tape
    let ms = last.saturating_sub(open).saturating_sub(BEFORE) / BEFORE;
    Some(format!(
        "none of the recorded processes that are asked for lived at {} s: the last ended at {} s; an earlier moment is --at {}.{:03}",
        seconds(at, open),
        seconds(last, open),
        ms / 1000,
        ms % 1000
    ))
}
