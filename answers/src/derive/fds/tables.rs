//! All tables of descriptors, from plain values that come in order of time.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::file::{File, is_socket};
use crate::derive::sharers::{Member, Sharers};

/// An open descriptor.
#[derive(Clone, Debug)]
pub struct Open {
    /// What it stands for.
    pub file: Arc<File>,
    /// Exec closes it; None: not known.
    pub cloexec: Option<bool>,
    /// When it became this file; None: before the tape, or unseen.
    pub since: Option<u64>,
    /// The descriptor is open; false: what was lost, or not recorded, may have closed it.
    pub is_open: bool,
}

/// The descriptors of a process, or of a thread with a table of its own.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Open descriptors by number.
    pub fds: BTreeMap<i32, Open>,
    /// There are no others, as far as calls tell.
    pub complete: bool,
    /// Others may have come in a way that the tape does not show: in messages of a socket, by an io_uring.
    pub unseen: bool,
    /// Changes were lost: what has no time may have one.
    pub lost: bool,
    /// An io_uring, whose operations are not on the tape, may close them.
    opaque: bool,
}

/// A listed descriptor: number; name and whether exec closes it, None: not known.
pub(super) type Listed = (i32, Option<(Arc<[u8]>, bool)>);

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// The moment that is asked for: names from before it count more.
    at: u64,
    /// Changes are not all recorded: nothing is sure.
    unrecorded: bool,
    /// What operations of io_uring do to descriptors is on the tape.
    pub(super) follows_rings: bool,
    all: Sharers<Table>,
    /// Further threads of processes.
    threads: FxHashMap<u32, u32>,
}

impl Tables {
    pub(super) fn new(at: u64, unrecorded: bool) -> Self {
        Self { at, unrecorded, ..Self::default() }
    }

    /// `child` was made by `parent`; `thread`: in the same process; `shares`: they have one table from now on.
    pub(super) fn fork(&mut self, parent: Member, child: Member, thread: bool, shares: bool) {
        if thread && parent.process != 0 {
            self.thread(child.process);
        }
        self.place(parent);
        self.all.fork(parent, child, thread, shares, Table::clone);
    }

    /// There is another thread of `process`.
    pub(super) fn thread(&mut self, process: u32) {
        *self.threads.entry(process).or_default() += 1;
    }

    /// A thread ended; `last`: and its process with it.
    pub(super) fn exit(&mut self, who: Member, last: bool) {
        if last {
            self.threads.remove(&who.process);
        } else if let Some(threads) = self.threads.get_mut(&who.process) {
            *threads = threads.saturating_sub(1);
        }
        self.all.exit(who, last);
    }

    /// A process runs another program: it has a table of its own, without those that exec closes.
    pub(super) fn exec(&mut self, who: Member, ts: u64) {
        self.unshare(who.whole());
        let Some((table, blind)) = self.table_at(who, ts) else { return };
        table.opaque = false;
        table.fds.retain(|_, open| open.cloexec != Some(true));
        for open in table.fds.values_mut() {
            open.is_open &= open.cloexec.is_some() && !blind;
        }
    }

    /// `who` has a table of its own from now on, a copy of the one it shared.
    pub(super) fn unshare(&mut self, who: Member) {
        let Some(place) = self.place(who) else { return };
        let own = self.all.has_own(who);
        let among = !own && who.thread != 0 && self.threads.get(&who.process).is_some_and(|others| *others > 0);
        if self.all.users(place) > 1 || among {
            self.all.leave(who, own || among, Table::clone);
        }
    }

    /// `fd` became this file.
    pub(super) fn opens(&mut self, ts: u64, who: Member, (fd, cloexec): (i32, bool), file: Arc<File>) {
        if let Some((table, blind)) = self.table_at(who, ts).filter(|_| fd >= 0) {
            let sure = !blind && !table.opaque;
            table.fds.insert(fd, Open { file, cloexec: Some(cloexec), since: Some(ts), is_open: sure });
        }
    }

    /// Makes descriptor `to` a copy of `from`.
    pub(super) fn copies(&mut self, ts: u64, who: Member, from: i32, (to, cloexec): (i32, bool)) {
        let file = self.table(who).and_then(|table| table.fds.get(&from)).map(|open| Arc::clone(&open.file));
        self.opens(ts, who, (to, cloexec), file.unwrap_or_default());
    }

    /// Closes the descriptors from `first` to `last`.
    pub(super) fn closes_range(&mut self, who: Member, first: u32, last: u32) {
        if let Some(table) = self.table(who) {
            table.fds.retain(|fd, _| !(first..=last).contains(&fd.cast_unsigned()));
        }
    }

    /// Exec closes those from `first` to `last` from now on, or no longer.
    pub(super) fn marks(&mut self, who: Member, first: u32, last: u32, cloexec: bool) {
        let Some(table) = self.table(who) else { return };
        for (_, open) in table.fds.iter_mut().filter(|(fd, _)| (first..=last).contains(&fd.cast_unsigned())) {
            open.cloexec = Some(cloexec);
        }
    }

    /// A call that began at `ts` found `fd` open, as a file of that name; None: its name is not known.
    pub(super) fn uses(&mut self, ts: u64, who: Member, fd: i32, name: Option<&Arc<[u8]>>) {
        let (at, follows) = (self.at, self.follows_rings);
        let Some((table, blind)) = self.table_at(who, ts).filter(|_| fd >= 0) else { return };
        if name.is_some_and(|name| name.starts_with(b"anon_inode:[io_uring")) {
            table.has_ring(follows);
        }
        // what is read of it are descriptors
        table.unseen |= name.is_some_and(|name| name.starts_with(b"anon_inode:[fanotify"));
        let sure = !blind && !table.opaque;
        match (table.fds.get_mut(&fd), name) {
            (Some(open), Some(name)) if is_same(&open.file, name) => {
                open.file.learn(ts, name, at);
                open.is_open |= sure;
            }
            (Some(open), None) if open.is_open || !sure => {}
            // it came unseen, or became another file
            (_, name) => {
                let file = name.map_or_else(Arc::default, |name| File::named(ts, name));
                table.fds.insert(fd, Open { file, cloexec: None, since: None, is_open: sure });
            }
        }
    }

    /// Descriptors may have come to `who` unseen.
    pub(super) fn receives(&mut self, who: Member) {
        if let Some(table) = self.table(who) {
            table.unseen = true;
        }
    }

    /// `who` made an io_uring.
    pub(super) fn rings(&mut self, who: Member) {
        let follows = self.follows_rings;
        if let Some(table) = self.table(who) {
            table.has_ring(follows);
        }
    }

    /// A checkpoint of `ts` lists the descriptors of a process; `complete`: there are no others.
    pub(super) fn seen(&mut self, ts: u64, who: Member, fds: Vec<Listed>, complete: bool) {
        let first = !self.all.knows(who.process);
        self.list(ts, who, fds, (complete, first));
    }

    /// The thread `who` had a table of its own when the recording began.
    pub(super) fn apart(&mut self, ts: u64, who: Member, fds: Vec<Listed>, complete: bool) {
        self.all.apart(who);
        self.list(ts, who, fds, (complete, true));
    }

    fn list(&mut self, ts: u64, who: Member, fds: Vec<Listed>, (complete, first): (bool, bool)) {
        let (at, unrecorded) = (self.at, self.unrecorded);
        let Some((table, blind)) = self.table_at(who, ts) else { return };
        if !first && table.complete {
            // what calls did is known exactly: the list may be from a moment before or after
            for (fd, known) in &fds {
                let Some((name, _)) = known else { continue };
                if let Some(open) = table.fds.get_mut(fd).filter(|open| is_same(&open.file, name)) {
                    open.file.learn(ts, name, at);
                }
            }
            return;
        }
        if complete && (!blind || unrecorded) {
            table.fds.retain(|fd, open| open.is_open || fds.binary_search_by_key(fd, |(fd, ..)| *fd).is_ok());
            table.complete = !blind;
        }
        for (fd, known) in fds.into_iter().filter(|(fd, _)| *fd >= 0) {
            match (table.fds.get_mut(&fd), known) {
                (Some(open), Some((name, cloexec))) if is_same(&open.file, &name) => {
                    open.file.learn(ts, &name, at);
                    open.is_open |= !blind;
                    open.cloexec = open.cloexec.or(Some(cloexec));
                }
                (Some(open), None) => open.is_open |= !blind,
                (_, known) => {
                    let file = known.as_ref().map_or_else(Arc::default, |(name, _)| File::named(ts, name));
                    let cloexec = known.map(|(_, cloexec)| cloexec);
                    table.fds.insert(fd, Open { file, cloexec, since: None, is_open: !blind });
                }
            }
        }
    }

    /// Forgets the table of `who`: from now on nothing of it is sure.
    pub(super) fn forget(&mut self, who: Member) {
        if let Some(table) = self.table(who) {
            table.doubt();
        }
    }

    /// Events between now and `last` were lost; of the process `pid`, 0 = of anybody.
    pub(super) fn lose(&mut self, last: u64, pid: u32) {
        self.all.lose(last, pid, |_, table, ()| {
            table.lost = true;
            table.doubt();
        });
    }

    /// The table of each process, and of each thread with its own: (process, thread or 0, table).
    pub(super) fn each(&self) -> impl Iterator<Item = (u32, u32, &Table)> {
        self.all.each()
    }

    /// The table of `who`.
    fn table(&mut self, who: Member) -> Option<&mut Table> {
        let place = self.place(who)?;
        Some(self.all.at_mut(place).0)
    }

    /// The same, and whether a change of it at `ts` may be followed by one that was missed.
    fn table_at(&mut self, who: Member, ts: u64) -> Option<(&mut Table, bool)> {
        let place = self.place(who)?;
        let blind = self.unrecorded || ts < self.all.blind(place);
        Some((self.all.at_mut(place).0, blind))
    }

    /// Where the table of `who` is; a new one, of which nothing is known, for who was not seen before.
    fn place(&mut self, who: Member) -> Option<usize> {
        let new = self.all.find(who).is_none();
        let place = self.all.place(who)?;
        if new {
            self.all.at_mut(place).0.lost = self.all.blind(place) > 0;
        }
        Some(place)
    }
}

impl Table {
    /// Any descriptor may have been closed, and others opened.
    fn doubt(&mut self) {
        self.complete = false;
        self.fds.values_mut().for_each(|open| open.is_open = false);
    }

    /// It has an io_uring: its operations may make descriptors that are never told of, as they receive some in messages.
    fn has_ring(&mut self, follows: bool) {
        self.unseen = true;
        if !follows {
            self.opaque = true;
            self.doubt();
        }
    }
}

/// Whether a file may be called so: it has no name, this one, or both are those of a socket.
fn is_same(file: &File, name: &[u8]) -> bool {
    file.name().is_none_or(|known| *known == *name || (is_socket(&known) && is_socket(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(process: u32, thread: u32) -> Member {
        Member { thread, process, pid: process + 1000 }
    }

    fn name(text: &str) -> Arc<[u8]> {
        text.as_bytes().into()
    }

    fn listed(fd: i32, path: &str) -> Listed {
        (fd, Some((name(path), false)))
    }

    fn open(tables: &mut Tables, ts: u64, process: u32, fd: i32, path: &str) {
        tables.opens(ts, who(process, process), (fd, false), File::named(ts, &name(path)));
    }

    /// `0=/a 3=?` of a process: `!` behind one that is not sure.
    fn held(tables: &Tables, process: u32) -> String {
        let (.., table) = tables.each().find(|(of, thread, _)| (*of, *thread) == (process, 0)).expect("a table");
        text(table)
    }

    fn text(table: &Table) -> String {
        let one = |(fd, open): (&i32, &Open)| {
            let name = open.file.name().map_or("?".into(), |name| String::from_utf8(name.to_vec()).unwrap());
            format!("{fd}={name}{}", if open.is_open { "" } else { "!" })
        };
        table.fds.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    /// Process 1, whose table is known: 0 is /tty.
    fn one() -> Tables {
        let mut tables = Tables::new(100, false);
        tables.seen(1, who(1, 0), vec![listed(0, "/tty")], true);
        tables
    }

    #[test]
    fn a_thread_that_had_its_own_from_the_start_shares_nothing() {
        let mut t = Tables::new(50, false);
        t.thread(1);
        t.seen(1, who(1, 0), vec![listed(7, "/shared")], true);
        t.apart(1, who(1, 9), vec![listed(7, "/own")], true);
        t.closes_range(who(1, 1), 7, 7);
        let held = |t: &Tables| {
            let mut all: Vec<_> = t.each().map(|(p, thread, table)| (p, thread, table.fds.contains_key(&7))).collect();
            all.sort_unstable();
            all
        };
        assert_eq!(held(&t), [(0, 9, true), (1, 0, false)]);
        t.apart(6, who(1, 8), Vec::new(), false);
        assert!(t.each().any(|(_, thread, table)| thread == 8 && !table.complete && table.fds.is_empty()));
    }

    #[test]
    fn opens_copies_and_closes() {
        let mut t = one();
        open(&mut t, 2, 1, 3, "/a");
        t.copies(3, who(1, 7), 3, (5, true));
        t.copies(3, who(1, 7), 9, (6, false));
        t.closes_range(who(1, 1), 3, 3);
        assert_eq!(held(&t, 1), "0=/tty 5=/a 6=?");
        // a copy is the same file: what names one names all
        t.copies(4, who(1, 1), 6, (8, false));
        t.uses(5, who(1, 1), 8, Some(&name("pipe:[9]")));
        assert_eq!(held(&t, 1), "0=/tty 5=/a 6=pipe:[9] 8=pipe:[9]");
        t.closes_range(who(1, 1), 6, u32::MAX);
        t.exec(who(1, 1), 6);
        assert_eq!(held(&t, 1), "0=/tty");
    }

    #[test]
    fn a_child_has_a_copy_or_shares() {
        let mut t = one();
        t.fork(who(1, 1), who(2, 2), false, false);
        open(&mut t, 2, 2, 3, "/child");
        t.fork(who(1, 1), who(3, 3), false, true);
        open(&mut t, 3, 3, 4, "/shared");
        assert_eq!((held(&t, 1), held(&t, 2)), ("0=/tty 4=/shared".into(), "0=/tty 3=/child".into()));
        // exec leaves what it shared
        t.exec(who(3, 3), 4);
        t.closes_range(who(3, 3), 4, 4);
        assert_eq!((held(&t, 1), held(&t, 3)), ("0=/tty 4=/shared".into(), "0=/tty".into()));
        t.exit(who(2, 2), true);
        assert!(!t.each().any(|(process, ..)| process == 2));
    }

    #[test]
    fn a_thread_may_leave_its_process() {
        let mut t = one();
        t.unshare(who(1, 1));
        assert_eq!(t.each().count(), 1, "it shares with nobody");
        t.fork(who(1, 1), who(1, 7), true, true);
        t.unshare(who(1, 7));
        t.closes_range(who(1, 7), 0, 0);
        assert_eq!(held(&t, 1), "0=/tty");
        assert_eq!(t.each().find(|(_, thread, _)| *thread == 7).map(|(.., table)| text(table)), Some(String::new()));
        t.exit(who(1, 7), false);
        assert_eq!(t.each().count(), 1);
    }

    #[test]
    fn after_a_loss_nothing_is_sure_until_a_checkpoint() {
        let mut t = one();
        open(&mut t, 2, 1, 3, "/a");
        open(&mut t, 2, 1, 4, "/b");
        t.lose(20, 1001);
        open(&mut t, 15, 1, 5, "/during");
        open(&mut t, 25, 1, 6, "/after");
        assert_eq!(held(&t, 1), "0=/tty! 3=/a! 4=/b! 5=/during! 6=/after");
        t.uses(26, who(1, 1), 3, Some(&name("/a")));
        t.seen(30, who(1, 0), vec![listed(0, "/tty"), listed(5, "/other")], true);
        assert_eq!(held(&t, 1), "0=/tty 3=/a 5=/other 6=/after", "4 was closed");
        // of others nothing was lost
        let mut t = one();
        t.lose(20, 7);
        assert_eq!(held(&t, 1), "0=/tty");
    }

    #[test]
    fn of_who_is_met_first_after_a_loss_nothing_is_sure() {
        let mut t = one();
        t.lose(20, 1002);
        open(&mut t, 15, 2, 3, "/during");
        open(&mut t, 25, 2, 4, "/after");
        assert_eq!((held(&t, 1), held(&t, 2)), ("0=/tty".into(), "3=/during! 4=/after".into()));
    }

    #[test]
    fn an_exact_table_takes_only_names_of_a_checkpoint() {
        let mut t = one();
        t.opens(2, who(1, 1), (3, false), Arc::default());
        t.seen(3, who(1, 0), vec![listed(3, "/a"), listed(4, "/later")], true);
        assert_eq!(held(&t, 1), "0=/tty 3=/a");
    }

    #[test]
    fn a_list_may_not_know_what_it_was() {
        let mut t = Tables::new(100, false);
        t.seen(1, who(1, 0), vec![listed(0, "/tty"), (5, None)], true);
        assert_eq!(held(&t, 1), "0=/tty 5=?");
        t.closes_range(who(1, 1), 5, 5);
        assert_eq!(held(&t, 1), "0=/tty");
    }

    #[test]
    fn what_came_unseen_is_there_when_it_is_used() {
        let mut t = one();
        t.uses(2, who(1, 1), 7, None);
        t.uses(3, who(1, 1), 0, None);
        assert_eq!(held(&t, 1), "0=/tty 7=?");
        t.uses(4, who(1, 1), 0, Some(&name("/other")));
        assert_eq!(held(&t, 1), "0=/other 7=?");
        t.rings(who(1, 1));
        assert_eq!(held(&t, 1), "0=/other! 7=?!");
        open(&mut t, 5, 1, 9, "/x");
        assert_eq!(held(&t, 1), "0=/other! 7=?! 9=/x!", "it may be closed again unseen");
        // what it does is on the tape
        let mut t = Tables { follows_rings: true, ..one() };
        t.rings(who(1, 1));
        open(&mut t, 5, 1, 9, "/x");
        assert_eq!(held(&t, 1), "0=/tty 9=/x");
        assert!(t.each().all(|(.., table)| table.unseen));
    }

    #[test]
    fn not_recorded_is_never_sure() {
        let mut t = Tables::new(100, true);
        t.seen(1, who(1, 0), vec![listed(0, "/tty"), listed(3, "/a")], true);
        t.uses(2, who(1, 1), 4, Some(&name("/b")));
        assert_eq!(held(&t, 1), "0=/tty! 3=/a! 4=/b!");
        t.seen(9, who(1, 0), vec![listed(0, "/tty")], true);
        assert_eq!(held(&t, 1), "0=/tty!");
    }
}
