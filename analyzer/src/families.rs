//! Events that are no syscalls: whether a tape has them, and reading them segment by segment.

use std::ops::ControlFlow;

use anyhow::{Result, bail};
use rayon::prelude::*;
use systape_format::model::{Dict, Family, LeftOut, SegmentInfo, Session};
use systape_format::reader::{Segment, Tape};

use crate::loss::{Loss, family_name};
use crate::reports::Context;

/// Whether the recording captured `family`; None when the tape does not say.
pub fn recorded(tape: &Tape, family: Family) -> Option<bool> {
    tape.session_is_whole().then(|| in_session(tape.session(), family))
}

/// Whether a session says that `family` was captured.
pub fn in_session(session: &Session, family: Family) -> bool {
    match session.families.is_empty() {
        // tapes that name no family are from before there were others
        true => matches!(family, Family::Syscall | Family::Process | Family::State),
        false => session.families.contains(&family),
    }
}

/// The captured families as words; empty when the tape does not say.
pub fn names(tape: &Tape) -> Vec<&'static str> {
    let families = &tape.session().families;
    match (tape.session_is_whole(), families.is_empty()) {
        (false, _) => Vec::new(),
        (true, true) => vec![family_name(Family::Syscall), family_name(Family::Process)],
        (true, false) => families.iter().map(|family| family_name(*family)).collect(),
    }
}

/// Why the recording could not capture `family`, which was asked for; None: it could, or nobody asked.
pub fn why_left_out(session: &Session, family: Family) -> Option<String> {
    session.left_out.iter().find(|left| left.family == family).map(LeftOut::why)
}

/// Why the tape has nothing of `family`, or what it has instead.
pub fn instead(tape: &Tape, family: Family) -> String {
    why_left_out(tape.session(), family).unwrap_or_else(|| format!("this tape holds {}", names(tape).join(", ")))
}

/// Refuses a report about `family` when the tape has none of it: an empty answer would look like "nothing happened". `what` is what
/// the report is about, in the plural.
pub fn require(tape: &Tape, family: Family, what: &str) -> Result<()> {
    if recorded(tape, family) == Some(false) {
        bail!("{what} were not recorded: {}", instead(tape, family));
    }
    Ok(())
}

/// Reads what `read` gets of each of `segments`, several at a time, and hands it to `each` in their order until that says to stop. What cannot be read is a finding in `loss`; `what` names it there.
pub fn walk<T: Send>(
    context: &Context<'_>,
    loss: &mut Loss,
    what: &str,
    segments: &[usize],
    read: impl Fn(&Segment<'_>, &Dict) -> Result<Vec<T>, systape_format::Error> + Sync,
    mut each: impl FnMut(&Dict, Vec<T>) -> Result<ControlFlow<()>>,
) -> Result<()> {
    for batch in segments.chunks(rayon::current_num_threads().clamp(1, 8)) {
        let one = |at: &usize| {
            let segment = context.tape.segment(*at);
            segment.dict().and_then(|dict| read(&segment, &dict).map(|events| (dict, events)))
        };
        let found: Vec<_> = batch.par_iter().map(one).collect();
        for (at, result) in batch.iter().zip(found) {
            match result {
                Ok((dict, events)) => {
                    if each(&dict, events)?.is_break() {
                        return Ok(());
                    }
                }
                Err(error) => {
                    let number = context.tape.segments()[*at].segment;
                    loss.findings.push(format!("segment {number}: its {what} cannot be read: {error}"));
                }
            }
        }
    }
    Ok(())
}

/// Every segment.
pub fn all(context: &Context<'_>) -> Vec<usize> {
    (0..context.tape.segments().len()).collect()
}

/// The segments that may hold something of the processes and times asked for.
pub fn candidates(context: &Context<'_>) -> Vec<usize> {
    let scope = &context.scope;
    let pids = &scope.filters().pids;
    let wanted = |info: &SegmentInfo| {
        info.end_max >= scope.from
            && info.start_min < scope.to
            && (pids.is_empty() || pids.iter().any(|pid| info.may_contain_pid(*pid)))
    };
    let segments = context.tape.segments().iter().enumerate();
    segments.filter(|(_, info)| wanted(info)).map(|(at, _)| at).collect()
}
