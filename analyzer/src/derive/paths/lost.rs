//! Where a change of a current directory may be missing from the tape.

use systape_abi::{Abi, Effect, number};
use systape_format::header::BlockKind;
use systape_format::model::{CallState, Family, Gap, Session};
use systape_format::reader::{Segment, Tape};

use crate::table::calls::{self, CallBook};
use crate::table::loss::loses;
use crate::table::scan::lost::{Lost, gaps, window};

/// An error of a ledger's row: any.
const ANY_ERROR: u16 = u16::MAX;

/// Whether a call with this effect may change where its process is.
pub(crate) fn moves(effect: Effect) -> bool {
    matches!(
        effect,
        Effect::Chdir | Effect::Fchdir | Effect::Chroot | Effect::PivotRoot | Effect::Unshare | Effect::Setns
    )
}

/// Whether such calls were left out of the recording, of all or of some threads of a process: then it is never known where a process is.
pub(super) fn unrecorded(session: &Session) -> bool {
    let single = |part: &str| part.starts_with("tid ") || part.starts_with("comm ");
    if !session.cpu_list.is_empty() || session.target.split(", ").any(single) {
        return true;
    }
    let Some(selection) = calls::recorded(session) else { return true };
    const CALLS: [&str; 6] = ["chdir", "fchdir", "chroot", "pivot_root", "unshare", "setns"];
    let missing = |abi: Abi, name: &str| number(abi, name).is_some_and(|nr| !selection.contains(abi, nr));
    [Abi::X86_64, Abi::I386, Abi::X32, Abi::Aarch64].into_iter().any(|abi| CALLS.iter().any(|name| missing(abi, name)))
}

/// All of them.
pub(super) fn all(tape: &Tape, book: &CallBook<'_>) -> Vec<Lost> {
    let (mut lost, mut unread) = (Vec::new(), Vec::new());
    for at in 0..tape.segments().len() {
        let segment = tape.segment(at);
        if counted(&segment, book, &mut lost).is_err() {
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
fn counted(segment: &Segment<'_>, book: &CallBook<'_>, lost: &mut Vec<Lost>) -> Result<(), systape_format::Error> {
    if !segment.has(BlockKind::Ledger) {
        return Ok(());
    }
    let dict = segment.dict()?;
    let effects: Vec<bool> = dict.calls.iter().map(|call| moves(book.get(*call).effect)).collect();
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

    #[test]
    fn calls_that_matter_have_their_effect() {
        for name in ["chdir", "fchdir", "chroot", "pivot_root", "unshare", "setns"] {
            assert!(systape_abi::describe_name(name).is_some_and(|call| moves(call.effect)), "{name}");
        }
        assert!(![Effect::NewFd, Effect::Clone, Effect::Exec, Effect::None].into_iter().any(moves));
    }

    #[test]
    fn a_selection_without_them_hides_where_processes_are() {
        let session = |words: &[&str]| Session {
            selection: words.iter().map(|word| word.as_bytes().to_vec()).collect(),
            ..Session::default()
        };
        assert!(!unrecorded(&session(&[])));
        assert!(unrecorded(&Session { cpu_list: vec![0], ..session(&[]) }));
        assert!(unrecorded(&Session { target: "pid 3, tid 7".into(), ..session(&[]) }));
        assert!(!unrecorded(&Session { target: "command ls".into(), ..session(&[]) }));
        assert!(unrecorded(&session(&["openat"])));
        assert!(unrecorded(&session(&["!chdir"])));
        assert!(!unrecorded(&session(&["!futex"])));
        assert!(!unrecorded(&session(&["openat,chdir,fchdir,chroot,pivot_root,unshare,setns"])));
    }
}
