//! The requested blocks that could not be read.
//!
//! Every read of a block's content goes through [`super::Segment`] or [`super::Tape`], and both keep this list. So a
//! report can find out at its end which blocks its answer lacks, however the read's error was handled.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::header::BlockKind;

/// A requested block that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Miss {
    /// Kind of the block.
    pub kind: BlockKind,
    /// Number of its segment; for a checkpoint that of its chunk, for names the number of the block of names.
    pub number: u32,
    /// The error of the first try, in words.
    pub why: String,
}

/// Each missed block, once, and whether the user was told of it. Shared by all threads that read one tape.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Misses {
    any: AtomicBool,
    given_up: AtomicBool,
    /// By kind and number: the miss, and whether the user was told.
    list: Mutex<BTreeMap<(u16, u32), (Miss, bool)>>,
}

impl Misses {
    fn list(&self) -> MutexGuard<'_, BTreeMap<(u16, u32), (Miss, bool)>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes `result` on; an error is noted.
    pub(crate) fn note<T>(&self, kind: BlockKind, number: u32, result: Result<T>) -> Result<T> {
        if let Err(error) = &result {
            self.add(kind, number, error);
        }
        result
    }

    #[cold]
    fn add(&self, kind: BlockKind, number: u32, error: &Error) {
        let miss = || (Miss { kind, number, why: error.to_string() }, false);
        self.list().entry((kind.raw(), number)).or_insert_with(miss);
        self.any.store(true, Ordering::Release);
    }

    /// Has every read of a segment fail from now on: whoever waits for an answer from the tape, in another thread, has given it up.
    pub fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    /// Whether the tape was given up.
    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Whether every requested block so far could be read.
    pub fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    /// All of them so far, by kind and number.
    pub fn all(&self) -> Vec<Miss> {
        self.list().values().map(|(miss, _)| miss.clone()).collect()
    }

    /// Misses not yet reported to the user, by kind and number. From now on they count as reported.
    pub fn tell(&self) -> Vec<Miss> {
        let untold = |(miss, told): &mut (Miss, bool)| (!std::mem::replace(told, true)).then(|| miss.clone());
        self.list().values_mut().filter_map(untold).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_missed_once_and_told_once() {
        let misses = Misses::default();
        assert!(misses.is_empty() && misses.note(BlockKind::Dict, 3, Ok(7)).is_ok() && misses.is_empty());
        let fail = |kind: BlockKind, number| {
            let error = Error::Missing { what: kind.name(), segment: number };
            assert!(misses.note::<()>(kind, number, Err(error)).is_err());
        };
        fail(BlockKind::Dict, 3);
        fail(BlockKind::Dict, 3);
        assert!(!misses.is_empty());
        assert_eq!(misses.tell().len(), 1);
        assert_eq!(misses.tell(), []);
        fail(BlockKind::Dict, 3);
        fail(BlockKind::Sched, 3);
        assert_eq!(misses.tell().iter().map(|miss| miss.kind).collect::<Vec<_>>(), [BlockKind::Sched]);
        assert_eq!(misses.all().len(), 2);
    }
}
