//! Calls in which programs wait for work: time in them is no delay of anybody, as far as the call alone says. `analyze` leaves them out of
//! what it calls slow, `record --on stuck:` out of what it calls stuck.

use crate::ContentIo;

/// Calls that wait for one of many descriptors.
const POLLS: [&str; 7] = ["poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2"];
/// Calls beside these that wait for work, whatever they are on.
const WAITS: &[&str] =
    &["accept", "accept4", "nanosleep", "clock_nanosleep", "futex", "futex_wait", "futex_waitv", "rt_sigtimedwait"];
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
#[non_exhaustive]
pub enum Waits {
    /// A call that waits for work.
    Call,
    /// A read: of a pipe it waits for work.
    Reads,
}

/// Whether the call `name` waits for one of many descriptors.
pub fn is_poll(name: &str) -> bool {
    POLLS.contains(&name)
}

/// How the call `name` waits for work; None: it does not.
pub fn for_work(name: &str) -> Option<Waits> {
    let reads = READS.contains(&name).then_some(Waits::Reads);
    if is_poll(name) || WAITS.contains(&name) { Some(Waits::Call) } else { reads }
}

/// Whether the call `name` waits for work, or for what others do, whatever it is on.
pub fn for_anything(name: &str) -> bool {
    is_poll(name) || WAITS.contains(&name) || WAITS_FOR_OTHERS.contains(&name)
}

/// Whether the call `name`, which moves bytes as `io` says, takes them from where others put them.
pub fn takes(name: &str, io: ContentIo) -> bool {
    io.reads().is_some() || name.starts_with("recv")
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
pub fn is_storage(name: &[u8]) -> bool {
    let ends = |end: &[u8]| name.ends_with(end);
    match name {
        _ if !name.starts_with(b"/") => false,
        _ if name.starts_with(b"/dev/") => STORAGE.iter().any(|device| name.starts_with(device)),
        _ if name.starts_with(b"/proc/") => !ends(b"kmsg"),
        _ => !ends(b"trace_pipe") && !ends(b"trace_pipe_raw"),
    }
}

/// Whether the socket called `name` is of a client: its own port is one of those that the kernel gives out, above the other's.
pub fn of_client(name: &[u8]) -> bool {
    let Ok(name) = std::str::from_utf8(name) else { return false };
    let port = |end: &str| end.rsplit(':').next().and_then(|port| port.parse::<u16>().ok());
    let ends = name.split_once(":[").and_then(|(_, rest)| rest.strip_suffix(']')?.split_once("->"));
    let Some((local, remote)) = ends else { return false };
    matches!((port(local), port(remote)), (Some(local), Some(remote)) if local > remote)
}

/// Whether time in the call `name` is rest as far as the call alone says: it waits for work, a signal, a child or the time to pass; or it takes
/// data (`takes`) from `on`, into which somebody else puts it when there is something to do: a pipe, a terminal, a server's socket. None: not
/// known from what. Of waits for futexes who wakes them says it.
pub fn at_rest(name: &str, takes: bool, on: Option<&[u8]>) -> bool {
    match on {
        _ if !takes => for_anything(name),
        Some(path) if path.starts_with(b"/") => !is_storage(path),
        Some(other) => !of_client(other),
        None => true,
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
    fn clients_have_the_higher_port() {
        assert!(of_client(b"TCP:[10.0.0.1:40002->10.0.0.2:443]") && of_client(b"TCPv6:[[::1]:40002->[::1]:80]"));
        assert!(!of_client(b"TCP:[10.0.0.2:443->10.0.0.1:40002]") && !of_client(b"socket:[17]"));
    }

    #[test]
    fn who_takes_from_what_others_fill_rests() {
        let takes = |on: &str| at_rest("read", true, Some(on.as_bytes()));
        let rest = ["pipe:[9]", "/dev/pts/0", "TCP:[1.1.1.2:80->1.1.1.1:50000]", "anon_inode:[eventfd]", "UNIX:[7]"];
        assert!(rest.into_iter().all(takes) && at_rest("read", true, None));
        assert!(!takes("/etc/passwd") && !takes("TCP:[1.1.1.1:50000->1.1.1.2:80]"));
        assert!(at_rest("accept4", false, None) && at_rest("nanosleep", false, None) && !at_rest("fsync", false, None));
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
