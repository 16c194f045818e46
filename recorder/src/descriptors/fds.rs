//! The file of every fd of every process, now and a moment ago.
//!
//! Plain values in, plain values out. Events must come in the order in which they take effect (a close when it is
//! entered, an open when it returns). An fd is looked up at the time a call was *entered*, which may lie before events
//! that were applied already: each fd keeps its last few names with their times. Anything else is unknown, never a
//! guess. fds can appear in unseen ways (SCM_RIGHTS, pidfd_getfd), but only recorded calls and operations of io_uring *close*
//! them. Where those are not recorded, an io_uring makes its process's whole table unknown.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::descriptors::names::Name;

/// Past names kept per fd; older ones are unknown.
const HISTORY: usize = 4;
/// fds below this are in an array.
const DENSE: usize = 1024;
/// Still valid.
const OPEN: u64 = u64::MAX;

/// The file of an fd, from one time to another.
#[derive(Clone, Debug)]
struct Span {
    since: u64,
    until: u64,
    name: Rc<Name>,
    cloexec: bool,
}

/// One table of open files (files_struct): shared by the threads of a process, sometimes by more.
#[derive(Clone, Debug, Default)]
pub(crate) struct FdHistory {
    dense: Vec<Vec<Span>>,
    sparse: FxHashMap<i32, Vec<Span>>,
    /// Every open fd is in it.
    complete: bool,
    /// An io_uring, whose operations are not recorded, may close fds: nothing is known from here on.
    opaque_since: Option<u64>,
    /// Changes until this time may have been missed, so that a known change before it may have been undone.
    blind_until: u64,
}

impl FdHistory {
    /// A table whose open fds will all be listed.
    #[cfg(test)]
    pub(crate) fn complete() -> Self {
        Self { complete: true, ..Self::default() }
    }

    fn spans(&self, fd: i32) -> &[Span] {
        match usize::try_from(fd) {
            Ok(i) if i < DENSE => self.dense.get(i).map_or(&[], Vec::as_slice),
            _ => self.sparse.get(&fd).map_or(&[], Vec::as_slice),
        }
    }

    fn spans_mut(&mut self, fd: i32) -> Option<&mut Vec<Span>> {
        match usize::try_from(fd) {
            Ok(i) if i < DENSE => {
                if self.dense.len() <= i {
                    self.dense.resize_with(i + 1, Vec::new);
                }
                self.dense.get_mut(i)
            }
            Ok(_) => Some(self.sparse.entry(fd).or_default()),
            Err(_) => None,
        }
    }

    /// Opens `fd`: from `ts` on it is the file `name`.
    pub(crate) fn set(&mut self, ts: u64, fd: i32, name: Rc<Name>, cloexec: bool) {
        if self.is_blind(ts) {
            return self.close(ts, fd);
        }
        let Some(spans) = self.spans_mut(fd) else { return };
        if let Some(last) = spans.last_mut()
            && last.until == OPEN
        {
            last.until = ts;
        }
        if spans.len() == HISTORY {
            spans.remove(0);
        }
        spans.push(Span { since: ts, until: OPEN, name, cloexec });
    }

    /// Closes `fd`: from `ts` on its file is not known.
    pub(crate) fn close(&mut self, ts: u64, fd: i32) {
        let spans = match usize::try_from(fd) {
            Ok(i) if i < DENSE => self.dense.get_mut(i),
            _ => self.sparse.get_mut(&fd),
        };
        if let Some(last) = spans.and_then(|s| s.last_mut())
            && last.until == OPEN
        {
            last.until = ts.max(last.since);
        }
    }

    /// A close at `ts` had no effect, because its call failed.
    pub(crate) fn undo_close(&mut self, ts: u64, fd: i32) {
        if self.is_blind(ts) {
            return;
        }
        if let Some(last) = self.spans_mut(fd).and_then(|s| s.last_mut())
            && last.until == ts
        {
            last.until = OPEN;
        }
    }

    /// Whether the file that `fd` was ended at `ts`.
    pub(crate) fn closed_at(&self, ts: u64, fd: i32) -> bool {
        self.spans(fd).last().is_some_and(|last| last.until == ts)
    }

    /// Closes the descriptors first..=last, each as [`Self::close`] does.
    pub(crate) fn close_range(&mut self, ts: u64, first: u32, last: u32) {
        self.for_open(|fd, span| {
            if (first..=last).contains(&fd.cast_unsigned()) {
                span.until = ts.max(span.since);
            }
        });
    }

    /// Changes whether exec closes `fd`.
    pub(crate) fn set_cloexec(&mut self, fd: i32, on: bool) {
        if let Some(last) = self.spans_mut(fd).and_then(|s| s.last_mut())
            && last.until == OPEN
        {
            last.cloexec = on;
        }
    }

    /// Sets close-on-exec of the descriptors first..=last (close_range with CLOSE_RANGE_CLOEXEC).
    pub(crate) fn set_cloexec_range(&mut self, first: u32, last: u32) {
        self.for_open(|fd, span| {
            if (first..=last).contains(&fd.cast_unsigned()) {
                span.cloexec = true;
            }
        });
    }

    /// exec closes the fds marked for it.
    pub(crate) fn exec(&mut self, ts: u64) {
        self.for_open(|_, span| {
            if span.cloexec {
                span.until = ts.max(span.since);
            }
        });
    }

    /// A change was missed at `first`, and perhaps more until `last`: all names before that are unknown from then on.
    pub(crate) fn forget(&mut self, first: u64, last: u64) {
        self.for_open(|_, span| span.until = first.max(span.since));
        self.complete = false;
        self.blind_until = self.blind_until.max(last);
    }

    /// Whether changes at `ts` may be followed by missed ones.
    pub(crate) fn is_blind(&self, ts: u64) -> bool {
        ts < self.blind_until
    }

    /// Makes the table opaque: from `ts` on descriptors may be closed unseen.
    pub(crate) fn make_opaque(&mut self, ts: u64) {
        self.opaque_since.get_or_insert(ts);
        self.complete = false;
    }

    /// The file of `fd` at `ts`; None = not known.
    pub(crate) fn at(&self, ts: u64, fd: i32) -> Option<&Rc<Name>> {
        if self.opaque_since.is_some_and(|since| ts >= since) {
            return None;
        }
        self.spans(fd).iter().rev().find(|s| s.since <= ts && ts < s.until).map(|s| &s.name)
    }

    /// Whether there was any recorded change of `fd`.
    #[cfg(test)]
    pub(crate) fn knows(&self, fd: i32) -> bool {
        !self.spans(fd).is_empty()
    }

    /// A copy for a forked child, without the past.
    pub(crate) fn fork(&self) -> Self {
        let (complete, opaque_since, blind_until) = (self.complete, self.opaque_since, self.blind_until);
        let mut copy = Self { complete, opaque_since, blind_until, ..Self::default() };
        for (fd, span) in self.open_spans() {
            if let Some(spans) = copy.spans_mut(fd) {
                spans.push(span.clone());
            }
        }
        copy
    }

    /// Open fds in ascending order: number, path, closed by exec. Empty when the table is opaque.
    pub(crate) fn open(&self) -> Vec<(i32, Rc<Name>, bool)> {
        if self.opaque_since.is_some() {
            return Vec::new();
        }
        let mut all: Vec<_> = self.open_spans().map(|(fd, s)| (fd, Rc::clone(&s.name), s.cloexec)).collect();
        all.sort_unstable_by_key(|(fd, _, _)| *fd);
        all
    }

    /// Forgets the names of sockets: from `ts` on nobody knows what those that are open are called.
    pub(crate) fn forget_sockets(&self, ts: u64) {
        self.open_spans().filter_map(|(_, span)| span.name.names.as_ref()).for_each(|names| names.forget(ts));
    }

    /// Whether every open fd is known.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Every open fd was listed.
    pub(crate) fn set_complete(&mut self) {
        self.complete = self.opaque_since.is_none();
    }

    fn open_spans(&self) -> impl Iterator<Item = (i32, &Span)> {
        let dense = self.dense.iter().enumerate().map(|(fd, spans)| (fd as i32, spans));
        let sparse = self.sparse.iter().map(|(fd, spans)| (*fd, spans));
        dense.chain(sparse).filter_map(|(fd, spans)| spans.last().filter(|s| s.until == OPEN).map(|s| (fd, s)))
    }

    fn for_open(&mut self, mut change: impl FnMut(i32, &mut Span)) {
        let dense = self.dense.iter_mut().enumerate().map(|(fd, spans)| (fd as i32, spans));
        let sparse = self.sparse.iter_mut().map(|(fd, spans)| (*fd, spans));
        for (fd, spans) in dense.chain(sparse) {
            if let Some(last) = spans.last_mut().filter(|s| s.until == OPEN) {
                change(fd, last);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Rc<Name> {
        Name::new(text.into())
    }

    fn at(table: &FdHistory, ts: u64, fd: i32) -> Option<String> {
        table.at(ts, fd).map(|n| String::from_utf8_lossy(&n.bytes).into_owned())
    }

    #[test]
    fn a_name_holds_from_open_to_the_enter_of_close() {
        let mut t = FdHistory::complete();
        t.set(10, 3, name("/a"), false);
        t.close(20, 3);
        t.set(30, 3, name("/b"), false);
        assert_eq!(at(&t, 9, 3), None);
        assert_eq!(at(&t, 10, 3).unwrap(), "/a");
        assert_eq!(at(&t, 19, 3).unwrap(), "/a");
        assert_eq!(at(&t, 20, 3), None, "closing: nobody knows when the kernel gets there");
        assert_eq!(at(&t, 35, 3).unwrap(), "/b");
    }

    #[test]
    fn a_lingering_close_does_not_take_the_next_file_with_it() {
        let mut t = FdHistory::complete();
        t.set(1, 4, name("socket:[1]"), false);
        // close(4) entered at 5, returns at 1000; another thread's open gets 4 at 200
        t.close(5, 4);
        t.set(200, 4, name("/new"), false);
        assert_eq!(at(&t, 300, 4).unwrap(), "/new");
    }

    #[test]
    fn dup2_over_an_open_fd_is_unknown_while_it_runs() {
        let mut t = FdHistory::complete();
        t.set(1, 3, name("/a"), false);
        t.set(1, 4, name("/b"), false);
        t.close(10, 4);
        t.set(12, 4, name("/a"), false);
        assert_eq!(at(&t, 9, 4).unwrap(), "/b");
        assert_eq!(at(&t, 11, 4), None);
        assert_eq!(at(&t, 12, 4).unwrap(), "/a");
    }

    #[test]
    fn ranges_exec_and_forks() {
        let mut t = FdHistory::complete();
        for fd in 0..6 {
            t.set(1, fd, name("/x"), fd % 2 == 1);
        }
        t.set(1, 5000, name("/high"), false);
        let child = t.fork();
        t.close_range(10, 4, u32::MAX);
        assert_eq!(t.open().iter().map(|(fd, ..)| *fd).collect::<Vec<_>>(), [0, 1, 2, 3]);
        t.exec(20);
        assert_eq!(t.open().iter().map(|(fd, ..)| *fd).collect::<Vec<_>>(), [0, 2]);
        t.set_cloexec_range(2, 2);
        t.exec(21);
        assert_eq!(t.open().len(), 1);
        assert_eq!(child.open().len(), 7, "the child has its own");
        assert_eq!(at(&child, 30, 5000).unwrap(), "/high");
    }

    #[test]
    fn loss_and_io_uring_make_it_unknown() {
        let mut t = FdHistory::complete();
        t.set(1, 3, name("/a"), false);
        t.forget(10, 10);
        assert_eq!(at(&t, 9, 3).unwrap(), "/a");
        assert_eq!(at(&t, 10, 3), None);
        assert!(!t.is_complete());
        t.set(20, 3, name("/b"), false);
        t.make_opaque(30);
        assert_eq!(at(&t, 25, 3).unwrap(), "/b");
        assert_eq!(at(&t, 30, 3), None);
        t.set(40, 3, name("/c"), false);
        assert_eq!(at(&t, 41, 3), None, "it may be closed again unseen");
    }

    #[test]
    fn what_is_seen_between_losses_is_not_believed() {
        let mut t = FdHistory::complete();
        t.set(1, 3, name("/a"), false);
        t.close(8, 3);
        t.forget(10, 20);
        // its close and the next open may be among what was lost
        t.set(15, 3, name("/b"), false);
        assert_eq!(at(&t, 16, 3), None);
        // what closed it was seen, that it failed may be old news
        t.undo_close(8, 3);
        assert_eq!(at(&t, 17, 3), None);
        t.set(20, 3, name("/c"), false);
        assert_eq!(at(&t, 21, 3).unwrap(), "/c");
        assert_eq!(at(&t, 5, 3).unwrap(), "/a");
    }

    #[test]
    fn only_the_last_few_names_are_kept() {
        let mut t = FdHistory::complete();
        for i in 0..10u64 {
            t.set(i * 10, 3, name(&format!("/{i}")), false);
        }
        assert_eq!(at(&t, 5, 3), None);
        assert_eq!(at(&t, 65, 3).unwrap(), "/6");
        assert_eq!(at(&t, 95, 3).unwrap(), "/9");
    }

    #[test]
    fn absurd_numbers_are_harmless() {
        let mut t = FdHistory::default();
        t.set(1, -1, name("/a"), false);
        t.close(2, i32::MIN);
        t.set(1, i32::MAX, name("/b"), false);
        assert_eq!(at(&t, 1, i32::MAX).unwrap(), "/b");
        assert_eq!(at(&t, 1, -1), None);
        assert!(!t.knows(-1));
    }
}
