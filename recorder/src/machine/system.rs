//! Facts about the system and single tasks.

use std::fs;
use std::io::Read;

use crate::machine::bounded;
use crate::own::clock;

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

/// Whether a process exists and has not ended: its main thread may have.
pub(crate) fn is_process_alive(pid: u32) -> bool {
    is_alive(pid) || living_thread(pid).is_some()
}

/// The id under which /proc has what the threads of a process share: its own, or that of another thread if the main one has ended.
pub(crate) fn speaker(pid: u32) -> u32 {
    if is_alive(pid) { pid } else { living_thread(pid).unwrap_or(pid) }
}

fn living_thread(pid: u32) -> Option<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let mut ids = threads.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.find(|tid| *tid != pid && is_alive(*tid))
}

/// Where a process has its arguments, which says whether it runs the same program as before: each exec chooses another place. None: it
/// has none, or the kernel does not say it.
pub(crate) fn argv_at(pid: u32) -> Option<u64> {
    let stat = bounded::head(format!("/proc/{pid}/stat"), bounded::LINES).ok()?.bytes;
    argv_at_in(std::str::from_utf8(stat.get(stat.iter().rposition(|&b| b == b')')? + 2..)?).ok()?)
}

/// The same of the line from its state on, which is the third value (proc_pid_stat(5)).
fn argv_at_in(values: &str) -> Option<u64> {
    values.split_ascii_whitespace().nth(48 - 3)?.parse().ok().filter(|at| *at != 0)
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
    fn a_program_is_told_by_the_place_of_its_arguments() {
        assert!(argv_at(std::process::id()).is_some());
        let line = |at: &str| format!("S {} {at} 7 8 9 0", vec!["1"; 44].join(" "));
        assert_eq!(argv_at_in(&line("140737488347000")), Some(140_737_488_347_000));
        // who may not trace it is told 0
        assert_eq!([argv_at_in(&line("0")), argv_at_in("S 1 2")], [None, None]);
    }

    #[test]
    fn a_process_lives_on_without_its_main_thread() {
        // SAFETY: between fork and the end the child only makes system calls, and threads that do nothing else.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            std::thread::spawn(|| std::thread::sleep(std::time::Duration::from_secs(60)));
            // SAFETY: SYS_exit ends this thread alone; nothing of it is used by the other.
            unsafe { libc::syscall(libc::SYS_exit, 0) };
        }
        let id = pid.cast_unsigned();
        while is_alive(id) {
            std::thread::yield_now();
        }
        let seen = (is_process_alive(id), speaker(id) != id, crate::tasks::snapshot::exe(id).is_empty());
        // SAFETY: the child is ours and not reaped yet.
        unsafe {
            libc::kill(pid, libc::SIGKILL);
            libc::waitpid(pid, std::ptr::null_mut(), 0);
        }
        assert_eq!(seen, (true, true, false));
        assert!(!is_process_alive(id) && speaker(id) == id);
    }

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
