//! Signals: their dispositions when `record` was started, and those that end a recording.
//!
//! SIGINT and SIGTERM always end a recording, also if a shell started `record` in the background of a script, with
//! SIGINT ignored: nothing else could end it cleanly. A SIGHUP ignored at the start (nohup) stays ignored. The command
//! gets every signal as `record` found it. Rust's runtime ignores SIGPIPE before main, so the dispositions are read
//! before the runtime starts.

use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use libc::SIGXFSZ;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGUSR2};

/// Signals that a command must not inherit as ignored because `record` ignores them: for `record` a failed write is
/// enough.
pub(crate) const IGNORED_HERE: [i32; 2] = [SIGPIPE, SIGXFSZ];

/// Signals that end a recording even if they were ignored at the start. The command then inherits them as ignored.
pub(crate) const CAUGHT_HERE: [i32; 2] = [SIGINT, SIGTERM];

/// Bit n = signal n was ignored when the process began.
static IGNORED: AtomicU64 = AtomicU64::new(0);
/// Standard output was closed. Rust's runtime opens /dev/null in its place, where a tape would be lost.
static NO_STDOUT: AtomicBool = AtomicBool::new(false);

extern "C" fn read_dispositions() {
    // SAFETY: numbers only.
    NO_STDOUT.store(unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } < 0, Ordering::Relaxed);
    for signal in [SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGXFSZ] {
        let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: action is a valid sigaction to write to; with a null second argument nothing is changed. Zeroed bytes
        // are a value of it, should the call fail.
        let action = unsafe {
            libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
            action.assume_init()
        };
        if action.sa_sigaction == libc::SIG_IGN {
            IGNORED.fetch_or(1 << signal, Ordering::Relaxed);
        }
    }
}

/// Run by the loader before main and before Rust's runtime.
#[used]
// SAFETY: .init_array holds functions of this type; this one touches atomics and calls fcntl and sigaction only.
#[unsafe(link_section = ".init_array")]
static READ_DISPOSITIONS: extern "C" fn() = read_dispositions;

/// Whether standard output was closed when the process began.
pub(crate) fn stdout_was_closed() -> bool {
    NO_STDOUT.load(Ordering::Relaxed)
}

/// Whether `signal` (one of HUP, INT, TERM, PIPE, XFSZ) was ignored when the process began.
pub(crate) fn was_ignored(signal: i32) -> bool {
    IGNORED.load(Ordering::Relaxed) & (1 << signal) != 0
}

/// Signals that a thread can wait for.
#[derive(Debug)]
pub(crate) struct SignalSet {
    end: UnixStream,
    child: UnixStream,
    request: Option<UnixStream>,
}

impl SignalSet {
    /// Catches those that end a recording (SIGHUP unless it was ignored) and SIGCHLD. From here on a tape over
    /// RLIMIT_FSIZE is an error of write(2), not the end of the process.
    ///
    /// # Errors
    /// When no socket pair or handler can be made.
    pub(crate) fn new() -> Result<Self> {
        let (end, end_writer) = UnixStream::pair()?;
        let (child, child_writer) = UnixStream::pair()?;
        for signal in CAUGHT_HERE.into_iter().chain((!was_ignored(SIGHUP)).then_some(SIGHUP)) {
            signal_hook::low_level::pipe::register(signal, end_writer.try_clone()?)?;
        }
        signal_hook::low_level::pipe::register(SIGCHLD, child_writer)?;
        // SAFETY: no handler is installed that could run.
        unsafe { libc::signal(SIGXFSZ, libc::SIG_IGN) };
        end.set_nonblocking(true)?;
        child.set_nonblocking(true)?;
        Ok(Self { end, child, request: None })
    }

    /// Catches SIGUSR2 too, for [`Self::requested`].
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn catch_requests(&mut self) -> Result<()> {
        let (request, writer) = UnixStream::pair()?;
        signal_hook::low_level::pipe::register(SIGUSR2, writer)?;
        request.set_nonblocking(true)?;
        self.request = Some(request);
        Ok(())
    }

    /// Whether SIGUSR2 came since the last call.
    pub(crate) fn requested(&self) -> bool {
        self.request.as_ref().is_some_and(|mut request| request.read(&mut [0; 64]).is_ok_and(|n| n > 0))
    }

    /// Waits until a signal comes or the time is over; true for a signal that ends the recording.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let mut fds =
            [&self.end, &self.child].map(|s| libc::pollfd { fd: s.as_raw_fd(), events: libc::POLLIN, revents: 0 });
        let ms = i32::try_from(time.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: fds is a valid array of two pollfd.
        unsafe { libc::poll(fds.as_mut_ptr(), 2, ms) };
        let readable = |mut s: &UnixStream, sink: &mut [u8]| s.read(sink).is_ok_and(|n| n > 0);
        readable(&self.child, &mut [0; 64]);
        // one a call: a second one says that nobody waits for what comes after the end
        readable(&self.end, &mut [0])
    }
}
