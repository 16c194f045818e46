//! Who shares what with whom: the kernel's fs_struct (a directory) and files_struct (descriptors), which a process's threads have together,
//! a clone may share with its maker, and a thread may have of its own.
//!
//! What is shared stands at a place, a number that another has when the last of its users is gone.

use rustc_hash::{FxHashMap, FxHashSet};
use systape_format::model::Task;

/// Of more processes than this losses are not kept apart: any may have lost something.
const BLIND_PIDS: usize = 1 << 16;

/// A thread and its process by numbers that are unique in a tape; 0 = not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    /// The thread.
    pub thread: u32,
    /// Process of the thread.
    pub process: u32,
    /// The process's number of the kernel's, by which losses name it.
    pub pid: u32,
}

impl Member {
    /// The thread that a task is.
    pub fn of(task: &Task) -> Self {
        Self { thread: task.utid, process: task.upid, pid: task.pid }
    }

    /// Process of the thread, whichever thread.
    pub fn whole(self) -> Self {
        Self { thread: 0, ..self }
    }
}

/// Is told what becomes of places.
pub trait Watch<T> {
    /// `place` has another value, of others.
    fn begins(&mut self, _place: usize, _value: &mut T) {}
    /// `process` has what is at `place` from now on.
    fn process(&mut self, _process: u32, _place: usize) {}
    /// `thread` has what is at `place` from now on, and not what its process has.
    fn thread(&mut self, _thread: u32, _place: usize) {}
}

impl<T> Watch<T> for () {}

#[derive(Clone, Debug, Default)]
struct SharedValue<T> {
    value: T,
    /// Until then changes may have been missed.
    blind: u64,
    /// Processes, and threads that have one of their own.
    users: u32,
    /// Whose it is; 0 = of several processes, or not known.
    pid: u32,
}

/// All places of one kind.
#[derive(Debug, Default)]
pub(crate) struct Sharers<T, W = ()> {
    slots: Vec<SharedValue<T>>,
    free: Vec<usize>,
    of_process: FxHashMap<u32, usize>,
    /// Of threads that do not share their process's.
    of_thread: FxHashMap<u32, usize>,
    /// Processes of which a thread did not.
    split: FxHashSet<u32>,
    /// Until then a change of anybody may have been missed, and of single processes.
    blind: u64,
    blind_pids: FxHashMap<u32, u64>,
    watch: W,
}

impl<T: Default, W: Watch<T>> Sharers<T, W> {
    /// Makes one without anybody.
    pub(crate) fn new(watch: W) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            of_process: FxHashMap::default(),
            of_thread: FxHashMap::default(),
            split: FxHashSet::default(),
            blind: 0,
            blind_pids: FxHashMap::default(),
            watch,
        }
    }

    /// Where that of `who` is; a new one for who was not met before. None: the process is not known.
    pub(crate) fn place(&mut self, who: Member) -> Option<usize> {
        if who.process == 0 {
            return None;
        }
        if let Some(place) = self.find(who) {
            let slot = &mut self.slots[place];
            slot.pid = if slot.users > 1 { 0 } else { who.pid.max(slot.pid) };
            return Some(place);
        }
        let blind = self.blind_pids.get(&who.pid).copied().unwrap_or(0);
        let place = self.add(SharedValue { users: 1, pid: who.pid, blind, value: T::default() });
        self.settle(who.process, place);
        Some(place)
    }

    /// Place of who was met before.
    pub(crate) fn find(&self, who: Member) -> Option<usize> {
        self.of_thread.get(&who.thread).or_else(|| self.of_process.get(&who.process)).copied()
    }

    /// What is at a place.
    pub(crate) fn at(&self, place: usize) -> &T {
        &self.slots[place].value
    }

    /// The value at a place, to be changed, and who watches.
    pub(crate) fn at_mut(&mut self, place: usize) -> (&mut T, &mut W) {
        (&mut self.slots[place].value, &mut self.watch)
    }

    /// Who watches.
    pub(crate) fn watch(&self) -> &W {
        &self.watch
    }

    /// Who watches, to be told something.
    pub(crate) fn watch_mut(&mut self) -> &mut W {
        &mut self.watch
    }

    /// How many processes, and threads of their own, have what is at a place.
    pub(crate) fn users(&self, place: usize) -> u32 {
        self.slots[place].users
    }

    /// Whether the process was met.
    pub(crate) fn knows(&self, process: u32) -> bool {
        self.of_process.contains_key(&process)
    }

    /// Whether the thread does not share its process's.
    pub(crate) fn has_own(&self, who: Member) -> bool {
        self.of_thread.contains_key(&who.thread)
    }

    /// Whether a thread of the process does not, or did not until it ended.
    pub(crate) fn is_split(&self, process: u32) -> bool {
        self.split.contains(&process)
    }

    /// Time until when a change of anybody may have been missed; 0 = nothing was.
    pub(crate) fn blind_for_all(&self) -> u64 {
        self.blind
    }

    /// Time until when a change of what is at a place may have been missed; 0 = nothing was.
    pub(crate) fn blind(&self, place: usize) -> u64 {
        self.blind.max(self.slots[place].blind)
    }

    /// `child` was made by `parent`; `thread`: in the same process; `shares`: they have one from now on. Else it has a `copy`.
    pub(crate) fn fork(&mut self, parent: Member, child: Member, thread: bool, shares: bool, copy: impl Fn(&T) -> T) {
        let Some(from) = self.place(parent) else { return };
        if thread {
            // a thread has its process's unless it, or who made it, has one of its own
            match (shares, self.has_own(parent)) {
                (true, false) => {}
                (true, true) => self.give(child, from),
                (false, _) => {
                    let place = self.copy(from, copy);
                    self.give(child, place);
                }
            }
            return;
        }
        if child.process == 0 || self.knows(child.process) {
            return;
        }
        let place = if shares { from } else { self.copy(from, copy) };
        self.slots[place].users += 1;
        self.slots[place].pid = if shares { 0 } else { child.pid };
        self.settle(child.process, place);
    }

    /// `who` has one of its own from now on, a `copy` of what it shared; `alone`: its thread and not all of the process.
    pub(crate) fn leave(&mut self, who: Member, alone: bool, copy: impl Fn(&T) -> T) {
        let Some(from) = self.place(who) else { return };
        let place = self.copy(from, copy);
        self.slots[place].pid = who.pid;
        if alone {
            return self.give(who, place);
        }
        self.slots[place].users = 1;
        self.settle(who.process, place);
        self.let_go(from);
    }

    /// The thread `who` has had one of its own, of which nothing is known here.
    pub(crate) fn apart(&mut self, who: Member) {
        if self.place(who).is_some() && !self.has_own(who) {
            self.leave(who, true, |_| T::default());
        }
    }

    /// A thread ended; `last`: and its process with it.
    pub(crate) fn exit(&mut self, who: Member, last: bool) {
        if let Some(place) = self.of_thread.remove(&who.thread) {
            self.let_go(place);
        }
        if last {
            if let Some(place) = self.of_process.remove(&who.process) {
                self.let_go(place);
            }
            self.split.remove(&who.process);
        }
    }

    /// Events between now and `last` were lost; of the process `pid`, 0 = of anybody. `each`: the places where something may have been.
    pub(crate) fn lose(&mut self, last: u64, pid: u32, mut each: impl FnMut(usize, &mut T, &mut W)) {
        let until = last.saturating_add(1);
        if pid == 0 || self.blind_pids.len() > BLIND_PIDS {
            self.blind = self.blind.max(until);
        } else {
            let blind = self.blind_pids.entry(pid).or_default();
            *blind = until.max(*blind);
        }
        for (place, slot) in self.slots.iter_mut().enumerate().filter(|(_, slot)| slot.users > 0) {
            if pid == 0 || slot.pid == 0 || slot.pid == pid {
                slot.blind = slot.blind.max(until);
                each(place, &mut slot.value, &mut self.watch);
            }
        }
    }

    /// What each process has, and each thread with its own: (process, thread or 0, value).
    pub(crate) fn each(&self) -> impl Iterator<Item = (u32, u32, &T)> {
        let processes = self.of_process.iter().map(|(process, place)| (*process, 0, self.at(*place)));
        processes.chain(self.of_thread.iter().map(|(thread, place)| (0, *thread, self.at(*place))))
    }

    fn settle(&mut self, process: u32, place: usize) {
        self.of_process.insert(process, place);
        self.watch.process(process, place);
    }

    fn give(&mut self, who: Member, place: usize) {
        if who.thread == 0 {
            return;
        }
        self.slots[place].users += 1;
        self.split.insert(who.process);
        let before = self.of_thread.insert(who.thread, place);
        self.watch.thread(who.thread, place);
        if let Some(before) = before {
            self.let_go(before);
        }
    }

    fn copy(&mut self, from: usize, copy: impl Fn(&T) -> T) -> usize {
        let SharedValue { value, blind, pid, .. } = &self.slots[from];
        let slot = SharedValue { value: copy(value), blind: *blind, users: 0, pid: *pid };
        self.add(slot)
    }

    fn add(&mut self, slot: SharedValue<T>) -> usize {
        let place = self.free.pop().unwrap_or(self.slots.len());
        match self.slots.get_mut(place) {
            Some(free) => *free = slot,
            None => self.slots.push(slot),
        }
        self.watch.begins(place, &mut self.slots[place].value);
        place
    }

    fn let_go(&mut self, place: usize) {
        let slot = &mut self.slots[place];
        slot.users = slot.users.saturating_sub(1);
        if slot.users == 0 {
            *slot = SharedValue::default();
            self.free.push(place);
            self.watch.begins(place, &mut slot.value);
        }
    }
}

#[cfg(test)]
impl<T, W> Sharers<T, W> {
    /// How many places, threads with their own, and processes with such threads there are.
    pub(crate) fn sizes(&self) -> (usize, usize, usize) {
        (self.slots.len() - self.free.len(), self.of_thread.len(), self.split.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(process: u32, thread: u32) -> Member {
        Member { thread, process, pid: process + 1000 }
    }

    /// What `who` has.
    fn of(all: &mut Sharers<u32>, who: Member) -> u32 {
        let place = all.place(who).expect("a process");
        *all.at(place)
    }

    fn set(all: &mut Sharers<u32>, who: Member, value: u32) {
        let place = all.place(who).expect("a process");
        *all.at_mut(place).0 = value;
    }

    #[test]
    fn each_has_its_own_unless_it_shares() {
        let mut all = Sharers::new(());
        set(&mut all, who(1, 1), 5);
        all.fork(who(1, 1), who(1, 11), true, true, u32::clone);
        all.fork(who(1, 1), who(2, 2), false, false, u32::clone);
        all.fork(who(1, 1), who(3, 3), false, true, u32::clone);
        set(&mut all, who(1, 11), 6);
        assert_eq!([who(1, 1), who(2, 2), who(3, 3)].map(|who| of(&mut all, who)), [6, 5, 6]);
        all.leave(who(3, 3), false, u32::clone);
        set(&mut all, who(3, 3), 7);
        all.leave(who(1, 11), true, u32::clone);
        set(&mut all, who(1, 11), 8);
        assert_eq!([who(1, 1), who(1, 11), who(3, 3)].map(|who| of(&mut all, who)), [6, 8, 7]);
        // its threads share what it has, not what its process has
        all.fork(who(1, 11), who(1, 12), true, true, u32::clone);
        set(&mut all, who(1, 12), 9);
        assert_eq!([who(1, 1), who(1, 11)].map(|who| of(&mut all, who)), [6, 9]);
        assert_eq!(all.place(who(0, 5)), None);
    }

    #[test]
    fn places_are_used_again_when_nobody_is_left() {
        let mut all = Sharers::<u32>::new(());
        for process in 1..100 {
            set(&mut all, who(process, process), process);
            all.fork(who(process, process), who(process, process + 500), true, false, u32::clone);
            // a thread that leaves what it has of its own has another
            all.leave(who(process, process + 500), true, u32::clone);
            all.fork(who(process, process), who(process + 1000, process + 1000), false, true, u32::clone);
            all.exit(who(process + 1000, process + 1000), true);
            all.exit(who(process, process + 500), false);
            all.exit(who(process, process), true);
        }
        assert_eq!((all.sizes(), all.slots.len()), ((0, 0, 0), 3));
    }

    #[test]
    fn a_loss_is_of_one_process_or_of_all() {
        let mut all = Sharers::new(());
        set(&mut all, who(1, 1), 1);
        set(&mut all, who(2, 2), 2);
        let mut met = Vec::new();
        all.lose(10, 1001, |_, value, ()| met.push(*value));
        assert_eq!(met, [1]);
        let blind = |all: &mut Sharers<u32>, who| all.place(who).map(|place| all.blind(place));
        assert_eq!((blind(&mut all, who(1, 1)), blind(&mut all, who(2, 2))), (Some(11), Some(0)));
        // who was not met before may have lost something, too
        all.lose(20, 1003, |_, _, ()| panic!("nobody has that pid"));
        assert_eq!(blind(&mut all, who(3, 3)), Some(21));
        // a child has what its parent had
        all.fork(who(1, 1), who(4, 4), false, false, u32::clone);
        assert_eq!(blind(&mut all, who(4, 4)), Some(11));
        all.lose(30, 0, |_, _, ()| ());
        assert_eq!((blind(&mut all, who(2, 2)), blind(&mut all, who(9, 9))), (Some(31), Some(31)));
    }
}
