//! What the calls of a segment do to descriptors, as events in time.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use systape_abi::descriptors::{Descriptors, Entered, Made, open_how_flags, pair_of};
use systape_abi::uapi::SECCOMP_IOCTL_NOTIF_ADDFD;
use systape_abi::{ArgKind, Effect};
use systape_format::model::{Call, CallState, FD_FIRST};

use super::file::{File, Origin};
use crate::derive::paths::names::{self, Name};
use crate::derive::sharers::Member;
use systape_events::calls::CallInfo;
use systape_events::load::{FdPath, Loaded};

const EBADF: u16 = 9;
/// `O_ACCMODE` (include/uapi/asm-generic/fcntl.h); 3 is a device's own matter.
const ACCMODE: u64 = 3;
/// `CLONE_PIDFD` (include/uapi/linux/sched.h): a descriptor is written where an argument points to.
const CLONE_PIDFD: u64 = 0x1000;

/// What a call does.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// `fd` became this file.
    Opens { fd: i32, cloexec: bool, file: Arc<File> },
    /// Descriptor `to` became a copy of `from`.
    Copies { from: i32, to: i32, cloexec: bool },
    /// Exec closes those from `first` to `last` from now on, or no longer.
    Marks { first: u32, last: u32, cloexec: bool },
    /// The thread has a table of its own.
    Unshares,
    /// An io_uring was made.
    Rings,
    /// Descriptors may have come unseen.
    Receives,
    /// What puts a file at a descriptor of anybody.
    Injects,
    /// What it did is not known.
    Forgets,
    /// A call found `fd` open.
    Uses { fd: i32, name: Option<Arc<[u8]>> },
    /// Descriptors from `first` to `last` are being closed.
    Closes { first: u32, last: u32 },
}

/// Whether a lost call with this effect makes tables uncertain.
pub fn matters(effect: Effect) -> bool {
    use Effect::{
        Close, CloseRange, Dup, Dup2, Dup3, Fcntl, Ioctl, MaybeFd, NewFd, NewFdPair, RecvFds, SocketCall, Unshare,
    };
    matches!(
        effect,
        NewFd
            | MaybeFd
            | NewFdPair
            | Close
            | CloseRange
            | Dup
            | Dup2
            | Dup3
            | Fcntl
            | Ioctl
            | RecvFds
            | SocketCall
            | Unshare
    )
}

/// What a segment's calls have in common.
struct Calls<'a> {
    segment: &'a Loaded,
    /// Of each of its calls.
    descriptors: Vec<Descriptors>,
    names: Vec<Option<Arc<[u8]>>>,
    /// The name with which a descriptor of a process was used last: it needs no event again.
    used: FxHashMap<(u32, i32), u32>,
}

/// Passes what the rows `range` of `segment` do to `each`: when, who, what.
pub(super) fn changes(segment: &Loaded, range: Range<usize>, mut each: impl FnMut(u64, Member, Change)) {
    let descriptors = segment.calls.iter().map(|info| Descriptors::of(info.abi, info.call.nr)).collect();
    let names = vec![None; segment.fds.names.len()];
    let mut calls = Calls { segment, descriptors, names, used: FxHashMap::default() };
    for row in range {
        calls.row(row, &mut each);
    }
}

impl Calls<'_> {
    fn row(&mut self, row: usize, each: &mut impl FnMut(u64, Member, Change)) {
        let (segment, info) = (self.segment, self.segment.call(row));
        let (state, errno, task) = (segment.core.state[row], segment.core.errno[row], Member::of(segment.task(row)));
        let start = segment.time.start[row];
        let end = start.saturating_add(segment.core.dur[row]);
        match state {
            CallState::CloneChild | CallState::Denied => return,
            // its arguments are what the registers held when it ended
            CallState::LostEnter => {
                if matters(info.effect) && errno == 0 {
                    each(end, task, Change::Forgets);
                }
                return;
            }
            CallState::Complete
            | CallState::BeganBefore
            | CallState::InFlight
            | CallState::Killed
            | CallState::NoReturn => {}
        }
        for column in 0..2 {
            if let Some((fd, name)) = self.used(row, column, info) {
                each(start, task, Change::Uses { fd, name });
            }
        }
        if info.effect == Effect::None {
            return;
        }
        let Some(args) = segment.args.of(row) else {
            if matters(info.effect) {
                each(start, task, Change::Forgets);
            }
            return;
        };
        let at_once = Descriptors::entered(info.effect, &[args[0], args[1], args[2]]);
        match at_once {
            Entered::Closes(fd) if info.effect == Effect::Close && errno != EBADF && fd >= 0 => {
                self.forget(task, fd);
                each(start, task, Change::Closes { first: fd.cast_unsigned(), last: fd.cast_unsigned() });
            }
            Entered::Range { first, last, marks, unshares } if errno == 0 => {
                self.used.clear();
                if unshares {
                    each(start, task, Change::Unshares);
                }
                each(
                    start,
                    task,
                    match marks {
                        true => Change::Marks { first, last, cloexec: true },
                        false => Change::Closes { first, last },
                    },
                );
            }
            _ => {}
        }
        if errno == 0 && state.returned() {
            self.returned(row, (info, args), |change| each(end, task, change));
        }
    }

    fn returned(&mut self, row: usize, (info, args): (&CallInfo, &[u64; 6]), mut each: impl FnMut(Change)) {
        let segment = self.segment;
        let task = Member::of(segment.task(row));
        let descriptors = self.descriptors[segment.core.call[row] as usize];
        let value = |at: fn(&ArgKind) -> bool| {
            let at = info.args.iter().position(|arg| at(&arg.kind))?;
            let value = segment.captured(row).iter().find(|value| usize::from(value.arg) == at)?;
            Some(value.bytes.as_slice()).filter(|_| value.status.has_bytes())
        };
        let pair = || value(|kind| matches!(kind, ArgKind::FdPair)).and_then(pair_of);
        let how = || value(|kind| matches!(kind, ArgKind::OpenHow { .. })).and_then(open_how_flags);
        let ret = segment.args.ret.get(row).copied().unwrap_or(0);
        match info.effect {
            Effect::NewFdPair if pair().is_none() => return each(Change::Forgets),
            Effect::RecvFds if !self.is_no_unix_socket(row) => return each(Change::Receives),
            Effect::Clone => {
                let flags = value(|kind| matches!(kind, ArgKind::CloneArgs { .. })).and_then(open_how_flags);
                let flags = if info.name == "clone" { Some(args[0]) } else { flags };
                if info.name.starts_with("clone") && flags.is_none_or(|flags| flags & CLONE_PIDFD != 0) {
                    each(Change::Receives);
                }
                return;
            }
            Effect::Ioctl if args[1] as u32 == SECCOMP_IOCTL_NOTIF_ADDFD => return each(Change::Injects),
            _ => {}
        }
        let made = descriptors.returned(args, ret, pair(), how());
        if descriptors.ring {
            each(Change::Rings);
        }
        match made {
            Made::Nothing => {}
            Made::One { fd, cloexec } => {
                self.forget(task, fd);
                each(match descriptors.copies(args) {
                    Some(from) => Change::Copies { from, to: fd, cloexec },
                    None => Change::Opens { fd, cloexec, file: File::made(self.origin(row, info, args, how())) },
                });
            }
            Made::Two { fds, cloexec } => {
                let made = || File::made(Origin { call: info.call, given: None, mode: None });
                let first = made();
                // both ends of a pipe have its name
                let second = if info.name.starts_with("pipe") { Arc::clone(&first) } else { made() };
                for (fd, file) in fds.into_iter().zip([first, second]) {
                    self.forget(task, fd);
                    each(Change::Opens { fd, cloexec, file });
                }
            }
            Made::Marked { fd, cloexec } => {
                let fd = fd.cast_unsigned();
                each(Change::Marks { first: fd, last: fd, cloexec });
            }
            Made::Unshared => each(Change::Unshares),
        }
    }

    /// A descriptor is another file from now on.
    fn forget(&mut self, task: Member, fd: i32) {
        self.used.remove(&(task.process, fd));
    }

    /// The descriptor of a column that the call of `row` found open, and its name, if that is news.
    fn used(&mut self, row: usize, column: usize, info: &CallInfo) -> Option<(i32, Option<Arc<[u8]>>)> {
        let segment = self.segment;
        let at = info.fd_args[column]?;
        let fd = *segment.args.of(row)?.get(at)? as i32;
        let stored = if column == 0 { &segment.fds.fd } else { &segment.fds.fd2 };
        let number = *stored.get(row)?;
        if fd < 0 {
            return None;
        }
        let name = match segment.fd_of_column(row, column) {
            FdPath::None => return None,
            FdPath::Unknown if self.must_be_open(row, at, info) => None,
            FdPath::Unknown => return None,
            FdPath::Known(name) => {
                let kept = self.names.get_mut((number - FD_FIRST) as usize)?;
                Some(Arc::clone(kept.get_or_insert_with(|| name.into())))
            }
        };
        let process = segment.task(row).upid;
        (self.used.insert((process, fd), number) != Some(number)).then_some((fd, name))
    }

    /// Whether a success of this call says that its descriptor is open.
    fn must_be_open(&self, row: usize, at: usize, info: &CallInfo) -> bool {
        let (state, errno) = (self.segment.core.state[row], self.segment.core.errno[row]);
        let closes = matches!(info.effect, Effect::Close | Effect::Dup2 | Effect::Dup3);
        let plain = matches!(info.args.get(at).map(|arg| arg.kind), Some(ArgKind::Fd));
        // an anonymous mapping has whatever its program passes
        plain && !closes && state == CallState::Complete && errno == 0 && !info.name.starts_with("mmap")
    }

    /// Whether the call of `row` received from a socket that carries no descriptors.
    fn is_no_unix_socket(&self, row: usize) -> bool {
        match self.segment.fd_of_column(row, 0) {
            FdPath::Known(name) => !name.starts_with(b"UNIX") && !name.starts_with(b"socket:"),
            FdPath::None | FdPath::Unknown => false,
        }
    }

    fn origin(&self, row: usize, info: &CallInfo, args: &[u64; 6], how: Option<u64>) -> Origin {
        let path = names::uses(self.segment, row).filter(|on| on.given.is_some() && !on.cut).last();
        let given = path.and_then(|on| match (on.opened, on.name) {
            (Some(file), _) => Some(file.into()),
            (None, Name::Known(path)) => Some(path.as_ref().into()),
            (None, Name::InCwd(path)) => Some(path.into()),
            (None, Name::Unknown | Name::Nothing) => on.given.map(Arc::from),
        });
        let flags = match info.name.as_str() {
            "open" => Some(args[1]),
            "openat" | "open_by_handle_at" => Some(args[2]),
            "openat2" => how,
            "creat" => Some(1),
            _ => None,
        };
        Origin { call: Call { ..info.call }, given, mode: flags.map(|flags| (flags & ACCMODE) as u8) }
    }
}
