//! What the allocator keeps of freed memory. Only glibc's can be told.

use std::time::{Duration, Instant};

use crate::self_stats::anonymous;

/// How often what a busy moment left may be given back to the system, if there are so many bytes more than after the last time: giving
/// back takes CPU, and so does getting it again.
const OFTEN: (Duration, u64) = (Duration::from_secs(1), 48 << 20);
const SELDOM: (Duration, u64) = (Duration::from_secs(10), 8 << 20);

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
    gave: Instant,
    /// The least bytes since the last time.
    left: u64,
}

impl GivesBack {
    /// The first time is after a while.
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self { looked: now, gave: now, left: 0 }
    }

    /// Does it when it is time to, and worth it.
    pub(crate) fn look(&mut self) {
        if self.looked.elapsed() < OFTEN.0 {
            return;
        }
        self.looked = Instant::now();
        let (bytes, seldom) = (anonymous(), self.gave.elapsed() >= SELDOM.0);
        // 0 = it cannot be read
        if bytes == 0 && seldom || is_worth_it(bytes, self.left, seldom) {
            give_back();
            (self.left, self.gave) = (anonymous(), Instant::now());
        } else {
            self.left = self.left.min(bytes);
        }
    }
}

fn is_worth_it(bytes: u64, left: u64, seldom: bool) -> bool {
    let more = bytes.saturating_sub(left);
    more >= OFTEN.1 || seldom && more >= SELDOM.1
}

fn give_back() {
    // SAFETY: malloc_trim takes a number, and may be called by any thread at any time.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn much_is_given_back_soon_and_a_little_seldom() {
        const MIB: u64 = 1 << 20;
        let worth = |more, seldom| is_worth_it(100 * MIB + more, 100 * MIB, seldom);
        assert_eq!([47, 48].map(|mib| worth(mib * MIB, false)), [false, true]);
        assert_eq!([7, 8].map(|mib| worth(mib * MIB, true)), [false, true]);
        assert!(!is_worth_it(MIB, 100 * MIB, true));
    }
}
