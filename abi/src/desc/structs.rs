//! Structures that arguments point to: how many bytes of them are worth copying, and when.
//!
//! Sizes are those of the kernel's headers for user space. x32 has the calls of x86-64 with their structures; the numbers that are
//! its own (512 and up) are not captured.

use super::ArgKind;
use crate::Abi;

/// A structure, or an array of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Struct {
    /// `struct __kernel_timespec`: seconds and nanoseconds, 64 bits each.
    Timespec,
    /// `struct old_timespec32` of a 32-bit ABI: 32 bits each.
    Timespec32,
    /// `struct __kernel_old_timeval`: seconds and microseconds, each a `long`.
    Timeval,
    /// Two of [`Timespec`](Self::Timespec), times of a file; their nanoseconds may be `UTIME_NOW` or `UTIME_OMIT`.
    TwoTimespecs,
    /// Two of [`Timespec32`](Self::Timespec32).
    TwoTimespecs32,
    /// Two of [`Timeval`](Self::Timeval), times of a file.
    TwoTimevals,
    /// `struct __kernel_old_itimerval`: interval and value, each as [`Timeval`](Self::Timeval).
    Itimerval,
    /// `struct __kernel_itimerspec`: the same as [`Timespec`](Self::Timespec).
    Itimerspec,
    /// `struct old_itimerspec32`: the same as [`Timespec32`](Self::Timespec32).
    Itimerspec32,
    /// `struct rlimit`: two of `unsigned long`.
    Rlimit,
    /// `struct rlimit64`.
    Rlimit64,
    /// A signal mask of 64 bits.
    SigSet,
    /// The kernel's `struct sigaction` of `rt_sigaction`.
    Sigaction,
    /// Status of a child, an `int` of `wait4`.
    WaitStatus,
    /// `siginfo_t` of `waitid`: the part about a child.
    SigInfo,
    /// Array of `struct pollfd`, as long as the second argument says.
    PollFds,
    /// `fd_set`, as many bits as the first argument says.
    FdSet,
    /// `struct epoll_event`.
    EpollEvent,
    /// Array of them, as many as the call returns.
    EpollEvents,
    /// `struct stat`: type, mode, size, device number.
    Stat,
    /// `struct stat64` of i386.
    Stat64,
    /// `struct statx`: what is known, attributes, type, mode, size.
    Statx,
    /// What is at the address of a futex: its word, and the 12 bytes behind it, where glibc's mutex has its owner.
    Futex,
}

/// Which structures are recorded: each choice includes those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Structs {
    /// No structures.
    None,
    /// Structures of calls that wait, and of others that are seldom called.
    #[default]
    Waits,
    /// Also those of calls so frequent that copies cost noticeably: what `epoll_ctl` registers, masks and handlers of signals, results of `stat`.
    All,
}

impl Structs {
    /// All choices.
    pub const CHOICES: [Self; 3] = [Self::None, Self::Waits, Self::All];

    /// Name of the choice on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Waits => "waits",
            Self::All => "all",
        }
    }
}

/// Number of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementCount {
    /// One element.
    One,
    /// The number in this argument.
    Arg(u8),
    /// The number that the call returns.
    Returned,
    /// Words with as many bits as the first argument says.
    Bits,
    /// The most that lie in one page.
    ToPage,
}

/// Bytes of a structure in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Layout {
    /// Bytes of an element.
    pub size: u16,
    /// Number of elements.
    pub count: ElementCount,
    /// Most elements worth copying.
    pub most: u8,
}

/// Bytes of a `struct epoll_event`: packed on x86 only (include/uapi/linux/eventpoll.h).
pub(crate) fn epoll_event_bytes(abi: Abi) -> u16 {
    if abi == Abi::Aarch64 { 16 } else { 12 }
}

impl Struct {
    /// Layout of the structure in memory of `abi`; `None`: not known there.
    pub fn layout(self, abi: Abi) -> Option<Layout> {
        let long: u16 = if abi == Abi::I386 { 4 } else { 8 };
        let one = |size| Layout { size, count: ElementCount::One, most: 1 };
        Some(match self {
            Self::Timespec => one(16),
            Self::Timespec32 | Self::SigSet => one(8),
            Self::Timeval => one(2 * long),
            Self::TwoTimespecs => one(32),
            Self::TwoTimespecs32 => one(16),
            Self::TwoTimevals => one(4 * long),
            Self::Itimerval => one(4 * long),
            Self::Itimerspec => one(32),
            Self::Itimerspec32 => one(16),
            Self::Rlimit => one(2 * long),
            Self::Rlimit64 => one(16),
            // struct compat_sigaction (include/linux/compat.h)
            Self::Sigaction if long == 4 => one(20),
            Self::Sigaction => one(32),
            Self::WaitStatus => one(4),
            // up to si_status: waitid() writes no more
            Self::SigInfo if long == 4 => one(24),
            Self::SigInfo => one(28),
            // strace prints as many elements
            Self::PollFds => Layout { size: 8, count: ElementCount::Arg(1), most: 32 },
            // FD_SETSIZE bits
            Self::FdSet => Layout { size: long, count: ElementCount::Bits, most: (128 / long) as u8 },
            Self::EpollEvent => one(epoll_event_bytes(abi)),
            // no more bytes than of 32 packed ones
            Self::EpollEvents if abi == Abi::Aarch64 => {
                Layout { size: epoll_event_bytes(abi), count: ElementCount::Returned, most: 24 }
            }
            Self::EpollEvents => Layout { size: epoll_event_bytes(abi), count: ElementCount::Returned, most: 32 },
            // up to st_size and stx_size (arch/x86/include/uapi/asm/stat.h, include/uapi/asm-generic/stat.h, struct compat_stat,
            // include/uapi/linux/stat.h)
            Self::Stat64 if abi == Abi::Aarch64 => return None,
            Self::Stat if long == 4 => one(24),
            Self::Stat => one(56),
            Self::Stat64 => one(52),
            Self::Statx => one(48),
            Self::Futex => Layout { size: 4, count: ElementCount::ToPage, most: 4 },
        })
    }

    /// Whether the kernel writes it only if the result is more than 0.
    pub fn needs_result(self) -> bool {
        matches!(self, Self::WaitStatus | Self::EpollEvents)
    }
}

impl ArgKind {
    /// The structure that an argument of this kind points to.
    pub fn structure(self) -> Option<Struct> {
        match self {
            Self::In(what) | Self::Out(what) | Self::InOut(what) | Self::Left(what) => Some(what),
            _ => None,
        }
    }
}

/// Whether the structures of call `name` are recorded with `structs`.
fn includes(structs: Structs, name: &str) -> bool {
    match name {
        _ if structs == Structs::None => false,
        "rt_sigprocmask" | "rt_sigaction" | "epoll_ctl" => structs == Structs::All,
        "stat" | "lstat" | "fstat" | "newfstatat" | "statx" => structs == Structs::All,
        "stat64" | "lstat64" | "fstat64" | "fstatat64" => structs == Structs::All,
        _ => true,
    }
}

impl super::SyscallDesc {
    /// The arguments whose structures are recorded with `structs`: index, kind, layout in `abi`.
    pub fn structs(&self, abi: Abi, structs: Structs) -> impl Iterator<Item = (u8, ArgKind, Layout)> {
        let args = if includes(structs, self.name) { self.args } else { &[] };
        let what = |kind: ArgKind| match kind {
            ArgKind::Futex => Some(Struct::Futex),
            kind => kind.structure(),
        };
        (0..).zip(args).filter_map(move |(at, arg)| Some((at, arg.kind, what(arg.kind)?.layout(abi)?)))
    }

    /// The values of the second argument with which the call has its structures, a bit each; 0 = with any.
    pub fn struct_ops(&self) -> u16 {
        match self.name {
            // FUTEX_WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2 wait, and have a timeout (include/uapi/linux/futex.h)
            "futex" | "futex_time64" => 1 | 1 << 6 | 1 << 9 | 1 << 11 | 1 << 13,
            // EPOLL_CTL_ADD, EPOLL_CTL_MOD
            "epoll_ctl" => 1 << 1 | 1 << 3,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{describe, every};
    use super::*;

    #[test]
    fn sizes_are_the_kernels() {
        let size = |what: Struct, abi| what.layout(abi).unwrap().size;
        assert_eq!([Struct::Timeval, Struct::TwoTimevals].map(|what| size(what, Abi::I386)), [8, 16]);
        assert_eq!([Struct::Timeval, Struct::TwoTimevals].map(|what| size(what, Abi::X86_64)), [16, 32]);
        let both = |what: Struct| [Abi::X86_64, Abi::Aarch64].map(|abi| size(what, abi));
        assert_eq!(both(Struct::EpollEvent), [12, 16]);
        assert_eq!(both(Struct::Sigaction), [32, 32]);
        assert_eq!(both(Struct::Stat), [56, 56]);
        assert_eq!(Struct::Stat64.layout(Abi::Aarch64), None);
    }

    #[test]
    fn no_call_has_more_structures_than_a_record_holds() {
        for desc in every() {
            for abi in [Abi::X86_64, Abi::I386, Abi::Aarch64] {
                let structs: Vec<_> = desc.structs(abi, Structs::All).collect();
                assert!(structs.len() <= 4, "{}", desc.name);
                assert!(
                    structs.iter().all(|(_, _, layout)| usize::from(layout.size) * usize::from(layout.most) <= 384)
                );
            }
        }
    }

    #[test]
    fn frequent_ones_are_left_out() {
        let count = |nr, structs| describe(Abi::X86_64, nr).unwrap().structs(Abi::X86_64, structs).count();
        // rt_sigprocmask, ppoll
        let counts =
            [Structs::None, Structs::Waits, Structs::All].map(|structs| (count(14, structs), count(271, structs)));
        assert_eq!(counts, [(0, 0), (0, 3), (2, 3)]);
    }
}
