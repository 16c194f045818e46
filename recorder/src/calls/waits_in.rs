//! What kind of file a thread waits for, by the function of the kernel that it sleeps in (`wchan` of /proc).
//!
//! A call that began before the recording is named after what its descriptor is when the table is read. Where other threads use the table too
//! they may have closed that number meanwhile, and opened another file that got it. What it waits in contradicts then, as a rule.

use crate::machine::bounded;

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitsIn {
    Pipe,
    Socket,
    /// A socket, or a device such as a terminal.
    SocketOrDevice,
    Epoll,
    /// One of these in `anon_inode:`.
    Anonymous(&'static str),
}

/// Beginnings of names of functions; others say nothing.
const FUNCTIONS: [(&str, WaitsIn); 22] = [
    ("anon_pipe_", WaitsIn::Pipe),
    ("pipe_", WaitsIn::Pipe),
    ("__inet_stream_connect", WaitsIn::Socket),
    ("__skb_wait_for_", WaitsIn::Socket),
    ("__tcp_", WaitsIn::Socket),
    ("__unix_", WaitsIn::Socket),
    ("inet_csk_", WaitsIn::Socket),
    ("inet_wait_for_", WaitsIn::Socket),
    ("netlink_", WaitsIn::Socket),
    ("packet_", WaitsIn::Socket),
    ("sk_stream_", WaitsIn::Socket),
    ("sk_wait_", WaitsIn::Socket),
    ("skb_wait_", WaitsIn::Socket),
    ("tcp_", WaitsIn::Socket),
    ("udp_", WaitsIn::Socket),
    ("unix_", WaitsIn::Socket),
    ("wait_woken", WaitsIn::SocketOrDevice),
    ("ep_poll", WaitsIn::Epoll),
    ("do_epoll_wait", WaitsIn::Epoll),
    ("eventfd_", WaitsIn::Anonymous("eventfd")),
    ("timerfd_", WaitsIn::Anonymous("timerfd")),
    ("signalfd_", WaitsIn::Anonymous("signalfd")),
];

impl WaitsIn {
    /// That of a thread; None: it does not sleep, or that says nothing.
    pub(crate) fn read(pid: u32, tid: u32) -> Option<Self> {
        let text = bounded::lines(format!("/proc/{pid}/task/{tid}/wchan"), bounded::LINES).ok()?;
        Self::of(text.trim())
    }

    fn of(function: &str) -> Option<Self> {
        FUNCTIONS.iter().find(|(begins, _)| function.starts_with(begins)).map(|(_, kind)| *kind)
    }

    /// Whether a file of that name, as /proc/PID/fd has it, may be the one.
    pub(crate) fn fits(self, name: &[u8]) -> bool {
        let socket = || systape_format::sockets::split(name).is_some();
        let anonymous = |kind: &str| {
            let rest = name.strip_prefix(b"anon_inode:").unwrap_or_default();
            rest.strip_prefix(b"[").unwrap_or(rest).starts_with(kind.as_bytes())
        };
        match self {
            Self::Pipe => name.starts_with(b"pipe:["),
            Self::Socket => socket(),
            Self::SocketOrDevice => socket() || name.starts_with(b"/dev/"),
            Self::Epoll => anonymous("eventpoll"),
            Self::Anonymous(kind) => anonymous(kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thread_waits_in_fits_a_kind_of_file() {
        let fits = |function: &str, name: &str| WaitsIn::of(function).is_none_or(|kind| kind.fits(name.as_bytes()));
        for (function, name) in [
            ("anon_pipe_read", "pipe:[7]"),
            ("pipe_write", "pipe:[7]"),
            ("unix_stream_read_generic", "UNIX-STREAM:[7->8]"),
            ("inet_csk_accept", "TCP:[0.0.0.0:80]"),
            ("sk_wait_data", "socket:[7]"),
            ("wait_woken", "TCPv6:[::1:80->::1:90]"),
            ("wait_woken", "/dev/pts/1"),
            ("ep_poll", "anon_inode:[eventpoll]"),
            ("eventfd_read", "anon_inode:[eventfd:7]"),
            // nothing is known of these
            ("0", "/var/log/app.log"),
            ("folio_wait_bit_common", "/var/log/app.log"),
            ("request_wait_answer", "pipe:[7]"),
        ] {
            assert!(fits(function, name), "{function} {name}");
        }
        for (function, name) in [
            ("anon_pipe_read", "/var/log/app.log"),
            ("pipe_read", "socket:[7]"),
            ("wait_woken", "/var/log/app.log"),
            ("inet_csk_accept", "pipe:[7]"),
            ("do_epoll_wait", "/var/log/app.log"),
            ("eventfd_read", "anon_inode:[eventpoll]"),
        ] {
            assert!(!fits(function, name), "{function} {name}");
        }
    }

    #[test]
    fn a_sleeping_thread_is_looked_at() {
        let (reader, writer) = std::io::pipe().unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let sleeps = std::thread::spawn(move || {
            // SAFETY: no arguments.
            tell.send(unsafe { libc::gettid() }).unwrap();
            std::io::Read::read(&mut { reader }, &mut [0]).unwrap()
        });
        let tid = told.recv().unwrap().cast_unsigned();
        let mut found = None;
        for _ in 0..2000 {
            found = WaitsIn::read(std::process::id(), tid);
            if found.is_some() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        drop(writer);
        assert_eq!((found, sleeps.join().unwrap()), (Some(WaitsIn::Pipe), 0));
    }
}
