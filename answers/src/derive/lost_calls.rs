//! Where calls that a state machine follows may be missing from the tape. Which ones matter their effects say.

use systape_abi::{Abi, Effect, describe};
use systape_format::header::BlockKind;
use systape_format::model::{Call, CallState, Family, Gap, ProcessKind, Session};
use systape_format::reader::{Segment, Tape};

use systape_events::calls::{self, CallBook, CallInfo};
use systape_events::loss::loses;
use systape_events::scan::lost::{Lost, gaps, window};

/// An error of a ledger's row: any.
const ANY_ERROR: u16 = u16::MAX;

/// Whether calls with an effect that `matters` were left out of the recording, of all or of some threads of a process: then what
/// they change is never known.
pub fn unrecorded(session: &Session, matters: impl Fn(Effect) -> bool) -> bool {
    if !session.cpu_list.is_empty() || asks_for(session, "tid ") || asks_for(session, "comm ") {
        return true;
    }
    let Some(selection) = calls::recorded(session) else { return true };
    let missing =
        |abi: Abi, nr: u32| describe(abi, nr).is_some_and(|call| matters(call.effect)) && !selection.contains(abi, nr);
    let abis = [Abi::X86_64, Abi::I386, Abi::X32, Abi::Aarch64];
    abis.into_iter().any(|abi| systape_abi::all(abi).any(|(nr, _)| missing(abi, nr)))
}

/// Whether what a session says it recorded is narrowed by something of this kind.
fn asks_for(session: &Session, kind: &str) -> bool {
    session.target.split(", ").any(|part| part.starts_with(kind))
}

/// Changes of a task after which its calls are recorded, or no longer, because it was asked for by its user or its cgroup.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selects {
    user: bool,
    cgroup: bool,
}

impl Selects {
    /// Selections of a recording.
    pub(crate) fn of(session: &Session) -> Self {
        Self { user: asks_for(session, "uid "), cgroup: asks_for(session, "cgroup ") }
    }

    /// Whether such an event is one.
    pub(crate) fn by(self, kind: ProcessKind) -> bool {
        match kind {
            ProcessKind::Cred => self.user,
            ProcessKind::Cgroup => self.cgroup,
            _ => false,
        }
    }
}

/// Whether `call` has an effect that `matters`.
pub fn has_effect(call: Call, matters: impl Fn(Effect) -> bool) -> bool {
    describe(Abi::from_raw(call.abi), call.nr).is_some_and(|known| matters(known.effect))
}

/// When calls with an effect that `matters` are missing.
pub fn all(tape: &Tape, book: &CallBook<'_>, matters: impl Fn(Effect) -> bool) -> Vec<Lost> {
    of_calls(tape, book, |info| matters(info.effect))
}

/// When calls that `matters` picks are missing.
pub(crate) fn of_calls(tape: &Tape, book: &CallBook<'_>, matters: impl Fn(&CallInfo) -> bool) -> Vec<Lost> {
    let (mut lost, mut unread) = (Vec::new(), Vec::new());
    for at in 0..tape.segments().len() {
        let segment = tape.segment(at);
        if counted(&segment, (book, &matters), &mut lost).is_err() {
            let (first, last) = window(&segment);
            lost.push(Lost::any(first, last));
            unread.push(at);
        }
    }
    // whose calls the ledger has it says itself; without it a gap does
    let known = |at: usize, gap: &Gap| gap.ledger && unread.binary_search(&at).is_err();
    lost.extend(gaps(tape, |at, gap| loses(gap, &[Family::Syscall, Family::Process]) && !known(at, gap)));
    lost
}

/// The calls that the ledger of `segment` has of those that matter.
fn counted(
    segment: &Segment<'_>,
    (book, matters): (&CallBook<'_>, &impl Fn(&CallInfo) -> bool),
    lost: &mut Vec<Lost>,
) -> Result<(), systape_format::Error> {
    if !segment.has(BlockKind::Ledger) {
        return Ok(());
    }
    let dict = segment.dict()?;
    let effects: Vec<bool> = dict.calls.iter().map(|call| matters(&book.get(*call))).collect();
    if !effects.contains(&true) {
        return Ok(());
    }
    for row in segment.ledger(&dict)? {
        let fails = row.errno != 0 && row.errno != ANY_ERROR && row.state != CallState::Killed;
        // what was stored as well is known from there
        let stored = row.reason == systape_format::model::LedgerReason::Checked;
        if stored || fails || effects.get(row.call as usize) != Some(&true) {
            continue;
        }
        let pid = row.task.and_then(|task| dict.tasks.get(task as usize)).map_or(0, |task| task.pid);
        lost.push(Lost { pid, ..Lost::any(row.first.saturating_sub(row.max), row.last) });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moves(effect: Effect) -> bool {
        matches!(effect, Effect::Chdir | Effect::Unshare)
    }

    #[test]
    fn a_selection_without_them_hides_what_they_change() {
        let session = |words: &[&str]| Session {
            selection: words.iter().map(|word| word.as_bytes().to_vec()).collect(),
            ..Session::default()
        };
        assert!(!unrecorded(&session(&[]), moves));
        assert!(unrecorded(&Session { cpu_list: vec![0], ..session(&[]) }, moves));
        assert!(unrecorded(&Session { target: "pid 3, tid 7".into(), ..session(&[]) }, moves));
        assert!(!unrecorded(&Session { target: "command ls".into(), ..session(&[]) }, moves));
        assert!(unrecorded(&session(&["openat"]), moves));
        assert!(unrecorded(&session(&["!chdir"]), moves));
        assert!(!unrecorded(&session(&["!futex"]), moves));
        assert!(!unrecorded(&session(&["openat,chdir,unshare"]), moves));
    }
}
