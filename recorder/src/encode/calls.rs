//! Calls: a wire record becomes a row, its captured bytes, and its effect on fds.

use std::collections::HashSet;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use systape_abi::descriptors::{Made, open_how_flags, pair_of};
use systape_abi::{Abi, Effect, Selection};
use systape_bpf::values::snap_match;
use systape_bpf::wire::{self, CAPTURE_AFTER, CAPTURE_INODE, CAPTURE_NAME0, CAPTURE_NAME1, Snap, Syscall, captures};
use systape_format::model::{
    ByteStatus, Call, CallState, FD_NONE, FD_UNKNOWN, FETCHED, Family, InFlight, LedgerReason, NEEDS, SECOND_VALUE,
    SLEPT, StackOf, SyscallRow,
};

use super::Settings;
use super::interpreters::InterpreterLookups;
use super::ledger::{StoredCounts, in_ledger};
use super::polls;
use super::rows::Rows;
use super::stacks::Event;
use super::world::World;
use crate::calls::filter::CallFilter;
use crate::calls::memory::CallMemory;
use crate::descriptors::names::{FileKey, Name};
use crate::tasks::effects::{self, CallFacts, Returned, split_ret};
use crate::tasks::{Execed, TaskId};

const EBADF: u16 = 9;

/// Filters on calls, and the calls that have ended.
#[derive(Debug)]
pub(super) struct Calls {
    /// The selected calls.
    selection: Selection,
    /// Which of them are stored.
    stores: CallFilter,
    window_open: u64,
    /// Least duration of calls that have stacks, ns.
    stacks_min_dur: u64,
    /// When the recording ended; None = it continues.
    close_ts: Option<u64>,
    /// Calls that ended after the recording did: not in flight.
    ended: HashSet<(TaskId, u64)>,
    /// What the arguments of calls in flight point to, by thread: at the start, and at the end.
    memory: FxHashMap<(u32, u64), CallMemory>,
    /// Files of execs that failed.
    pub interpreters: InterpreterLookups,
    /// Which file a name stands for is told of each that is opened, whether the call is stored or not.
    names_files: bool,
}

impl Calls {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            selection: settings.selection.clone(),
            stores: settings.stores.clone(),
            window_open: settings.window_open,
            stacks_min_dur: settings.stacks.min_dur,
            close_ts: None,
            ended: HashSet::new(),
            memory: FxHashMap::default(),
            interpreters: InterpreterLookups::default(),
            names_files: settings.tracepoints.iter().any(|tracepoint| tracepoint.has_inode()),
        }
    }

    /// What the arguments of calls in flight point to.
    pub(crate) fn know(&mut self, memory: Vec<CallMemory>) {
        self.memory.extend(memory.into_iter().map(|call| (call.key(), call)));
    }

    /// A call whose memory was read from outside, with it: the programs did not see its enter, or have not told of it.
    fn with_memory(&self, s: &Syscall, data: &[u8]) -> Option<(Syscall, Vec<u8>)> {
        self.memory_of(s)?.join(s, data)
    }

    /// What was read of a call from outside, if that was it as far as times tell.
    fn memory_of(&self, s: &Syscall) -> Option<&CallMemory> {
        let outside = [CallState::BeganBefore, CallState::InFlight, CallState::Killed].map(|state| state as u8);
        if self.memory.is_empty() || !outside.contains(&s.state) {
            return None;
        }
        let memory = self.memory.get(&(s.id.tid, s.id.start))?;
        let at_the_end = self.close_ts.is_some_and(|closed| memory.read() >= closed);
        let is_it = if at_the_end { s.state == CallState::InFlight as u8 } else { s.start <= self.window_open };
        is_it.then_some(memory)
    }

    /// Whether names are told of files that no call is stored of.
    pub(super) fn names_files(&self) -> bool {
        self.names_files
    }

    /// The time of [`Self::closing`]; None = it goes on.
    pub(crate) fn closed(&self) -> Option<u64> {
        self.close_ts
    }

    /// The recording ended at `ts`: calls that end from here on were not in flight.
    pub(crate) fn closing(&mut self, ts: u64) {
        self.close_ts = Some(ts);
    }

    /// A call ended, or is open at the end.
    pub(crate) fn record(
        &mut self,
        s: &Syscall,
        data: &[u8],
        world: &mut World,
        rows: &mut Rows,
        ledger: &mut StoredCounts,
    ) {
        let Some(state) = CallState::from_raw(s.state) else { return };
        let joined = self.with_memory(s, data);
        let (s, data) = joined.as_ref().map_or((s, data), |(s, data)| (s, &data[..]));
        let task = world.tasks.find_or_add(&s.id);
        let info = world.call_info(s.abi, s.nr);
        let (errno, ret) = split_ret(s.ret, state);
        if self.close_ts.is_some_and(|closed| s.end >= closed) {
            self.ended.insert((task, s.start));
        }
        if s.hdr.flags & wire::FILTERED != 0 {
            let uid = world.tasks.get(task).task.uid;
            ledger.count(s, state, uid, LedgerReason::Filtered);
        }
        // of a call that is counted, or was not asked for, only what it does to fds is wanted
        let selected = s.hdr.flags & wire::UNSELECTED == 0;
        let wanted = selected && s.hdr.flags & wire::OF_RING == 0;
        if selected {
            world.tasks.called(task);
        }
        let stored = wanted && !in_ledger(s) && !sheds((s, state, errno), task, world, rows, ledger);
        let row = stored.then(|| self.row((task, &info), (s, data), (state, errno, ret), world, rows));
        if let (Some(row), Some(needs)) = (row, needs(s, &info)) {
            rows.builder.push_captured(row, NEEDS, ByteStatus::Whole, 1, &[needs]);
        }
        if s.captures == 0 && info.effect == Effect::None {
            return;
        }
        let mut returned = captured(row, (task, &info), s, data, world, rows);
        let renamed = returned.as_ref().is_some_and(|returned| returned.name0.is_some());
        if info.effect == Effect::NamesSocket && !renamed && state.returned() && errno != EBADF {
            effects::unnamed(&world.tasks, task, s.end, &s.args);
        }
        if errno != 0 {
            if info.effect == Effect::Exec && stored {
                self.interpreters.failed(&world.tasks, task, &info, (s, data), errno);
            }
            effects::failed(&mut world.tasks, task, &info);
        } else if let Some(returned) = &mut returned
            && state.returned()
        {
            let made = new_fds(&info, s, returned.pair);
            if let (Some(row), Some(name), true) = (row, &returned.name0, info.opens || info.removes) {
                let name = rows.name(name);
                rows.builder.opened(row, name);
            }
            if let Some(name) = returned.name0.as_ref().filter(|_| self.names_files && !rows.shedding.is_all()) {
                rows.name(name);
            }
            world.touch(s.id.pid, |touched| touched.made(made));
            effects::returned(&mut world.tasks, task, &info, returned);
            match info.effect {
                Effect::Exec => world.outdate(s.id.pid),
                Effect::Chdir | Effect::Fchdir => world.moved(task),
                _ => {}
            }
        }
        effects::ended(&mut world.tasks, task, &info);
    }

    /// Stores a call without its captured bytes; returns its row.
    fn row(
        &self,
        (task, info): (TaskId, &CallFacts),
        (s, data): (&Syscall, &[u8]),
        (state, errno, ret): (CallState, u16, i64),
        world: &mut World,
        rows: &mut Rows,
    ) -> u32 {
        let fds = match info.polls {
            Some(arg) => polls::first_fds(s, data, arg),
            None => info.fd_args.map(|arg| arg.map(|arg| s.args[usize::from(arg)] as i32)),
        };
        let [fd, fd2] = fds.map(|fd| fd.map_or(FD_NONE, |fd| self.name_of((task, info), s, errno, fd, world, rows)));
        // arguments the call does not have are whatever the registers held
        let args = std::array::from_fn(|i| if i < usize::from(info.args) { s.args[i] } else { 0 });
        let row = SyscallRow {
            end: s.end,
            dur: s.end.saturating_sub(s.start),
            cpu: s.hdr.cpu,
            task: rows.task(&mut world.tasks, task),
            call: rows.call(world, s.abi, s.nr, info),
            ret,
            errno,
            state,
            unselected: false,
            args,
            unknown: 0,
            fd,
            fd2,
        };
        rows.stored(Family::Syscall, s.end);
        let long_enough = row.dur >= self.stacks_min_dur;
        let expected = long_enough && !matches!(state, CallState::CloneChild | CallState::InFlight);
        let row = rows.builder.push_syscall(row);
        let event = Event { of: StackOf::Syscall, row, task, tid: s.id.tid, time: s.start };
        rows.attach(&world.tasks, event, expected);
        row
    }

    /// The number of the name of descriptor `fd`.
    fn name_of(
        &self,
        (task, info): (TaskId, &CallFacts),
        s: &Syscall,
        errno: u16,
        fd: i32,
        world: &World,
        rows: &mut Rows,
    ) -> u32 {
        if fd < 0 {
            return FD_NONE;
        }
        let start = if s.state == CallState::BeganBefore as u8 { self.window_open } else { s.start };
        // mostly it has its number already
        let segment = rows.segment;
        let memory = self.memory_of(s);
        let known = |name: &Rc<Name>| match name.interned.get() {
            // its number means another file since the call began
            _ if memory.is_some_and(|memory| !memory.fits(s, &name.bytes)) => None,
            (of, index) if of == segment => Some(Ok(index)),
            _ => Some(Err(Rc::clone(name))),
        };
        let name = effects::resolve(&world.tasks, task, info, start, fd, known).flatten();
        // EBADF: whatever the table says, this call found nothing there
        match name.filter(|_| errno != EBADF) {
            None => FD_UNKNOWN,
            Some(Ok(index)) => index,
            Some(Err(name)) => rows.name(&name),
        }
    }

    /// Calls open at the end, from the task iterator at [`Self::closing`]'s time.
    pub(crate) fn in_flight(&mut self, snaps: &[Snap], world: &mut World, rows: &mut Rows, ledger: &mut StoredCounts) {
        let Some(closed) = self.close_ts else { return };
        for snap in snaps {
            let Some(call) = self.open_call(snap) else { continue };
            let task = world.tasks.find_or_add(&snap.task.id);
            if self.ended.contains(&(task, call.start)) || self.ended.contains(&(task, self.window_open)) {
                continue;
            }
            let start = if call.start == 0 { self.window_open } else { call.start };
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
            let stored = self.stores.stores_open(Abi::from_raw(s.abi), s.nr, s.end - s.start);
            if self.stores.is_on() && !stored {
                ledger.count(&s, CallState::InFlight, snap.task.uid, LedgerReason::Filtered);
            } else {
                self.record(&s, &[], world, rows, ledger);
            }
        }
        ledger.flush(world, rows);
    }

    /// Whether a call that has been open for `dur` ns is stored.
    pub(super) fn stores_open(&self, abi: Abi, nr: u32, dur: u64) -> bool {
        !self.stores.is_on() || self.stores.stores_open(abi, nr, dur)
    }

    /// Stores a call in flight without any effect on what is known.
    pub(super) fn in_flight_row(&self, s: &Syscall, world: &mut World, rows: &mut Rows) {
        let joined = self.with_memory(s, &[]);
        let (s, mut data) = joined.as_ref().map_or((s, &[][..]), |(s, data)| (s, &data[..]));
        let task = world.tasks.find_or_add(&s.id);
        let info = world.call_info(s.abi, s.nr);
        let row = self.row((task, &info), (s, data), (CallState::InFlight, 0, 0), world, rows);
        for capture in captures(s) {
            let Some((bytes, rest)) = data.split_at_checked(capture.len.into()) else { return };
            let status = ByteStatus::from_raw(capture.status).unwrap_or(ByteStatus::NotResident);
            rows.builder.push_captured(row, capture.arg, status, u64::from(capture.full), bytes);
            data = rest;
        }
    }

    fn is_selected(&self, abi: u8, nr: u32) -> bool {
        self.selection.contains(Abi::from_raw(abi), nr)
    }

    /// The open call of a recorded task.
    pub(crate) fn open_call(&self, snap: &Snap) -> Option<InFlight> {
        if matches!(snap.matched, snap_match::NO | wire::SNAP_IDLE)
            || snap.nr == wire::SNAP_NO_CALL
            || !self.is_selected(snap.abi, snap.nr)
        {
            return None;
        }
        if snap.matched == wire::SNAP_ASK && snap.task.hdr.flags & wire::TASK_IS_TARGET == 0 {
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
}

/// Stores the captured bytes of a call's arguments, if it has a `row`; returns the kernel side's names of new fds.
fn captured<'a>(
    row: Option<u32>,
    (task, info): (TaskId, &CallFacts),
    s: &'a Syscall,
    data: &[u8],
    world: &mut World,
    rows: &mut Rows,
) -> Option<Returned<'a>> {
    let mut known =
        Returned { end: s.end, ret: s.ret, args: &s.args, name0: None, name1: None, pair: None, open_how_flags: None };
    let execed = if info.effect == Effect::Exec { world.tasks.get_mut(task).execed.take() } else { None };
    let execed = execed.filter(|_| s.ret == 0);
    let (mut at, mut given) = (0, None);
    for capture in captures(s) {
        let bytes = data.get(at..at + usize::from(capture.len))?;
        at += usize::from(capture.len);
        match capture.arg {
            CAPTURE_NAME0 => known.name0 = world.file(bytes, s.end, (task, info.socket(&s.args))),
            CAPTURE_NAME1 => known.name1 = world.file(bytes, s.end, (task, info.socket(&s.args))),
            CAPTURE_INODE => {
                let (Some(name), Some(inode)) = (known.name0.as_mut().and_then(Rc::get_mut), wire::inode(bytes)) else {
                    continue;
                };
                name.file = Some(Box::new(FileKey { since: s.end, inode }));
                if info.removes {
                    // a file system below another one may remove files of its own too
                    if given.is_none_or(|given| last(given) != last(&name.bytes)) {
                        known.name0 = None;
                        continue;
                    }
                    name.bytes = world.mounts.path(inode.dev, &name.bytes);
                }
            }
            arg if arg & CAPTURE_AFTER != 0 => {
                if let Some(row) = row {
                    let arg = arg & !CAPTURE_AFTER;
                    let (bytes, full) = match info.polls == Some(arg) {
                        true => polls::ready(bytes, capture.full),
                        false => (bytes.into(), capture.full),
                    };
                    let status = ByteStatus::from_raw(capture.status).unwrap_or(ByteStatus::NotResident);
                    rows.builder.push_captured(row, arg | SECOND_VALUE, status, u64::from(full), &bytes);
                }
            }
            arg => {
                let status = ByteStatus::from_raw(capture.status).unwrap_or(ByteStatus::NotResident);
                given = Some(bytes).filter(|_| status.is_whole());
                if let Some(row) = row {
                    let execed = execed.as_ref().filter(|_| !status.is_whole());
                    if !execed.is_some_and(|execed| captured_exec(rows, row, arg, info, execed)) {
                        rows.builder.push_captured(row, arg, status, u64::from(capture.full), bytes);
                    }
                }
                if info.effect == Effect::NewFdPair {
                    known.pair = pair_of(bytes);
                } else if info.effect == Effect::NewFd && arg == 2 {
                    known.open_how_flags = open_how_flags(bytes);
                }
            }
        }
    }
    Some(known)
}

/// What a call needed besides the CPU, bits of [`NEEDS`]; None: nothing. Most calls that sleep do what they are for: of those that read
/// alone it says that what they read was not there.
fn needs(s: &Syscall, info: &CallFacts) -> Option<u8> {
    let bit = |flag: u16, bit: u8| if s.hdr.flags & flag != 0 { bit } else { 0 };
    let slept = if info.reads { bit(wire::SLEPT, SLEPT) } else { 0 };
    Some(bit(wire::FETCHED, FETCHED) | slept).filter(|needs| *needs != 0)
}

/// What is behind the last slash.
fn last(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

/// Bytes of an exec's argument that was not resident at enter: the kernel's copy, from the successful exec.
fn captured_exec(rows: &mut Rows, row: u32, arg: u8, info: &CallFacts, execed: &Execed) -> bool {
    if Some(arg) != info.argv_arg {
        rows.builder.push_captured(row, arg, ByteStatus::Late, execed.path.len() as u64, &execed.path);
        return true;
    }
    let (Some(argv), Some(status)) = (&execed.argv, ByteStatus::from_raw(execed.argv_status)) else { return false };
    rows.builder.push_captured(row, arg, status, execed.argv_full, argv);
    true
}

/// Whether a call is not stored because there is no room; then it is in the ledger.
fn sheds(
    (s, state, errno): (&Syscall, CallState, u16),
    task: TaskId,
    world: &World,
    rows: &mut Rows,
    ledger: &mut StoredCounts,
) -> bool {
    let shed = rows.shedding.gives_up_call(s, state, errno);
    // nobody called the child's side of a clone
    if shed && state != CallState::CloneChild {
        rows.first_row.get_or_insert(s.end);
        let uid = world.tasks.get(task).task.uid;
        ledger.count(s, state, uid, LedgerReason::Behind);
    }
    shed
}

/// A call that closes descriptors was entered.
pub(super) fn closing(c: &wire::Closing, world: &mut World) {
    if effects::is_injection(c.nr, &c.args) {
        return world.forget_files(0, c.ts, c.ts);
    }
    let task = world.tasks.find_or_add(&c.id);
    let effect = world.call_info(c.abi, c.nr).effect;
    world.touch(c.id.pid, |touched| touched.entered(effect, &c.args));
    effects::entered(&mut world.tasks, task, effect, c.ts, &c.args);
}

/// The fds that a successful call made or replaced; -1 = none.
pub(super) fn new_fds(info: &CallFacts, s: &Syscall, pair: Option<[i32; 2]>) -> [i32; 2] {
    match info.made(&s.args, s.ret, pair) {
        Made::One { fd, .. } => [fd, -1],
        Made::Two { fds, .. } => fds,
        Made::Nothing | Made::Marked { .. } | Made::Unshared => [-1; 2],
    }
}
