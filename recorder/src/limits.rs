//! Limits of this process: open files, of which every BPF program, link, map and ring is one, over a hundred in all;
//! memory for data; and how much free memory the allocator keeps.

use std::mem::MaybeUninit;

/// Files a recorder may have open; what users' shells allow is mostly 1024 or more.
const FILES: libc::rlim_t = 1024;

/// Memory for data of a small recording: ten threads of 2 MiB, and buffers.
const DATA: libc::rlim_t = 32 << 20;

/// Allocations of this many bytes go back to the system as soon as they are free.
const RETURNED: libc::c_int = 2 << 20;

/// Large buffers here are freed by other threads than those that made them. glibc comes to keep such, for ever and for
/// each thread.
pub fn return_memory() {
    // SAFETY: it changes a number of the allocator, under its own lock.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, RETURNED);
    }
}

/// Makes room where the limit is lower, as far as that is allowed. Gives back what it was if it was changed: the
/// command is to have its own.
pub fn raise_files() -> Option<libc::rlimit> {
    let before = limit(libc::RLIMIT_NOFILE)?;
    if before.rlim_cur >= FILES {
        return None;
    }
    let wide = libc::rlimit { rlim_cur: FILES, rlim_max: before.rlim_max.max(FILES) };
    let narrow = libc::rlimit { rlim_cur: before.rlim_max.min(FILES), ..before };
    // a hard limit is raised with CAP_SYS_RESOURCE only; a limit that stays shows when programs are loaded
    (set_files(&wide) || set_files(&narrow)).then_some(before)
}

/// Whether the limit of memory for data (`ulimit -d`) leaves room for the threads, whose stacks count. Else the standard
/// library aborts when a thread cannot have a signal stack.
///
/// # Errors
/// When it does not.
pub fn check_data() -> anyhow::Result<()> {
    let kib = limit(libc::RLIMIT_DATA).map_or(libc::RLIM_INFINITY, |limit| limit.rlim_cur) >> 10;
    anyhow::ensure!(
        kib >= DATA >> 10,
        "too little memory for data is allowed, {kib} KiB: ulimit -d {} does",
        DATA >> 10
    );
    Ok(())
}

/// A limit of this process; None when the kernel does not tell.
pub fn limit(resource: libc::__rlimit_resource_t) -> Option<libc::rlimit> {
    let mut raw = MaybeUninit::<libc::rlimit>::uninit();
    // SAFETY: raw is a valid rlimit to write to, and filled when getrlimit succeeds.
    unsafe { (libc::getrlimit(resource, raw.as_mut_ptr()) == 0).then(|| raw.assume_init()) }
}

/// Sets the limit; false when that is not allowed. Async-signal-safe.
pub fn set_files(limit: &libc::rlimit) -> bool {
    // SAFETY: limit is a valid rlimit.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, limit) == 0 }
}
