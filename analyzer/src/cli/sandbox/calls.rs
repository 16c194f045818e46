//! seccomp: the syscalls that reports make are allowed, all others get EPERM. Another ABI (i386) ends the process; x32's numbers are
//! not listed and get EPERM as well.
//!
//! The lists have the calls that glibc and musl use for the same function (`open` and `openat`), so that a build with
//! either works. They come from `strace -f` over every report, format and output file.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use super::RemainingRights;

type SandboxRules = BTreeMap<i64, Vec<SeccompRule>>;
type SandboxResult<T> = Result<T, Box<dyn std::error::Error>>;

/// Confines this thread and those it makes to the calls that `needs` allows.
///
/// # Errors
/// The kernel has no seccomp or refuses it.
pub(super) fn confine(needs: &RemainingRights) -> SandboxResult<()> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let errno = |errno: libc::c_int| SeccompAction::Errno(errno as u32);
    // clone3 has its flags in memory, where a filter cannot look. Without it libc takes clone, which can be looked at.
    let no_clone3 = SandboxRules::from([(libc::SYS_clone3, Vec::new())]);
    let first: BpfProgram =
        SeccompFilter::new(no_clone3, SeccompAction::Allow, errno(libc::ENOSYS), arch)?.try_into()?;
    let second: BpfProgram =
        SeccompFilter::new(allowed(needs)?, errno(libc::EPERM), SeccompAction::Allow, arch)?.try_into()?;
    seccompiler::apply_filter(&first)?;
    Ok(seccompiler::apply_filter(&second)?)
}

fn allowed(needs: &RemainingRights) -> SandboxResult<SandboxRules> {
    let mut rules = SandboxRules::new();
    let mut any = |calls: &[libc::c_long]| rules.extend(calls.iter().map(|&nr| (nr, Vec::new())));
    any(&ALWAYS);
    #[cfg(target_arch = "x86_64")]
    any(&ALWAYS_X86_64);
    if !needs.clear.is_empty() {
        any(&[libc::SYS_unlinkat]);
        #[cfg(target_arch = "x86_64")]
        any(&[libc::SYS_unlink]);
    }
    if !needs.make.is_empty() {
        any(&[libc::SYS_mkdirat, libc::SYS_unlinkat, libc::SYS_renameat, libc::SYS_renameat2]);
        #[cfg(target_arch = "x86_64")]
        any(&[libc::SYS_mkdir, libc::SYS_unlink, libc::SYS_rename]);
    }
    if needs.terminal {
        any(&[libc::SYS_ppoll]);
        #[cfg(target_arch = "x86_64")]
        any(&[libc::SYS_poll]);
    }
    if needs.search.is_empty() {
        rules.extend(alone()?);
    } else {
        any(&SECOND_PROCESS);
        #[cfg(target_arch = "x86_64")]
        any(&SECOND_PROCESS_X86_64);
    }
    let mut ioctls = IOCTL.to_vec();
    if needs.terminal {
        ioctls.extend(SETTINGS);
    }
    for (nr, values) in [(libc::SYS_fcntl, &FCNTL[..]), (libc::SYS_ioctl, &ioctls), (libc::SYS_flock, &FLOCK)] {
        let one_of = values.iter().map(|&value| rule(1, SeccompCmpOp::Eq, value));
        rules.insert(nr, one_of.collect::<SandboxResult<_>>()?);
    }
    Ok(rules)
}

/// Calls that a process without a second one may make with some arguments only.
fn alone() -> SandboxResult<SandboxRules> {
    let thread = libc::CLONE_THREAD as u64;
    let this = u64::from(std::process::id());
    // SAFETY: asks for a number.
    let tid = unsafe { libc::gettid() } as u64;
    let exec = libc::PROT_EXEC as u64;
    let names = [libc::PR_SET_NAME, libc::PR_GET_NAME, libc::PR_SET_VMA];
    let names = names.iter().map(|&option| rule(0, SeccompCmpOp::Eq, option as u64));
    Ok(SandboxRules::from([
        // threads, no processes
        (libc::SYS_clone, vec![rule(0, SeccompCmpOp::MaskedEq(thread), thread)?]),
        // no new code
        (libc::SYS_mmap, vec![rule(2, SeccompCmpOp::MaskedEq(exec), 0)?]),
        (libc::SYS_mprotect, vec![rule(2, SeccompCmpOp::MaskedEq(exec), 0)?]),
        // abort, to itself: glibc's, and musl's of the main thread
        (libc::SYS_tgkill, vec![rule(0, SeccompCmpOp::Eq, this)?]),
        (libc::SYS_tkill, vec![rule(0, SeccompCmpOp::Eq, tid)?]),
        // what limits there are, for the size of a stack
        (libc::SYS_prlimit64, vec![SeccompRule::new(vec![is(0, SeccompCmpOp::Eq, 0)?, is(2, SeccompCmpOp::Eq, 0)?])?]),
        (libc::SYS_prctl, names.collect::<SandboxResult<_>>()?),
    ]))
}

fn is(argument: u8, op: SeccompCmpOp, value: u64) -> SandboxResult<SeccompCondition> {
    // a pointer has 64 bits, all else that is looked at is an int
    let len = if argument == 2 && op == SeccompCmpOp::Eq { SeccompCmpArgLen::Qword } else { SeccompCmpArgLen::Dword };
    Ok(SeccompCondition::new(argument, len, op, value)?)
}

fn rule(argument: u8, op: SeccompCmpOp, value: u64) -> SandboxResult<SeccompRule> {
    Ok(SeccompRule::new(vec![is(argument, op, value)?])?)
}

/// Copies of a descriptor, but no way for a descriptor to send signals.
const FCNTL: [u64; 5] = [
    libc::F_DUPFD_CLOEXEC as u64,
    libc::F_GETFD as u64,
    libc::F_SETFD as u64,
    libc::F_GETFL as u64,
    libc::F_SETFL as u64,
];

/// Whether a tape without an end is still being written.
const FLOCK: [u64; 1] = [(libc::LOCK_SH | libc::LOCK_NB) as u64];

/// Queries of a terminal, its width, and flags of a descriptor, but no input into a terminal.
#[allow(clippy::unnecessary_cast, reason = "musl's constants are ints")]
const IOCTL: [u64; 5] = [
    libc::TCGETS as u64,
    0x802c_542a, // TCGETS2, glibc 2.42's isatty
    libc::TIOCGWINSZ as u64,
    libc::FIONBIO as u64,
    libc::FIOCLEX as u64,
];

/// Changes of a terminal's settings, after what is written was sent or at once.
#[allow(clippy::unnecessary_cast, reason = "musl's constants are ints")]
const SETTINGS: [u64; 4] = [
    libc::TCSETS as u64,
    libc::TCSETSW as u64,
    0x402c_542b, // TCSETS2 and TCSETSW2, glibc 2.42's tcsetattr
    0x402c_542c,
];

const ALWAYS: [libc::c_long; 46] = [
    // files: Landlock says which
    libc::SYS_openat,
    libc::SYS_close,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_getdents64,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_ftruncate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    // a pipe of its own, through which a report's rows come back
    libc::SYS_pipe2,
    // memory
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    // threads; clone3: see confine
    libc::SYS_clone3,
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // signals: stack overflow, abort
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    libc::SYS_sigaltstack,
    // time
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    // keys of hash tables, ids of copies
    libc::SYS_getrandom,
    // where it is, for messages and paths
    libc::SYS_getcwd,
    libc::SYS_readlinkat,
    libc::SYS_geteuid,
];

#[cfg(target_arch = "x86_64")]
const ALWAYS_X86_64: [libc::c_long; 4] = [libc::SYS_open, libc::SYS_stat, libc::SYS_lstat, libc::SYS_readlink];

/// Calls to start a second process and to talk to it, for its own start, and for its limits.
const SECOND_PROCESS: [libc::c_long; 38] = [
    libc::SYS_clone,
    libc::SYS_execve,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_kill,
    libc::SYS_tgkill,
    libc::SYS_tkill,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_socketpair,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_setsockopt,
    libc::SYS_getsockopt,
    libc::SYS_shutdown,
    libc::SYS_ppoll,
    libc::SYS_pipe2,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_close_range,
    libc::SYS_setpgid,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_prctl,
    libc::SYS_prlimit64,
    libc::SYS_getrlimit,
    libc::SYS_setrlimit,
    libc::SYS_getrusage,
    libc::SYS_setpriority,
    // takes rights away only
    libc::SYS_capset,
    libc::SYS_set_tid_address,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fadvise64,
    libc::SYS_getppid,
    libc::SYS_getuid,
];

#[cfg(target_arch = "x86_64")]
const SECOND_PROCESS_X86_64: [libc::c_long; 6] =
    [libc::SYS_poll, libc::SYS_dup2, libc::SYS_access, libc::SYS_arch_prctl, libc::SYS_vfork, libc::SYS_fork];
