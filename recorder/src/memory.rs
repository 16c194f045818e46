//! What the allocator keeps of freed memory. Only glibc's can be told.

use std::time::{Duration, Instant};

use crate::self_stats::anonymous;

/// How often what a busy moment left may be given back to the system ...
const EVERY: Duration = Duration::from_secs(10);
/// ... if there are so many bytes more than after the last time: giving back takes CPU, and so does getting it again.
const WORTH: u64 = 8 << 20;

/// From this size on memory is the system's own part, which goes back when it is free. What is smaller lies between what lives
/// longer: the more of it a burst needs, the more pages have something in them afterwards.
#[cfg(target_env = "gnu")]
const OWN_PART: libc::c_int = 512 << 10;

/// Has the allocator keep what segments and batches are made of instead of giving it back and getting it zeroed each
/// time, which takes CPU (docs/performance.md). To be called before there are other threads.
pub fn keep() {
    // SAFETY: mallopt takes two numbers; no other thread is running yet. What it refuses stays as it was.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_PART);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 64 << 20);
        // each more is one that keeps as much
        libc::mallopt(libc::M_ARENA_MAX, 2);
    }
}

/// Gives back to the system what is free, now and then: what lives longer lies between, so the allocator alone would keep the most
/// that was ever needed.
#[derive(Debug)]
pub(crate) struct GivesBack {
    looked: Instant,
    /// The least bytes since the last time.
    left: u64,
}

impl GivesBack {
    /// The first time is after a while.
    pub(crate) fn new() -> Self {
        Self { looked: Instant::now(), left: 0 }
    }

    /// Does it when it is time to, and worth it.
    pub(crate) fn look(&mut self) {
        if self.looked.elapsed() < EVERY {
            return;
        }
        self.looked = Instant::now();
        let bytes = anonymous();
        if bytes == 0 || bytes >= self.left + WORTH {
            give_back();
            self.left = anonymous();
        } else {
            self.left = self.left.min(bytes);
        }
    }
}

fn give_back() {
    // SAFETY: malloc_trim takes a number, and may be called by any thread at any time.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}
