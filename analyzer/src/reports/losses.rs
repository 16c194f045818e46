//! Places for losses in reports: between the lines of a listing, above a table, or on stderr if the form has no place
//! for them.

use std::io::{self, Write};

use anyhow::Result;
use systape_format::model::GapCause;
use systape_format::reader::{Misses, Tape};

use super::Context;
use systape_answers::derive::summary::ledger::{Knowledge, options};
use systape_answers::lines::LineFormat;
use systape_answers::lines::json::{Json, gap_row};
use systape_answers::lines::text::PerfTraceText;
use systape_answers::render::form::Format;
use systape_answers::render::out::Out;
use systape_answers::render::row::Row;
use systape_answers::values::output::line;
use systape_answers::values::say::Verdict;
use systape_events::loss::{ListedLoss, Loss, damage_text};
use systape_events::stream::{Loose, Merger};
use systape_events::values::clock::Clock;

/// Most lines about losses; the rest is only counted.
pub(crate) const LOSS_LINES: usize = 12;

/// Prints on stderr the losses of an answer without a place for them: the abnormal end, damage, and what is not `listed`.
pub(crate) fn tell(context: &Context<'_>, listed: ListedLoss, out: &mut Out) {
    lines(context, listed).iter().for_each(|line| out.say(line));
}

/// Says what cannot be read and was not said before; the verdict of an answer that this may change.
pub(crate) fn damage(misses: &Misses, verdict: Verdict, out: &mut Out) -> Verdict {
    misses.tell().iter().for_each(|miss| out.say(&damage_text(miss)));
    verdict.doubted(!misses.is_empty())
}

/// Losses as lines.
pub(crate) fn lines(context: &Context<'_>, listed: ListedLoss) -> Vec<String> {
    let loss = Loss { listed, ..context.question.loss.clone() };
    loss.lines(context.question.tape.session(), LOSS_LINES)
}

/// The end of a report: prints losses on stderr unless `told`, those that are not `listed`.
///
/// # Errors
/// The answer cannot be written.
pub(crate) fn end(context: &Context<'_>, out: &mut Out, told: bool, listed: ListedLoss) -> Result<Verdict> {
    out.flush()?;
    let lost = !context.question.loss.complete();
    if (lost || context.question.loss.aliases > 0) && !told {
        tell(context, listed, out);
    }
    Ok(Verdict { lost, bad: false })
}

/// Whether the sums of an answer hold all calls.
pub(crate) fn sums_are_whole(context: &Context<'_>, knowledge: &Knowledge) -> bool {
    context.question.loss.complete() && !knowledge.missing()
}

/// Prints above a table of sums of calls what is lost, and what was counted and not stored.
///
/// # Errors
/// The answer cannot be written.
pub(crate) fn above_sums(context: &Context<'_>, knowledge: &Knowledge, out: &mut impl Write) -> io::Result<()> {
    let session = context.question.tape.session();
    let lost = context.question.loss.lines(session, LOSS_LINES).into_iter();
    let notes: Vec<String> = lost.chain(knowledge.doubts()).chain(knowledge.counted(session)).collect();
    if !sums_are_whole(context, knowledge) {
        line(out, "Events are missing: numbers are lower bounds:")?;
    }
    notes.iter().try_for_each(|text| line(out, &format!("   {text}")))?;
    if notes.is_empty() { Ok(()) } else { line(out, "") }
}

/// Prints on stderr that calls are not listed because of an option of `record`, which is no loss.
pub(crate) fn tell_filtered(context: &Context<'_>, out: &mut Out) {
    filtered(context).iter().for_each(|line| out.say(line));
}

/// What was left out, as a line, if there is any.
pub(crate) fn filtered(context: &Context<'_>) -> Option<String> {
    let tape = context.question.tape;
    let text = || format!("record stored only some calls{}; --summary counts all", options(tape.session()));
    stores_some(tape).then(text)
}

/// Whether an option of `record` stored only some calls and counted the others.
pub(crate) fn stores_some(tape: &Tape) -> bool {
    let filtered = |at: usize| {
        let gaps = tape.segment(at).gaps().unwrap_or_default();
        gaps.iter().any(|gap| gap.cause == GapCause::Filtered)
    };
    // a tape whose first block is lost still has gaps that say so
    !tape.session().call_filters.is_empty() || (!tape.session_is_whole() && (0..tape.segments().len()).any(filtered))
}

/// The heading of losses that make numbers too low.
pub(crate) const AT_LEAST: &str = "Events are missing: numbers are lower bounds:";

/// Lines of text above a table, the first one `heading`, and an empty line; nothing without losses.
pub(crate) fn head(context: &Context<'_>, heading: &str, out: &mut Out) -> io::Result<()> {
    head_of(&context.question.loss, context, heading, out)
}

/// Writes the head for other losses than those known so far.
pub(crate) fn head_of(loss: &Loss, context: &Context<'_>, heading: &str, out: &mut Out) -> io::Result<()> {
    if loss.complete() {
        return Ok(());
    }
    let lost = loss.lines(context.question.tape.session(), LOSS_LINES).into_iter().map(|lost| format!("  {lost}"));
    let heading = if loss.is_of_paths() { heading.replacen("Events", "Paths", 1) } else { heading.to_owned() };
    out.text([heading].into_iter().chain(lost).chain([String::new()]))
}

/// The end of a list in which losses have lines where they happened ([`push`]), in CSV none.
///
/// # Errors
/// The answer cannot be written.
pub(crate) fn end_of_list(context: &Context<'_>, out: &mut Out) -> Result<Verdict> {
    end(context, out, false, pushed(out))
}

/// The end of sums, above whose text losses stand.
///
/// # Errors
/// The answer cannot be written.
pub(crate) fn end_of_sums(context: &Context<'_>, out: &mut Out) -> Result<Verdict> {
    end(context, out, out.is_text(), ListedLoss::Nothing)
}

/// The end of sums of calls, above whose text losses and doubts stand ([`above_sums`]).
///
/// # Errors
/// The answer cannot be written.
pub(crate) fn end_of_sums_of_calls(context: &Context<'_>, knowledge: &Knowledge, out: &mut Out) -> Result<Verdict> {
    let verdict = end_of_sums(context, out)?;
    if !out.is_text() {
        knowledge.doubts().iter().for_each(|text| out.say(text));
    }
    Ok(verdict)
}

/// What of the losses has lines after [`push`].
pub(crate) fn pushed(out: &Out) -> ListedLoss {
    if out.format() == Format::Csv { ListedLoss::Nothing } else { ListedLoss::Gaps }
}

/// What of the losses has lines in the listing.
pub(crate) fn in_listing(out: &Out) -> ListedLoss {
    if out.format() == Format::Csv { ListedLoss::Nothing } else { ListedLoss::All }
}

/// The rows of the gaps of `loss`.
pub(crate) fn rows<'l>(context: &'l Context<'_>, loss: &'l Loss) -> impl Iterator<Item = Row<'static>> + 'l {
    loss.gaps.iter().map(|gap| gap_row(gap, context.question.tape.session()))
}

/// Inserts the lines of the gaps of `loss` in a listing by time; CSV has none.
pub(crate) fn push(context: &Context<'_>, loss: &Loss, merger: &mut Merger<&mut Out>) {
    let session = context.question.tape.session();
    let (label, format) = (merger.out().label().clone(), merger.out().format());
    let form: Box<dyn LineFormat + '_> = match format {
        Format::Text => Box::new(PerfTraceText::new(session, context.config.look, context.stamps(), &label)),
        Format::Json => Box::new(Json::new(session, Clock::default(), &label)),
        Format::Csv => return,
    };
    for gap in &loss.gaps {
        merger.push(Loose { key: gap.first, tie: None, line: form.gap(gap) });
    }
}
