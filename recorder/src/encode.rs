//! Turns wire records, in time order, into segments and checkpoints.
//!
//! One thread does this, because it keeps the state that must be followed in order: who is who ([`Tasks`]) and what
//! each fd stands for. Sorting inside a segment, column building and compression happen elsewhere.

use std::collections::HashSet;
use std::time::Duration;

use rustc_hash::FxHashMap;
use systape_abi::{Abi, Effect, Selection};
use systape_bpf::wire::{self, CAPTURE_NAME0, CAPTURE_NAME1, Record, Snap, Syscall, captures};
use systape_format::model::{
    ByteStatus, CPU_NONE, Call, CallState, Checkpoint, FD_NONE, FD_UNKNOWN, FORK_SHARES_FILES, FORK_SHARES_FS,
    FORK_THREAD, Family, Fd, FdTable, Gap, GapCause, InFlight, ProcessEvent, ProcessKind, SyscallRow,
};
use systape_format::segment::{SegmentBuilder, SegmentData};

use crate::clock;
use crate::effects::{self, CallInfo, Returned};
use crate::fds::Name;
use crate::order::{Batch, Order, Pending};
use crate::snapshot;
use crate::tasks::{Execed, TaskId, Tasks};

const EBADF: u16 = 9;

/// What goes on to be compressed, in this order.
#[derive(Debug)]
pub enum Piece {
    /// The head of a chunk.
    Checkpoint(Box<Checkpoint>),
    /// A window's events.
    Segment(Box<SegmentData>),
}

/// What the encoder needs to know of the recording.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Calls the user asked for.
    pub selection: Selection,
    /// Start of the recording.
    pub window_open: u64,
    /// Longest life of a segment.
    pub flush: Duration,
    /// What the BPF side asks at each call, for calls that began before it could.
    pub filter: TaskFilter,
}

/// Filters by what a task is; None = not asked.
#[derive(Clone, Debug, Default)]
pub struct TaskFilter {
    /// Real uid.
    pub uid: Option<u32>,
    /// Name of the thread.
    pub comm: Option<Vec<u8>>,
    /// cgroup v2 ids.
    pub cgroups: Option<Vec<u64>>,
}

impl TaskFilter {
    /// Whether the task passes.
    pub fn passes(&self, task: &wire::Task) -> bool {
        self.uid.is_none_or(|uid| uid == task.uid)
            && self.comm.as_ref().is_none_or(|comm| *comm == wire::comm(&task.comm))
            && self.cgroups.as_ref().is_none_or(|ids| ids.contains(&task.cgroup_id))
    }
}

/// The state at the start.
#[derive(Debug)]
pub struct Start {
    /// Every task.
    pub snaps: Vec<Snap>,
    /// Processes that are recorded.
    pub processes: Vec<snapshot::Process>,
    /// When the last of it was read.
    pub done: u64,
}

/// Numbers for the last line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Calls stored.
    pub calls: u64,
    /// Events of process life stored.
    pub processes: u64,
}

/// A /proc reading that waits until the events of its time are known.
#[derive(Debug)]
struct Reread {
    process: snapshot::Process,
    touched: HashSet<i32>,
}

/// See the module.
pub struct Encoder {
    settings: Settings,
    order: Order,
    tasks: Tasks,
    calls: FxHashMap<(u8, u32), CallInfo>,
    builder: SegmentBuilder,
    segment: u32,
    window_start: u64,
    /// Time of the latest record so far.
    latest: u64,
    first_row: Option<u64>,
    rereads: Vec<Reread>,
    /// Calls that ended after the recording did: not in flight.
    ended: HashSet<(TaskId, u64)>,
    close_ts: Option<u64>,
    totals: Totals,
    pieces: Vec<Piece>,
}

impl Encoder {
    /// Begins with what was there before.
    pub fn new(settings: Settings) -> Self {
        let window_start = settings.window_open;
        Self {
            settings,
            order: Order::default(),
            tasks: Tasks::default(),
            calls: FxHashMap::default(),
            builder: SegmentBuilder::new(window_start),
            segment: 0,
            window_start,
            latest: window_start,
            first_row: None,
            rereads: Vec::new(),
            ended: HashSet::new(),
            close_ts: None,
            totals: Totals::default(),
            pieces: Vec::new(),
        }
    }

    /// Adds records; nothing is done with them before [`Self::advance`].
    pub fn add(&mut self, batch: Batch) {
        self.order.add(batch);
    }

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
        let checkpoint = self.checkpoint(self.settings.window_open, &start.snaps, "snapshot");
        self.pieces.push(Piece::Checkpoint(Box::new(checkpoint)));
    }

    /// fds that waiting records touch before `until`, by process.
    fn touched_fds(&mut self, until: u64) -> FxHashMap<u32, HashSet<i32>> {
        let mut touched: FxHashMap<u32, HashSet<i32>> = FxHashMap::default();
        for pending in self.order.before(until) {
            match wire::parse(pending.bytes()) {
                Ok(Record::Closing(c)) => {
                    let set = touched.entry(c.id.pid).or_default();
                    set.extend([c.args[0] as i32, c.args[1] as i32]);
                }
                Ok(Record::Syscall(s, _)) if s.ret >= 0 && captures(&s).any(|c| c.arg >= CAPTURE_NAME0) => {
                    touched.entry(s.id.pid).or_default().insert(s.ret as i32);
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
            entry.cwd = process.cwd.clone().map(Name::new);
            entry.interned = (u32::MAX, 0);
        }
        let (Some(&first), Some(fds)) = (members.first(), &process.fds) else { return };
        let files = self.tasks.files_mut(first);
        for (fd, name, cloexec) in fds {
            if keep(*fd) {
                files.set(since, *fd, Name::new(name.clone()), *cloexec);
            }
        }
        files.set_complete();
    }

    /// Encodes every record before `watermark`; u64::MAX stands for all there are.
    pub fn advance(&mut self, watermark: u64) {
        for pending in self.order.take(watermark) {
            self.latest = self.latest.max(pending.ts);
            self.record(&pending);
            if self.builder.is_full() {
                // a later record may carry the same time: it belongs to this window's end all the same
                self.close_segment(pending.ts.saturating_add(1));
            }
        }
        let watermark = if watermark == u64::MAX { self.latest.saturating_add(1) } else { watermark };
        let bad = self.order.take_bad();
        if bad > 0 {
            self.gap(GapCause::BadRecord, Family::Unknown, CPU_NONE, bad, self.window_start, watermark, 0);
        }
        self.apply_rereads(watermark);
        self.tasks.sweep(watermark);
        let life = self.settings.flush.as_nanos() as u64;
        if self.first_row.is_some_and(|first| watermark.saturating_sub(first) >= life) {
            self.close_segment(watermark);
        }
    }

    fn record(&mut self, pending: &Pending) {
        match wire::parse(pending.bytes()) {
            Ok(Record::Syscall(s, data)) => self.syscall(&s, data),
            Ok(Record::Closing(c)) => {
                let task = self.tasks.find_or_add(&c.id);
                let effect = self.call_info(c.abi, c.nr).effect;
                self.touch(c.id.pid, [c.args[0] as i32, c.args[1] as i32]);
                effects::entered(&mut self.tasks, task, effect, c.ts, &c.args);
            }
            Ok(Record::Task(t)) => self.task(&t),
            Ok(Record::Fork(f)) => self.fork(&f),
            Ok(Record::Exec(e, path, argv)) => self.exec(&e, path, argv),
            Ok(Record::Exit(e)) => self.exit(&e),
            Err(_) => self.gap(GapCause::BadRecord, Family::Unknown, CPU_NONE, 1, pending.ts, pending.ts, 0),
        }
    }

    fn call_info(&mut self, abi: u8, nr: u32) -> CallInfo {
        *self.calls.entry((abi, nr)).or_insert_with(|| CallInfo::new(abi, nr))
    }

    fn interned_call(&mut self, abi: u8, nr: u32, info: &CallInfo) -> u32 {
        if info.interned.0 == self.segment {
            return info.interned.1;
        }
        let index = self.builder.intern_call(Call { abi, nr });
        if let Some(info) = self.calls.get_mut(&(abi, nr)) {
            info.interned = (self.segment, index);
        }
        index
    }

    fn interned_task(&mut self, id: TaskId) -> u32 {
        let (segment, index) = self.tasks.get(id).interned;
        if segment == self.segment {
            return index;
        }
        let index = self.builder.intern_task(&self.tasks.get(id).task);
        self.tasks.get_mut(id).interned = (self.segment, index);
        index
    }

    fn interned_name(&mut self, name: &Name) -> u32 {
        let (segment, index) = name.interned.get();
        if segment == self.segment {
            return index;
        }
        let index = self.builder.intern_fd_name(&name.bytes);
        name.interned.set((self.segment, index));
        index
    }

    fn syscall(&mut self, s: &Syscall, data: &[u8]) {
        let Some(state) = CallState::from_raw(s.state) else { return };
        let task = self.tasks.find_or_add(&s.id);
        let info = self.call_info(s.abi, s.nr);
        let (errno, ret) = split_ret(s.ret, state);
        if self.close_ts.is_some_and(|closed| s.end >= closed) {
            self.ended.insert((task, s.start));
        }
        let [fd, fd2] = info.fd_args.map(|arg| arg.map_or(FD_NONE, |arg| self.fd_of(task, &info, s, errno, arg)));
        // arguments the call does not have are whatever the registers held
        let mut args = [0; 6];
        args[..info.args].copy_from_slice(&s.args[..info.args]);
        let row = SyscallRow {
            end: s.end,
            dur: s.end.saturating_sub(s.start),
            cpu: s.hdr.cpu,
            task: self.interned_task(task),
            call: self.interned_call(s.abi, s.nr, &info),
            ret,
            errno,
            state,
            unselected: s.hdr.flags & wire::UNSELECTED != 0,
            args,
            fd,
            fd2,
        };
        self.first_row.get_or_insert(s.end);
        self.totals.calls += 1;
        let row = self.builder.push_syscall(row);
        let returned = self.captured(row, task, &info, s, data);
        if errno != 0 {
            effects::failed(&mut self.tasks, task, &info);
        } else if state.returned() {
            if let Some(effects) = returned {
                if info.effect != Effect::None {
                    self.touch(s.id.pid, [s.ret as i32, -1]);
                }
                effects::returned(
                    &mut self.tasks,
                    task,
                    &info,
                    Returned { end: s.end, ret: s.ret, args: &s.args, ..effects },
                );
            }
        }
    }

    fn fd_of(&mut self, task: TaskId, info: &CallInfo, s: &Syscall, errno: u16, arg: usize) -> u32 {
        let fd = s.args[arg] as i32;
        if fd < 0 {
            return FD_NONE;
        }
        let start = if s.state == CallState::BeganBefore as u8 { self.settings.window_open } else { s.start };
        match effects::resolve(&mut self.tasks, task, info, start, fd) {
            // EBADF: whatever the table says, this call found nothing there
            Some(name) if errno != EBADF => self.interned_name(&name),
            _ => FD_UNKNOWN,
        }
    }

    /// Stores what was captured of a call's arguments; gives back what the kernel side said of new fds.
    fn captured<'a>(
        &mut self,
        row: u32,
        task: TaskId,
        info: &CallInfo,
        s: &'a Syscall,
        data: &[u8],
    ) -> Option<Returned<'a>> {
        let mut known = Returned {
            end: s.end,
            ret: s.ret,
            args: &s.args,
            name0: None,
            name1: None,
            pair: None,
            open_how_flags: None,
        };
        let execed = if info.effect == Effect::Exec { self.tasks.get_mut(task).execed.take() } else { None };
        let execed = execed.filter(|_| s.ret == 0);
        let mut at = 0;
        for capture in captures(s) {
            let bytes = data.get(at..at + usize::from(capture.len))?;
            at += usize::from(capture.len);
            match capture.arg {
                CAPTURE_NAME0 => known.name0 = wire::name(bytes),
                CAPTURE_NAME1 => known.name1 = wire::name(bytes),
                arg => {
                    let status = ByteStatus::from_raw(capture.status).unwrap_or(ByteStatus::NotResident);
                    if let Some(execed) = execed.as_ref().filter(|_| !status.is_whole())
                        && self.captured_exec(row, arg, info, execed)
                    {
                        continue;
                    }
                    self.builder.push_captured(row, arg, status, u64::from(capture.full), bytes);
                    if info.effect == Effect::NewFdPair {
                        known.pair = pair_of(bytes);
                    } else if info.effect == Effect::NewFd && arg == 2 {
                        known.open_how_flags = bytes.first_chunk::<8>().map(|b| u64::from_ne_bytes(*b));
                    }
                }
            }
        }
        Some(known)
    }

    /// Bytes of an exec's argument that was not resident at enter: the kernel's copy, from the exec that succeeded.
    fn captured_exec(&mut self, row: u32, arg: u8, info: &CallInfo, execed: &Execed) -> bool {
        if Some(arg) != info.argv_arg {
            self.builder.push_captured(row, arg, ByteStatus::Late, execed.path.len() as u64, &execed.path);
            return true;
        }
        let (Some(argv), Some(status)) = (&execed.argv, ByteStatus::from_raw(execed.argv_status)) else { return false };
        self.builder.push_captured(row, arg, status, execed.argv_full, argv);
        true
    }

    fn process_event(&mut self, ev: ProcessEvent) {
        self.totals.processes += 1;
        self.first_row.get_or_insert(ev.ts);
        self.builder.push_process(ev);
    }

    fn event(&mut self, kind: ProcessKind, ts: u64, task: TaskId) -> ProcessEvent {
        let index = self.interned_task(task);
        ProcessEvent {
            ts,
            kind,
            task: index,
            parent: index,
            flags: 0,
            exit_code: 0,
            group_dead: false,
            path: Vec::new(),
            argv: Vec::new(),
            argv_full: 0,
            argv_status: ByteStatus::Whole,
            old_tid: 0,
            comm: Vec::new(),
        }
    }

    fn task(&mut self, t: &wire::Task) {
        let known = self.tasks.find(&t.id).is_some();
        let id = self.tasks.learn(t);
        match t.hdr.flags {
            wire::TASK_RENAME => {
                let mut ev = self.event(ProcessKind::Rename, t.ts, id);
                ev.comm.clone_from(&self.tasks.get(id).task.comm);
                self.process_event(ev);
            }
            wire::TASK_CRED => {
                let ev = self.event(ProcessKind::Cred, t.ts, id);
                self.process_event(ev);
            }
            // its first call came after the start: its files were never told
            _ if !known && !self.tasks.files(id).is_complete() => self.reread(t.id.pid),
            _ => {}
        }
    }

    fn fork(&mut self, f: &wire::Fork) {
        let parent = self.tasks.find_or_add(&f.parent);
        let flags = u32::from(f.child.hdr.flags);
        let has = |bit| flags & bit != 0;
        let child = self.tasks.fork(&f.child, parent, has(FORK_SHARES_FILES), has(FORK_THREAD), has(FORK_SHARES_FS));
        let mut ev = self.event(ProcessKind::Fork, f.child.ts, child);
        ev.parent = self.interned_task(parent);
        ev.flags = flags;
        self.process_event(ev);
    }

    fn exec(&mut self, e: &wire::Exec, path: &[u8], argv: &[u8]) {
        let ts = e.task.ts;
        let old = wire::Ident { tid: e.old_tid, ..e.task.id };
        let found = self.tasks.find(&e.task.id);
        if e.old_tid != e.task.id.tid {
            // the thread that called exec: its start time is no longer told, its process is
            let thread = self.tasks.alive().find(|(_, t)| t.task.tid == old.tid && t.task.pid == e.task.id.pid);
            if let Some(thread) = thread.map(|(id, _)| id) {
                self.tasks.rename_ident(thread, &e.task.id);
            }
        } else if found.is_none() {
            self.tasks.find_or_add(&e.task.id);
        }
        let id = self.tasks.learn(&e.task);
        self.tasks.unshare_files(id);
        self.tasks.files_mut(id).exec(ts);
        let argv = argv.strip_suffix(&[0]).unwrap_or(argv);
        let exe = self.absolute(id, path);
        let entry = self.tasks.get_mut(id);
        entry.task.exe = exe;
        entry.execed = Some(Execed {
            path: path.to_vec(),
            argv: (e.interpreted == 0).then(|| argv.to_vec()),
            argv_status: e.argv_status,
            argv_full: u64::from(e.argv_full),
        });
        entry.interned = (u32::MAX, 0);
        let mut ev = self.event(ProcessKind::Exec, ts, id);
        ev.path = path.to_vec();
        ev.argv = argv.to_vec();
        ev.argv_full = u64::from(e.argv_full);
        ev.argv_status = ByteStatus::from_raw(e.argv_status).unwrap_or(ByteStatus::NotResident);
        ev.old_tid = if e.old_tid == e.task.id.tid { 0 } else { e.old_tid };
        self.process_event(ev);
    }

    /// A path as given to exec, made absolute where the directory is known; empty = unknown.
    fn absolute(&self, id: TaskId, path: &[u8]) -> Vec<u8> {
        if path.starts_with(b"/") {
            return path.to_vec();
        }
        match &self.tasks.get(id).cwd {
            Some(cwd) => [cwd.bytes.as_slice(), b"/", path.strip_prefix(b"./").unwrap_or(path)].concat(),
            None => Vec::new(),
        }
    }

    fn exit(&mut self, e: &wire::Exit) {
        let id = self.tasks.find_or_add(&e.id);
        let mut ev = self.event(ProcessKind::Exit, e.ts, id);
        ev.exit_code = e.exit_code;
        ev.group_dead = e.group_dead != 0;
        self.process_event(ev);
        self.tasks.exit(id, e.ts);
    }

    /// Reads a process's files from /proc; they count from the time of reading, once the events until then are known.
    fn reread(&mut self, pid: u32) {
        if self.rereads.len() < 4096 && self.rereads.iter().all(|r| r.process.pid != pid) {
            self.rereads.push(Reread { process: snapshot::process(pid), touched: HashSet::new() });
        }
    }

    fn touch(&mut self, pid: u32, fds: [i32; 2]) {
        for reread in self.rereads.iter_mut().filter(|r| r.process.pid == pid) {
            reread.touched.extend(fds);
        }
    }

    fn apply_rereads(&mut self, watermark: u64) {
        let (ready, waiting) = std::mem::take(&mut self.rereads).into_iter().partition(|r| r.process.to < watermark);
        self.rereads = waiting;
        for Reread { process, touched } in ready {
            let to = process.to;
            let all = self.tasks.alive().filter(|(_, e)| e.task.pid == process.pid);
            let members: Vec<TaskId> = all.map(|(id, _)| id).collect();
            self.apply_process(&process, &members, to, |fd| !touched.contains(&fd));
        }
    }

    /// State records of `pid` (0: of anybody) were lost from `first` on.
    pub fn lost_state(&mut self, pid: u32, first: u64) {
        let hit: Vec<(TaskId, u32)> =
            self.tasks.alive().filter(|(_, e)| pid == 0 || e.task.pid == pid).map(|(id, e)| (id, e.task.pid)).collect();
        for (id, pid) in hit {
            self.tasks.files_mut(id).forget(first);
            self.reread(pid);
        }
    }

    /// Events are missing.
    #[expect(clippy::too_many_arguments, reason = "the fields of a gap")]
    pub fn gap(&mut self, cause: GapCause, family: Family, cpu: u32, count: u64, first: u64, last: u64, pid: u32) {
        self.first_row.get_or_insert(last);
        self.builder.push_gap(Gap { cause, family, cpu, count, first, last, pid });
    }

    /// The recording ended at `ts`: calls that end from here on were not in flight.
    pub fn closing(&mut self, ts: u64) {
        self.close_ts = Some(ts);
    }

    /// Calls open at the end, as the task iterator saw them at [`Self::closing`]'s time.
    pub fn in_flight(&mut self, snaps: &[Snap]) {
        let Some(closed) = self.close_ts else { return };
        for snap in snaps {
            let Some(call) = self.open_call(snap) else { continue };
            let task = self.tasks.find_or_add(&snap.task.id);
            if self.ended.contains(&(task, call.start)) || self.ended.contains(&(task, self.settings.window_open)) {
                continue;
            }
            let start = if call.start == 0 { self.settings.window_open } else { call.start };
            let s = Syscall {
                id: snap.task.id,
                start,
                end: closed.max(start),
                args: snap.args,
                nr: snap.nr,
                abi: snap.abi,
                state: CallState::InFlight as u8,
                hdr: wire::Header { cpu: snap.task.hdr.cpu, ..wire::Header::default() },
                ..Syscall::default()
            };
            self.syscall(&s, &[]);
        }
    }

    fn is_selected(&self, abi: u8, nr: u32) -> bool {
        self.settings.selection.contains(Abi::from_raw(abi), nr)
    }

    /// The open call of a recorded task.
    fn open_call(&self, snap: &Snap) -> Option<InFlight> {
        if matches!(snap.matched, 0 | wire::SNAP_IDLE)
            || snap.nr == wire::SNAP_NO_CALL
            || !self.is_selected(snap.abi, snap.nr)
        {
            return None;
        }
        if snap.matched == wire::SNAP_ASK && !self.settings.filter.passes(&snap.task) {
            return None;
        }
        Some(InFlight {
            utid: 0,
            call: Call { abi: snap.abi, nr: snap.nr },
            start: snap.call_start,
            args: snap.args.to_vec(),
            task_state: snap.state,
        })
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
        for snap in snaps {
            if let Some(mut call) = self.open_call(snap)
                && let Some(id) = self.tasks.find(&snap.task.id)
            {
                call.utid = self.tasks.get(id).task.utid;
                cp.in_flight.push(call);
            }
        }
        cp
    }

    /// Ends the segment; rows with a later end than `window_end` belong to the next.
    pub fn close_segment(&mut self, window_end: u64) {
        let window_end = window_end.max(self.window_start);
        let full = std::mem::replace(&mut self.builder, SegmentBuilder::new(window_end));
        self.segment += 1;
        self.window_start = window_end;
        self.first_row = None;
        if !full.is_empty() {
            self.pieces.push(Piece::Segment(Box::new(full.finish(window_end))));
        }
    }

    /// What is ready to be compressed.
    pub fn take_pieces(&mut self) -> Vec<Piece> {
        std::mem::take(&mut self.pieces)
    }

    /// Events so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder").field("segment", &self.segment).field("totals", &self.totals).finish_non_exhaustive()
    }
}

/// errno and return value as the tape has them.
fn split_ret(ret: i64, state: CallState) -> (u16, i64) {
    match ret {
        _ if !state.returned() => (0, 0),
        -4095..=-1 => (ret.unsigned_abs() as u16, 0),
        _ => (0, ret),
    }
}

fn pair_of(bytes: &[u8]) -> Option<[i32; 2]> {
    let (a, b) = bytes.split_first_chunk::<4>()?;
    Some([i32::from_ne_bytes(*a), i32::from_ne_bytes(*b.first_chunk::<4>()?)])
}
