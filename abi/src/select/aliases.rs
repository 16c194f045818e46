//! Names that stand for more than one call.

/// `(name, calls)`: what glibc and musl call today when a program uses the function `name`. A reader who asks for `open` wants the
/// opens of a program, whichever call they came through. Names without a call of their own (`recv`) are here as well.
#[rustfmt::skip]
const LIBC: &[(&str, &[&str])] = &[
    ("accept", &["accept4"]),
    ("access", &["faccessat", "faccessat2"]),
    ("chmod", &["fchmodat", "fchmodat2"]),
    ("chown", &["fchownat"]),
    ("creat", &["open", "openat"]),
    ("dup2", &["dup3"]),
    ("epoll_create", &["epoll_create1"]),
    ("epoll_wait", &["epoll_pwait"]),
    ("eventfd", &["eventfd2"]),
    ("faccessat", &["faccessat2"]),
    ("fchmodat", &["fchmodat2"]),
    ("fork", &["clone", "clone3"]),
    ("fstat", &["newfstatat", "statx"]),
    ("fstatat", &["newfstatat", "fstatat64", "statx"]),
    ("futimes", &["utimensat"]),
    ("futimesat", &["utimensat"]),
    ("getdents", &["getdents64"]),
    ("getrlimit", &["prlimit64"]),
    ("inotify_init", &["inotify_init1"]),
    ("lchown", &["fchownat"]),
    ("link", &["linkat"]),
    ("lstat", &["newfstatat", "statx"]),
    ("mkdir", &["mkdirat"]),
    ("mkfifo", &["mknod", "mknodat"]),
    ("mknod", &["mknodat"]),
    ("open", &["openat"]),
    ("pipe", &["pipe2"]),
    ("poll", &["ppoll"]),
    ("posix_fadvise", &["fadvise64", "fadvise64_64"]),
    ("posix_spawn", &["clone", "clone3", "vfork"]),
    ("pread", &["pread64"]),
    ("prlimit", &["prlimit64"]),
    ("pselect", &["pselect6"]),
    ("pthread_create", &["clone", "clone3"]),
    ("pwrite", &["pwrite64"]),
    ("readlink", &["readlinkat"]),
    ("recv", &["recvfrom"]),
    ("rename", &["renameat", "renameat2"]),
    ("renameat", &["renameat2"]),
    ("rmdir", &["unlinkat"]),
    ("select", &["pselect6"]),
    ("send", &["sendto"]),
    ("setrlimit", &["prlimit64"]),
    ("sigaction", &["rt_sigaction"]),
    ("signalfd", &["signalfd4"]),
    ("sigprocmask", &["rt_sigprocmask"]),
    ("sigqueue", &["rt_sigqueueinfo"]),
    ("sigsuspend", &["rt_sigsuspend"]),
    ("sigtimedwait", &["rt_sigtimedwait"]),
    ("stat", &["newfstatat", "statx"]),
    ("symlink", &["symlinkat"]),
    ("umount", &["umount2"]),
    ("unlink", &["unlinkat"]),
    ("utime", &["utimensat"]),
    ("utimes", &["utimensat"]),
    ("vfork", &["clone", "clone3"]),
    ("wait", &["wait4"]),
    ("waitpid", &["wait4"]),
];

/// The calls libc makes for the function `name`, other than the one of that name; empty for most names.
pub(super) fn made_by_libc(name: &str) -> &'static [&'static str] {
    LIBC.binary_search_by_key(&name, |(known, _)| known).map_or(&[], |at| LIBC[at].1)
}

/// Names [`made_by_libc`] knows.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    LIBC.iter().map(|(name, _)| *name)
}

/// Names of the same call later widths got on i386: 32-bit ids, 64-bit offsets, 64-bit times.
pub(super) fn later_widths(name: &str) -> impl Iterator<Item = &'static str> + use<'_> {
    let odd = match name {
        "mmap" => "mmap2",
        "lseek" => "_llseek",
        "select" => "_newselect",
        "getrlimit" => "ugetrlimit",
        "clock_getres" => "clock_getres_time64",
        "newfstatat" => "fstatat64",
        "fadvise64" => "fadvise64_64",
        _ => "",
    };
    super::NAMES.iter().copied().filter(move |candidate| {
        *candidate == odd
            || candidate.strip_prefix(name).is_some_and(|suffix| matches!(suffix, "32" | "64" | "_time64"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_sorted_and_names_real_calls() {
        assert!(LIBC.is_sorted_by_key(|(name, _)| name));
        for (name, calls) in LIBC {
            for call in *calls {
                assert!(super::super::NAMES.contains(call), "{name} -> {call}");
                assert_ne!(call, name);
            }
        }
    }

    #[test]
    fn widths() {
        let widths = |name| later_widths(name).collect::<Vec<_>>();
        assert_eq!(widths("getuid"), ["getuid32"]);
        assert_eq!(widths("futex"), ["futex_time64"]);
        assert_eq!(widths("mmap"), ["mmap2"]);
        assert_eq!(widths("read"), Vec::<&str>::new());
    }
}
