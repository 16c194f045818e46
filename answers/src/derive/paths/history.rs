//! Where processes were at any time of a while, for readers that do not go by time.
//!
//! [`super::dirs`] notes every change here; a line asks for the time of its call. What is before the while is let go, so that memory is that
//! of the while and of who lived in it.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::derive::sharers::Member;

/// What was so from a time on.
#[derive(Debug)]
struct Since {
    ts: u64,
    /// Two of the same version have no change between them.
    version: u64,
    cwd: Option<Arc<[u8]>>,
}

/// Directories of a while.
#[derive(Debug, Default)]
pub struct History {
    /// Time of what is noted.
    now: u64,
    /// No question is about an earlier time.
    from: u64,
    /// Of each place what it was, in order of time.
    places: Vec<VecDeque<Since>>,
    /// Since when, and which.
    of_process: FxHashMap<u32, (u64, usize)>,
    /// Of threads that have one of their own.
    of_thread: FxHashMap<u32, (u64, usize)>,
    /// Those who ended, in order of time.
    ended: VecDeque<(u64, Member, bool)>,
}

impl History {
    /// Sets the time to `now`.
    pub(super) fn at(&mut self, now: u64) {
        self.now = self.now.max(now);
    }

    /// `place` is `cwd` from now on.
    pub(super) fn note(&mut self, place: usize, version: u64, cwd: Option<Arc<[u8]>>) {
        if self.places.len() <= place {
            self.places.resize_with(place + 1, VecDeque::new);
        }
        let spans = &mut self.places[place];
        while spans.get(1).is_some_and(|next| next.ts <= self.from) {
            spans.pop_front();
        }
        spans.push_back(Since { ts: self.now, version, cwd });
    }

    /// `process` is in `place` from now on.
    pub(super) fn process(&mut self, process: u32, place: usize) {
        self.of_process.insert(process, (self.now, place));
    }

    /// `thread` is in `place` from now on.
    pub(super) fn thread(&mut self, thread: u32, place: usize) {
        self.of_thread.insert(thread, (self.now, place));
    }

    /// A thread ended, and with it its process if it was the `last`.
    pub(super) fn exit(&mut self, who: Member, last: bool) {
        self.ended.push_back((self.now, who, last));
    }

    /// No question will be about a time before `from`.
    pub(super) fn forget(&mut self, from: u64) {
        self.from = self.from.max(from);
        while let Some((_, who, last)) = self.ended.front().filter(|(ts, ..)| *ts < self.from) {
            self.of_thread.remove(&who.thread);
            if *last {
                self.of_process.remove(&who.process);
            }
            self.ended.pop_front();
        }
    }

    /// The directory of `who` from `start` to `end`; None: it is not known, or changed.
    pub fn cwd(&self, who: Member, start: u64, end: u64) -> Option<&Arc<[u8]>> {
        let since = |home: &&(u64, usize)| home.0 <= start;
        let own = self.of_thread.get(&who.thread).filter(since);
        let (_, place) = own.or_else(|| self.of_process.get(&who.process).filter(since))?;
        let spans = self.places.get(*place)?;
        let first = spans.partition_point(|span| span.ts <= start).checked_sub(1)?;
        let last = spans.partition_point(|span| span.ts < end).saturating_sub(1).max(first);
        let (first, last) = (spans.get(first)?, spans.get(last)?);
        first.cwd.as_ref().filter(|_| first.version == last.version)
    }
}

#[cfg(test)]
impl History {
    /// Number of processes, and of threads that ended.
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.of_process.len(), self.ended.len())
    }

    /// How often a place changed.
    pub(super) fn spans(&self, place: usize) -> usize {
        self.places[place].len()
    }
}
