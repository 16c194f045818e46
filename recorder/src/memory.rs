//! What the allocator keeps of freed memory. Only glibc's can be told.

use std::time::{Duration, Instant};

/// How often what a busy moment left is given back to the system.
const EVERY: Duration = Duration::from_secs(60);

/// Has the allocator keep what segments and batches are made of instead of giving it back and getting it zeroed each time: an eighth
/// of the recorder's CPU time (docs/performance.md).
#[cfg(target_env = "gnu")]
pub fn keep() {
    // SAFETY: mallopt takes two numbers; no other thread is running yet. What it refuses stays as it was.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 16 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 64 << 20);
        // each more is one that keeps as much
        libc::mallopt(libc::M_ARENA_MAX, 2);
    }
}

/// Nothing.
#[cfg(not(target_env = "gnu"))]
pub fn keep() {}

/// Gives back to the system what is free, now and then: what lives longer lies between, so the allocator alone would keep the most
/// that was ever needed.
#[derive(Debug)]
pub(crate) struct GivesBack(Instant);

impl GivesBack {
    /// The first time is after a while.
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }

    /// Does it when it is time to.
    pub(crate) fn look(&mut self) {
        if self.0.elapsed() >= EVERY {
            give_back();
            self.0 = Instant::now();
        }
    }
}

#[cfg(target_env = "gnu")]
fn give_back() {
    // SAFETY: malloc_trim takes a number, and may be called by any thread at any time.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
fn give_back() {}
