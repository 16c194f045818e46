//! What a call does to the descriptors of its process, from plain values: its arguments and its result.
//!
//! The recorder and the analyzer keep tables of open files by it. What a descriptor stands for, and which processes share a table,
//! is left to them.

use crate::uapi::{
    CLOSE_RANGE_CLOEXEC, CLOSE_RANGE_UNSHARE, F_DUPFD, F_DUPFD_CLOEXEC, F_SETFD, FD_CLOEXEC, FIOCLEX, FIONCLEX,
    O_CLOEXEC,
};
use crate::{Abi, Effect, SyscallDesc, describe, display_name};

/// Calls behind i386 `socketcall` (include/uapi/linux/net.h).
pub mod socketcall {
    /// Number of `socket`.
    pub const SOCKET: u32 = 1;
    /// Number of `bind`.
    pub const BIND: u32 = 2;
    /// Number of `connect`.
    pub const CONNECT: u32 = 3;
    /// Number of `listen`.
    pub const LISTEN: u32 = 4;
    /// Number of `accept`.
    pub const ACCEPT: u32 = 5;
    /// Number of `accept4`.
    pub const ACCEPT4: u32 = 18;
}

/// What a call that has been entered does to descriptors, whatever its result will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entered {
    /// No effect.
    Nothing,
    /// This one is closed: by `close` also if it fails, by `dup2` and `dup3` only if they succeed.
    Closes(i32),
    /// Descriptors from `first` to `last` are closed, or with `marks` will be closed by exec.
    Range {
        /// The first one.
        first: u32,
        /// The last one.
        last: u32,
        /// They stay open until exec.
        marks: bool,
        /// Before that the thread gets a table of its own.
        unshares: bool,
    },
}

/// What a successful call did to descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// No effect.
    Nothing,
    /// This one is new; also in place of an open one.
    One {
        /// The descriptor.
        fd: i32,
        /// Exec closes it.
        cloexec: bool,
    },
    /// The two of a pair are new.
    Two {
        /// The descriptors.
        fds: [i32; 2],
        /// Exec closes them.
        cloexec: bool,
    },
    /// Exec closes this one from now on, or no longer.
    Marked {
        /// The descriptor.
        fd: i32,
        /// Exec closes it.
        cloexec: bool,
    },
    /// The thread has a table of its own.
    Unshared,
}

/// What a call does with the socket that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SocketUse {
    /// A call that makes the socket.
    Makes,
    /// A call that makes the socket of a connection to a listener.
    Accepts,
    /// A call that may change what the socket is called.
    Names,
    /// A call that only uses the socket.
    Uses,
}

/// Whether the call of this name takes a connection from a listener.
pub fn is_accept(name: &str) -> bool {
    matches!(name, "accept" | "accept4")
}

/// Facts about the descriptors of a call, looked up once.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Descriptors {
    desc: Option<&'static SyscallDesc>,
    effect: Effect,
    cloexec: Cloexec,
    socket: SocketUse,
    /// A success makes an io_uring, by which descriptors may come and go unseen.
    pub ring: bool,
}

/// How to find out whether exec closes a new descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cloexec {
    Never,
    Always,
    /// This bit of that argument.
    Bit(u8, u32),
    /// O_CLOEXEC in the open_how that argument 2 points to.
    OpenHow,
}

/// A call that this list does not have is assumed to close its descriptor at exec: unknown afterwards, never wrong.
fn cloexec_of(name: &str) -> Cloexec {
    match name {
        "creat" | "dup" | "dup2" | "epoll_create" | "eventfd" | "signalfd" | "inotify_init" | "accept" | "pipe" => {
            Cloexec::Never
        }
        "open" | "eventfd2" | "timerfd_create" | "pipe2" | "mq_open" | "socket" | "socketpair" => {
            Cloexec::Bit(1, O_CLOEXEC)
        }
        "openat" | "open_tree" | "open_by_handle_at" | "dup3" => Cloexec::Bit(2, O_CLOEXEC),
        "openat2" => Cloexec::OpenHow,
        "accept4" | "signalfd4" => Cloexec::Bit(3, O_CLOEXEC),
        "epoll_create1" | "inotify_init1" | "userfaultfd" | "memfd_secret" => Cloexec::Bit(0, O_CLOEXEC),
        "memfd_create" | "fsopen" | "fsmount" => Cloexec::Bit(1, 1),
        "fanotify_init" => Cloexec::Bit(0, 1),
        "fspick" => Cloexec::Bit(2, 1),
        "perf_event_open" => Cloexec::Bit(4, 8),
        _ => Cloexec::Always,
    }
}

impl Descriptors {
    /// Facts about the descriptors of call `nr`.
    pub fn of(abi: Abi, nr: u32) -> Self {
        let desc = describe(abi, nr);
        let name = display_name(abi, nr);
        let effect = desc.map_or(Effect::None, |desc| desc.effect);
        Self {
            desc,
            effect,
            cloexec: cloexec_of(&name),
            socket: match (&*name, effect) {
                ("socket" | "socketpair", _) => SocketUse::Makes,
                (name, _) if is_accept(name) => SocketUse::Accepts,
                (_, Effect::NamesSocket | Effect::MayBindSocket) => SocketUse::Names,
                _ => SocketUse::Uses,
            },
            ring: name == "io_uring_setup",
        }
    }

    /// What a call with that effect and these first arguments does as soon as it is entered.
    pub fn entered(effect: Effect, args: &[u64; 3]) -> Entered {
        let fd = |i: usize| args[i] as i32;
        match effect {
            Effect::Close => Entered::Closes(fd(0)),
            // dup2(3, 3) does nothing
            Effect::Dup2 | Effect::Dup3 if fd(0) != fd(1) => Entered::Closes(fd(1)),
            Effect::CloseRange => Entered::Range {
                first: args[0] as u32,
                last: args[1] as u32,
                marks: args[2] as u32 & CLOSE_RANGE_CLOEXEC != 0,
                unshares: args[2] as u32 & CLOSE_RANGE_UNSHARE != 0,
            },
            _ => Entered::Nothing,
        }
    }

    /// What it did when it returned `ret`, not negative. `pair`: the two descriptors that it wrote; `how`: the flags of its
    /// `open_how`.
    pub fn returned(&self, args: &[u64; 6], ret: i64, pair: Option<[i32; 2]>, how: Option<u64>) -> Made {
        match self.effect {
            Effect::MaybeFd if !self.desc.is_some_and(|desc| desc.returns_fd(args)) => Made::Nothing,
            // i386 socketcall: others return no descriptor
            Effect::SocketCall
                if !matches!(args[0] as u32, socketcall::SOCKET | socketcall::ACCEPT | socketcall::ACCEPT4) =>
            {
                Made::Nothing
            }
            Effect::Dup2 | Effect::Dup3 if args[0] as i32 == args[1] as i32 => Made::Nothing,
            Effect::NewFd | Effect::MaybeFd | Effect::Dup | Effect::Dup2 | Effect::Dup3 | Effect::SocketCall => {
                Made::One { fd: ret as i32, cloexec: self.is_cloexec(args, how) }
            }
            Effect::NewFdPair => {
                pair.map_or(Made::Nothing, |fds| Made::Two { fds, cloexec: self.is_cloexec(args, how) })
            }
            Effect::Fcntl => match args[1] as u32 {
                command @ (F_DUPFD | F_DUPFD_CLOEXEC) => {
                    Made::One { fd: ret as i32, cloexec: command == F_DUPFD_CLOEXEC }
                }
                F_SETFD => Made::Marked { fd: args[0] as i32, cloexec: args[2] as u32 & FD_CLOEXEC != 0 },
                _ => Made::Nothing,
            },
            Effect::Ioctl => match args[1] as u32 {
                request @ (FIOCLEX | FIONCLEX) => Made::Marked { fd: args[0] as i32, cloexec: request == FIOCLEX },
                _ => Made::Nothing,
            },
            Effect::Unshare if args[0] as u32 & crate::uapi::CLONE_FILES != 0 => Made::Unshared,
            _ => Made::Nothing,
        }
    }

    /// The descriptor that a success with these arguments copies; None: it copies none.
    pub fn copies(&self, args: &[u64; 6]) -> Option<i32> {
        let copies = match self.effect {
            Effect::Dup | Effect::Dup2 | Effect::Dup3 => true,
            Effect::Fcntl => matches!(args[1] as u32, F_DUPFD | F_DUPFD_CLOEXEC),
            _ => false,
        };
        copies.then_some(args[0] as i32)
    }

    /// What a call with these arguments does with the socket that it names.
    pub fn socket(&self, args: &[u64; 6]) -> SocketUse {
        match (self.effect, args[0] as u32) {
            (Effect::SocketCall, socketcall::SOCKET) => SocketUse::Makes,
            (Effect::SocketCall, socketcall::ACCEPT | socketcall::ACCEPT4) => SocketUse::Accepts,
            (Effect::SocketCall, socketcall::BIND | socketcall::CONNECT | socketcall::LISTEN) => SocketUse::Names,
            _ => self.socket,
        }
    }

    fn is_cloexec(&self, args: &[u64; 6], how: Option<u64>) -> bool {
        match self.cloexec {
            Cloexec::Never => false,
            Cloexec::Always => true,
            Cloexec::Bit(arg, bit) => args[usize::from(arg)] as u32 & bit != 0,
            Cloexec::OpenHow => how.is_none_or(|flags| flags as u32 & O_CLOEXEC != 0),
        }
    }
}

/// The two descriptors of a captured `int[2]`, in the byte order of every machine that is supported.
pub fn pair_of(bytes: &[u8]) -> Option<[i32; 2]> {
    let (first, second) = bytes.split_first_chunk::<4>()?;
    Some([i32::from_le_bytes(*first), i32::from_le_bytes(*second.first_chunk::<4>()?)])
}

/// The flags of a captured `open_how`.
pub fn open_how_flags(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk::<8>().map(|flags| u64::from_le_bytes(*flags))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str) -> Descriptors {
        Descriptors::of(Abi::X86_64, crate::number(Abi::X86_64, name).unwrap())
    }

    fn made(name: &str, args: [u64; 6], ret: i64) -> Made {
        call(name).returned(&args, ret, Some([5, 6]), Some(0))
    }

    #[test]
    fn new_ones_and_whether_exec_closes_them() {
        let cloexec = u64::from(O_CLOEXEC);
        assert_eq!(made("openat", [0, 0, cloexec, 0, 0, 0], 3), Made::One { fd: 3, cloexec: true });
        assert_eq!(made("openat2", [0; 6], 3), Made::One { fd: 3, cloexec: false });
        assert_eq!(made("accept4", [3, 0, 0, 0, 0, 0], 7), Made::One { fd: 7, cloexec: false });
        assert_eq!(made("pipe2", [0, cloexec, 0, 0, 0, 0], 0), Made::Two { fds: [5, 6], cloexec: true });
        assert_eq!(made("fcntl", [3, F_DUPFD_CLOEXEC.into(), 9, 0, 0, 0], 9), Made::One { fd: 9, cloexec: true });
        assert_eq!(made("fcntl", [3, F_SETFD.into(), 1, 0, 0, 0], 0), Made::Marked { fd: 3, cloexec: true });
        assert_eq!(made("ioctl", [3, FIONCLEX.into(), 0, 0, 0, 0], 0), Made::Marked { fd: 3, cloexec: false });
        assert_eq!(made("fcntl", [3, 1, 0, 0, 0, 0], 0), Made::Nothing, "F_GETFD");
        assert_eq!(made("bpf", [1, 0, 0, 0, 0, 0], 0), Made::Nothing, "BPF_MAP_LOOKUP_ELEM");
        assert_eq!(made("dup2", [3, 3, 0, 0, 0, 0], 3), Made::Nothing);
        assert_eq!(made("read", [3, 0, 9, 0, 0, 0], 9), Made::Nothing);
        assert!(call("io_uring_setup").ring && !call("openat").ring);
    }

    #[test]
    fn copies_name_their_source() {
        assert_eq!(call("dup3").copies(&[3, 4, 0, 0, 0, 0]), Some(3));
        assert_eq!(call("fcntl").copies(&[3, F_DUPFD.into(), 0, 0, 0, 0]), Some(3));
        assert_eq!(call("fcntl").copies(&[3, F_SETFD.into(), 0, 0, 0, 0]), None);
        assert_eq!(call("openat").copies(&[3; 6]), None);
    }

    #[test]
    fn sockets_are_made_named_and_used() {
        let socket = |name: &str| call(name).socket(&[3, 0, 0, 0, 0, 0]);
        assert_eq!([socket("socketpair"), socket("accept4")], [SocketUse::Makes, SocketUse::Accepts]);
        assert_eq!([socket("connect"), socket("read")], [SocketUse::Names, SocketUse::Uses]);
        let call = Descriptors::of(Abi::I386, crate::number(Abi::I386, "socketcall").unwrap());
        let socket = |call_of: u32| call.socket(&[call_of.into(), 0, 0, 0, 0, 0]);
        assert_eq!([socket(socketcall::SOCKET), socket(socketcall::ACCEPT4)], [SocketUse::Makes, SocketUse::Accepts]);
        assert_eq!([socket(socketcall::BIND), socket(17)], [SocketUse::Names, SocketUse::Uses]);
    }

    #[test]
    fn some_close_at_once() {
        let entered = |name: &str, args| Descriptors::entered(call(name).effect, &args);
        assert_eq!(entered("close", [3, 0, 0]), Entered::Closes(3));
        assert_eq!(entered("dup2", [3, 4, 0]), Entered::Closes(4));
        assert_eq!(entered("dup2", [4, 4, 0]), Entered::Nothing);
        let range = Entered::Range { first: 3, last: u32::MAX, marks: true, unshares: false };
        assert_eq!(entered("close_range", [3, u32::MAX.into(), CLOSE_RANGE_CLOEXEC.into()]), range);
        assert_eq!(entered("read", [3, 0, 0]), Entered::Nothing);
    }

    #[test]
    fn captured_values() {
        assert_eq!(pair_of(&[3, 0, 0, 0, 4, 0, 0, 0]), Some([3, 4]));
        assert_eq!(pair_of(&[3, 0, 0, 0, 4, 0]), None);
        assert_eq!(open_how_flags(&[1, 0, 0, 0, 0, 0, 0, 0, 9]), Some(1));
        assert_eq!(open_how_flags(&[1]), None);
    }
}
