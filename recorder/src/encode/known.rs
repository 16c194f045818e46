//! The state that is known without events: the snapshot at the start, processes read again, checkpoints.

use std::collections::HashSet;

use rustc_hash::FxHashMap;
use systape_bpf::wire::{self, Ident, Record, Snap};
use systape_format::model::{
    CPU_NONE, Checkpoint, CommandLine, Family, Fd, FdTable, Gap, GapCause, InFlight, RunState,
};

use super::calls::{new_fds, pair_of};
use super::lookups::Answer;
use super::{Encoder, Piece, Reread, Start, Unread};
use crate::effects::CallInfo;
use crate::fds::Name;
use crate::tasks::TaskId;
use crate::{clock, snapshot};

impl Encoder {
    /// Takes in the state at the start. Every record up to `start.done` must have been added.
    pub fn begin(&mut self, start: Start) {
        // leaders first: threads find their process's table of files through them, and ids wrap around
        let is_thread = |snap: &&Snap| snap.task.id.tid != snap.task.id.pid;
        let (threads, leaders): (Vec<&Snap>, Vec<&Snap>) = start.snaps.iter().partition(is_thread);
        for snap in leaders.into_iter().chain(threads) {
            self.tasks.learn(&snap.task);
        }
        let touched = self.touched_fds(start.done.saturating_add(1));
        let mut members: FxHashMap<u32, Vec<TaskId>> = FxHashMap::default();
        for (id, entry) in self.tasks.alive() {
            members.entry(entry.task.pid).or_default().push(id);
        }
        for process in start.processes {
            let none = HashSet::new();
            let skip = touched.get(&process.pid).unwrap_or(&none);
            let Some(members) = members.get(&process.pid) else { continue };
            // open before the recording, for all that is known: calls that began before it are resolved too
            self.apply_process(&process, members, 0, |fd| !skip.contains(&fd));
        }
        self.unread(&start.unread, start.done);
        self.bury(&start.snaps, start.done.saturating_add(1));
        let mut checkpoint = self.checkpoint(self.settings.window_open, &start.snaps, "snapshot");
        self.as_of_start(&mut checkpoint, start.done.saturating_add(1));
        self.pieces.push(Piece::Checkpoint(Box::new(checkpoint)));
        self.stacks.chunk_ends();
    }

    /// Says of whom something is not known because it could not be read in time: no event is missing for it.
    fn unread(&mut self, unread: &[Unread], done: u64) {
        /// Processes that are named.
        const NAMED: usize = 64;
        let (first, last) = (self.settings.window_open, done);
        for files in [true, false] {
            // who misses both is told of once
            let of = |unread: &&Unread| unread.files == files;
            let family = if files { Family::State } else { Family::Process };
            let gap = |pid, count| Gap {
                cause: GapCause::NotRead,
                family,
                cpu: CPU_NONE,
                count,
                first,
                last,
                pid,
                ledger: false,
            };
            unread.iter().filter(of).take(NAMED).for_each(|process| self.gap(gap(process.pid, 1)));
            let more = unread.iter().filter(of).skip(NAMED).count() as u64;
            if more > 0 {
                self.gap(gap(0, more));
            }
        }
    }

    /// Tasks that ended before the recording and that nobody has waited for yet: no exit will be told of them.
    fn bury(&mut self, snaps: &[Snap], until: u64) {
        if snaps.iter().all(|snap| snap.exiting == 0) {
            return;
        }
        let mut told: HashSet<(u32, u64)> = HashSet::new();
        for pending in self.order.before(until) {
            if let Ok(Record::Exit(e)) = wire::parse(pending.bytes) {
                told.insert((e.id.tid, e.id.start));
            }
        }
        let ended = snaps.iter().map(|snap| (snap.exiting, &snap.task.id));
        for (_, id) in ended.filter(|(exiting, id)| *exiting != 0 && !told.contains(&(id.tid, id.start))) {
            if let Some(task) = self.tasks.find(id) {
                self.tasks.exit(task, self.settings.window_open);
            }
        }
    }

    /// fds that waiting records touch before `until`, by process.
    fn touched_fds(&mut self, until: u64) -> FxHashMap<u32, HashSet<i32>> {
        let mut touched: FxHashMap<u32, HashSet<i32>> = FxHashMap::default();
        let mut infos: FxHashMap<(u8, u32), CallInfo> = FxHashMap::default();
        for pending in self.order.before(until) {
            match wire::parse(pending.bytes) {
                Ok(Record::Closing(c)) => {
                    let set = touched.entry(c.id.pid).or_default();
                    set.extend([c.args[0] as i32, c.args[1] as i32]);
                }
                Ok(Record::Syscall(s, data)) if s.ret >= 0 => {
                    let info = infos.entry((s.abi, s.nr)).or_insert_with(|| CallInfo::new(s.abi, s.nr));
                    // a pair is the only thing such a call captures before its names
                    let fds = new_fds(info, &s, pair_of(data));
                    touched.entry(s.id.pid).or_default().extend(fds);
                }
                _ => {}
            }
        }
        touched
    }

    fn apply_process(
        &mut self,
        process: &snapshot::Process,
        members: &[TaskId],
        since: u64,
        keep: impl Fn(i32) -> bool,
    ) {
        for &id in members {
            let entry = self.tasks.get_mut(id);
            entry.task.exe.clone_from(&process.exe);
            if process.argv.is_some() {
                entry.argv.clone_from(&process.argv);
            }
            entry.cwd = process.cwd.clone().map(Name::new);
            entry.interned = (u32::MAX, 0);
        }
        let (Some(&first), Some(fds)) = (members.first(), &process.fds) else { return };
        let files = self.tasks.files_mut(first);
        if fds.iter().any(|(_, name, _)| name == b"anon_inode:[io_uring]") {
            files.make_opaque(since);
        }
        for (fd, name, cloexec) in fds {
            if keep(*fd) {
                files.set(since, *fd, Name::new(name.clone()), *cloexec);
            }
        }
        if process.cut {
            // an io_uring may be among the rest
            files.make_opaque(since);
        } else {
            files.set_complete();
        }
    }

    /// Has the files of a task's process read from /proc, if it is in there; they count from the time of reading, once
    /// the events until then are known.
    pub(super) fn reread(&mut self, task: TaskId) {
        let entry = self.tasks.get(task);
        let (pid, here) = (entry.task.pid, entry.here);
        let asked = self.rereads.iter().any(|r| r.pid == pid);
        if here != 0 && self.rereads.len() < 4096 && !asked && self.lookups.process(pid, here) {
            self.rereads.push(Reread { pid, process: None, touched: HashSet::new(), cwd: None, stale: false });
        }
    }

    /// Takes in what was read since the last time.
    pub(super) fn take_lookups(&mut self) {
        while let Some(answer) = self.lookups.take() {
            self.looked_up(answer);
        }
    }

    /// What a task executes, if that is known in a moment; otherwise it is taken in later.
    pub(super) fn look_up_exe(&mut self, id: Ident, here: u32) {
        self.lookups.exe(id, here).into_iter().for_each(|answer| self.looked_up(answer));
    }

    fn looked_up(&mut self, answer: Answer) {
        match answer {
            Answer::Files(process) => match self.rereads.iter_mut().find(|r| r.pid == process.pid) {
                Some(reread) => reread.process = Some(process),
                None => self.lookups.give_back(&process),
            },
            Answer::Argv(pid, argv, read) => {
                let process = self.rereads.iter_mut().find(|r| r.pid == pid).and_then(|r| r.process.as_mut());
                if let Some(process) = process {
                    (process.argv, process.to) = (argv, process.to.max(read));
                }
            }
            Answer::Exe(id, exe) => {
                if let Some(task) = self.tasks.find(&id).filter(|_| !exe.is_empty()) {
                    let entry = self.tasks.get_mut(task);
                    if entry.task.exe.is_empty() {
                        entry.task.exe = exe;
                        entry.interned = (u32::MAX, 0);
                    }
                }
            }
        }
    }

    pub(super) fn touch(&mut self, pid: u32, fds: [i32; 2]) {
        for reread in self.rereads.iter_mut().filter(|r| r.pid == pid) {
            reread.touched.extend(fds);
        }
    }

    pub(super) fn apply_rereads(&mut self, watermark: u64) {
        let is_ready = |r: &Reread| r.process.as_ref().is_some_and(|process| process.to < watermark);
        let (ready, waiting) = std::mem::take(&mut self.rereads).into_iter().partition(is_ready);
        self.rereads = waiting;
        for Reread { process, touched, cwd, stale, .. } in ready {
            let Some(mut process) = process else { continue };
            self.lookups.give_back(&process);
            let all = self.tasks.alive().filter(|(_, e)| e.task.pid == process.pid);
            let members: Vec<TaskId> = all.map(|(id, _)| id).collect();
            if stale {
                if let Some(first) = members.first() {
                    self.reread(*first);
                }
                continue;
            }
            process.cwd = cwd.unwrap_or(process.cwd);
            self.apply_process(&process, &members, process.to, |fd| !touched.contains(&fd));
        }
    }

    /// State records of `pid` (0: of anybody) were lost: one at `first`, others maybe, the last before `last`. To be told before
    /// [`Self::advance`] goes beyond `first`; it takes effect in the order of events, since the process may not be known yet.
    pub fn lost_state(&mut self, pid: u32, first: u64, last: u64) {
        self.losses.insert((first, pid, last));
    }

    pub(super) fn apply_losses(&mut self, watermark: u64) {
        while let Some((first, pid, last)) = self.losses.first().copied().filter(|(first, ..)| *first <= watermark) {
            self.losses.pop_first();
            self.forget_files(pid, first, last);
        }
    }

    pub(super) fn forget_files(&mut self, pid: u32, first: u64, last: u64) {
        let hit = self.tasks.alive().filter(|(_, e)| pid == 0 || e.task.pid == pid);
        let hit: Vec<TaskId> = hit.map(|(id, _)| id).collect();
        for &id in &hit {
            self.tasks.files_mut(id).forget(first, last);
            let entry = self.tasks.get_mut(id);
            entry.cwd = None;
            let pid = entry.task.pid;
            // read again when its turn comes, not at once: records may be lost for long, and reading is dear
            self.outdate(pid);
        }
        // threads share what is read
        hit.into_iter().for_each(|id| self.reread(id));
    }

    /// What was asked for of a process, or read and waits, is not what it was any more: records were lost, or it became another program.
    pub(super) fn outdate(&mut self, pid: u32) {
        for reread in self.rereads.iter_mut().filter(|r| r.pid == pid) {
            reread.stale = true;
        }
    }

    /// The process of `task` went to another directory after what waits was asked for.
    pub(super) fn moved(&mut self, task: TaskId) {
        let entry = self.tasks.get(task);
        for reread in self.rereads.iter_mut().filter(|r| r.pid == entry.task.pid) {
            reread.cwd = Some(entry.cwd.as_ref().map(|cwd| cwd.bytes.clone()));
        }
    }

    /// Begins a new chunk: everything known, at the time everything before was encoded.
    pub fn new_chunk(&mut self, ts: u64, snaps: &[Snap]) {
        self.close_segment(ts);
        let checkpoint = self.checkpoint(ts, snaps, "tracked");
        self.pieces.push(Piece::Checkpoint(Box::new(checkpoint)));
    }

    fn checkpoint(&mut self, ts: u64, snaps: &[Snap], source: &str) -> Checkpoint {
        let mut cp = Checkpoint { ts, clock: clock::sample(), source: source.into(), ..Checkpoint::default() };
        let mut seen_tables = HashSet::new();
        for (id, entry) in self.tasks.alive() {
            if !self.tasks.is_target(id) {
                continue;
            }
            cp.tasks.push(entry.task.clone());
            let files = self.tasks.files(id);
            let open = files.open();
            if (open.is_empty() && entry.cwd.is_none()) || !seen_tables.insert((entry.task.upid, entry.files)) {
                continue;
            }
            let fds =
                open.into_iter().map(|(fd, path, cloexec)| Fd { fd, path: path.bytes.clone(), cloexec }).collect();
            let cwd = entry.cwd.as_ref().map(|c| c.bytes.clone()).unwrap_or_default();
            cp.fd_tables.push(FdTable { upid: entry.task.upid, complete: files.is_complete(), cwd, fds });
        }
        cp.tasks.extend(self.tasks.above_targets());
        // a process may live on without its first thread
        let mut told = HashSet::new();
        for (_, entry) in self.tasks.alive().filter(|(id, _)| self.tasks.is_target(*id)) {
            if let Some(argv) = entry.argv.as_ref().filter(|_| told.insert(entry.task.upid)) {
                cp.commands.push(CommandLine { upid: entry.task.upid, argv: argv.bytes.clone(), full: argv.full });
            }
        }
        for snap in snaps {
            // a zombie is in the walk, but it does not live
            let known = self.tasks.find(&snap.task.id);
            let Some(id) = known.filter(|id| self.tasks.is_alive(*id) && self.tasks.is_target(*id)) else { continue };
            let utid = self.tasks.get(id).task.utid;
            let (on_cpu, last_run) = (snap.on_cpu != 0, snap.last_run.min(snap.task.ts));
            // events up to `ts` are told before the checkpoint, those until the task was looked at after it
            let seen = snap.task.ts;
            cp.run.push(RunState { utid, state: snap.state, on_cpu, cpu: snap.cpu, last_run, seen });
            if let Some(call) = self.open_call(snap) {
                cp.in_flight.push(InFlight { utid, ..call });
            }
        }
        cp
    }

    /// The tasks were looked at a little after the start. What a task's first event until then says of the time before
    /// it counts more: who is woken slept, who leaves a CPU was on it.
    fn as_of_start(&mut self, checkpoint: &mut Checkpoint, until: u64) {
        let mut first: FxHashMap<(u32, u64), RunState> = FxHashMap::default();
        for pending in self.order.before(until) {
            match wire::parse(pending.bytes) {
                Ok(Record::Switch(s)) => {
                    let cpu = s.hdr.cpu;
                    let ran = RunState { state: b'R', on_cpu: true, cpu, ..RunState::default() };
                    first.entry((s.prev.tid, s.prev.start)).or_insert(ran);
                    first.entry((s.next.tid, s.next.start)).or_insert(RunState { on_cpu: false, ..ran });
                }
                Ok(Record::Wakeup(w)) if w.hdr.flags & wire::WAKEUP_NEW == 0 => {
                    let slept = RunState { state: b'S', cpu: w.target_cpu, ..RunState::default() };
                    first.entry((w.wakee.tid, w.wakee.start)).or_insert(slept);
                }
                _ => {}
            }
        }
        let mut by_utid: FxHashMap<u32, RunState> = FxHashMap::default();
        for ((tid, start), state) in first {
            if let Some(id) = self.tasks.find(&Ident { tid, start, ..Ident::default() }) {
                by_utid.insert(self.tasks.get(id).task.utid, state);
            }
        }
        for run in &mut checkpoint.run {
            run.seen = 0;
            let Some(then) = by_utid.get(&run.utid) else { continue };
            let slept = matches!(run.state, b'D' | b'I' | b'T' | b't') && then.state == b'S';
            run.state = if slept { run.state } else { then.state };
            (run.on_cpu, run.cpu) = (then.on_cpu, then.cpu);
            // it came on a CPU since
            run.last_run = if run.last_run >= checkpoint.ts { 0 } else { run.last_run };
        }
    }
}

#[cfg(test)]
mod tests {
    use systape_bpf::wire::Ident;

    use super::super::stacks::tests::{encoder, recorded};
    use super::*;
    use crate::fds::Name;
    use crate::order::Batch;

    #[test]
    fn who_ended_before_the_start_is_not_in_the_first_checkpoint() {
        let mut encoder = recorded(true);
        let snap = |tid: u32, exiting| {
            let id = Ident { tid, pid: 5, start: u64::from(tid), leader_start: 5 };
            let hdr = wire::Header { flags: wire::TASK_IS_TARGET, ..wire::Header::default() };
            let task = wire::Task { hdr, id, ..wire::Task::default() };
            Snap { task, exiting, state: if exiting == 0 { b'S' } else { b'Z' }, ..Snap::default() }
        };
        // 5, the first thread of its process, and 6 ended before; of 7 the exit came after the start; 8 lives
        let mut exit = [0; 48];
        exit[0] = 6;
        exit[8..16].copy_from_slice(&7u64.to_ne_bytes());
        exit[24..28].copy_from_slice(&7u32.to_ne_bytes());
        exit[32..40].copy_from_slice(&40u64.to_ne_bytes());
        let mut batch = Batch::default();
        batch.push(&exit);
        encoder.add(batch);
        let snaps = vec![snap(5, 1), snap(6, 1), snap(7, 1), snap(8, 0)];
        encoder.begin(Start { snaps, processes: Vec::new(), unread: Vec::new(), done: 50 });
        let Some(Piece::Checkpoint(first)) = encoder.pieces.pop() else { panic!("a checkpoint") };
        let tids = |tasks: &[systape_format::model::Task]| tasks.iter().map(|t| t.tid).collect::<Vec<_>>();
        assert_eq!(tids(&first.tasks), [7, 8]);
        assert_eq!(first.run.len(), 2);
    }

    #[test]
    fn what_is_read_is_read_once_for_a_process_and_again_after_more_was_lost() {
        let mut encoder = encoder();
        let pid = std::process::id();
        let thread = |tid, start| Ident { tid, pid, start, leader_start: 1 };
        let [first, second] = [thread(pid, 1), thread(pid + 1, 2)].map(|id| encoder.tasks.find_or_add(&id));
        let stale = |encoder: &Encoder| encoder.rereads.iter().map(|r| r.stale).collect::<Vec<_>>();
        let apply = |encoder: &mut Encoder| {
            while encoder.rereads.iter().any(|r| r.process.as_ref().is_none_or(|process| process.argv.is_none())) {
                encoder.take_lookups();
                std::thread::yield_now();
            }
            encoder.apply_rereads(u64::MAX);
        };

        encoder.lost_state(pid, 10, 20);
        encoder.apply_losses(9);
        assert_eq!(stale(&encoder), [false; 0], "events have not come to it");
        encoder.apply_losses(10);
        assert_eq!(stale(&encoder), [false], "both threads have one table");
        // a thread that appears wants it read, which it is
        encoder.reread(second);
        assert_eq!(stale(&encoder), [false]);
        encoder.lost_state(pid, 30, 40);
        encoder.apply_losses(30);
        assert_eq!(stale(&encoder), [true]);
        encoder.apply_rereads(u64::MAX);
        assert_eq!(stale(&encoder), [true], "nobody waits for it");
        apply(&mut encoder);
        assert_eq!(stale(&encoder), [false], "read anew");
        assert!(!encoder.tasks.files(first).is_complete());

        // a directory that it went to meanwhile is known better than what was read
        encoder.tasks.set_cwd(first, Some(Name::new(b"/there".to_vec())));
        encoder.moved(first);
        apply(&mut encoder);
        assert_eq!(stale(&encoder), [false; 0]);
        assert!(encoder.tasks.files(first).is_complete());
        assert_eq!(encoder.tasks.get(second).cwd.as_ref().map(|cwd| cwd.bytes.clone()), Some(b"/there".to_vec()));
    }
}
