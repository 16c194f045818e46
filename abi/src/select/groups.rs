//! Groups of calls, `%file` and its like. They follow strace's groups of the same names where a description says enough to derive
//! them (a path argument, a descriptor), and are the tables of `desc` or short lists where it does not.

use crate::desc::{Group, every, in_table};
use crate::{ArgKind, Effect, RetKind, SyscallDesc};

/// Every group, for messages.
pub(super) const GROUPS: [&str; 16] = [
    "clock", "creds", "desc", "file", "fstat", "fstatfs", "ipc", "lstat", "memory", "net", "network", "process",
    "pure", "signal", "stat", "statfs",
];

/// The members of group `name` of all ABIs, by name; `None` if there is no such group.
pub(super) fn members(name: &str) -> Option<impl Iterator<Item = &'static str>> {
    let belongs: fn(&SyscallDesc) -> bool = match name {
        "clock" => clock,
        "creds" => creds,
        "desc" => descriptor,
        "file" => file,
        "fstat" => |d| status(d) && !matches!(d.name, "stat" | "stat64" | "oldstat" | "lstat" | "lstat64" | "oldlstat"),
        "fstatfs" => |d| matches!(d.name, "fstatfs" | "fstatfs64"),
        "ipc" => |d| d.name == "ipc" || table(Group::Ipc, d),
        "lstat" => |d| status(d) && !matches!(d.name, "stat" | "stat64" | "oldstat" | "fstat" | "fstat64" | "oldfstat"),
        "memory" => memory,
        "net" | "network" => |d| d.name == "socketcall" || table(Group::Network, d),
        "process" => process,
        "pure" => pure,
        "signal" => signal,
        "stat" => status,
        "statfs" => |d| matches!(d.name, "statfs" | "statfs64"),
        _ => return None,
    };
    Some(every().filter(move |desc| belongs(desc)).map(|desc| desc.name))
}

/// The group meant by a word without `%`. `stat`, `lstat`, `fstat`, `statfs` and `fstatfs` are calls.
pub(super) fn bare_members(name: &str) -> Option<impl Iterator<Item = &'static str>> {
    if matches!(name, "stat" | "lstat" | "fstat" | "statfs" | "fstatfs") { None } else { members(name) }
}

/// Whether the call, or the one it is a later width of, is in the table of `group`.
fn table(group: Group, desc: &SyscallDesc) -> bool {
    in_table(group, desc.name) || desc.name.strip_suffix("_time64").is_some_and(|name| in_table(group, name))
}

fn any_arg(desc: &SyscallDesc, test: fn(&ArgKind) -> bool) -> bool {
    desc.args.iter().any(|arg| test(&arg.kind))
}

/// A path on a file system, and the calls about the current directory.
fn file(desc: &SyscallDesc) -> bool {
    any_arg(desc, |kind| matches!(kind, ArgKind::Path)) || desc.name == "getcwd"
}

/// A descriptor taken or returned, also inside a structure.
fn descriptor(desc: &SyscallDesc) -> bool {
    let in_memory = matches!(
        desc.name,
        "poll"
            | "ppoll"
            | "ppoll_time64"
            | "select"
            | "_newselect"
            | "pselect6"
            | "pselect6_time64"
            | "bpf"
            | "landlock_create_ruleset"
            | "close_range"
            | "socketcall"
    );
    any_arg(desc, |kind| matches!(kind, ArgKind::Fd | ArgKind::DirFd | ArgKind::FdPair))
        || desc.ret == RetKind::Fd
        || in_memory
}

fn memory(desc: &SyscallDesc) -> bool {
    // cachestat looks at the page cache of a file, not at anyone's memory
    desc.name != "cachestat" && (in_table(Group::Memory, desc.name) || matches!(desc.name, "mmap2" | "shmat" | "shmdt"))
}

/// Beginning, ending, waiting for, and signalling processes.
fn process(desc: &SyscallDesc) -> bool {
    matches!(desc.effect, Effect::Clone | Effect::Exec | Effect::Exit | Effect::Unshare)
        || matches!(
            desc.name,
            "wait4" | "waitid" | "waitpid" | "kill" | "tkill" | "tgkill" | "pidfd_open" | "pidfd_send_signal"
        )
        || matches!(desc.name, "rt_sigqueueinfo" | "rt_tgsigqueueinfo")
}

fn signal(desc: &SyscallDesc) -> bool {
    table(Group::Signal, desc)
        || matches!(
            desc.name,
            "signal"
                | "sigaction"
                | "sigprocmask"
                | "sigpending"
                | "sigsuspend"
                | "sigreturn"
                | "sgetmask"
                | "ssetmask"
        )
}

/// Getting and setting ids, groups and capabilities.
fn creds(desc: &SyscallDesc) -> bool {
    desc.effect == Effect::Cred
        || matches!(desc.ret, RetKind::Uid | RetKind::Gid)
        || matches!(
            desc.name,
            "getresuid"
                | "getresgid"
                | "getresuid32"
                | "getresgid32"
                | "getgroups"
                | "getgroups32"
                | "capget"
                | "prctl"
        )
}

/// Reading and setting clocks.
fn clock(desc: &SyscallDesc) -> bool {
    let set_or_read = ["clock_gettime", "clock_settime", "clock_getres", "clock_adjtime"];
    set_or_read.iter().any(|name| desc.name.starts_with(name))
        || matches!(desc.name, "gettimeofday" | "settimeofday" | "time" | "stime" | "adjtimex")
}

/// Calls on the status of files.
fn status(desc: &SyscallDesc) -> bool {
    matches!(
        desc.name,
        "stat"
            | "lstat"
            | "fstat"
            | "stat64"
            | "lstat64"
            | "fstat64"
            | "oldstat"
            | "oldlstat"
            | "oldfstat"
            | "newfstatat"
            | "fstatat64"
            | "statx"
    )
}

/// Calls that always succeed and take nothing.
fn pure(desc: &SyscallDesc) -> bool {
    desc.name.starts_with("get") && desc.args.is_empty()
}
