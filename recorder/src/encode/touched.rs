//! Descriptors that calls change while a process's list of them is being read from /proc: what the list says of them may be
//! from before the call or from after it. The calls themselves tell.

use std::collections::{BTreeSet, HashSet};

use systape_abi::Effect;
use systape_abi::descriptors::{Descriptors, Entered};

/// Most ranges of one process; beyond that every descriptor counts as changed.
const RANGES: usize = 64;

/// Descriptors that calls change while the list of their process is being read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Touched {
    fds: HashSet<i32>,
    ranges: Vec<(u32, u32)>,
}

impl Touched {
    /// A call with that effect and these first arguments was entered.
    pub(super) fn entered(&mut self, effect: Effect, args: &[u64; 3]) {
        match Descriptors::entered(effect, args) {
            Entered::Closes(fd) => self.made([fd, -1]),
            Entered::Range { first, last, marks: false, .. } if self.ranges.len() < RANGES => {
                self.ranges.push((first, last));
            }
            Entered::Range { marks: false, .. } => self.ranges[0] = (0, u32::MAX),
            Entered::Range { .. } | Entered::Nothing => {}
        }
    }

    /// A call made or replaced these; -1 = none.
    pub(super) fn made(&mut self, fds: [i32; 2]) {
        self.fds.extend(fds.into_iter().filter(|fd| *fd >= 0));
    }

    /// Whether `fd` changed.
    pub(super) fn contains(&self, fd: i32) -> bool {
        let number = fd.cast_unsigned();
        self.fds.contains(&fd) || self.ranges.iter().any(|(first, last)| (*first..=*last).contains(&number))
    }
}

/// What the calls of a process between the start of the recording and the reading of its list say about the start.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SinceStart {
    /// What they changed.
    pub touched: Touched,
    /// Open at the start, and closed since: nobody knows what they were.
    pub open: BTreeSet<i32>,
    /// Others may have been.
    pub unsure: bool,
}

impl SinceStart {
    /// A call that may close descriptors was entered.
    pub(super) fn entered(&mut self, effect: Effect, args: &[u64; 3]) {
        match Descriptors::entered(effect, args) {
            // the first change tells what was before it
            Entered::Closes(fd) if self.touched.contains(fd) => {}
            Entered::Closes(fd) if effect == Effect::Close => drop(self.open.insert(fd)),
            Entered::Closes(_) | Entered::Range { marks: false, .. } => self.unsure = true,
            Entered::Range { .. } | Entered::Nothing => {}
        }
        self.touched.entered(effect, args);
    }

    /// A call failed because `fd` was not open.
    pub(super) fn was_closed(&mut self, fd: i32) {
        self.open.remove(&fd);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_call_closes() {
        let mut touched = Touched::default();
        touched.entered(Effect::Close, &[5, 0, 7]);
        touched.entered(Effect::Dup2, &[3, 9, 0]);
        touched.entered(Effect::Dup2, &[4, 4, 0]);
        touched.made([-1, 6]);
        assert_eq!((0..10).filter(|fd| touched.contains(*fd)).collect::<Vec<_>>(), [5, 6, 9]);
        assert!(!touched.contains(-1));
        touched.entered(Effect::CloseRange, &[20, u64::from(u32::MAX), 0]);
        assert!(touched.contains(20) && touched.contains(i32::MAX) && !touched.contains(19));
        for _ in 0..RANGES {
            touched.entered(Effect::CloseRange, &[7, 7, 0]);
        }
        assert!(touched.contains(0), "of too many any may be it");
    }

    #[test]
    fn what_the_first_change_says_about_the_start() {
        let mut since = SinceStart::default();
        since.touched.made([3, -1]);
        since.entered(Effect::Close, &[3, 0, 0]);
        since.entered(Effect::Close, &[4, 0, 0]);
        since.entered(Effect::Close, &[5, 0, 0]);
        since.was_closed(5);
        assert_eq!((since.open.iter().copied().collect::<Vec<_>>(), since.unsure), (vec![4], false));
        since.entered(Effect::Dup2, &[4, 4, 0]);
        assert!(!since.unsure);
        since.entered(Effect::Dup3, &[4, 8, 0]);
        assert!(since.unsure, "8 may have been open");
    }
}
