//! Other events than syscalls: whether a tape has them, and reading them segment by segment.

use systape_abi::plain;
use systape_format::model::{Family, LeftOut, Session};
use systape_format::reader::Tape;

use crate::loss::family_name;

/// Whether the recording has `family`; None when the tape does not say.
pub fn recorded(tape: &Tape, family: Family) -> Option<bool> {
    tape.session_is_whole().then(|| in_session(tape.session(), family))
}

/// Whether a session lists `family`.
pub fn in_session(session: &Session, family: Family) -> bool {
    match session.families.is_empty() {
        // tapes that name no family are from before there were others
        true => matches!(family, Family::Syscall | Family::Process | Family::State),
        false => session.families.contains(&family),
    }
}

/// The recorded families as words; empty when the tape does not say.
pub fn names(tape: &Tape) -> Vec<&'static str> {
    let families = &tape.session().families;
    match (tape.session_is_whole(), families.is_empty()) {
        (false, _) => Vec::new(),
        (true, true) => vec![family_name(Family::Syscall), family_name(Family::Process)],
        (true, false) => families.iter().map(|family| family_name(*family)).collect(),
    }
}

/// Why the requested `family` could not be recorded; None: it could, or it was not requested.
pub fn why_left_out(session: &Session, family: Family) -> Option<String> {
    session.left_out.iter().find(|left| left.family == family).map(LeftOut::why)
}

/// Whether a session has looks at threads in place of their calls and switches.
pub fn is_of_looks(session: &Session) -> bool {
    let has = |family| in_session(session, family);
    has(Family::Look) && !has(Family::Syscall) && !has(Family::Sched)
}

/// The reports on a tape of looks, as the end of a sentence about what it lacks; None: it has none.
pub fn looks_instead(session: &Session) -> Option<&'static str> {
    const REPORTS: &str = "; by looks 'analyze stays' says what its threads were in, 'analyze states' also at one instant (--at TIME), 'analyze why' what they waited for";
    is_of_looks(session).then_some(REPORTS)
}

/// Why the tape has nothing of `family`, or what it has instead.
pub fn instead(tape: &Tape, family: Family) -> String {
    let session = tape.session();
    let imported =
        || (!session.imported.is_empty()).then(|| format!("{}'s logs do not have them", plain(&session.imported)));
    let looks = looks_instead(session).unwrap_or_default();
    let holds = || format!("this tape holds {}{looks}", names(tape).join(", "));
    why_left_out(session, family).or_else(imported).unwrap_or_else(holds)
}

/// A question is about events of a family of which the tape has none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} were not recorded{}: {instead}", how(*family))]
#[non_exhaustive]
pub struct NotRecorded {
    /// The subject of the report, in the plural.
    pub what: String,
    /// The family of its events.
    pub family: Family,
    /// Why there are none, or what there is instead, in words.
    pub instead: String,
}

/// The option that records a family which is not there without it.
fn how(family: Family) -> &'static str {
    match family {
        Family::Sample => " (record -F 99)",
        Family::Look => " (record --sample)",
        _ => "",
    }
}

/// Refuses a report about `family` when the tape has none of it, because an empty answer would look like "nothing
/// happened". `what` names the subject of the report, in the plural.
///
/// # Errors
/// The tape has none; why, in words.
pub fn require(tape: &Tape, family: Family, what: &str) -> Result<(), NotRecorded> {
    if recorded(tape, family) == Some(false) {
        return Err(NotRecorded { what: what.to_owned(), family, instead: instead(tape, family) });
    }
    Ok(())
}
