//! Where processes were at any time of a while, for readers that do not go by time.
//!
//! [`super::dirs`] notes every change here; a line asks for the time of its call. What is before the while is let go, so that memory is that
//! of the while and of who lived in it.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::dirs::Who;

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
pub(crate) struct History {
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
    ended: VecDeque<(u64, Who, bool)>,
}

impl History {
    /// From now on it is `now`.
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
    pub(super) fn exit(&mut self, who: Who, last: bool) {
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
    pub(crate) fn cwd(&self, who: Who, start: u64, end: u64) -> Option<&Arc<[u8]>> {
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
mod tests {
    use super::super::dirs::{Dirs, To};
    use super::*;

    fn who(process: u32, thread: u32) -> Who {
        Who { thread, process, pid: process + 1000 }
    }

    fn cwd(dirs: &Dirs, who: Who, start: u64, end: u64) -> Option<&str> {
        let path = dirs.history.as_ref()?.cwd(who, start, end)?;
        std::str::from_utf8(path).ok()
    }

    fn chdir(dirs: &mut Dirs, start: u64, end: u64, who: Who, path: &str) {
        dirs.at(start);
        dirs.moves(who, &To::Path(path.into()));
        dirs.at(end);
        dirs.moved(end, who);
    }

    #[test]
    fn it_answers_for_the_past_and_forgets_what_was_before() {
        let mut dirs = Dirs::noted(false);
        dirs.at(1);
        dirs.seen(1, 1, 1001, b"/a");
        chdir(&mut dirs, 10, 12, who(1, 1), "b");
        dirs.at(20);
        dirs.fork(who(1, 1), who(2, 2), false, false);
        chdir(&mut dirs, 30, 32, who(2, 2), "/c");
        dirs.at(40);
        dirs.exit(who(2, 2), true);
        // it gets the place of who ended
        chdir(&mut dirs, 50, 52, who(3, 3), "/d");
        let times =
            |who, spans: &[(u64, u64)]| spans.iter().map(|(from, to)| cwd(&dirs, who, *from, *to)).collect::<Vec<_>>();
        assert_eq!(
            times(who(1, 1), &[(0, 5), (1, 10), (5, 11), (11, 12), (12, 60)]),
            [None, Some("/a"), None, None, Some("/a/b")]
        );
        assert_eq!(times(who(2, 2), &[(19, 19), (20, 30), (25, 33), (32, 40)]), [None, Some("/a/b"), None, Some("/c")]);
        assert_eq!(times(who(3, 3), &[(20, 30), (35, 39), (52, 52)]), [None, None, Some("/d")]);
        let history = dirs.history.as_mut().unwrap();
        history.forget(45);
        assert_eq!((history.of_process.len(), history.ended.len()), (2, 0));
        assert_eq!(cwd(&dirs, who(1, 1), 45, 50), Some("/a/b"));
        chdir(&mut dirs, 60, 61, who(1, 1), "/e");
        assert_eq!(dirs.history.as_ref().unwrap().places[0].len(), 3, "since 12, 60 and 61");
    }

    #[test]
    fn a_thread_with_its_own_has_its_processs_before() {
        let mut dirs = Dirs::noted(false);
        dirs.seen(0, 1, 1001, b"/a");
        dirs.at(10);
        dirs.fork(who(1, 1), who(1, 11), true, false);
        chdir(&mut dirs, 20, 21, who(1, 11), "/t");
        dirs.at(30);
        dirs.lose(35, 1001);
        chdir(&mut dirs, 32, 33, who(1, 1), "/lost");
        chdir(&mut dirs, 40, 41, who(1, 1), "/b");
        assert_eq!((cwd(&dirs, who(1, 11), 12, 20), cwd(&dirs, who(1, 11), 21, 25)), (Some("/a"), Some("/t")));
        assert_eq!((cwd(&dirs, who(1, 1), 12, 29), cwd(&dirs, who(1, 1), 29, 31)), (Some("/a"), None));
        assert_eq!((cwd(&dirs, who(1, 1), 33, 34), cwd(&dirs, who(1, 1), 41, 50)), (None, Some("/b")));
    }
}
