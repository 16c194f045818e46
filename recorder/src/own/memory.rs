//! Memory of this process: how much it is, and what the allocator keeps of what was freed. Only glibc's can be told.

use std::fs;
use std::time::{Duration, Instant};

/// How often it is looked whether there is free memory to give back to the system ...
const SELDOM: Duration = Duration::from_secs(10);
/// ... and how often when the recorder has so many bytes more than after the last look.
const OFTEN: (Duration, u64) = (Duration::from_secs(1), 48 << 20);
/// Free bytes that are worth it: giving back takes CPU, and so does getting them again.
const WORTH: u64 = 8 << 20;

/// Has the allocator keep what segments and batches are made of instead of giving it back and getting it zeroed each
/// time, which takes CPU (decision 62). To be called before there are other threads.
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
/// it would cost a tenth of the CPU time (decision 62).
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
    /// When bytes were counted, and when the allocator was asked.
    looked: Instant,
    asked: Instant,
    /// Bytes then.
    had: u64,
    /// Bytes that were there beside those in use when all was given back that could be.
    beside: u64,
}

impl GivesBack {
    /// The first time is after a while.
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self { looked: now, asked: now, had: 0, beside: 0 }
    }

    /// Does it when it is time to, and worth it.
    pub(crate) fn look(&mut self) {
        if self.looked.elapsed() < OFTEN.0 {
            return;
        }
        self.looked = Instant::now();
        let bytes = anonymous();
        let many = bytes >= self.had + OFTEN.1;
        if self.asked.elapsed() < SELDOM && !many {
            return;
        }
        // not how many there are: a burst may have had them in use when they were last given back, and they stay as many
        if many || bytes.saturating_sub(in_use()) >= self.beside + WORTH {
            give_back();
            self.beside = anonymous().saturating_sub(in_use());
        }
        (self.had, self.asked) = (anonymous(), Instant::now());
    }
}

/// Bytes that were asked of the allocator and not freed; 0 = it cannot be told.
fn in_use() -> u64 {
    // SAFETY: mallinfo2 takes nothing and returns numbers, and may be called by any thread at any time.
    #[cfg(target_env = "gnu")]
    let bytes = unsafe {
        let all = libc::mallinfo2();
        (all.uordblks + all.hblkhd) as u64
    };
    #[cfg(not(target_env = "gnu"))]
    let bytes = 0;
    bytes
}

fn give_back() {
    // SAFETY: malloc_trim takes a number, and may be called by any thread at any time.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_use_is_told_from_what_is_free() {
        const MIB: usize = 1 << 20;
        let before = in_use();
        // smaller than what has a mapping of its own
        let kept: Vec<Vec<u8>> = (0..1024).map(|_| vec![1; 64 << 10]).collect();
        let with = in_use();
        assert!(with >= before + (48 * MIB) as u64, "{before} {with}, {} lists", kept.len());
        drop(kept);
        assert!(in_use() + (48 * MIB) as u64 <= with, "{with} {}", in_use());
    }
}

/// Peak memory of this process, bytes; 0 = not known. Not getrusage's, which begins with the parent's.
pub(crate) fn peak_rss() -> u64 {
    of_status("VmHWM:")
}

/// Memory of this process now, bytes; 0 = not known.
pub(crate) fn rss() -> u64 {
    of_status("VmRSS:")
}

/// Memory of this process that no file has, bytes; 0 = not known.
pub(crate) fn anonymous() -> u64 {
    of_status("RssAnon:")
}

fn of_status(key: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| line.strip_prefix(key)?.trim().strip_suffix("kB")?.trim().parse().ok());
    kib.unwrap_or(0_u64) * 1024
}
