//! What to ask next of a tape: only reports that this tape answers, and of those about one thing only where the tape has that thing.

use systape_answers::derive::exchanges::{EndSide, read};
use systape_events::families::{in_session, is_of_looks};
use systape_events::question::Question;
use systape_format::model::{Family, Session};

use super::TRACE;
use crate::reports::why::FirstFindings;

/// A command after `analyze`, and what it shows.
pub(super) type NextQuestion = (&'static str, &'static str);

/// What to ask of `question`'s tape; `first`: what `why` found there, None if it judges nothing of the tape.
pub(super) fn asks(question: &Question<'_>, first: Option<&FirstFindings>) -> Vec<NextQuestion> {
    let session = question.tape.session();
    let has = |family| in_session(session, family);
    let mut asks = Vec::new();
    asks.extend(first.map(|_| ("why", "all findings, each with the command that shows it")));
    asks.extend(of_time(session));
    let begun = asks.len();
    if has(Family::Syscall) && serves(question) {
        asks.push(("requests", "how long servers took to answer"));
    }
    if first.is_some_and(|first| first.lock_waits) {
        asks.push(("locks", "which locks threads waited for, and who held them"));
    }
    if first.is_some_and(|first| first.deaths) {
        asks.push(("kills", "who ended or stopped whom"));
    }
    if asks.len() == begun && has(Family::Process) {
        asks.push(("exec --tree", "which programs ran"));
    }
    if has(Family::Syscall) {
        asks.push((TRACE, "every call"));
    }
    asks.push(("report", "a page for a browser, in report.html"));
    asks
}

/// The report that sums up where time went, or the most frequent events if none does.
fn of_time(session: &Session) -> Option<NextQuestion> {
    let by_family = [
        (Family::Sched, ("path --sums", "where the time went, across the threads that were waited for")),
        (Family::Syscall, ("top --by comm,file", "who spent time on which file")),
        (Family::Sample, ("callgraph", "which functions were on a CPU")),
        (Family::Block, ("block --top --by comm,file", "who waited for the disk, for which file")),
        (Family::Net, ("net", "connections: their peers, times and bytes")),
        (Family::Lock, ("probes", "waits for locks of the kernel")),
        (Family::Fault, ("top -e 'fault:*' --by comm,memory", "who had page faults, on which memory")),
    ];
    if is_of_looks(session) {
        return Some(("states", "what threads were in, by state, call and file"));
    }
    by_family.into_iter().find(|(family, _)| in_session(session, *family)).map(|(_, ask)| ask)
}

/// Whether a server answered requests.
fn serves(question: &Question<'_>) -> bool {
    let mut serves = false;
    let _ = read::read(question, |exchange| serves |= exchange.side == EndSide::Server && exchange.passes);
    serves
}
