//! The current directories of all processes, from plain values.
//!
//! Events come in order of time. A `chdir` takes effect somewhere between its start and its end: until then nobody else who shares the
//! directory knows where it is, so a call that overlaps with it has no known directory.

use std::sync::Arc;

use super::history::History;
use super::join;
use crate::derive::sharers::{Member, Sharers, Watch};

/// Where a `chdir` or `fchdir` goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChdirTarget {
    /// The path as the program named it, or what the descriptor stood for.
    Path(Vec<u8>),
    /// Not known.
    Unknown,
}

/// The directory of a call that has begun.
#[derive(Clone, Debug)]
pub(crate) struct CallDirectory {
    place: Option<usize>,
    version: u64,
    cwd: Option<Arc<[u8]>>,
}

/// What the threads of a process share (the kernel's fs_struct).
#[derive(Clone, Debug, Default)]
struct Fs {
    cwd: Option<Arc<[u8]>>,
    /// Changes whenever what was read of it may hold no more.
    version: u64,
    /// A change that has begun: where it goes.
    changing: Option<Option<Arc<[u8]>>>,
    /// Who makes it, and where they were: their own call is relative to that.
    mover: (u32, Option<Arc<[u8]>>),
    /// Further changes that have begun: nobody knows which comes last.
    others: u32,
}

impl Fs {
    /// What a child has that does not share it. A change that has begun is its parent's.
    fn copy(&self) -> Self {
        Self { cwd: self.cwd.clone(), ..Self::default() }
    }
}

/// What becomes of every place.
#[derive(Debug, Default)]
struct Notes {
    versions: u64,
    /// None: nothing is noted.
    history: Option<History>,
}

impl Notes {
    fn next(&mut self) -> u64 {
        self.versions += 1;
        self.versions
    }

    /// Puts what is known of `place` into the history, if one is kept.
    fn note(&mut self, place: usize, fs: &Fs) {
        if let Some(history) = &mut self.history {
            history.note(place, fs.version, fs.cwd.clone());
        }
    }

    /// From now on it is not known where it is.
    fn forget(&mut self, place: usize, fs: &mut Fs) {
        (fs.version, fs.cwd, fs.mover) = (self.next(), None, (0, None));
        if let Some(target) = &mut fs.changing {
            *target = None;
        }
        self.note(place, fs);
    }
}

impl Watch<Fs> for Notes {
    fn begins(&mut self, place: usize, fs: &mut Fs) {
        fs.version = self.next();
        self.note(place, fs);
    }

    fn process(&mut self, process: u32, place: usize) {
        if let Some(history) = &mut self.history {
            history.process(process, place);
        }
    }

    fn thread(&mut self, thread: u32, place: usize) {
        if let Some(history) = &mut self.history {
            history.thread(thread, place);
        }
    }
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Dirs {
    all: Sharers<Fs, Notes>,
    /// Changes of directories are not recorded.
    opaque: bool,
}

impl Dirs {
    /// Nothing is known. `opaque`: nor will it be, because changes are not recorded.
    pub(crate) fn new(opaque: bool) -> Self {
        Self { all: Sharers::new(Notes::default()), opaque }
    }

    /// Makes one that notes what happens.
    pub(crate) fn noted(opaque: bool) -> Self {
        Self { all: Sharers::new(Notes { history: Some(History::default()), versions: 0 }), opaque }
    }

    /// What is noted of every change; None: nothing is.
    pub(crate) fn history(&self) -> Option<&History> {
        self.all.watch().history.as_ref()
    }

    /// History to be told something.
    pub(crate) fn history_mut(&mut self) -> Option<&mut History> {
        self.all.watch_mut().history.as_mut()
    }

    /// Sets the time to `now`.
    pub(crate) fn at(&mut self, now: u64) {
        if let Some(history) = self.history_mut() {
            history.at(now);
        }
    }

    /// A checkpoint of `ts` says that `process` is in `cwd`.
    pub(crate) fn seen(&mut self, ts: u64, process: u32, pid: u32, cwd: &[u8]) {
        if cwd.is_empty() || self.all.is_split(process) || ts < self.all.blind_for_all() {
            return;
        }
        let Some(place) = self.place(Member { thread: 0, process, pid }) else { return };
        // of several processes that share it one may have moved unseen by the checkpoint
        let sure = self.all.users(place) == 1 && ts >= self.all.blind(place);
        let (fs, notes) = self.all.at_mut(place);
        if sure && fs.changing.is_none() {
            fs.cwd = Some(cwd.into());
            notes.note(place, fs);
        }
    }

    /// The thread `who` had a directory of its own when the recording began: `cwd`, empty if it is not known.
    pub(crate) fn apart(&mut self, who: Member, cwd: &[u8]) {
        if self.opaque {
            return;
        }
        self.all.apart(who);
        let Some(place) = self.place(who).filter(|_| !cwd.is_empty()) else { return };
        let (fs, notes) = self.all.at_mut(place);
        fs.cwd = Some(cwd.into());
        notes.note(place, fs);
    }

    /// `child` was made by `parent`; `thread`: in the same process; `shares`: they have one directory from now on.
    pub(crate) fn fork(&mut self, parent: Member, child: Member, thread: bool, shares: bool) {
        if !self.opaque {
            self.all.fork(parent, child, thread, shares, Fs::copy);
        }
    }

    /// A thread ended; `last`: and its process with it.
    pub(crate) fn exit(&mut self, who: Member, last: bool) {
        if let Some(history) = self.history_mut() {
            history.exit(who, last);
        }
        self.all.exit(who, last);
    }

    /// A call that changes the directory has begun.
    pub(crate) fn moves(&mut self, who: Member, to: &ChdirTarget) {
        let Some(place) = self.place(who) else { return };
        let (fs, notes) = self.all.at_mut(place);
        fs.version = notes.next();
        if fs.changing.is_some() {
            fs.others += 1;
            return;
        }
        let target = match to {
            ChdirTarget::Unknown => None,
            ChdirTarget::Path(path) => join(fs.cwd.as_deref().unwrap_or_default(), path).map(Arc::from),
        };
        // the name of a directory that is gone names none
        let target = target.filter(|path: &Arc<[u8]>| path.starts_with(b"/") && !path.ends_with(b" (deleted)"));
        (fs.changing, fs.mover) = (Some(target), (who.thread, fs.cwd.take()));
        notes.note(place, fs);
    }

    /// Ends a call at `ts`.
    pub(crate) fn moved(&mut self, ts: u64, who: Member) {
        let Some(place) = self.all.find(who) else { return };
        let blind = self.all.blind(place);
        let (fs, notes) = self.all.at_mut(place);
        fs.version = notes.next();
        fs.mover = (0, None);
        match (fs.others, fs.changing.take()) {
            (0, Some(target)) => fs.cwd = target.filter(|_| ts >= blind),
            // the last of several that overlapped
            (1.., Some(_)) => {
                fs.others -= 1;
                fs.changing = Some(None);
            }
            (_, None) => {}
        }
        notes.note(place, fs);
    }

    /// Forgets where `who` is, from now on.
    pub(crate) fn forget(&mut self, who: Member) {
        if let Some(place) = self.place(who) {
            let (fs, notes) = self.all.at_mut(place);
            notes.forget(place, fs);
        }
    }

    /// `who` left what it shared with other threads of its process, and is nobody knows where.
    pub(crate) fn leaves(&mut self, who: Member) {
        if who.thread != 0 && !self.opaque {
            if !self.all.has_own(who) {
                self.all.leave(who, true, |_| Fs::default());
            }
            self.forget(who);
        }
        // it may be its process's only thread
        self.forget(who.whole());
    }

    /// Events between `now` and `last` were lost; of the process `pid`, 0 = of anybody.
    pub(crate) fn lose(&mut self, last: u64, pid: u32) {
        self.all.lose(last, pid, |place, fs, notes| notes.forget(place, fs));
    }

    /// A call of `who` begins now.
    pub(crate) fn begin(&mut self, who: Member) -> CallDirectory {
        match self.place(who) {
            Some(place) => {
                let fs = self.all.at(place);
                let moves = who.thread != 0 && fs.mover.0 == who.thread && fs.others == 0;
                let cwd = if moves { &fs.mover.1 } else { &fs.cwd };
                CallDirectory { place: Some(place), version: fs.version, cwd: cwd.clone() }
            }
            None => CallDirectory { place: None, version: 0, cwd: None },
        }
    }

    /// The directory it was in all the time until now; None: not known.
    pub(crate) fn end(&self, call: CallDirectory) -> Option<Arc<[u8]>> {
        let fs = self.all.at(call.place?);
        call.cwd.filter(|_| fs.version == call.version)
    }

    /// Where the directory of `who` is; a new one, of which nothing is known, for who was not seen before.
    fn place(&mut self, who: Member) -> Option<usize> {
        if self.opaque { None } else { self.all.place(who) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(process: u32, thread: u32) -> Member {
        Member { thread, process, pid: process + 1000 }
    }

    /// The directory of a call that is over at once.
    fn cwd(dirs: &mut Dirs, who: Member) -> Option<String> {
        let begun = dirs.begin(who);
        dirs.end(begun).map(|path| String::from_utf8(path.to_vec()).unwrap())
    }

    fn chdir(dirs: &mut Dirs, ts: u64, who: Member, path: &str) {
        dirs.moves(who, &ChdirTarget::Path(path.into()));
        dirs.moved(ts, who);
    }

    /// Process 1 in /a.
    fn one() -> Dirs {
        let mut dirs = Dirs::new(false);
        dirs.seen(1, 1, 0, b"/a");
        dirs
    }

    /// Processes of which something is known.
    fn known(dirs: &Dirs) -> usize {
        dirs.all.sizes().0
    }

    #[test]
    fn a_thread_that_had_its_own_from_the_start_stays_there() {
        let mut dirs = Dirs::new(false);
        dirs.seen(1, 1, 1001, b"/shared");
        dirs.apart(who(1, 9), b"/own");
        dirs.apart(who(1, 8), b"");
        let cwd = |dirs: &mut Dirs, who| {
            let begun = dirs.begin(who);
            dirs.end(begun).map(|cwd| String::from_utf8_lossy(&cwd).into_owned())
        };
        let of = [who(1, 1), who(1, 9), who(1, 8)].map(|who| cwd(&mut dirs, who));
        assert_eq!(of, [Some("/shared".to_owned()), Some("/own".to_owned()), None]);
    }

    #[test]
    fn relative_changes_add_up() {
        let mut dirs = one();
        assert_eq!(cwd(&mut dirs, who(2, 2)), None, "nobody said where it is");
        chdir(&mut dirs, 2, who(1, 1), "b");
        chdir(&mut dirs, 3, who(1, 1), "c\nd");
        assert_eq!(cwd(&mut dirs, who(1, 1)).unwrap(), "/a/b/c\nd");
        chdir(&mut dirs, 4, who(1, 1), "..");
        assert_eq!(cwd(&mut dirs, who(1, 1)).unwrap(), "/a/b/c\nd/..");
        // a checkpoint has the kernel's name
        dirs.seen(5, 1, 0, b"/a/b");
        assert_eq!(cwd(&mut dirs, who(1, 1)).unwrap(), "/a/b");
        chdir(&mut dirs, 6, who(2, 2), "x");
        assert_eq!(cwd(&mut dirs, who(2, 2)), None, "relative to nobody knows what");
        chdir(&mut dirs, 7, who(2, 2), "/y");
        assert_eq!(cwd(&mut dirs, who(2, 2)).unwrap(), "/y");
    }

    #[test]
    fn a_change_is_relative_to_what_it_changes() {
        let mut dirs = one();
        dirs.moves(who(1, 1), &ChdirTarget::Path(b"b".into()));
        let (own, other) = (dirs.begin(who(1, 1)), dirs.begin(who(1, 2)));
        let at = |dirs: &Dirs, begun: &CallDirectory| dirs.end(begun.clone()).map(|path| path.to_vec());
        assert_eq!((at(&dirs, &own), at(&dirs, &other)), (Some(b"/a".to_vec()), None));
        // another thread goes elsewhere meanwhile
        dirs.moves(who(1, 2), &ChdirTarget::Path(b"/c".into()));
        assert_eq!(at(&dirs, &own), None);
        assert_eq!(cwd(&mut dirs, who(1, 2)), None);
        dirs.moved(2, who(1, 1));
        dirs.moved(3, who(1, 2));
        chdir(&mut dirs, 4, who(1, 1), "/d");
        assert_eq!(cwd(&mut dirs, who(1, 1)).unwrap(), "/d");
    }

    #[test]
    fn what_cannot_be_read_is_not_known() {
        let mut dirs = one();
        dirs.moves(who(1, 1), &ChdirTarget::Unknown);
        dirs.moved(2, who(1, 1));
        assert_eq!(cwd(&mut dirs, who(1, 1)), None);
        dirs.seen(3, 1, 0, b"");
        assert_eq!(cwd(&mut dirs, who(1, 1)), None);
        chdir(&mut dirs, 4, who(1, 1), "/b (deleted)");
        assert_eq!(cwd(&mut dirs, who(1, 1)), None, "gone");
        dirs.seen(5, 1, 0, b"/b");
        assert_eq!(cwd(&mut dirs, who(1, 1)).unwrap(), "/b");
        let mut opaque = Dirs::new(true);
        opaque.seen(1, 1, 0, b"/a");
        assert_eq!(cwd(&mut opaque, who(1, 1)), None, "it may have moved since");
        assert_eq!(known(&opaque), 0);
    }

    #[test]
    fn threads_share_it_and_children_have_their_own() {
        let mut dirs = one();
        dirs.fork(who(1, 1), who(1, 11), true, true);
        dirs.fork(who(1, 1), who(2, 2), false, false);
        chdir(&mut dirs, 2, who(1, 11), "t");
        assert_eq!(cwd(&mut dirs, who(1, 1)).unwrap(), "/a/t");
        assert_eq!(cwd(&mut dirs, who(2, 2)).unwrap(), "/a", "it was made before");
        dirs.fork(who(1, 1), who(3, 3), false, false);
        chdir(&mut dirs, 3, who(3, 3), "u");
        assert_eq!(
            (cwd(&mut dirs, who(3, 3)).unwrap(), cwd(&mut dirs, who(1, 1)).unwrap()),
            ("/a/t/u".into(), "/a/t".into())
        );
        // CLONE_FS without CLONE_THREAD
        dirs.fork(who(3, 3), who(4, 4), false, true);
        chdir(&mut dirs, 4, who(4, 4), "/v");
        assert_eq!(cwd(&mut dirs, who(3, 3)).unwrap(), "/v");
        dirs.seen(5, 3, 0, b"/old");
        assert_eq!(cwd(&mut dirs, who(3, 3)).unwrap(), "/v", "a checkpoint may not know of the other");
        // a thread without CLONE_FS
        dirs.fork(who(1, 1), who(1, 12), true, false);
        chdir(&mut dirs, 6, who(1, 12), "/w");
        assert_eq!(
            (cwd(&mut dirs, who(1, 12)).unwrap(), cwd(&mut dirs, who(1, 1)).unwrap()),
            ("/w".into(), "/a/t".into())
        );
        dirs.fork(who(1, 12), who(1, 13), true, true);
        assert_eq!(cwd(&mut dirs, who(1, 13)).unwrap(), "/w");
        dirs.seen(7, 1, 0, b"/z");
        assert_eq!(cwd(&mut dirs, who(1, 1)).unwrap(), "/a/t", "whose of the threads it is, it does not say");
    }

    #[test]
    fn memory_is_that_of_who_lives() {
        let mut dirs = one();
        for process in 2..1000 {
            dirs.fork(who(1, 1), who(process, process), false, false);
            dirs.fork(who(process, process), who(process, process + 5000), true, false);
            assert_eq!(cwd(&mut dirs, who(process, process)).unwrap(), "/a");
            dirs.exit(who(process, process + 5000), false);
            dirs.exit(who(process, process), true);
        }
        assert_eq!(dirs.all.sizes(), (1, 0, 0));
        // a call that was open when its process ended, and another has its place
        let begun = dirs.begin(who(1, 1));
        dirs.exit(who(1, 1), true);
        dirs.seen(9, 7, 0, b"/b");
        assert_eq!(dirs.end(begun), None);
    }

    #[test]
    fn a_call_that_overlaps_with_a_change_is_of_no_known_directory() {
        let mut dirs = one();
        let other = who(1, 11);
        let before = dirs.begin(who(1, 1));
        dirs.moves(other, &ChdirTarget::Path(b"/b".into()));
        let inside = dirs.begin(who(1, 1));
        assert_eq!(dirs.end(before.clone()), None);
        dirs.moved(2, other);
        let after = dirs.begin(who(1, 1));
        assert_eq!((dirs.end(before), dirs.end(inside)), (None, None));
        assert_eq!(&*dirs.end(after).unwrap(), b"/b");
        // two at once
        dirs.moves(other, &ChdirTarget::Path(b"/c".into()));
        dirs.moves(who(1, 1), &ChdirTarget::Path(b"/d".into()));
        dirs.moved(3, other);
        assert_eq!(cwd(&mut dirs, other), None);
        dirs.moved(4, who(1, 1));
        assert_eq!(cwd(&mut dirs, other), None, "nobody knows which was the last");
        chdir(&mut dirs, 5, other, "/e");
        assert_eq!(cwd(&mut dirs, who(1, 1)).unwrap(), "/e");
        // a child that is made meanwhile
        dirs.moves(other, &ChdirTarget::Path(b"/f".into()));
        dirs.fork(who(1, 1), who(2, 2), false, false);
        dirs.moved(6, other);
        assert_eq!(cwd(&mut dirs, who(2, 2)), None);
    }

    #[test]
    fn losses_and_new_roots_make_it_unknown() {
        let mut dirs = one();
        dirs.seen(1, 2, 0, b"/a");
        let _ = (cwd(&mut dirs, who(1, 1)), cwd(&mut dirs, who(2, 2)));
        dirs.lose(10, 1001);
        assert_eq!((cwd(&mut dirs, who(1, 1)), cwd(&mut dirs, who(2, 2)).unwrap()), (None, "/a".into()));
        chdir(&mut dirs, 5, who(1, 1), "/b");
        assert_eq!(cwd(&mut dirs, who(1, 1)), None, "another one that was lost may have come after it");
        chdir(&mut dirs, 11, who(1, 1), "/b");
        assert_eq!(cwd(&mut dirs, who(1, 1)).unwrap(), "/b");
        dirs.lose(20, 0);
        assert_eq!((cwd(&mut dirs, who(1, 1)), cwd(&mut dirs, who(2, 2))), (None, None));
        chdir(&mut dirs, 15, who(3, 3), "/b");
        assert_eq!(cwd(&mut dirs, who(3, 3)), None, "of who was not seen before, too");
        dirs.seen(19, 2, 0, b"/a");
        assert_eq!(cwd(&mut dirs, who(2, 2)), None);
        dirs.seen(21, 2, 0, b"/a");
        assert_eq!(cwd(&mut dirs, who(2, 2)).unwrap(), "/a");
        dirs.forget(who(2, 2));
        assert_eq!(cwd(&mut dirs, who(2, 2)), None);
        chdir(&mut dirs, 22, who(2, 2), "/");
        dirs.leaves(who(2, 2));
        assert_eq!(cwd(&mut dirs, who(2, 2)), None);
        chdir(&mut dirs, 23, who(2, 2), "/x");
        assert_eq!((cwd(&mut dirs, who(2, 2)).unwrap(), cwd(&mut dirs, who(2, 22))), ("/x".into(), None));
    }

    fn was(dirs: &Dirs, who: Member, start: u64, end: u64) -> Option<&str> {
        let path = dirs.history()?.cwd(who, start, end)?;
        std::str::from_utf8(path).ok()
    }

    fn chdir_at(dirs: &mut Dirs, start: u64, end: u64, who: Member, path: &str) {
        dirs.at(start);
        dirs.moves(who, &ChdirTarget::Path(path.into()));
        dirs.at(end);
        dirs.moved(end, who);
    }

    #[test]
    fn it_answers_for_the_past_and_forgets_what_was_before() {
        let mut dirs = Dirs::noted(false);
        dirs.at(1);
        dirs.seen(1, 1, 1001, b"/a");
        chdir_at(&mut dirs, 10, 12, who(1, 1), "b");
        dirs.at(20);
        dirs.fork(who(1, 1), who(2, 2), false, false);
        chdir_at(&mut dirs, 30, 32, who(2, 2), "/c");
        dirs.at(40);
        dirs.exit(who(2, 2), true);
        // it gets the place of who ended
        chdir_at(&mut dirs, 50, 52, who(3, 3), "/d");
        let times =
            |who, spans: &[(u64, u64)]| spans.iter().map(|(from, to)| was(&dirs, who, *from, *to)).collect::<Vec<_>>();
        assert_eq!(
            times(who(1, 1), &[(0, 5), (1, 10), (5, 11), (11, 12), (12, 60)]),
            [None, Some("/a"), None, None, Some("/a/b")]
        );
        assert_eq!(times(who(2, 2), &[(19, 19), (20, 30), (25, 33), (32, 40)]), [None, Some("/a/b"), None, Some("/c")]);
        assert_eq!(times(who(3, 3), &[(20, 30), (35, 39), (52, 52)]), [None, None, Some("/d")]);
        let history = dirs.history_mut().unwrap();
        history.forget(45);
        assert_eq!(history.sizes(), (2, 0));
        assert_eq!(was(&dirs, who(1, 1), 45, 50), Some("/a/b"));
        chdir_at(&mut dirs, 60, 61, who(1, 1), "/e");
        assert_eq!(dirs.history().unwrap().spans(0), 3, "since 12, 60 and 61");
    }

    #[test]
    fn a_thread_with_its_own_has_its_processs_before() {
        let mut dirs = Dirs::noted(false);
        dirs.seen(0, 1, 1001, b"/a");
        dirs.at(10);
        dirs.fork(who(1, 1), who(1, 11), true, false);
        chdir_at(&mut dirs, 20, 21, who(1, 11), "/t");
        dirs.at(30);
        dirs.lose(35, 1001);
        chdir_at(&mut dirs, 32, 33, who(1, 1), "/lost");
        chdir_at(&mut dirs, 40, 41, who(1, 1), "/b");
        assert_eq!((was(&dirs, who(1, 11), 12, 20), was(&dirs, who(1, 11), 21, 25)), (Some("/a"), Some("/t")));
        assert_eq!((was(&dirs, who(1, 1), 12, 29), was(&dirs, who(1, 1), 29, 31)), (Some("/a"), None));
        assert_eq!((was(&dirs, who(1, 1), 33, 34), was(&dirs, who(1, 1), 41, 50)), (None, Some("/b")));
    }
}
