//! State common to all families: tasks, facts about calls, descriptors, and reads of /proc that are repeated because
//! records were lost.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use rustc_hash::FxHashMap;
use systape_abi::descriptors::SocketUse;
use systape_bpf::wire::{self, Ident};
use systape_format::model::Container;

use super::lookups::{Answer, ProcLookups};
use super::touched::Touched;
use crate::descriptors::names::{FileKey, Name};
use crate::descriptors::sockets::Sockets;
use crate::machine::cgroup_limits::{Hierarchy, Value};
use crate::machine::containers;
use crate::machine::devices::Late;
use crate::machine::environ::{EnvironKeys, EnvironParts};
use crate::machine::mounts::Mounts;
use crate::tasks::effects::CallFacts;
use crate::tasks::snapshot;
use crate::tasks::{TaskId, Tasks};

/// Most processes that wait to be read again.
const MAX_REREADS: usize = 4096;

/// A requested read of /proc, which waits until the events of its time are processed.
#[derive(Debug)]
pub(super) struct Reread {
    pub pid: u32,
    /// What /proc has of the process; None = not read yet.
    pub process: Option<snapshot::ProcessReading>,
    /// Its descriptors that events changed since the request.
    touched: Touched,
    /// The directory it changed to since; None in it = not known.
    cwd: Option<Option<Vec<u8>>>,
    /// Records were lost since, or the process executed another program: it must be read again.
    pub stale: bool,
}

/// A socket got a name.
#[derive(Debug)]
pub(super) struct Renamed {
    pub ts: u64,
    /// Whose call did it; None = it had the name when the recording began.
    pub task: Option<TaskId>,
    pub socket: wire::Socket,
}

/// State that all families need.
pub(super) struct World {
    /// Tasks, with their descriptors.
    pub tasks: Tasks,
    /// What their sockets are called.
    pub sockets: Sockets,
    /// Files that descriptors of processes stand for, and since when they are known; while the state at the start is added.
    pub opened: (u64, FxHashMap<(u32, i32), wire::Inode>),
    /// Tasks with a new name that is not on the tape yet.
    pub renamed: Vec<Renamed>,
    calls: CallInfos,
    pub rereads: Vec<Reread>,
    /// Where file systems are.
    pub mounts: Mounts,
    lookups: ProcLookups,
    /// Environment variables to keep, and the parts of an environment so far.
    pub environ: (Arc<EnvironKeys>, EnvironParts),
    /// What became known of containers and is not on the tape yet.
    pub containers: Vec<Container>,
    /// Block devices that the tape does not have yet.
    pub devices: Vec<Late>,
    /// Limits of cgroups that the tape does not have yet.
    pub limits: Vec<Value>,
    /// Losses of state records that the events have not reached: time of the first, process, time until which there may
    /// have been more.
    losses: BTreeSet<(u64, u32, u64)>,
}

/// Facts about calls, each found when it is first wanted.
#[derive(Debug, Default)]
struct CallInfos {
    /// For each ABI below [`CallInfos::ABIS`], by number.
    frequent: [Vec<Option<CallFacts>>; Self::ABIS],
    /// Those of other ABIs and of numbers from [`CallInfos::NUMBERS`] on.
    rest: FxHashMap<(u8, u32), CallFacts>,
}

impl CallInfos {
    const ABIS: usize = 4;
    const NUMBERS: usize = 1024;

    #[inline]
    fn get(&mut self, abi: u8, nr: u32) -> &mut CallFacts {
        let (table, at) = (usize::from(abi), nr as usize);
        if table < Self::ABIS && at < Self::NUMBERS {
            let table = &mut self.frequent[table];
            if table.len() <= at {
                table.resize(Self::NUMBERS, None);
            }
            return table[at].get_or_insert_with(|| CallFacts::new(abi, nr));
        }
        self.rest.entry((abi, nr)).or_insert_with(|| CallFacts::new(abi, nr))
    }
}

impl World {
    pub(crate) fn new(tasks: Tasks, env: Arc<EnvironKeys>) -> Self {
        Self {
            tasks,
            sockets: Sockets::default(),
            opened: Default::default(),
            renamed: Vec::new(),
            calls: CallInfos::default(),
            rereads: Vec::new(),
            mounts: Mounts::default(),
            lookups: ProcLookups::default(),
            environ: (env, EnvironParts::default()),
            containers: Vec::new(),
            devices: Vec::new(),
            limits: Vec::new(),
            losses: BTreeSet::new(),
        }
    }

    /// Facts about a call.
    pub(crate) fn call_info(&mut self, abi: u8, nr: u32) -> CallFacts {
        *self.calls.get(abi, nr)
    }

    /// A call got a number in a segment: (segment, number).
    pub(crate) fn call_is_interned(&mut self, abi: u8, nr: u32, interned: (u32, u32)) {
        self.calls.get(abi, nr).interned = interned;
    }

    /// Adds the data read of a process whose live tasks are `members`; its descriptors, except those that `keep`
    /// refuses, are valid from `since` on.
    pub(crate) fn apply_process(
        &mut self,
        process: &snapshot::ProcessReading,
        members: &[TaskId],
        since: u64,
        keep: impl Fn(i32) -> bool,
    ) {
        for &id in members {
            let entry = self.tasks.get_mut(id);
            entry.task.exe.clone_from(&process.exe);
            entry.task.env.clone_from(&process.env);
            if process.argv.is_some() {
                entry.argv.clone_from(&process.argv);
            }
            if !entry.own_cwd {
                entry.cwd = process.cwd.clone().map(Name::new);
            }
            entry.interned = (u32::MAX, 0);
        }
        // a thread may have a table of its own
        let leader = members.iter().find(|id| self.tasks.get(**id).task.tid == process.pid);
        if let Some(&first) = leader.or(members.first()) {
            self.apply_files(process, first, since, keep);
        }
    }

    /// Adds what some threads have apart from their process.
    pub(crate) fn apply_apart(
        &mut self,
        process: &snapshot::ProcessReading,
        threads: &[TaskId],
        keep: impl Fn(i32) -> bool,
    ) {
        let of = &process.of;
        self.tasks.set_apart(threads, of.files, of.dir.then(|| process.cwd.clone().map(Name::new)));
        if let Some(&first) = threads.first().filter(|_| of.files) {
            self.apply_files(process, first, 0, keep);
        }
    }

    fn apply_files(
        &mut self,
        process: &snapshot::ProcessReading,
        task: TaskId,
        since: u64,
        keep: impl Fn(i32) -> bool,
    ) {
        let Some(fds) = &process.fds else { return };
        let process_of = self.tasks.get(task).process();
        // among the rest of a long list may be one too
        let unseen = !self.tasks.follows_rings;
        let opaque = unseen && (process.cut || fds.iter().any(|(_, name, _)| name == b"anon_inode:[io_uring]"));
        let files = self.tasks.files_mut(task);
        if opaque {
            files.make_opaque(since);
        }
        for (fd, name, cloexec) in fds {
            if keep(*fd) {
                let (at, opened) = &self.opened;
                let inode = opened.get(&(process.pid, *fd)).filter(|_| name.starts_with(b"/") && !process.of.files);
                let file = match inode {
                    Some(inode) => Name::of_file(name.clone(), Some(FileKey { since: *at, inode: *inode })),
                    None => self.sockets.file(name),
                };
                let owner = file.names.as_ref().map(|names| &names.owner).filter(|owner| owner.get().is_none());
                owner.into_iter().for_each(|owner| owner.set(Some(process_of)));
                files.set(since, *fd, file, *cloexec);
            }
        }
        if !process.cut {
            files.set_complete();
        }
    }

    /// The file of a name that the kernel side read at the end of a call; None = it could not.
    pub(crate) fn file(&mut self, raw: &[u8], ts: u64, (task, by): (TaskId, SocketUse)) -> Option<Rc<Name>> {
        let Some(socket) = wire::socket(raw) else { return wire::name(raw).map(Name::new) };
        Some(self.socket(&socket, ts, Some(task), by))
    }

    /// A socket with its facts at `ts`.
    pub(crate) fn socket(&mut self, socket: &wire::Socket, ts: u64, task: Option<TaskId>, by: SocketUse) -> Rc<Name> {
        let (file, renamed) = self.sockets.learn(socket, ts, by);
        if let (Some(task), Some(names), SocketUse::Makes | SocketUse::Accepts) = (task, &file.names, by) {
            names.owner.set(Some(self.tasks.get(task).process()));
        }
        if renamed {
            self.renamed.push(Renamed { ts, task, socket: *socket });
        }
        file
    }

    /// The process that made or accepted a socket, or had it open when it was first seen: its first thread; None = not known.
    pub(crate) fn owner(&mut self, inode: u64) -> Option<TaskId> {
        let (pid, start) = self.sockets.find(inode)?.names.as_ref()?.owner.get()?;
        self.tasks.find(&Ident { pid, tid: pid, start, leader_start: start })
    }

    /// Requests a read of the process's files from /proc, if it is visible there; they are valid from the time of the
    /// read, once the events until then are processed.
    pub(crate) fn reread(&mut self, task: TaskId) {
        let entry = self.tasks.get(task);
        let (pid, here) = (entry.task.pid, entry.here);
        let asked = self.rereads.iter().any(|r| r.pid == pid);
        if here != 0 && self.rereads.len() < MAX_REREADS && !asked && self.lookups.process(pid, here, &self.environ.0) {
            self.rereads.push(Reread { pid, process: None, touched: Touched::default(), cwd: None, stale: false });
        }
    }

    /// Requests what a block device is called, and what it is made of.
    pub(crate) fn look_up_device(&mut self, dev: u32) {
        self.lookups.device(dev);
    }

    /// Requests what is known of the container that a new cgroup is named after, if it is.
    pub(crate) fn look_up_container(&mut self, path: &[u8]) {
        if let Some(id) = containers::id(path) {
            self.lookups.container(id);
        }
    }

    /// Requests the limits of a cgroup and of those above it, by the number of its hierarchy and its path, or those of all. False = they
    /// will not be read.
    pub(super) fn look_up_limits(&mut self, hierarchies: Arc<[Hierarchy]>, of: Option<(u8, Vec<u8>)>) -> bool {
        self.lookups.limits(hierarchies, of)
    }

    /// Waits for the limits that were requested, until then.
    pub(super) fn wait_for_limits(&mut self, until: Instant) {
        self.lookups.wait_for_limits(until).into_iter().for_each(|answer| self.looked_up(answer));
    }

    /// Adds the data read since the last time.
    pub(crate) fn take_lookups(&mut self) {
        while let Some(answer) = self.lookups.take() {
            self.looked_up(answer);
        }
    }

    /// The executable of a task, if it can be read in a moment; otherwise it is added later.
    pub(crate) fn look_up_exe(&mut self, id: Ident, here: u32, argv_at: u64) {
        self.lookups.exe(id, here, argv_at).into_iter().for_each(|answer| self.looked_up(answer));
    }

    fn looked_up(&mut self, answer: Answer) {
        match answer {
            Answer::Files(process) => match self.rereads.iter_mut().find(|r| r.pid == process.pid) {
                Some(reread) => reread.process = Some(process),
                None => self.lookups.give_back(&process),
            },
            Answer::Limits(values) => self.limits.extend(values),
            Answer::Device(found) => self.devices.extend(found),
            Answer::Container(found) => self.containers.extend(found),
            Answer::Argv(pid, (argv, env), read) => {
                let process = self.rereads.iter_mut().find(|r| r.pid == pid).and_then(|r| r.process.as_mut());
                if let Some(process) = process {
                    (process.argv, process.env, process.to) = (argv, env, process.to.max(read));
                }
            }
            Answer::Exe(id, argv_at, exe) => {
                if let Some(task) = self.tasks.find(&id).filter(|_| !exe.is_empty()) {
                    let entry = self.tasks.get_mut(task);
                    if entry.task.exe.is_empty() && entry.argv_at == argv_at {
                        entry.task.exe = exe;
                        entry.interned = (u32::MAX, 0);
                    }
                }
            }
        }
    }

    /// Descriptors of a process change.
    pub(super) fn touch(&mut self, pid: u32, change: impl Fn(&mut Touched)) {
        self.rereads.iter_mut().filter(|r| r.pid == pid).for_each(|reread| change(&mut reread.touched));
    }

    /// Adds the data read before `watermark`.
    pub(crate) fn apply_rereads(&mut self, watermark: u64) {
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
            self.apply_process(&process, &members, process.to, |fd| !touched.contains(fd));
        }
    }

    /// State records of `pid` (0: of any process) were lost: one at `first`, perhaps others, the last before `last`.
    pub(crate) fn lost_state(&mut self, pid: u32, first: u64, last: u64) {
        self.losses.insert((first, pid, last));
    }

    /// The events have reached `watermark`: losses until then take effect.
    pub(crate) fn apply_losses(&mut self, watermark: u64) {
        while let Some((first, pid, last)) = self.losses.first().copied().filter(|(first, ..)| *first <= watermark) {
            self.losses.pop_first();
            self.forget_sockets(pid, first);
            self.forget_files(pid, first, last);
        }
    }

    /// What the sockets of `pid` (0: of any process) are called may have changed since `ts`.
    fn forget_sockets(&self, pid: u32, ts: u64) {
        for (id, _) in self.tasks.alive().filter(|(_, e)| pid == 0 || e.task.pid == pid) {
            self.tasks.files(id).forget_sockets(ts);
        }
    }

    /// The changes that `pid` (0: any process) made to its descriptors between `first` and `last` are not known.
    pub(crate) fn forget_files(&mut self, pid: u32, first: u64, last: u64) {
        let hit = self.tasks.alive().filter(|(_, e)| pid == 0 || e.task.pid == pid);
        let hit: Vec<TaskId> = hit.map(|(id, _)| id).collect();
        for &id in &hit {
            self.tasks.files_mut(id).forget(first, last);
            let entry = self.tasks.get_mut(id);
            entry.cwd = None;
            if !entry.task.env.is_empty() {
                // another program may have begun
                entry.task.env = Vec::new();
                entry.interned = (u32::MAX, 0);
            }
            let pid = entry.task.pid;
            // read again when its turn comes, not at once: records may be lost for long, and reading is dear
            self.outdate(pid);
        }
        // threads share what is read
        hit.into_iter().for_each(|id| self.reread(id));
    }

    /// Data requested or read of a process is outdated: records were lost, or it executed another program.
    pub(crate) fn outdate(&mut self, pid: u32) {
        for reread in self.rereads.iter_mut().filter(|r| r.pid == pid) {
            reread.stale = true;
        }
    }

    /// The process of `task` changed its directory after the waiting request.
    pub(crate) fn moved(&mut self, task: TaskId) {
        let entry = self.tasks.get(task);
        for reread in self.rereads.iter_mut().filter(|r| r.pid == entry.task.pid) {
            reread.cwd = Some(entry.cwd.as_ref().map(|cwd| cwd.bytes.clone()));
        }
    }
}
