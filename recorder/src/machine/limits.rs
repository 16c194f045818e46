//! Limits of this process: open files, of which every BPF program, link, map and ring is one, over a hundred in all; and
//! memory for data.

use std::fs;
use std::mem::MaybeUninit;
use std::path::Path;

use crate::machine::bounded;

/// Enough open files for a recorder; users' shells mostly allow 1024 or more.
const FILES: libc::rlim_t = 1024;

/// Memory for data of a small recording: ten threads of 2 MiB, and buffers.
const DATA: libc::rlim_t = 32 << 20;

/// Raises a lower limit, as far as allowed. Returns the old one if it was changed, for the command.
pub(crate) fn raise_files() -> Option<libc::rlimit> {
    let before = limit(libc::RLIMIT_NOFILE)?;
    if before.rlim_cur >= FILES {
        return None;
    }
    let wide = libc::rlimit { rlim_cur: FILES, rlim_max: before.rlim_max.max(FILES) };
    let narrow = libc::rlimit { rlim_cur: before.rlim_max.min(FILES), ..before };
    // a hard limit is raised with CAP_SYS_RESOURCE only; a limit that stays shows when programs are loaded
    (set_files(&wide) || set_files(&narrow)).then_some(before)
}

/// Checks that the limit of memory for data (`ulimit -d`) leaves room for the threads, whose stacks count. Otherwise
/// the standard library aborts when a thread cannot have a signal stack.
///
/// # Errors
/// When it does not.
pub(crate) fn check_data() -> anyhow::Result<()> {
    let kib = limit(libc::RLIMIT_DATA).map_or(libc::RLIM_INFINITY, |limit| limit.rlim_cur) >> 10;
    anyhow::ensure!(
        kib >= DATA >> 10,
        "too little memory for data is allowed, {kib} KiB: ulimit -d {} does",
        DATA >> 10
    );
    Ok(())
}

/// Memory available to this process in bytes: the machine's, or a cgroup's limit. None = not known.
pub(crate) fn memory(cgroup_mount: Option<&Path>) -> Option<u64> {
    let mut info = MaybeUninit::<libc::sysinfo>::uninit();
    // SAFETY: info is a valid sysinfo to write to, and filled when the call succeeds.
    let info = unsafe { (libc::sysinfo(info.as_mut_ptr()) == 0).then(|| info.assume_init()) };
    let machine = info.map(|info| info.totalram.saturating_mul(info.mem_unit.into()));
    let of_cgroups = cgroup_mount.and_then(|mount| {
        let text = bounded::lines("/proc/self/cgroup", bounded::LINES).ok()?;
        let own = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let max = |dir: &Path| fs::read_to_string(dir.join("memory.max")).ok()?.trim().parse().ok();
        mount.join(own).ancestors().take_while(|dir| dir.starts_with(mount)).filter_map(max).min()
    });
    machine.into_iter().chain(of_cgroups).min()
}

/// A limit of this process; None when the kernel does not report it.
pub(crate) fn limit(resource: libc::__rlimit_resource_t) -> Option<libc::rlimit> {
    let mut raw = MaybeUninit::<libc::rlimit>::uninit();
    // SAFETY: raw is a valid rlimit to write to, and filled when getrlimit succeeds.
    unsafe { (libc::getrlimit(resource, raw.as_mut_ptr()) == 0).then(|| raw.assume_init()) }
}

/// Sets the limit; false when that is not allowed. Async-signal-safe.
pub(crate) fn set_files(limit: &libc::rlimit) -> bool {
    // SAFETY: limit is a valid rlimit.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, limit) == 0 }
}
