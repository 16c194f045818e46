//! Limits of the child.

use std::io;

/// Address space beyond the memory limit: room for files, which are mapped and take no memory of their own.
const ROOM_FOR_FILES: u64 = 16 << 30;

use super::{check, opened, sandbox};
use crate::wire;

/// Most open descriptors: those of one file with its debug files, and their duplicates.
const MOST_FILES: u64 = 64;

fn set_limit(resource: libc::__rlimit_resource_t, soft: u64) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one rlimit.
    check(unsafe { libc::getrlimit(resource, &raw mut limit) })?;
    limit.rlim_cur = soft.min(limit.rlim_max);
    // SAFETY: the kernel reads one rlimit.
    check(unsafe { libc::setrlimit(resource, &raw const limit) })
}

/// Keeps only standard input, output and error; is nobody; ends with its parent; has no rights and gains none; has a low
/// priority if that was asked for.
pub(super) fn confine() -> io::Result<()> {
    close_others()?;
    // When memory is short it is this process that can go; a kernel without the file has no such choice. Nobody may not.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    opened::stay_among_descriptors();
    sandbox::be_nobody()?;
    alone()?;
    if std::env::var_os(wire::GIVE_WAY).is_some() {
        // SAFETY: numbers only. Refused where it gives way further already (nice 19).
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 10) };
    }
    set_limit(libc::RLIMIT_NOFILE, MOST_FILES)
}

/// Keeps only standard input, output and error; ends with its parent; gains no rights.
///
/// # Errors
/// The kernel refuses, which should never happen.
pub(crate) fn stand_alone() -> io::Result<()> {
    close_others()?;
    alone()
}

fn alone() -> io::Result<()> {
    // SAFETY: these calls take numbers and change this process only; a SIG_IGN is no handler that could run.
    unsafe {
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0))?;
        // its parent may have raised its own
        if libc::getpriority(libc::PRIO_PROCESS, 0) < 0 {
            libc::setpriority(libc::PRIO_PROCESS, 0, 0);
        }
        // A recorder that is asked to end looks up its last names then: the child ends when its input does.
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
    set_limit(libc::RLIMIT_CORE, 0)
}

fn close_others() -> io::Result<()> {
    // SAFETY: nothing of this process uses a descriptor above 2 yet: it is called first thing in main.
    if unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) } == 0 {
        return Ok(());
    }
    // Before Linux 5.9.
    let open: Vec<i32> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    for fd in open {
        // SAFETY: as above; the directory's own descriptor is closed already, which is an error without effect.
        unsafe { libc::close(fd) };
    }
    Ok(())
}

/// Limits memory of the process's own, and its address space somewhat higher.
pub(super) fn memory(limit: u64) -> io::Result<()> {
    set_limit(libc::RLIMIT_DATA, limit)?;
    set_limit(libc::RLIMIT_AS, limit.saturating_add(ROOM_FOR_FILES))
}

/// The kernel ends the process when it uses more than `seconds` of CPU time from now.
pub(super) fn more_cpu(seconds: u32) {
    // SAFETY: all zeroes is a valid rusage, and the kernel writes one.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) } == 0 {
        let used = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec).unsigned_abs();
        // A limit that cannot be set leaves the caller's time-out.
        let _ = set_limit(libc::RLIMIT_CPU, used.saturating_add(u64::from(seconds)).saturating_add(1));
    }
}

/// Freed memory goes back to the kernel, so that the process is small between files.
pub(super) fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it only returns memory that nothing uses.
    unsafe {
        libc::malloc_trim(0);
    }
}
