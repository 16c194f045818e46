//! How a process ended: from the exits of its threads to the one status that its parent gets.
//!
//! All threads of a group that dies by a signal carry the signal, but a thread that was exiting at that moment may be
//! the last one and carry its own status. Conversely, seccomp may kill one thread and let the process live.

use systape_abi::signo::{SIGKILL, SIGSYS};

/// Low bits of an exit event's flags: the task's seccomp mode (include/uapi/linux/seccomp.h).
const SECCOMP_MODE: u32 = 3;
/// Only read, write, _exit and sigreturn are allowed; anything else is SIGKILL, without a signal being sent.
const SECCOMP_STRICT: u32 = 1;
/// seccomp has ended this very thread (since 5.17).
const SECCOMP_DEAD: u32 = 3;

/// The end of a process, or of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// Time of the end.
    pub ts: u64,
    /// The kernel's exit code: status in bits 8..15, signal in 0..6, 0x80 core dumped.
    pub code: u32,
    /// seccomp mode of the task: 0 none (or not recorded), 1 strict, 2 filter, 3 it ended the task.
    pub seccomp: u32,
}

impl Ending {
    /// Reads an exit event.
    pub fn new(ts: u64, code: u32, flags: u32) -> Self {
        Self { ts, code, seccomp: flags & SECCOMP_MODE }
    }

    /// The signal that ended it; None = it exited.
    pub fn signal(&self) -> Option<u32> {
        (self.code & 0x7f != 0).then_some(self.code & 0x7f)
    }

    /// The argument of exit; None = a signal ended it.
    pub fn status(&self) -> Option<u32> {
        (self.code & 0x7f == 0).then_some(self.code >> 8 & 0xff)
    }

    /// Whether it left a core dump.
    pub fn core_dumped(&self) -> bool {
        self.code & 0x7f != 0 && self.code & 0x80 != 0
    }

    /// Whether seccomp certainly ended it.
    pub(crate) fn surely_by_seccomp(&self) -> bool {
        self.signal().is_some() && self.seccomp == SECCOMP_DEAD
    }

    /// Whether seccomp may have ended it without sending a signal.
    pub(crate) fn by_seccomp(&self) -> bool {
        match (self.signal(), self.seccomp) {
            (Some(_), SECCOMP_DEAD) | (Some(SIGSYS), _) => true,
            (Some(SIGKILL), seccomp) => seccomp == SECCOMP_STRICT,
            _ => false,
        }
    }
}

/// The exits of a process's threads so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exits {
    /// The last exit that carried a signal of the whole process.
    signal: Option<Ending>,
    /// The end of the process.
    end: Option<Ending>,
}

impl Exits {
    /// Adds the exit of a thread; `last`: it is the last of its process.
    pub(crate) fn add(&mut self, exit: Ending, last: bool) {
        if last {
            let killed = self.signal.filter(|_| exit.signal().is_none());
            self.end = Some(killed.map_or(exit, |killed| Ending { ts: exit.ts, ..killed }));
        } else if exit.signal().is_some() && !(exit.seccomp != 0 && exit.by_seccomp()) {
            self.signal = Some(exit);
        }
    }

    /// How the process ended; None = it did not, or its end was not recorded.
    pub(crate) fn end(&self) -> Option<Ending> {
        // the exit of the last thread may be lost: one with a signal is enough to tell
        self.end.or(self.signal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exits(list: &[(u32, u32, bool)]) -> Option<Ending> {
        let mut exits = Exits::default();
        for (at, (code, flags, last)) in list.iter().enumerate() {
            exits.add(Ending::new(at as u64, *code, *flags), *last);
        }
        exits.end()
    }

    #[test]
    fn the_signal_of_any_thread_is_the_processes() {
        let end = exits(&[(9, 0, false), (0, 0, true)]).unwrap();
        assert_eq!((end.ts, end.signal(), end.status()), (1, Some(9), None));
        let end = exits(&[(0, 0, false), (3 << 8, 0, true)]).unwrap();
        assert_eq!((end.signal(), end.status()), (None, Some(3)));
        assert_eq!(exits(&[(0, 0, false)]), None);
        assert_eq!(exits(&[(0x8b, 0, false)]).map(|end| (end.signal(), end.core_dumped())), Some((Some(11), true)));
    }

    #[test]
    fn seccomp_may_kill_one_thread_alone() {
        assert_eq!(exits(&[(31, 2, false), (0, 2, true)]).unwrap().status(), Some(0));
        assert_eq!(exits(&[(9, 1, false), (0, 1, true)]).unwrap().status(), Some(0));
        assert_eq!(exits(&[(9, 3, false), (0, 1, true)]).unwrap().status(), Some(0));
        assert_eq!(exits(&[(9, 2, false), (0, 2, true)]).unwrap().signal(), Some(9), "a filter sends no SIGKILL");
        assert!(exits(&[(31, 2, true)]).unwrap().by_seccomp());
    }
}
