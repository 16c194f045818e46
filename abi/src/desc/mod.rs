//! What each syscall means: its arguments, its return value and what it does to the state a reader of the tape must follow.
//!
//! One line per call in the tables of the submodules. Argument names are the kernel's own (`SYSCALL_DEFINEn`, which tracefs shows
//! and perf prints); a test compares them with tracefs of the running kernel. The tables are for 64-bit x86; `i386` and `aarch64`
//! hold the calls that exist only there or take their arguments in another order or layout.

mod aarch64;
mod admin;
mod events;
mod files;
mod i386;
mod io;
mod ipc;
mod memory;
mod mounts;
mod network;
mod process;
mod signals;
mod structs;
mod time;
#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
mod tracefs;

use std::collections::HashMap;
use std::sync::LazyLock;

pub use self::io::ContentIo;
pub(crate) use self::structs::epoll_event_bytes;
pub use self::structs::{ElementCount, Layout, Struct, Structs};
use crate::{Abi, FlagSet, names};

/// `dfd` of a `*at` call that means the current directory (include/uapi/linux/fcntl.h).
pub const AT_FDCWD: i32 = -100;

/// One syscall of one ABI.
#[derive(Debug)]
#[non_exhaustive]
pub struct SyscallDesc {
    /// The name in the syscall table, e.g. `newfstatat`.
    pub name: &'static str,
    /// Arguments of the call in order, at most six.
    pub args: &'static [ArgDesc],
    /// What a successful return is.
    pub ret: RetKind,
    /// What a successful call does to descriptors, directories and credentials.
    pub effect: Effect,
}

impl SyscallDesc {
    /// The first two arguments that are descriptors, directories of path arguments included: those whose files a tape names.
    pub fn fd_args(&self) -> [Option<usize>; 2] {
        let mut at = self
            .args
            .iter()
            .enumerate()
            .filter(|(_, a)| matches!(a.kind, ArgKind::Fd | ArgKind::DirFd))
            .map(|(i, _)| i);
        [at.next(), at.next()]
    }

    /// Whether the return value of a successful call with these arguments is a descriptor: always for [`RetKind::Fd`], and for the
    /// commands of `fcntl`, `ioctl`, `bpf`, `seccomp` and `landlock_create_ruleset` that are known to return one.
    pub fn returns_fd(&self, args: &[u64; 6]) -> bool {
        // F_DUPFD, F_DUPFD_CLOEXEC (include/uapi/linux/fcntl.h)
        const FCNTL: [u32; 2] = [0, 1030];
        // TIOCGPTPEER, NS_GET_USERNS, NS_GET_PARENT, KVM_CREATE_VM, KVM_CREATE_VCPU
        const IOCTL: [u32; 5] = [0x5441, 0xb701, 0xb702, 0xae01, 0xae41];
        // MAP_CREATE, PROG_LOAD, OBJ_GET, PROG_GET_FD_BY_ID, MAP_GET_FD_BY_ID, RAW_TRACEPOINT_OPEN, BTF_LOAD, BTF_GET_FD_BY_ID,
        // LINK_CREATE, LINK_GET_FD_BY_ID, ENABLE_STATS, ITER_CREATE, TOKEN_CREATE (include/uapi/linux/bpf.h)
        const BPF: [u32; 13] = [0, 5, 7, 13, 14, 17, 18, 19, 28, 30, 32, 33, 36];
        let [first, second] = [args[0] as u32, args[1] as u32];
        match self.name {
            "fcntl" | "fcntl64" => FCNTL.contains(&second),
            "ioctl" => IOCTL.contains(&second),
            "bpf" => BPF.contains(&first),
            // SECCOMP_SET_MODE_FILTER with SECCOMP_FILTER_FLAG_NEW_LISTENER
            "seccomp" => first == 1 && second & 8 != 0,
            // with flags it returns a version number instead
            "landlock_create_ruleset" => args[2] as u32 == 0,
            _ => self.ret == RetKind::Fd,
        }
    }

    /// Whether the path in argument `path` may be empty with these arguments: such a call is on the descriptor that a path would
    /// be relative to. Otherwise it fails.
    pub fn takes_empty_path(&self, path: usize, args: &[u64; 6]) -> bool {
        const OF_FIRST: [&str; 3] = ["AT_EMPTY_PATH", "MOVE_MOUNT_F_EMPTY_PATH", "FSPICK_EMPTY_PATH"];
        const OF_SECOND: [&str; 1] = ["MOVE_MOUNT_T_EMPTY_PATH"];
        // do_readlinkat (fs/stat.c): without a flag
        if self.name == "readlinkat" {
            return true;
        }
        // linkat: the flag is of the old path
        let is_second = self.args.iter().take(path).any(|arg| matches!(arg.kind, ArgKind::Path));
        let names: &[&str] = if is_second { &OF_SECOND } else { &OF_FIRST };
        self.args.iter().zip(args).any(|(arg, value)| match arg.kind {
            ArgKind::Flags(set) => set.bits.iter().any(|(bit, name)| value & bit != 0 && names.contains(name)),
            _ => false,
        })
    }

    /// Whether a call with these arguments takes a null pointer in place of the path.
    pub fn takes_null_path(&self, path: usize, args: &[u64; 6]) -> bool {
        matches!(self.name, "utimensat" | "utimensat_time64" | "futimesat" | "fanotify_mark")
            || self.takes_empty_path(path, args)
    }
}

/// One argument of a syscall.
#[derive(Debug)]
#[non_exhaustive]
pub struct ArgDesc {
    /// The name in the kernel source, e.g. `dfd`.
    pub name: &'static str,
    /// What the register holds.
    pub kind: ArgKind,
}

/// What the register of an argument holds.
///
/// A 32-bit kind must be read from the low half of the register only: the upper half may hold anything. "As wide as a register" is 32
/// bits on i386 and 64 elsewhere. Pointers and `long` *in memory* have 32 bits on i386 and x32, so the layouts of `iovec`, `msghdr`,
/// `timeval` and argument vectors follow that. Plain `chown`, `setuid` and their like of i386 take 16-bit ids.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ArgKind {
    /// Signed, 32 bits.
    Int,
    /// Unsigned, 32 bits.
    UInt,
    /// Signed, as wide as a register.
    Long,
    /// Unsigned, as wide as a register.
    ULong,
    /// A pattern or key best read in hex, as wide as a register.
    Hex,
    /// A pattern or key best read in hex, 32 bits.
    Hex32,
    /// An address in the caller's memory that nothing below says more about.
    Ptr,
    /// The address of a futex. Of a wait for it what is there is copied beside the arguments ([`Struct::Futex`]).
    Futex,
    /// A number of bytes, as wide as a register.
    Size,
    /// A file offset: signed, as wide as a register.
    Offset,
    /// A file offset counted in pages of 4096 bytes (i386 `mmap2`).
    OffsetPages,
    /// The low half of a 64-bit number split over two 32-bit registers; the high half is the following argument.
    LowHalf,
    /// The high half of the number begun by a neighbouring [`LowHalf`](Self::LowHalf) (before it in i386 `_llseek` only).
    HighHalf,
    /// A file descriptor: signed, 32 bits.
    Fd,
    /// The directory a path argument is relative to: a descriptor or [`AT_FDCWD`].
    DirFd,
    /// A path: pointer to a C string, relative to the nearest [`DirFd`](Self::DirFd) before it, else to the current directory.
    Path,
    /// A C string that names a file, a device or a queue and is not looked up from the current directory: the target of a symbolic
    /// link, the source of a mount, a POSIX message queue. Printed like [`Str`](Self::Str), private like [`Path`](Self::Path).
    FileName,
    /// Another C string, e.g. the name of an extended attribute or of a memfd.
    Str,
    /// Bytes the kernel reads: pointer, whole at enter.
    BufIn {
        /// Index of the argument that holds the number of bytes.
        len_arg: u8,
    },
    /// Bytes the kernel writes: pointer; after a success the return value is their number.
    BufOut,
    /// Array of `struct iovec`: pointer.
    Iovec {
        /// Index of the argument that holds the number of elements.
        cnt_arg: u8,
    },
    /// A socket address the kernel reads (`connect`, `bind`, `sendto`): pointer, whole at enter.
    SockaddrIn {
        /// Index of the argument that holds the number of bytes.
        len_arg: u8,
    },
    /// A socket address the kernel writes (`accept`, `getsockname`, `recvfrom`): pointer, valid at exit, may be null.
    SockaddrOut {
        /// Index of the argument that points to the number of bytes (an `int`, in and out).
        len_ptr_arg: u8,
    },
    /// `struct msghdr` (`sendmsg`, `recvmsg`): pointer.
    Msghdr,
    /// `struct open_how` of `openat2`: pointer, whole at enter; see [`open_how_text`](crate::open_how_text).
    OpenHow {
        /// Index of the argument that holds the number of bytes.
        len_arg: u8,
    },
    /// `struct clone_args` of `clone3`: pointer, whole at enter.
    CloneArgs {
        /// Index of the argument that holds the number of bytes.
        len_arg: u8,
    },
    /// `int[2]` filled with two new descriptors: pointer, valid at exit.
    FdPair,
    /// Argument vector of an exec: pointer to pointers to C strings, ended by null. Gone at a successful exit.
    Argv,
    /// Environment of an exec, laid out like [`Argv`](Self::Argv).
    Envp,
    /// File permissions, shown in octal; see [`mode_text`](crate::mode_text).
    Mode,
    /// A device number of 32 bits; see [`dev_text`](crate::dev_text).
    Dev,
    /// A signal number, or 0.
    Signal,
    /// A process, thread or group id: signed, 32 bits, in the caller's pid namespace; 0 and negative values have meanings per call.
    Pid,
    /// A user id, in the caller's user namespace; all ones means "leave it".
    Uid,
    /// A group id, like [`Uid`](Self::Uid).
    Gid,
    /// A clock: see [`clock_flags`](crate::clock_flags).
    ClockId,
    /// A value with names.
    Flags(&'static FlagSet),
    /// Protocol of a new socket; its names depend on the family, see [`protocol_flags`](crate::protocol_flags).
    SockProto {
        /// Index of the argument that holds the family.
        family_arg: u8,
    },
    /// Option of a socket; its names depend on the level, see [`sockopt_flags`](crate::sockopt_flags).
    SockOpt {
        /// Index of the argument that holds the level.
        level_arg: u8,
    },
    /// A timeout in milliseconds: signed, 32 bits, negative means for ever.
    TimeoutMs,
    /// A structure, or an array of them, that the kernel reads: pointer, valid at enter, may be null.
    In(Struct),
    /// One that the kernel writes: pointer, valid after a success ([`Struct::needs_result`] has the exceptions), may be null.
    Out(Struct),
    /// One that the kernel reads and overwrites if the result is more than 0. The value after the call is "left" for a time.
    InOut(Struct),
    /// The time left of a sleep that a signal interrupted: pointer, written then only, may be null.
    Left(Struct),
}

/// What the return value is when it is no error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetKind {
    /// A count or 0, decimal.
    Int,
    /// A file descriptor.
    Fd,
    /// A process or thread id, in the caller's pid namespace.
    Pid,
    /// A user id.
    Uid,
    /// A group id.
    Gid,
    /// An address, shown in hex.
    Ptr,
    /// A count, where 0 says that time ran out: perf prints `0 (Timeout)`.
    Timeout,
    /// File permissions, shown in octal.
    Mode,
    /// A pattern best read in hex.
    Hex,
    /// The call does not return: `exit`, and `rt_sigreturn`, whose "return value" is the register of the interrupted code.
    NoReturn,
}

/// What a successful call changes of the state by which descriptors, relative paths and ids are resolved. The recorder keeps calls
/// with an effect under any filter; those that only sometimes have one say what decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Effect {
    /// Nothing of that.
    None,
    /// The return value is a new descriptor.
    NewFd,
    /// The return value is a new descriptor for some commands; see [`SyscallDesc::returns_fd`].
    MaybeFd,
    /// Two new descriptors in the [`ArgKind::FdPair`] argument.
    NewFdPair,
    /// The descriptor in argument 0 is closed, also when the call fails with anything but `EBADF`.
    Close,
    /// Descriptors of a range are closed or marked close-on-exec.
    CloseRange,
    /// The return value is a copy of argument 0.
    Dup,
    /// Argument 1 becomes a copy of argument 0, without close-on-exec.
    Dup2,
    /// Argument 1 becomes a copy of argument 0, close-on-exec if the flags say so.
    Dup3,
    /// A copy with `F_DUPFD`, `F_DUPFD_CLOEXEC`, with `F_SETFD` close-on-exec is changed; other commands have no effect.
    Fcntl,
    /// Close-on-exec is changed with `FIOCLEX`, `FIONCLEX`; a few requests return a new descriptor.
    Ioctl,
    /// The current directory becomes the path.
    Chdir,
    /// The current directory becomes the descriptor's.
    Fchdir,
    /// The root directory becomes the path.
    Chroot,
    /// The root of the mount namespace changes.
    PivotRoot,
    /// Tables shared with other threads or namespaces are left.
    Unshare,
    /// Namespaces are entered.
    Setns,
    /// A new process or thread; its id is the return value.
    Clone,
    /// A new program: other threads end, close-on-exec descriptors close.
    Exec,
    /// The thread or process ends.
    Exit,
    /// User or group ids, or capabilities, change.
    Cred,
    /// The socket in argument 0 gets another address or another end, also when the call fails.
    NamesSocket,
    /// The socket in argument 0 is looked at.
    ReadsSocket,
    /// The socket in argument 0 gets an address if it has none and argument 4 names a receiver.
    MayBindSocket,
    /// Descriptors may arrive in control messages.
    RecvFds,
    /// Requests queued in a ring may open, close or accept descriptors.
    IoUringEnter,
    /// A ring's own table of files may change, or the descriptor of another ring be installed.
    IoUringRegister,
    /// i386 only: a socket call by number, its arguments in memory.
    SocketCall,
}

/// Tables of [`SyscallDesc`]: `name(arg: Kind, …) -> RetKind, Effect;`, an effect left out being [`Effect::None`].
macro_rules! calls {
    ($($name:ident($($arg:ident: $kind:ident $(($($tuple:tt)+))? $({$($field:tt)+})?),* $(,)?) -> $ret:ident $(, $effect:ident)?;)*) => {
        /// The calls of this file.
        pub(super) static CALLS: &[$crate::desc::SyscallDesc] = &[$(
            $crate::desc::SyscallDesc {
                name: stringify!($name),
                args: &[$($crate::desc::ArgDesc {
                    name: stringify!($arg),
                    kind: $crate::desc::ArgKind::$kind $(($($tuple)+))? $({$($field)+})?,
                }),*],
                ret: $crate::desc::RetKind::$ret,
                effect: $crate::desc::calls!(@effect $($effect)?),
            },
        )*];
    };
    (@effect) => { $crate::desc::Effect::None };
    (@effect $effect:ident) => { $crate::desc::Effect::$effect };
}
use calls;

/// The tables of 64-bit x86.
const COMMON: [&[SyscallDesc]; 10] = [
    files::CALLS,
    mounts::CALLS,
    memory::CALLS,
    process::CALLS,
    signals::CALLS,
    network::CALLS,
    ipc::CALLS,
    time::CALLS,
    admin::CALLS,
    events::CALLS,
];

type ByName = HashMap<&'static str, &'static SyscallDesc>;

/// Descriptions by name, those of later tables replacing those of earlier ones.
fn by_name<'a>(tables: impl IntoIterator<Item = &'a &'static [SyscallDesc]>) -> ByName {
    tables.into_iter().copied().flatten().map(|desc| (desc.name, desc)).collect()
}

/// Descriptions of one ABI, indexed by number (without the x32 bit).
fn by_number(abi: Abi, own: &'static [SyscallDesc]) -> Vec<Option<&'static SyscallDesc>> {
    let named = by_name(COMMON.iter().chain([&own]));
    let mut table = Vec::new();
    for (nr, name) in names::all(abi) {
        let index = names::index(abi, nr);
        if table.len() <= index {
            table.resize(index + 1, None);
        }
        table[index] = named.get(name).copied();
    }
    table
}

/// What call `nr` of `abi` means; `None` for numbers without a name and calls nobody implements any more.
pub fn describe(abi: Abi, nr: u32) -> Option<&'static SyscallDesc> {
    type Table = LazyLock<Vec<Option<&'static SyscallDesc>>>;
    static X86_64: Table = LazyLock::new(|| by_number(Abi::X86_64, &[]));
    static I386: Table = LazyLock::new(|| by_number(Abi::I386, i386::CALLS));
    static X32: Table = LazyLock::new(|| by_number(Abi::X32, &[]));
    static AARCH64: Table = LazyLock::new(|| by_number(Abi::Aarch64, aarch64::CALLS));
    let table: &[Option<&'static SyscallDesc>] = match abi {
        Abi::Unknown => &[],
        Abi::X86_64 => &X86_64,
        Abi::I386 => &I386,
        Abi::X32 => &X32,
        Abi::Aarch64 => &AARCH64,
    };
    table.get(names::index(abi, nr)).copied().flatten()
}

/// What the call `name` means on 64-bit x86, or on the ABI that has it if x86-64 does not.
pub fn describe_name(name: &str) -> Option<&'static SyscallDesc> {
    static ALL: LazyLock<ByName> = LazyLock::new(|| by_name([aarch64::CALLS, i386::CALLS].iter().chain(&COMMON)));
    ALL.get(name).copied()
}

/// Whether a call belongs to one of the groups `-e` knows; `network` and its like are the tables themselves.
pub(crate) fn in_table(group: Group, name: &str) -> bool {
    let table = match group {
        Group::Network => network::CALLS,
        Group::Memory => memory::CALLS,
        Group::Signal => signals::CALLS,
        Group::Ipc => ipc::CALLS,
    };
    table.iter().any(|desc| desc.name == name)
}

/// Groups that are one table each.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Group {
    /// Calls on sockets.
    Network,
    /// Calls on the caller's address space.
    Memory,
    /// Calls that send, wait for or handle signals.
    Signal,
    /// System V and POSIX message queues, semaphores, shared memory.
    Ipc,
}

/// Every description of every ABI, an overridden one included.
pub(crate) fn every() -> impl Iterator<Item = &'static SyscallDesc> {
    COMMON.into_iter().chain([i386::CALLS, aarch64::CALLS]).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls that have a number but no implementation in the kernel (sys_ni_syscall in the tables).
    #[rustfmt::skip]
    const NOT_IMPLEMENTED: [&str; 25] = [
        "_sysctl", "afs_syscall", "create_module", "epoll_ctl_old", "epoll_wait_old", "get_kernel_syms", "getpmsg", "putpmsg",
        "lookup_dcookie", "nfsservctl", "query_module", "security", "tuxcall", "vserver", "break", "stty", "gtty", "ftime", "prof",
        "bdflush", "lock", "mpx", "profil", "idle", "ulimit",
    ];

    #[test]
    fn every_call_of_every_abi_is_described() {
        for abi in Abi::KNOWN {
            for (nr, name) in names::all(abi) {
                match describe(abi, nr) {
                    Some(desc) => assert_eq!(desc.name, name, "{abi} {nr}"),
                    None => assert!(NOT_IMPLEMENTED.contains(&name), "{abi} {nr} {name} has no description"),
                }
            }
        }
    }

    #[test]
    fn calls_that_take_an_empty_path_are_told_by_their_flags() {
        let flag = |name: &str| if name == "fspick" { 8 } else { 0x1000 };
        // the path, and the flags
        let calls = [
            ("newfstatat", 1, 3),
            ("statx", 1, 2),
            ("execveat", 1, 4),
            ("linkat", 1, 4),
            ("fchownat", 1, 4),
            ("name_to_handle_at", 1, 4),
            ("faccessat2", 1, 3),
            ("fchmodat2", 1, 3),
            ("utimensat", 1, 3),
            ("open_tree", 1, 2),
            ("mount_setattr", 1, 2),
            ("fspick", 1, 2),
            ("setxattrat", 1, 2),
            ("file_getattr", 1, 4),
        ];
        for (name, path, flags) in calls {
            let desc = describe_name(name).unwrap();
            let mut args = [0; 6];
            assert!(!desc.takes_empty_path(path, &args), "{name}");
            // of an int: what is above it is no flag
            args[flags] = flag(name) | 0xffff_ffff_0000_0000;
            assert!(desc.takes_empty_path(path, &args) && desc.takes_null_path(path, &args), "{name}");
        }
        let takes = |name: &str, path, args: [u64; 6]| describe_name(name).unwrap().takes_empty_path(path, &args);
        assert!(!takes("linkat", 3, [3, 0, 4, 0, 0x1000, 0]), "a new name is never empty");
        let move_mount = |flags| [1, 3].map(|path| takes("move_mount", path, [3, 0, 4, 0, flags, 0]));
        assert_eq!([0, 4, 0x40, 0x44].map(move_mount), [[false, false], [true, false], [false, true], [true, true]]);
        assert!(takes("readlinkat", 1, [3, 0, 0, 0, 0, 0]));
        // the bits of other calls are others
        for (name, path) in [("openat", 1), ("unlinkat", 1), ("renameat2", 1), ("renameat2", 3), ("symlinkat", 2)] {
            assert!(!takes(name, path, [0x1000; 6]), "{name}");
        }
        assert!(describe_name("utimensat").unwrap().takes_null_path(1, &[0; 6]));
    }

    #[test]
    fn indices_point_at_other_arguments() {
        for desc in every() {
            assert!(desc.args.len() <= 6, "{}", desc.name);
            for (at, arg) in desc.args.iter().enumerate() {
                let other = match arg.kind {
                    ArgKind::BufIn { len_arg } | ArgKind::SockaddrIn { len_arg } => len_arg,
                    ArgKind::OpenHow { len_arg } | ArgKind::CloneArgs { len_arg } => len_arg,
                    ArgKind::SockaddrOut { len_ptr_arg } => len_ptr_arg,
                    ArgKind::Iovec { cnt_arg } => cnt_arg,
                    ArgKind::SockOpt { level_arg } => level_arg,
                    ArgKind::SockProto { family_arg } => family_arg,
                    _ => continue,
                };
                assert!(usize::from(other) < desc.args.len() && usize::from(other) != at, "{}", desc.name);
            }
        }
    }

    #[test]
    fn no_call_stands_in_two_tables() {
        let mut seen = std::collections::HashSet::new();
        for desc in COMMON.into_iter().flatten() {
            assert!(seen.insert(desc.name), "{} is described twice", desc.name);
        }
    }

    #[test]
    fn effects_fit_arguments_and_results() {
        for desc in every() {
            match desc.effect {
                Effect::NewFd => assert_eq!(desc.ret, RetKind::Fd, "{}", desc.name),
                Effect::MaybeFd => assert_eq!(desc.ret, RetKind::Int, "{}", desc.name),
                Effect::NewFdPair => {
                    assert!(desc.args.iter().any(|arg| matches!(arg.kind, ArgKind::FdPair)), "{}", desc.name);
                }
                Effect::Close | Effect::Dup | Effect::Dup2 | Effect::Dup3 | Effect::Fcntl => {
                    assert!(matches!(desc.args[0].kind, ArgKind::Fd), "{}", desc.name);
                }
                Effect::None => assert!(desc.ret != RetKind::Fd, "{} returns a descriptor", desc.name),
                _ => {}
            }
        }
    }

    #[test]
    fn commands_decide_whether_a_descriptor_is_returned() {
        let returns = |name, args: &[u64]| {
            let mut all = [0; 6];
            all[..args.len()].copy_from_slice(args);
            describe_name(name).unwrap().returns_fd(&all)
        };
        assert!(returns("openat", &[]) && !returns("read", &[]));
        assert!(returns("fcntl", &[3, 1030]) && !returns("fcntl", &[3, 1]));
        assert!(returns("bpf", &[5]) && !returns("bpf", &[2]));
        assert!(returns("seccomp", &[1, 8]) && !returns("seccomp", &[1, 0]));
        assert!(returns("landlock_create_ruleset", &[1, 8, 0]) && !returns("landlock_create_ruleset", &[0, 0, 1]));
    }

    #[test]
    fn abis_differ_where_the_kernel_does() {
        let arg = |abi, name, at: usize| describe(abi, names::number(abi, name).unwrap()).unwrap().args[at].name;
        assert_eq!(arg(Abi::X86_64, "clone", 3), "child_tidptr");
        assert_eq!(arg(Abi::I386, "clone", 3), "tls");
        assert_eq!(arg(Abi::Aarch64, "clone", 3), "tls");
        assert_eq!(describe(Abi::I386, 90).unwrap().args.len(), 1, "old mmap takes a pointer to its arguments");
        assert_eq!(describe_name("socketcall").unwrap().effect, Effect::SocketCall);
        assert_eq!(describe_name("openat").unwrap().args[1].name, "filename");
        assert!(describe_name("openatt").is_none());
    }
}
