//! What the allocator keeps of freed memory. Only glibc's can be told.

use std::time::{Duration, Instant};

use crate::self_stats::anonymous;

/// How often what a busy moment left may be given back to the system ...
const EVERY: Duration = Duration::from_secs(10);
/// ... if there are so many bytes more than after the last time: giving back takes CPU, and so does getting it again.
const WORTH: u64 = 8 << 20;

/// Has the allocator keep what segments and batches are made of instead of giving it back and getting it zeroed each
/// time, which takes CPU (docs/performance.md). To be called before there are other threads.
pub fn keep() {
    // SAFETY: mallopt takes two numbers; no other thread is running yet. What it refuses stays as it was.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 16 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 64 << 20);
        // each more is one that keeps as much
        libc::mallopt(libc::M_ARENA_MAX, 2);
    }
}

/// Has parts of memory from 512 KiB on go back to the system as soon as they are free. With stacks many small ones live on between
/// them: the more room a burst needs, the more pages have something in them afterwards, and that grew for hours. Without stacks
/// it would cost a tenth of the CPU time (docs/performance.md).
pub(crate) fn return_large() {
    // SAFETY: it changes a number of the allocator, under its own lock.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 512 << 10);
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
