//! Calls: a wire record becomes a row, its captured bytes, and what it did to fds.

use std::rc::Rc;

use systape_abi::{Abi, Effect};
use systape_bpf::values::snap_match;
use systape_bpf::wire::{self, CAPTURE_NAME0, CAPTURE_NAME1, Snap, Syscall, captures};
use systape_format::model::{
    ByteStatus, Call, CallState, FD_NONE, FD_UNKNOWN, Family, InFlight, LedgerReason, StackOf, SyscallRow,
};

use super::Encoder;
use super::ledger::in_ledger;
use crate::effects::{self, CallInfo, Returned};
use crate::fds::Name;
use crate::tasks::{Execed, TaskId};

const EBADF: u16 = 9;

impl Encoder {
    pub(super) fn syscall(&mut self, s: &Syscall, data: &[u8]) {
        let Some(state) = CallState::from_raw(s.state) else { return };
        let task = self.tasks.find_or_add(&s.id);
        let info = self.call_info(s.abi, s.nr);
        let (errno, ret) = split_ret(s.ret, state);
        if self.close_ts.is_some_and(|closed| s.end >= closed) {
            self.ended.insert((task, s.start));
        }
        if s.hdr.flags & wire::FILTERED != 0 {
            let uid = self.tasks.get(task).task.uid;
            self.count_here(s, state, uid, LedgerReason::Filtered);
        }
        // of a call that is counted, or was not asked for, only what it does to fds is wanted
        let wanted = s.hdr.flags & wire::UNSELECTED == 0;
        if wanted {
            self.tasks.called(task);
        }
        let stored = wanted && !in_ledger(s) && !self.sheds_call(s, state, errno, task);
        let row = stored.then(|| self.row(task, &info, s, state, (errno, ret)));
        if s.captures == 0 && info.effect == Effect::None {
            return;
        }
        let mut returned = self.captured(row, task, &info, s, data);
        if errno != 0 {
            effects::failed(&mut self.tasks, task, &info);
        } else if let Some(returned) = &mut returned
            && state.returned()
        {
            self.touch(s.id.pid, new_fds(&info, s, returned.pair));
            effects::returned(&mut self.tasks, task, &info, returned);
            match info.effect {
                Effect::Exec => self.outdate(s.id.pid),
                Effect::Chdir | Effect::Fchdir => self.moved(task),
                _ => {}
            }
        }
        effects::ended(&mut self.tasks, task, &info);
    }

    /// Stores a call without its captured bytes; gives back its row.
    fn row(&mut self, task: TaskId, info: &CallInfo, s: &Syscall, state: CallState, (errno, ret): (u16, i64)) -> u32 {
        let [fd, fd2] = info.fd_args.map(|arg| arg.map_or(FD_NONE, |arg| self.fd_of(task, info, s, errno, arg.into())));
        // arguments the call does not have are whatever the registers held
        let args = std::array::from_fn(|i| if i < usize::from(info.args) { s.args[i] } else { 0 });
        let row = SyscallRow {
            end: s.end,
            dur: s.end.saturating_sub(s.start),
            cpu: s.hdr.cpu,
            task: self.interned_task(task),
            call: self.interned_call(s.abi, s.nr, info),
            ret,
            errno,
            state,
            unselected: false,
            args,
            fd,
            fd2,
        };
        self.stored(Family::Syscall, s.end);
        let long_enough = row.dur >= self.settings.stacks.min_dur;
        let expected = long_enough && !matches!(state, CallState::CloneChild | CallState::InFlight);
        let row = self.builder.push_syscall(row);
        self.attach(StackOf::Syscall, row, (task, s.id.tid), s.start, expected);
        row
    }

    fn fd_of(&mut self, task: TaskId, info: &CallInfo, s: &Syscall, errno: u16, arg: usize) -> u32 {
        let fd = s.args[arg] as i32;
        if fd < 0 {
            return FD_NONE;
        }
        let start = if s.state == CallState::BeganBefore as u8 { self.settings.window_open } else { s.start };
        // mostly it has its number already
        let segment = self.segment;
        let known = |name: &Rc<Name>| match name.interned.get() {
            (of, index) if of == segment => Ok(index),
            _ => Err(Rc::clone(name)),
        };
        let name = effects::resolve(&self.tasks, task, info, start, fd, known);
        // EBADF: whatever the table says, this call found nothing there
        match name.filter(|_| errno != EBADF) {
            None => FD_UNKNOWN,
            Some(Ok(index)) => index,
            Some(Err(name)) => self.interned_name(&name),
        }
    }

    /// Stores what was captured of a call's arguments, if it has a `row`; gives back what the kernel side said of new fds.
    fn captured<'a>(
        &mut self,
        row: Option<u32>,
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
                    if let Some(row) = row {
                        let execed = execed.as_ref().filter(|_| !status.is_whole());
                        if !execed.is_some_and(|execed| self.captured_exec(row, arg, info, execed)) {
                            self.builder.push_captured(row, arg, status, u64::from(capture.full), bytes);
                        }
                    }
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
            let stored = self.settings.stores.stores_open(Abi::from_raw(s.abi), s.nr, s.end - s.start);
            if self.settings.stores.is_on() && !stored {
                self.count_here(&s, CallState::InFlight, snap.task.uid, LedgerReason::Filtered);
            } else {
                self.syscall(&s, &[]);
            }
        }
        self.counted_here();
    }

    fn is_selected(&self, abi: u8, nr: u32) -> bool {
        self.settings.selection.contains(Abi::from_raw(abi), nr)
    }

    /// The open call of a recorded task.
    pub(super) fn open_call(&self, snap: &Snap) -> Option<InFlight> {
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

/// errno and return value as the tape has them.
pub(super) fn split_ret(ret: i64, state: CallState) -> (u16, i64) {
    match ret {
        _ if !state.returned() => (0, 0),
        -4095..=-1 => (ret.unsigned_abs() as u16, 0),
        _ => (0, ret),
    }
}

/// The fds a call that succeeded made or replaced; -1 = none.
pub(super) fn new_fds(info: &CallInfo, s: &Syscall, pair: Option<[i32; 2]>) -> [i32; 2] {
    match info.effect {
        Effect::NewFd | Effect::MaybeFd | Effect::Dup | Effect::Dup2 | Effect::Dup3 => [s.ret as i32, -1],
        Effect::Fcntl | Effect::SocketCall => [s.ret as i32, -1],
        Effect::NewFdPair => pair.unwrap_or([-1; 2]),
        _ => [-1; 2],
    }
}

/// The two fds of a captured int[2].
pub(super) fn pair_of(bytes: &[u8]) -> Option<[i32; 2]> {
    let (a, b) = bytes.split_first_chunk::<4>()?;
    Some([i32::from_ne_bytes(*a), i32::from_ne_bytes(*b.first_chunk::<4>()?)])
}
