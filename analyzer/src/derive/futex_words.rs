//! What was at a futex when a wait for it began, and which thread that may name as the owner of a lock.
//!
//! The recorder copies 16 bytes from the futex's address when a call waits for it: the word itself and what is behind it, where
//! glibc's mutex has its owner (`__owner`, at + 8). Which of them is an owner depends on the lock, so [`claimed`] only says what is
//! claimed: a number is an owner if a living thread of the process has it, in the process's own pid namespace ([`Tids`]).

use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_format::model::{BESIDE, ByteStatus, Captured, Task};

use crate::derive::futexes::op;

/// Bits of a word that hold the owner's tid, and the one that says that others wait (include/uapi/linux/futex.h).
const TID_MASK: u32 = 0x3fff_ffff;
const WAITERS: u32 = 0x8000_0000;
/// Value of glibc's mutex while others wait for it.
const CONTENDED: u32 = 2;

/// What was at a futex when the wait began, or, of a call that was in flight when the recording began or ended, then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    /// The futex's word.
    pub word: u32,
    /// The number 8 bytes behind its address; None: that is in another page and was not read.
    pub at_8: Option<u32>,
}

/// The words of a call; `captured`: its captured values. None: it does not wait for a futex, the tape is older, or the memory was not
/// there when the wait began.
pub(crate) fn of(captured: &[Captured]) -> Option<Words> {
    let value = captured.iter().find(|value| value.arg == BESIDE)?;
    // what was read when the call returned is no more what it waited for
    if !matches!(value.status, ByteStatus::Whole | ByteStatus::Truncated) {
        return None;
    }
    let at = |from: usize| Some(u32::from_le_bytes(*value.bytes.get(from..)?.first_chunk()?));
    Some(Words { word: at(0)?, at_8: at(8) })
}

/// Where a lock says who holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// The futex's word, which the kernel relies on (PI): always true.
    Word,
    /// The value that the call waits on: of robust mutexes, and of musl's recursive ones.
    Value,
    /// The number at + 8, of glibc's other mutexes. Other locks that wait for the value 2 have anything there.
    Behind,
}

/// The number of the thread that holds the lock which the call `name` waits for, as its memory claims, in the process's pid
/// namespace; None: nothing there can be one.
pub(crate) fn claimed(name: &str, args: &[u64; 6], words: Option<Words>) -> Option<(u32, By)> {
    if !matches!(name, "futex" | "futex_time64") {
        return None;
    }
    let (op, value) = (args[1] & op::MASK, args[2] as u32);
    let tid = |number: u32| Some(number & TID_MASK).filter(|tid| *tid != 0);
    match op {
        op::LOCK_PI | op::LOCK_PI2 => Some((tid(words?.word)?, By::Word)),
        op::WAIT | op::WAIT_BITSET if value & WAITERS != 0 => Some((tid(value)?, By::Value)),
        op::WAIT | op::WAIT_BITSET if value == CONTENDED => Some((tid(words?.at_8?)?, By::Behind)),
        _ => None,
    }
}

/// The threads of processes, by their numbers in the pid namespace of each.
#[derive(Debug, Default)]
pub(crate) struct Tids(FxHashMap<(u32, u32), Arc<Task>>);

impl Tids {
    /// A thread exists, from here on under its number: a later one takes the number over.
    pub(crate) fn note(&mut self, task: &Arc<Task>) {
        self.0.insert((process(task), own_tid(task)), Arc::clone(task));
    }

    /// A thread ended.
    pub(crate) fn ended(&mut self, task: &Task) {
        let key = (process(task), own_tid(task));
        if self.0.get(&key).is_some_and(|known| known.utid == task.utid) {
            self.0.remove(&key);
        }
    }

    /// The thread `tid` of the process that `of` is in; None: none has that number.
    pub(crate) fn find(&self, of: &Task, tid: u32) -> Option<&Arc<Task>> {
        self.0.get(&(process(of), tid))
    }
}

fn process(task: &Task) -> u32 {
    if task.upid == 0 { task.pid } else { task.upid }
}

/// The number that the thread itself sees.
fn own_tid(task: &Task) -> u32 {
    if task.ns_tid == 0 { task.tid } else { task.ns_tid }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(arg: u8, status: ByteStatus, words: &[u32]) -> Captured {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Captured { row: 0, arg, status, full: bytes.len() as u64, bytes }
    }

    #[test]
    fn words_are_those_of_the_beginning() {
        let whole =
            |words: &[u32]| of(&[captured(3, ByteStatus::Whole, &[9]), captured(BESIDE, ByteStatus::Whole, words)]);
        assert_eq!(whole(&[2, 1, 77, 0]), Some(Words { word: 2, at_8: Some(77) }));
        assert_eq!(whole(&[2, 1]), Some(Words { word: 2, at_8: None }), "at the end of a page");
        assert_eq!(whole(&[]), None);
        assert_eq!(of(&[captured(0, ByteStatus::Whole, &[2, 1, 77, 0])]), None);
        assert_eq!(of(&[captured(BESIDE, ByteStatus::Late, &[2, 1, 77, 0])]), None, "read at the end of the wait");
    }

    #[test]
    fn who_is_claimed_to_hold_it() {
        let words = Some(Words { word: WAITERS | 41, at_8: Some(42) });
        let of = |op: u64, value: u32| claimed("futex", &[7, op, value.into(), 0, 0, 0], words);
        let private = 0x80;
        assert_eq!(of(op::LOCK_PI | private, 0), Some((41, By::Word)));
        assert_eq!(of(op::WAIT, WAITERS | 43), Some((43, By::Value)), "robust");
        assert_eq!(of(op::WAIT | private, 2), Some((42, By::Behind)));
        assert_eq!(of(op::WAIT_BITSET | private | 0x100, 2), Some((42, By::Behind)), "pthread_mutex_timedlock");
        // a condition; a thread that is joined is no owner; a wake
        assert_eq!((of(op::WAIT_BITSET, 0), of(op::WAIT_BITSET, 43), of(op::WAKE, 2)), (None, None, None));
        // a mutex that was just given up
        let free = Some(Words { word: 0, at_8: Some(0) });
        assert_eq!(claimed("futex", &[7, op::WAIT, 2, 0, 0, 0], free), None);
        assert_eq!(claimed("futex", &[7, op::LOCK_PI, 0, 0, 0, 0], None), None);
        assert_eq!(claimed("futex_wait", &[7, 2, 0, 0, 0, 0], words), None);
    }

    #[test]
    fn numbers_are_those_of_the_process() {
        let thread = |upid, tid, ns_tid, utid| Arc::new(Task { upid, tid, ns_tid, utid, ..Task::default() });
        let mut tids = Tids::default();
        let inside = thread(1, 4001, 7, 11);
        [&inside, &thread(2, 4002, 7, 12), &thread(3, 7, 0, 13)].into_iter().for_each(|task| tids.note(task));
        assert_eq!(tids.find(&inside, 7).map(|task| task.tid), Some(4001));
        assert_eq!(tids.find(&inside, 4001).map(|task| task.tid), None, "the machine's number is not what it sees");
        assert_eq!(tids.find(&thread(3, 9, 0, 14), 7).map(|task| task.tid), Some(7), "without a number of its own");
        // its number is used again before its end is told
        tids.note(&thread(1, 4009, 7, 15));
        tids.ended(&inside);
        assert_eq!(tids.find(&inside, 7).map(|task| task.tid), Some(4009));
        tids.ended(&thread(1, 4009, 7, 15));
        assert_eq!(tids.find(&inside, 7).map(|task| task.tid), None);
    }
}
