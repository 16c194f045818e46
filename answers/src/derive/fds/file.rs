//! What a descriptor stands for: an open file, shared by its copies.

use std::sync::{Arc, Mutex, PoisonError};

use systape_format::model::Call;

/// How a file was opened.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The call.
    pub call: Call,
    /// The path that it was given, as far as its row tells: absolute, or relative to the current directory.
    pub given: Option<Arc<[u8]>>,
    /// O_ACCMODE of its flags: 0 to read, 1 to write, 2 both; None: not known.
    pub mode: Option<u8>,
}

/// An open file.
#[derive(Debug, Default)]
pub struct File {
    /// How it was opened; None: not on the tape.
    pub origin: Option<Origin>,
    /// Name of the file, and when it was so called; copies in other processes learn it too.
    name: Mutex<Option<(u64, Arc<[u8]>)>>,
}

impl File {
    /// One that was opened so.
    pub(super) fn made(origin: Origin) -> Arc<Self> {
        Arc::new(Self { origin: Some(origin), name: Mutex::default() })
    }

    /// One that is called `name` at `ts`.
    pub(super) fn named(ts: u64, name: &Arc<[u8]>) -> Arc<Self> {
        Arc::new(Self { origin: None, name: Mutex::new(Some((ts, Arc::clone(name)))) })
    }

    /// Name of the file; None: not known.
    pub fn name(&self) -> Option<Arc<[u8]>> {
        self.name.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|(_, name)| Arc::clone(name))
    }

    /// Learns that the file is called `name` at `ts`. Of names the last until `at` counts, else the first behind it.
    pub(super) fn learn(&self, ts: u64, name: &Arc<[u8]>, at: u64) {
        let mut known = self.name.lock().unwrap_or_else(PoisonError::into_inner);
        let better = known.as_ref().is_none_or(|(of, _)| ts <= at && (*of > at || ts >= *of));
        if better {
            *known = Some((ts, Arc::clone(name)));
        }
    }
}

/// Whether a file's name may change while it is open: sockets are bound and connected.
pub(super) fn is_socket(name: &[u8]) -> bool {
    kind(name) == Some("socket")
}

/// What a file of that name is; None: it has none of the kernel's forms.
pub fn kind(name: &[u8]) -> Option<&str> {
    if name.starts_with(b"/") {
        return Some("path");
    }
    if let Some(rest) = name.strip_prefix(b"anon_inode:") {
        let rest = rest.strip_prefix(b"[").unwrap_or(rest);
        let end = rest.iter().position(|byte| matches!(byte, b']' | b':')).unwrap_or(rest.len());
        return std::str::from_utf8(&rest[..end]).ok().filter(|kind| kind.bytes().all(|b| b.is_ascii_graphic()));
    }
    let end = name.iter().position(|byte| *byte == b':')?;
    match &name[..end] {
        b"pipe" => Some("pipe"),
        word if word == b"socket" || word.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit()) => {
            Some("socket")
        }
        word => std::str::from_utf8(word).ok().filter(|kind| kind.bytes().all(|b| b.is_ascii_alphanumeric())),
    }
}

/// What the call of that name makes; None: that depends.
pub fn kind_made(call: &str) -> Option<&'static str> {
    Some(match call {
        "open" | "openat" | "openat2" | "creat" | "open_by_handle_at" | "memfd_create" => "path",
        "socket" | "socketpair" | "accept" | "accept4" => "socket",
        "pipe" | "pipe2" => "pipe",
        "eventfd" | "eventfd2" => "eventfd",
        "epoll_create" | "epoll_create1" => "eventpoll",
        "timerfd_create" => "timerfd",
        "signalfd" | "signalfd4" => "signalfd",
        "inotify_init" | "inotify_init1" => "inotify",
        "perf_event_open" => "perf_event",
        "pidfd_open" => "pidfd",
        "userfaultfd" => "userfaultfd",
        "io_uring_setup" => "io_uring",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_name_until_the_moment_counts() {
        let file = File::default();
        let name = |text: &str| Arc::<[u8]>::from(text.as_bytes());
        let now = |file: &File| file.name().map(|name| String::from_utf8(name.to_vec()).unwrap());
        assert_eq!(now(&file), None);
        file.learn(30, &name("late"), 20);
        file.learn(40, &name("later"), 20);
        assert_eq!(now(&file).unwrap(), "late");
        file.learn(10, &name("before"), 20);
        assert_eq!(now(&file).unwrap(), "before");
        let file = File::named(5, &name("TCP:[127.0.0.1:80]"));
        file.learn(10, &name("TCP:[127.0.0.1:80->127.0.0.1:9]"), 20);
        file.learn(30, &name("gone"), 20);
        assert_eq!(now(&file).unwrap(), "TCP:[127.0.0.1:80->127.0.0.1:9]");
    }

    #[test]
    fn kinds() {
        let of = |name: &str| kind(name.as_bytes()).map(str::to_owned);
        assert_eq!(of("/a").unwrap(), "path");
        assert_eq!(of("pipe:[7]").unwrap(), "pipe");
        assert_eq!((of("socket:[7]").unwrap(), of("TCP6:[::1:80]").unwrap()), ("socket".into(), "socket".into()));
        assert_eq!(
            (of("anon_inode:[eventfd]").unwrap(), of("anon_inode:inotify").unwrap()),
            ("eventfd".into(), "inotify".into())
        );
        assert_eq!(of("mnt:[4026531841]").unwrap(), "mnt");
        assert_eq!((of("<redacted 3>"), of("x"), of("\x1b:[3]")), (None, None, None));
        assert_eq!(kind_made("accept4"), Some("socket"));
        assert_eq!(kind_made("bpf"), None);
    }
}
