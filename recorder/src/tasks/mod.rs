//! The threads and processes so far, by (id, start time), with their names and file tables.
//!
//! Plain values in, plain values out; events must come in time order. Ids get reused: an entry is found by id *and*
//! start time, and a dead one is kept a little while for late records.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_bpf::wire::{Ident, TASK_IS_MARKED, Task as WireTask, Who, comm as comm_of};
use systape_format::model::{Task, UID_UNKNOWN};

use crate::descriptors::fds::FdHistory;
use crate::descriptors::names::Name;
use crate::tasks::targets::Targets;

pub(crate) mod effects;
pub(crate) mod snapshot;
pub mod targets;

/// How long a dead task is remembered.
const KEEP_DEAD_NS: u64 = 2_000_000_000;

/// Number of tasks that are found without a look into the table of all.
const LATEST: usize = 16;

/// Index of a task in [`Tasks`].
pub(crate) type TaskId = u32;

/// The arguments of a successful exec, for the exec call's own record if its memory was not resident at enter.
#[derive(Clone, Debug)]
pub(crate) struct Execed {
    /// Path as given.
    pub path: Vec<u8>,
    /// argv, NUL-separated; None for scripts, whose new program gets its interpreter's.
    pub argv: Option<Vec<u8>>,
    /// ByteStatus of argv as the wire has it.
    pub argv_status: u8,
    /// Full size of argv.
    pub argv_full: u64,
}

/// An fd that a call in progress closes.
#[derive(Clone, Debug)]
pub(crate) struct ClosingFd {
    /// Enter of the call.
    pub ts: u64,
    /// The fd.
    pub fd: i32,
    /// File that the fd stood for.
    pub name: Option<Rc<Name>>,
}

/// A process's arguments, for events that need them later.
#[derive(Debug)]
pub(crate) struct Argv {
    /// NUL-separated, without the last NUL.
    pub bytes: Vec<u8>,
    /// Full size.
    pub full: u64,
}

impl Argv {
    /// Keeps the head of long ones.
    pub(crate) fn cut(bytes: &[u8], full: u64) -> Arc<Self> {
        const MOST: usize = 4096;
        Arc::new(Self { bytes: bytes[..bytes.len().min(MOST)].to_vec(), full })
    }
}

/// Where and when a thread began to wait for its cgroup's quota of CPU time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Throttled {
    /// When it left its CPU.
    pub ts: u64,
    /// That CPU.
    pub cpu: u32,
    /// The kernel's sum of times of its group there, units of 1024 ns, modulo 2^32.
    pub clock: u32,
}

/// A thread.
#[derive(Debug)]
pub(crate) struct TaskEntry {
    /// The task in the tape's form, if it is a target: see [`Tasks::on_tape`].
    pub task: Task,
    /// Id of its process in the recorder's pid namespace, as in /proc; 0 = it is not visible there, or not known.
    pub here: u32,
    /// Number of the task in the segment being built: (segment, index).
    pub interned: (u32, u32),
    /// Number of its table of files.
    pub files: u32,
    /// Current directory; None = not known.
    pub cwd: Option<Rc<Name>>,
    /// Whether it has had a directory of its own, apart from its process's, since before the recording.
    pub own_cwd: bool,
    /// Arguments of its process; None = not known.
    pub argv: Option<Arc<Argv>>,
    /// Set between an exec and the return of the exec call.
    pub execed: Option<Execed>,
    /// File of an fd that a call closes, between the call's enter and return.
    pub closing: Option<ClosingFd>,
    /// Whether its executable was requested, because no record has it.
    pub looked_up: bool,
    /// Where it had its arguments when it was last met; 0 = not known.
    pub argv_at: u64,
    /// A record said whether it is a target.
    told: bool,
    /// See [`systape_bpf::wire::TASK_IS_MARKED`].
    marked: bool,
    /// Wait for its cgroup's quota, for which it left a CPU; None: it did not, or has run since.
    pub throttled: Option<Throttled>,
    /// Whether it sent a signal to a target, so the signal's record needs it.
    pub sender: bool,
    alive: bool,
    /// Known from other families' records only: its exit may never be recorded.
    stranger: bool,
    /// A task outside the target that had a record since the last check.
    met: bool,
}

impl TaskEntry {
    /// Process of the task: pid and start.
    pub(crate) fn process(&self) -> (u32, u64) {
        (self.task.pid, self.task.leader_start_ns)
    }
}

/// Whether a record's comm is `comm`, without a copy.
/// Whether the kernel's `raw` is the name `comm`.
pub(crate) fn is_comm(raw: &[i8; 16], comm: &[u8]) -> bool {
    let Some((same, rest)) = raw.split_at_checked(comm.len()) else { return false };
    rest.first().is_none_or(|&c| c == 0) && same.iter().zip(comm).all(|(&a, &b)| a.cast_unsigned() == b && b != 0)
}

/// All tasks.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    entries: Vec<Option<TaskEntry>>,
    free: Vec<u32>,
    by_ident: FxHashMap<(u32, u64), TaskId>,
    processes: FxHashMap<(u32, u64), u32>,
    tables: Vec<Option<(FdHistory, u32)>>,
    free_tables: Vec<u32>,
    dead: VecDeque<(u64, TaskId)>,
    /// The latest of those with the same low bits of their ids.
    latest: [Option<((u32, u64), TaskId)>; LATEST],
    strangers: VecDeque<TaskId>,
    /// Processes before their execs, the earliest first: (time of the exec, the leader until then).
    before_exec: FxHashMap<(u32, u64), Vec<(u64, Task)>>,
    /// The execs in order of time.
    execs: VecDeque<(u64, (u32, u64))>,
    next_utid: u32,
    next_upid: u32,
    /// Ids in the recorder's pid namespace differ from the machine's.
    nested: bool,
    targets: Targets,
    /// What operations of io_uring do to descriptors is recorded.
    pub follows_rings: bool,
}

impl Tasks {
    /// `nested`: the recorder is in another pid namespace than the machine's first.
    pub(crate) fn new(nested: bool, targets: Targets) -> Self {
        Self { nested, targets, ..Self::default() }
    }

    /// A task in the tape's form: without executable and environment if it is not a target.
    pub(crate) fn on_tape(&self, id: TaskId) -> Cow<'_, Task> {
        let TaskEntry { task, sender, .. } = self.get(id);
        if (task.exe.is_empty() && task.env.is_empty()) || task.recorded.anything() || *sender {
            return Cow::Borrowed(task);
        }
        Cow::Owned(Task { exe: Vec::new(), env: Vec::new(), ..task.clone() })
    }

    /// Whether the task is a target.
    pub(crate) fn is_target(&self, id: TaskId) -> bool {
        self.get(id).task.recorded.anything()
    }

    /// A selected call of the task came: it is a target although its own record was lost.
    pub(crate) fn called(&mut self, id: TaskId) {
        let recorded = self.targets.called();
        let entry = self.get_mut(id);
        if !entry.told && entry.task.recorded != recorded {
            entry.task.recorded = recorded;
            entry.interned = (u32::MAX, 0);
        }
    }

    /// The task of a record, if it is known.
    pub(crate) fn find(&mut self, id: &Ident) -> Option<TaskId> {
        let key = (id.tid, id.start);
        let latest = &mut self.latest[id.tid as usize % LATEST];
        if let Some((last, task)) = *latest
            && last == key
        {
            return Some(task);
        }
        let task = *self.by_ident.get(&key)?;
        *latest = Some((key, task));
        Some(task)
    }

    /// The task of a record; a new one with only its ids if it was not known.
    pub(crate) fn find_or_add(&mut self, id: &Ident) -> TaskId {
        match self.find(id) {
            Some(task) => task,
            None => self.add(Task {
                tid: id.tid,
                pid: id.pid,
                start_ns: id.start,
                leader_start_ns: id.leader_start,
                uid: UID_UNKNOWN,
                ..Task::default()
            }),
        }
    }

    /// A task from the snapshot or from a record of its own; known facts stay if the new record has fewer.
    pub(crate) fn learn(&mut self, wire: &WireTask) -> TaskId {
        let id = self.find_or_add(&wire.id);
        let recorded = self.targets.told(wire);
        let entry = self.get_mut(id);
        let (exe, env) = (std::mem::take(&mut entry.task.exe), std::mem::take(&mut entry.task.env));
        entry.task = Task {
            comm: comm_of(&wire.comm),
            exe,
            env,
            uid: wire.uid,
            cgroup_id: wire.cgroup_id,
            ns_tid: wire.ns_tid,
            ns_pid: wire.ns_pid,
            ppid: wire.ppid,
            recorded,
            ..entry.task.clone()
        };
        (entry.told, entry.marked) = (true, wire.hdr.flags & TASK_IS_MARKED != 0);
        if wire.here_pid != 0 {
            entry.here = wire.here_pid;
        }
        entry.interned = (u32::MAX, 0);
        entry.stranger = false;
        id
    }

    /// A task in a record of another family. If it was not known, it has only its name.
    pub(crate) fn meet(&mut self, who: &Who) -> TaskId {
        // there is an idle task per CPU; they are one
        let start = if who.tid == 0 { 0 } else { who.start };
        let mut ident = Ident { tid: who.tid, pid: who.pid, start, leader_start: 0 };
        if let Some(id) = self.find(&ident) {
            let entry = self.get_mut(id);
            if entry.stranger {
                entry.met = true;
                if who.tid != 0 && !is_comm(&who.comm, &entry.task.comm) {
                    entry.task.comm = comm_of(&who.comm);
                    entry.interned = (u32::MAX, 0);
                }
            }
            return id;
        }
        ident.leader_start = match who.tid == who.pid {
            true => start,
            false => self.leader_start(who.pid, who.start),
        };
        let id = self.find_or_add(&ident);
        let entry = self.get_mut(id);
        entry.task.comm = if who.tid == 0 { b"swapper".to_vec() } else { comm_of(&who.comm) };
        (entry.stranger, entry.met) = (true, true);
        self.strangers.push_back(id);
        self.limit_strangers();
        id
    }

    /// Whether it is known from other families' records only.
    pub(crate) fn is_stranger(&self, id: TaskId) -> bool {
        self.get(id).stranger
    }

    /// A task with all its facts in a record of another family, e.g. the sender of a signal.
    pub(crate) fn introduce(&mut self, task: &WireTask) -> TaskId {
        match self.find(&task.id) {
            Some(id) if !self.get(id).stranger => id,
            known => {
                let id = self.learn(task);
                let entry = self.get_mut(id);
                (entry.stranger, entry.met) = (true, true);
                if known.is_none() {
                    self.strangers.push_back(id);
                    self.limit_strangers();
                }
                id
            }
        }
    }

    /// Start of the current process with this pid and a thread that began at `thread`; 0 = not known.
    fn leader_start(&self, pid: u32, thread: u64) -> u64 {
        let of_pid = self.alive().filter(|(_, e)| e.task.pid == pid);
        of_pid.map(|(_, e)| e.task.leader_start_ns).filter(|start| *start <= thread).max().unwrap_or(0)
    }

    /// The current process with this pid.
    pub(crate) fn process(&self, pid: u32) -> Option<TaskId> {
        self.alive().find(|(_, e)| e.task.tid == pid).map(|(id, _)| id)
    }

    /// If only some tasks are recorded, others have no exit records: those without a recent record are dropped.
    fn limit_strangers(&mut self) {
        const MOST: usize = 8192;
        while self.strangers.len() > MOST {
            let Some(id) = self.strangers.pop_front() else { return };
            match self.entries[id as usize].as_mut() {
                Some(entry) if entry.stranger && entry.alive && entry.met => {
                    entry.met = false;
                    self.strangers.push_back(id);
                }
                // remembered as long as the dead are
                Some(entry) if entry.stranger && entry.alive => {
                    let ts = self.dead.back().map_or(0, |(ts, _)| *ts);
                    self.exit(id, ts);
                }
                _ => {}
            }
        }
    }

    /// A task made by `parent`; files and cwd are shared or copied as the flags of the fork say.
    pub(crate) fn fork(
        &mut self,
        child: &WireTask,
        parent: TaskId,
        shares_files: bool,
        same_process: bool,
        shares_fs: bool,
    ) -> TaskId {
        let (exe, env, argv, files, cwd, own_cwd) = {
            let p = self.get(parent);
            // a cwd shared with another process can change there unseen
            let cwd = if shares_fs && !same_process { None } else { p.cwd.clone() };
            let cwd = if shares_fs && p.own_cwd { None } else { cwd };
            (p.task.exe.clone(), p.task.env.clone(), p.argv.clone(), p.files, cwd, same_process && p.own_cwd)
        };
        let id = self.learn(child);
        let table = if shares_files {
            self.share_table(files);
            files
        } else {
            let copy = self.table(files).fork();
            self.new_table(copy)
        };
        let old = std::mem::replace(&mut self.get_mut(id).files, table);
        self.drop_table(old);
        let entry = self.get_mut(id);
        (entry.task.exe, entry.task.env) = (exe, env);
        entry.argv = argv;
        (entry.cwd, entry.own_cwd) = (cwd, own_cwd);
        id
    }

    /// Gives the task a table of files of its own, a copy of the one it shared.
    pub(crate) fn unshare_files(&mut self, id: TaskId) {
        let old = self.get(id).files;
        if self.tables[old as usize].as_ref().is_some_and(|(_, users)| *users > 1) {
            let copy = self.table(old).fork();
            self.get_mut(id).files = self.new_table(copy);
            self.drop_table(old);
        }
    }

    /// Threads of a process share a table of open files apart from the others, or a directory `cwd`; they are alone with what they have.
    pub(crate) fn set_apart(&mut self, threads: &[TaskId], files: bool, cwd: Option<Option<Rc<Name>>>) {
        let Some(&first) = threads.first() else { return };
        if files {
            let table = self.new_table(FdHistory::default());
            for &id in threads {
                self.share_table(table);
                let old = std::mem::replace(&mut self.get_mut(id).files, table);
                self.drop_table(old);
            }
            self.drop_table(table);
        }
        debug_assert!(self.is_alive(first));
        if let Some(cwd) = cwd {
            for &id in threads {
                let entry = self.get_mut(id);
                // what one of several changes the others do not tell
                (entry.own_cwd, entry.cwd) = (true, cwd.clone().filter(|_| threads.len() == 1));
            }
        }
    }

    /// All threads of the process of `id`, whose leader had the record, are in its cgroup now; returns those of the
    /// others that became targets or ceased to be.
    pub(crate) fn move_process(&mut self, id: TaskId, leader: &WireTask) -> Vec<TaskId> {
        let upid = self.get(id).task.upid;
        let mut changed = Vec::new();
        for (at, entry) in self.entries.iter_mut().enumerate() {
            let Some(entry) = entry.as_mut().filter(|e| e.task.upid == upid) else { continue };
            entry.task.cgroup_id = leader.cgroup_id;
            entry.interned = (u32::MAX, 0);
            if at as TaskId == id {
                continue;
            }
            let recorded = self.targets.moved(&entry.task, entry.marked, leader);
            if std::mem::replace(&mut entry.task.recorded, recorded) != recorded && entry.alive {
                changed.push(at as TaskId);
            }
        }
        changed
    }

    /// The process's current directory changed; threads share it.
    pub(crate) fn set_cwd(&mut self, id: TaskId, cwd: Option<Rc<Name>>) {
        if self.get(id).own_cwd {
            self.get_mut(id).cwd = cwd;
            return;
        }
        let task = &self.get(id).task;
        let leader = self.by_ident.get(&(task.pid, task.leader_start_ns)).copied().unwrap_or(id);
        self.get_mut(leader).cwd.clone_from(&cwd);
        self.get_mut(id).cwd = cwd;
    }

    /// Whether the task has no recorded end.
    pub(crate) fn is_alive(&self, id: TaskId) -> bool {
        self.get(id).alive
    }

    /// The task ended at `ts`.
    pub(crate) fn exit(&mut self, id: TaskId, ts: u64) {
        let entry = self.get_mut(id);
        if std::mem::replace(&mut entry.alive, false) {
            self.dead.push_back((ts, id));
        }
    }

    /// Whether a task had ended at `ts`.
    pub(crate) fn had_ended(&self, id: TaskId, ts: u64) -> bool {
        !self.is_alive(id) && self.dead.iter().any(|(died, of)| *of == id && *died <= ts)
    }

    /// The process whose leader is `id` executes another program at `ts`.
    pub(crate) fn will_exec(&mut self, id: TaskId, ts: u64) {
        const MOST: usize = 1 << 16;
        let task = self.get(id).task.clone();
        let process = (task.pid, task.leader_start_ns);
        self.before_exec.entry(process).or_default().push((ts, task));
        self.execs.push_back((ts, process));
        while self.execs.len() > MOST {
            self.forget_exec();
        }
    }

    /// The leader of a process as it was at `ts`, before a later exec; None when there was none, or too long ago.
    pub(crate) fn before_exec(&self, process: (u32, u64), ts: u64) -> Option<&Task> {
        self.before_exec.get(&process)?.iter().find(|(exec, _)| ts < *exec).map(|(_, task)| task)
    }

    fn forget_exec(&mut self) {
        let Some((_, process)) = self.execs.pop_front() else { return };
        if let Some(images) = self.before_exec.get_mut(&process) {
            images.remove(0);
            if images.is_empty() {
                self.before_exec.remove(&process);
            }
        }
    }

    /// Tasks that [`Self::sweep`] will drop.
    pub(crate) fn leaving(&self, ts: u64) -> impl Iterator<Item = TaskId> + '_ {
        self.dead.iter().take_while(move |(died, _)| died + KEEP_DEAD_NS < ts).map(|(_, id)| *id)
    }

    /// Drops tasks that have been dead, and programs that ended by exec, for a while before `ts`.
    pub(crate) fn sweep(&mut self, ts: u64) {
        while self.execs.front().is_some_and(|(exec, _)| exec + KEEP_DEAD_NS < ts) {
            self.forget_exec();
        }
        while self.dead.front().is_some_and(|(died, _)| died + KEEP_DEAD_NS < ts) {
            let Some((_, id)) = self.dead.pop_front() else { return };
            if let Some(entry) = self.entries[id as usize].take() {
                let key = (entry.task.tid, entry.task.start_ns);
                // a thread that execs may have taken over the leader's ids: then they are its own now
                if self.by_ident.get(&key) == Some(&id) {
                    self.by_ident.remove(&key);
                    if entry.task.tid == entry.task.pid {
                        self.processes.remove(&(entry.task.pid, entry.task.leader_start_ns));
                    }
                }
                self.drop_table(entry.files);
                self.free.push(id);
                self.latest = Default::default();
            }
        }
    }

    /// A thread that execs takes over its leader's ids.
    pub(crate) fn rename_ident(&mut self, id: TaskId, to: &Ident) {
        let old = (self.get(id).task.tid, self.get(id).task.start_ns);
        if old == (to.tid, to.start) {
            return;
        }
        // the leader's own entry gives way; its exit is reported under the old ids of the thread
        if let Some(leader) = self.by_ident.get(&(to.tid, to.start)).copied() {
            let task = self.get(leader).task.clone();
            let entry = self.get_mut(id);
            entry.task.utid = task.utid;
            entry.task.ns_tid = task.ns_tid;
            self.exit(leader, 0);
        }
        self.by_ident.remove(&old);
        self.by_ident.insert((to.tid, to.start), id);
        let entry = self.get_mut(id);
        entry.task.tid = to.tid;
        entry.task.start_ns = to.start;
        entry.interned = (u32::MAX, 0);
        self.latest = Default::default();
    }

    /// The task; `id` comes from this table and is not dropped while its records are being encoded.
    pub(crate) fn get(&self, id: TaskId) -> &TaskEntry {
        self.entries[id as usize].as_ref().expect("a task id is used only until the next sweep")
    }

    /// Finds an entry to change, as [`Self::get`] does.
    pub(crate) fn get_mut(&mut self, id: TaskId) -> &mut TaskEntry {
        self.entries[id as usize].as_mut().expect("a task id is used only until the next sweep")
    }

    /// The files of a task.
    pub(crate) fn files(&self, id: TaskId) -> &FdHistory {
        self.table(self.get(id).files)
    }

    /// Finds a table to change, as [`Self::files`] does.
    pub(crate) fn files_mut(&mut self, id: TaskId) -> &mut FdHistory {
        let table = self.get(id).files;
        &mut self.tables[table as usize].as_mut().expect("a live task holds its table").0
    }

    /// Leaders of the processes above targets that are no targets themselves, by name: for their place in the tree.
    pub(crate) fn above_targets(&self) -> Vec<Task> {
        let leaders: FxHashMap<u32, TaskId> =
            self.alive().filter(|(_, e)| e.task.tid == e.task.pid).map(|(id, e)| (e.task.pid, id)).collect();
        let mut above = BTreeSet::new();
        for (_, entry) in self.alive().filter(|(_, e)| e.task.recorded.anything()) {
            let mut parent = leaders.get(&entry.task.ppid);
            while let Some(&id) = parent.filter(|id| !self.is_target(**id) && !above.contains(*id)) {
                above.insert(id);
                parent = leaders.get(&self.get(id).task.ppid);
            }
        }
        above.into_iter().map(|id| self.on_tape(id).into_owned()).collect()
    }

    /// Tasks alive, of every process.
    pub(crate) fn alive(&self) -> impl Iterator<Item = (TaskId, &TaskEntry)> {
        let all = self.entries.iter().enumerate();
        all.filter_map(|(i, e)| e.as_ref().filter(|e| e.alive).map(|e| (i as TaskId, e)))
    }

    fn table(&self, table: u32) -> &FdHistory {
        &self.tables[table as usize].as_ref().expect("a live task holds its table").0
    }

    fn add(&mut self, mut task: Task) -> TaskId {
        self.next_utid += 1;
        task.utid = self.next_utid;
        task.upid = match self.processes.get(&(task.pid, task.leader_start_ns)) {
            Some(&upid) => upid,
            None => {
                let upid = self.adopt(&task).unwrap_or_else(|| {
                    self.next_upid += 1;
                    self.next_upid
                });
                self.processes.insert((task.pid, task.leader_start_ns), upid);
                upid
            }
        };
        let key = (task.tid, task.start_ns);
        // a thread nobody told about belongs to its process's table
        let leader = self.by_ident.get(&(task.pid, task.leader_start_ns)).copied();
        let files = match leader {
            Some(leader) => {
                let table = self.get(leader).files;
                self.share_table(table);
                table
            }
            None => self.new_table(FdHistory::default()),
        };
        let cwd = leader.and_then(|l| self.get(l).cwd.clone());
        let exe = leader.map(|l| self.get(l).task.exe.clone()).unwrap_or_default();
        let argv = leader.and_then(|l| self.get(l).argv.clone());
        let here = if self.nested { leader.map_or(0, |l| self.get(l).here) } else { task.pid };
        task.exe = exe;
        task.recorded = self.targets.untold(task.tid, task.pid);
        let entry = TaskEntry {
            task,
            here,
            interned: (u32::MAX, 0),
            files,
            cwd,
            own_cwd: false,
            argv,
            execed: None,
            closing: None,
            looked_up: false,
            argv_at: 0,
            told: false,
            marked: true,
            throttled: None,
            sender: false,
            alive: true,
            stranger: false,
            met: false,
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.entries[id as usize] = Some(entry);
                id
            }
            None => {
                self.entries.push(Some(entry));
                (self.entries.len() - 1) as TaskId
            }
        };
        self.by_ident.insert(key, id);
        self.latest = Default::default();
        id
    }

    /// The start of the process of threads known before it: `task`, which is new, has it. An older process with this
    /// pid that still exists is the thread's own.
    fn adopt(&mut self, task: &Task) -> Option<u32> {
        let (pid, start) = (task.pid, task.leader_start_ns);
        let upid = *self.processes.get(&(pid, 0)).filter(|_| start != 0)?;
        let mut younger = false;
        for entry in self.entries.iter_mut().flatten() {
            let orphan = entry.task.pid == pid && entry.task.leader_start_ns == 0;
            if orphan && entry.alive && entry.task.start_ns >= start {
                entry.task.leader_start_ns = start;
                entry.interned = (u32::MAX, 0);
                younger = true;
            }
        }
        younger.then(|| {
            self.processes.remove(&(pid, 0));
            upid
        })
    }

    fn new_table(&mut self, table: FdHistory) -> u32 {
        match self.free_tables.pop() {
            Some(i) => {
                self.tables[i as usize] = Some((table, 1));
                i
            }
            None => {
                self.tables.push(Some((table, 1)));
                (self.tables.len() - 1) as u32
            }
        }
    }

    fn share_table(&mut self, table: u32) {
        if let Some((_, users)) = &mut self.tables[table as usize] {
            *users += 1;
        }
    }

    fn drop_table(&mut self, table: u32) {
        let slot = &mut self.tables[table as usize];
        if let Some((_, users)) = slot {
            *users -= 1;
            if *users == 0 {
                *slot = None;
                self.free_tables.push(table);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(tid: u32, pid: u32, start: u64, comm: &str) -> WireTask {
        let mut w = WireTask {
            id: Ident { tid, pid, start, leader_start: if tid == pid { start } else { 1 } },
            ..WireTask::default()
        };
        for (to, from) in w.comm.iter_mut().zip(comm.bytes()) {
            *to = from.cast_signed();
        }
        w
    }

    #[test]
    fn a_thread_met_before_its_process_is_of_that_process() {
        let mut tasks = Tasks::default();
        let who = |tid, pid, start| Who { tid, pid, start, ..Who::default() };
        // nobody tells when the process of a thread began
        let thread = tasks.meet(&who(11, 10, 700));
        let other = tasks.meet(&who(12, 10, 800));
        assert_eq!(tasks.get(thread).task.upid, tasks.get(other).task.upid);
        let leader = tasks.meet(&who(10, 10, 500));
        assert_eq!(tasks.get(thread).task.upid, tasks.get(leader).task.upid, "one process 10");
        assert_eq!([thread, other].map(|id| tasks.get(id).task.leader_start_ns), [500; 2]);
        // another process that got the number later is another
        let early = tasks.meet(&who(21, 20, 700));
        let late = tasks.meet(&who(20, 20, 900));
        assert_ne!(tasks.get(early).task.upid, tasks.get(late).task.upid);
        let thread = tasks.meet(&who(22, 20, 950));
        assert_eq!(tasks.get(thread).task.upid, tasks.get(late).task.upid);
    }

    #[test]
    fn ids_are_told_apart_by_their_start() {
        let mut tasks = Tasks::default();
        let a = tasks.learn(&wire(7, 7, 100, "a"));
        let b = tasks.learn(&wire(7, 7, 200, "b"));
        assert_ne!(a, b);
        assert_ne!(tasks.get(a).task.upid, tasks.get(b).task.upid);
        assert_eq!(tasks.find(&wire(7, 7, 100, "").id), Some(a));
        assert_eq!(tasks.get(a).task.comm, b"a");
    }

    #[test]
    fn ids_of_another_namespace_are_known_only_when_told() {
        let mut tasks = Tasks::new(true, Targets::default());
        let main = tasks.learn(&WireTask { here_pid: 3, ..wire(7, 7, 1, "main") });
        let thread = tasks.find_or_add(&wire(8, 7, 10, "").id);
        let stranger = tasks.find_or_add(&wire(3, 3, 10, "").id);
        assert_eq!([main, thread, stranger].map(|id| tasks.get(id).here), [3, 3, 0]);
        // of the dead the kernel has no ids any more
        tasks.learn(&wire(7, 7, 1, "main"));
        assert_eq!(tasks.get(main).here, 3);
        let mut first = Tasks::new(false, Targets::default());
        let main = first.find_or_add(&wire(7, 7, 1, "").id);
        assert_eq!(first.get(main).here, 7);
    }

    #[test]
    fn threads_share_files_and_processes_copy_them() {
        let mut tasks = Tasks::default();
        let main = tasks.learn(&wire(7, 7, 1, "main"));
        tasks.files_mut(main).set(5, 3, Name::new(b"/a".into()), false);
        let thread = tasks.fork(&wire(8, 7, 10, "main"), main, true, true, true);
        let child = tasks.fork(&wire(9, 9, 11, "main"), main, false, false, false);
        tasks.files_mut(thread).close(20, 3);
        assert!(tasks.files(main).at(21, 3).is_none());
        assert_eq!(tasks.files(child).at(21, 3).unwrap().bytes, b"/a");
        assert_eq!(tasks.get(main).task.upid, tasks.get(thread).task.upid);
        assert_ne!(tasks.get(main).task.upid, tasks.get(child).task.upid);
        tasks.unshare_files(thread);
        tasks.files_mut(thread).set(30, 9, Name::new(b"/t".into()), false);
        assert!(tasks.files(main).at(31, 9).is_none());
    }

    #[test]
    fn a_comm_is_compared_without_its_nuls() {
        let raw = |text: &str| {
            let mut raw = [0; 16];
            raw.iter_mut().zip(text.bytes()).for_each(|(to, c)| *to = c.cast_signed());
            raw
        };
        for text in ["", "dd", "fifteen-letters", "sixteen-letters!"] {
            for other in ["", "d", "dd", "ddd", "fifteen-letters", "sixteen-letters!", "sixteen-letters!!"] {
                assert_eq!(is_comm(&raw(text), other.as_bytes()), text == other, "{text} {other}");
            }
        }
        // what is behind the first NUL is none of it
        let mut rest = raw("dd");
        rest[3] = 7;
        assert!(is_comm(&rest, b"dd") && !is_comm(&rest, b"dd\0\x07") && !is_comm(&rest, b"dd\0"));
    }

    #[test]
    fn the_dead_are_kept_a_while_and_then_forgotten() {
        let mut tasks = Tasks::default();
        let a = tasks.learn(&wire(7, 7, 100, "a"));
        tasks.exit(a, 1_000);
        tasks.sweep(1_000_000);
        assert_eq!(tasks.find(&wire(7, 7, 100, "").id), Some(a));
        tasks.sweep(1_000 + KEEP_DEAD_NS + 1);
        assert_eq!(tasks.find(&wire(7, 7, 100, "").id), None);
        let b = tasks.learn(&wire(9, 9, 5, "b"));
        assert_eq!(tasks.get(b).task.utid, 2, "numbers are not reused");
    }

    #[test]
    fn a_thread_that_execs_becomes_the_leader() {
        let mut tasks = Tasks::default();
        let main = tasks.learn(&wire(7, 7, 1, "main"));
        let thread = tasks.fork(&wire(8, 7, 10, "main"), main, true, true, true);
        let utid = tasks.get(main).task.utid;
        tasks.rename_ident(thread, &wire(7, 7, 1, "").id);
        assert_eq!(tasks.find(&wire(7, 7, 1, "").id), Some(thread));
        assert_eq!((tasks.get(thread).task.tid, tasks.get(thread).task.utid), (7, utid));
    }

    #[test]
    fn a_thread_nobody_announced_joins_its_process() {
        let mut tasks = Tasks::default();
        let main = tasks.learn(&wire(7, 7, 1, "main"));
        tasks.files_mut(main).set(5, 3, Name::new(b"/a".into()), false);
        let thread = tasks.find_or_add(&wire(8, 7, 10, "").id);
        assert_eq!(tasks.files(thread).at(6, 3).unwrap().bytes, b"/a");
        assert_eq!(tasks.get(thread).task.uid, UID_UNKNOWN);
    }
}
