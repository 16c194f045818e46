//! Calls in which programs wait for work: time in them is no delay of anybody, as far as the call alone says.

/// Calls that wait for work, whatever they are on.
const WAITS: &[&str] = &[
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "accept",
    "accept4",
    "nanosleep",
    "clock_nanosleep",
    "futex",
    "futex_wait",
    "futex_waitv",
    "rt_sigtimedwait",
];
/// Calls that wait for work when they are on a pipe.
const READS: &[&str] = &["read", "readv"];
/// Calls that wait for other processes, signals, messages or completions: what they wait for has a cause of its own.
const WAITS_FOR_OTHERS: &[&str] = &[
    "wait4",
    "waitid",
    "waitpid",
    "pause",
    "rt_sigsuspend",
    "restart_syscall",
    "vfork",
    "msgrcv",
    "mq_timedreceive",
    "io_getevents",
    "io_pgetevents",
    "io_uring_enter",
    "ptrace",
    "syslog",
    "exit",
    "exit_group",
];

/// Kind of a call in which a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// A call that waits for work.
    Call,
    /// A read: of a pipe it waits for work.
    Reads,
}

/// How the call `name` waits for work; None: it does not.
pub(crate) fn for_work(name: &str) -> Option<Waits> {
    let reads = READS.contains(&name).then_some(Waits::Reads);
    if WAITS.contains(&name) { Some(Waits::Call) } else { reads }
}

/// Whether the call `name` waits for work, or for what others do, whatever it is on.
pub(crate) fn for_anything(name: &str) -> bool {
    WAITS.contains(&name) || WAITS_FOR_OTHERS.contains(&name)
}

/// Devices that are storage: a read of another one waits for somebody to type or send.
const STORAGE: [&[u8]; 9] = [
    b"/dev/sd",
    b"/dev/vd",
    b"/dev/xvd",
    b"/dev/nvme",
    b"/dev/dm-",
    b"/dev/mapper/",
    b"/dev/md",
    b"/dev/loop",
    b"/dev/shm/",
];

/// Whether `name` is of a file whose reads end without anybody else's doing: not of a terminal, a log of the kernel and the like.
pub(crate) fn is_storage(name: &[u8]) -> bool {
    let ends = |end: &[u8]| name.ends_with(end);
    match name {
        _ if !name.starts_with(b"/") => false,
        _ if name.starts_with(b"/dev/") => STORAGE.iter().any(|device| name.starts_with(device)),
        _ if name.starts_with(b"/proc/") => !ends(b"kmsg"),
        _ => !ends(b"trace_pipe") && !ends(b"trace_pipe_raw"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_known_by_name() {
        assert_eq!(
            (for_work("poll"), for_work("readv"), for_work("write")),
            (Some(Waits::Call), Some(Waits::Reads), None)
        );
        assert_eq!([for_anything("wait4"), for_anything("read"), for_anything("fsync")], [true, false, false]);
    }

    #[test]
    fn terminals_are_no_storage() {
        let is = |name: &str| is_storage(name.as_bytes());
        assert_eq!([is("/etc/passwd"), is("/dev/sda1"), is("/dev/shm/x")], [true; 3]);
        assert_eq!(
            [is("/dev/pts/0"), is("pipe:[7]"), is("/proc/kmsg"), is("/sys/kernel/tracing/trace_pipe")],
            [false; 4]
        );
    }
}
