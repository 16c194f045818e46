//! Facts about the system and single tasks.

use std::fs;
use std::io::Read;

use crate::{bounded, clock};

/// Bytes in a page.
pub(crate) fn page_size() -> u64 {
    // SAFETY: sysconf takes a constant and touches no memory of ours.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).unwrap_or(4096)
}

/// Whether a thread exists and has not ended: one that waits to be reaped makes no calls.
pub(crate) fn is_alive(tid: u32) -> bool {
    let Ok(stat) = bounded::head(format!("/proc/{tid}/stat"), bounded::LINES) else { return false };
    let stat = stat.bytes;
    // the name before the state may hold anything, also ')'
    let state = stat.iter().rposition(|&b| b == b')').and_then(|at| stat.get(at + 2));
    !matches!(state, Some(b'Z' | b'X'))
}

/// The process of a thread; None when it is gone.
pub(crate) fn process_of(tid: u32) -> Option<u32> {
    let status = bounded::lines(format!("/proc/{tid}/status"), bounded::LINES).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

/// uid and name of every line of /etc/passwd; empty when it cannot be read.
pub(crate) fn users() -> Vec<(u32, Vec<u8>)> {
    let text = fs::read("/etc/passwd").unwrap_or_default();
    text.split(|&b| b == b'\n')
        .filter_map(|line| {
            let mut fields = line.split(|&b| b == b':');
            let name = fields.next()?;
            let uid = std::str::from_utf8(fields.nth(1)?).ok()?.parse().ok()?;
            Some((uid, name.to_vec()))
        })
        .collect()
}

/// A unique number: the kernel's random bytes, or time and process.
pub(crate) fn unique_id(seed: u64) -> [u8; 16] {
    let mut id = [0; 16];
    let random = fs::File::open("/dev/urandom").and_then(|mut f| f.read_exact(&mut id));
    if random.is_err() {
        let (time, pid) = (clock::sample().realtime ^ seed, u64::from(std::process::id()));
        id[..8].copy_from_slice(&time.to_le_bytes());
        id[8..].copy_from_slice(&pid.to_le_bytes());
    }
    id
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_dead_are_not_alive() {
        assert!(is_alive(std::process::id()));
        assert!(!is_alive(u32::MAX));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        // not reaped yet: a zombie at the latest when its exit was seen
        while is_alive(pid) {
            std::thread::yield_now();
        }
        assert!(Path::new(&format!("/proc/{pid}")).exists());
        child.wait().unwrap();
    }
}
