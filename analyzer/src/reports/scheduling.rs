//! Common parts of the scheduler reports: checks of the tape, losses, notes.

use std::io;

use anyhow::{Result, bail};
use systape_format::model::{Extent, Family, Gap};
use systape_format::reader::Tape;

use super::{Context, losses};
use crate::asked::config::Config;
use systape_answers::derive::summary::ledger::options;
use systape_answers::render::out::Out;
use systape_events::families::{in_session, instead, looks_instead, recorded, why_left_out};
use systape_events::filter::Scope;
use systape_events::group::by::GroupKey;
use systape_events::loss::{Loss, loses};
use systape_events::question::Question;
use systape_events::scan::Coverage;

/// The key of `--by`, one of `known`; None without.
///
/// # Errors
/// There are several, or it is none of them.
pub(crate) fn key(config: &Config, known: &[GroupKey]) -> Result<Option<GroupKey>> {
    let title = config.view.title();
    match *GroupKey::parse(&config.by, known, &title)? {
        [] => Ok(None),
        [by] => Ok(Some(by)),
        _ => bail!("--by: {title} takes one key"),
    }
}

/// Binds `config` to a tape that must have scheduler events; `calls`: lost calls could change the answer too.
pub(crate) fn context<'a>(config: &'a Config, tape: &'a Tape, calls: bool, out: &mut Out) -> Result<Context<'a>> {
    let session = tape.session();
    require(tape)?;
    // who was there, and since when, process life says
    let mut families = vec![Family::Sched, Family::Process];
    if calls && in_session(session, Family::Syscall) {
        families.push(Family::Syscall);
        if losses::stores_some(tape) {
            out.say(&format!("record stored only some calls{}: time in the others shows as ?", options(session)));
        }
    }
    Context::about(config, tape, &families)
}

/// Fails when the tape has no scheduler events, or no longer says of which tasks they are: the state of threads that
/// were not recorded is unknown.
///
/// # Errors
/// Either is so.
pub(crate) fn require(tape: &Tape) -> Result<()> {
    match recorded(tape, Family::Sched) {
        Some(true) => Ok(()),
        Some(false) => match why_left_out(tape.session(), Family::Sched) {
            Some(why) => bail!("scheduler events were not recorded: {why}"),
            None if !tape.session().imported.is_empty() => {
                bail!("scheduler events were not recorded: {}", instead(tape, Family::Sched))
            }
            None if looks_instead(tape.session()).is_some() => {
                bail!("scheduler events were not recorded: {}", instead(tape, Family::Sched))
            }
            None => bail!("scheduler events were not recorded in this tape (record needs the family 'sched')"),
        },
        None => {
            bail!("the block that says whose scheduler events were recorded is damaged: what threads did is not known")
        }
    }
}

/// Counts losses from before the selected time, and those on other CPUs, if they make a state in that time unknown;
/// `unsure_until` is the tracker's. `coverage` has the unreadable parts.
pub(crate) fn touched(coverage: Coverage, unsure_until: u64, context: &mut Context<'_>) {
    let Question { tape, scope, families, loss, .. } = &mut context.question;
    touch(coverage, unsure_until, (tape, scope, families), loss);
}

/// Counts the same losses for a question whose other parts are in use.
pub(crate) fn touch(
    coverage: Coverage,
    unsure_until: u64,
    (tape, scope, families): (&Tape, &Scope<'_>, &[Family]),
    loss: &mut Loss,
) {
    coverage.tell(loss);
    if unsure_until > scope.from {
        loss.add_earlier(tape, families, scope.to);
    }
}

/// Prints the losses before the text of a report whose numbers they could change.
pub(crate) fn head(context: &Context<'_>, out: &mut Out) -> io::Result<()> {
    const HEADING: &str = "Events are missing: counts and times are lower bounds; unknown states show as ?:";
    const OF_CALLS: &str = "Calls are missing: their time shows as ? or as outside of calls ([user]):";
    let (loss, families) = (&context.question.loss, &context.question.families);
    let of_calls = |gap: &Gap| gap.family == Family::Syscall && loses(gap, families);
    let calls = loss.gaps.iter().any(of_calls) || !loss.holes.is_empty();
    losses::head(context, if calls { OF_CALLS } else { HEADING }, out)
}

/// Notes below the text of a report of the whole machine that it leaves out the recorder's own threads.
pub(crate) fn foot(context: &Context<'_>, out: &mut Out) -> io::Result<()> {
    let session = context.question.tape.session();
    if session.extent != Extent::Everyone || session.with_self {
        return Ok(());
    }
    let ran = context
        .question
        .tape
        .end()
        .map_or_else(|| "some".to_owned(), |end| format!("{:.3} s of", end.self_cpu_ns as f64 / 1e9));
    let text = format!("\nwithout record itself, which used {ran} CPU time (record --with-self shows its threads)");
    out.text([text])
}
