//! Ctrl-C and SIGTERM, for an answer that goes on until somebody ends it.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Signals that came.
static CAME: AtomicUsize = AtomicUsize::new(0);

#[cfg(unix)]
extern "C" fn note(_signal: libc::c_int) {
    CAME.fetch_add(1, Ordering::Relaxed);
}

/// Counts both from now on; one that was ignored stays so.
#[cfg(unix)]
pub fn count() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler does nothing but count, which may be done at any time.
        unsafe {
            if libc::signal(signal, note as *const () as libc::sighandler_t) == libc::SIG_IGN {
                libc::signal(signal, libc::SIG_IGN);
            }
        }
    }
}

/// Counts none: only unix has them.
#[cfg(not(unix))]
pub fn count() {}

/// How many came.
pub fn came() -> usize {
    CAME.load(Ordering::Relaxed)
}
