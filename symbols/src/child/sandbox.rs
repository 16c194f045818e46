//! What the child cannot do any more, once it begins to read files: be root, open anything, make a process, write.
//!
//! A parser in the hands of a hostile file finds a process that may use the descriptors it was sent, its socket, and
//! memory. Files are opened by who asks the child (see [`super::opened`]).

use std::io;

use super::check;

/// The user and group of nobody.
const NOBODY: libc::uid_t = 65534;

/// Becomes nobody if it is root, and gives up all capabilities. Who may not change its user stays what it is, without
/// capabilities.
///
/// # Errors
/// The capabilities stay, which should never happen.
pub(super) fn be_nobody() -> io::Result<()> {
    // SAFETY: these calls take numbers, and a list of no groups; they change this process only.
    unsafe {
        if libc::geteuid() == 0 {
            // Refused without CAP_SETUID and CAP_SETGID.
            let _ = libc::setgroups(0, std::ptr::null());
            let _ = libc::setresgid(NOBODY, NOBODY, NOBODY);
            let _ = libc::setresuid(NOBODY, NOBODY, NOBODY);
        }
    }
    /// Version 3, of this thread (linux/capability.h).
    const HEADER: [u32; 2] = [0x2008_0522, 0];
    // Effective, permitted and inheritable, of 64 capabilities.
    let none = [0u32; 6];
    // SAFETY: the kernel reads a header and two times three words.
    check(unsafe { libc::syscall(libc::SYS_capset, HEADER.as_ptr(), none.as_ptr()) } as libc::c_int)
}

/// Confines this thread to memory, its descriptors and its socket.
///
/// # Errors
/// The kernel has no seccomp or refuses it, as it does inside another sandbox: that one has to do then.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) fn enter() -> Result<(), Box<dyn std::error::Error>> {
    calls::trap_opens()?;
    // The kernel may have no Landlock; nothing but an open could make use of that, and those are trapped.
    let _ = no_paths();
    calls::allow_calls()
}

/// Elsewhere there is no list of calls.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn enter() -> Result<(), Box<dyn std::error::Error>> {
    Err("not of this architecture".into())
}

/// No file, no TCP, no abstract socket, no signal.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn no_paths() -> Result<(), landlock::RulesetError> {
    use landlock::{ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, Scope};
    const RULES: ABI = ABI::V6;
    Ruleset::default()
        .handle_access(AccessFs::from_all(RULES))?
        .handle_access(AccessNet::from_all(RULES))?
        .scope(Scope::from_all(RULES))?
        .create()?
        .restrict_self()
        .map(drop)
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod calls {
    use std::collections::BTreeMap;

    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
        TargetArch,
    };

    use super::super::opened;

    type FilterRules = BTreeMap<i64, Vec<SeccompRule>>;
    type FilterResult<T> = Result<T, Box<dyn std::error::Error>>;

    /// Calls of glibc and musl for memory, descriptors that are open, the socket, and the end. Those that take a path (statx,
    /// readlink) tell what there is, as nobody.
    const CALLS: [libc::c_long; 39] = [
        libc::SYS_brk,
        libc::SYS_clock_gettime,
        libc::SYS_close,
        libc::SYS_dup,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_fcntl,
        libc::SYS_fstat,
        libc::SYS_futex,
        libc::SYS_getpid,
        libc::SYS_getrandom,
        libc::SYS_getrusage,
        libc::SYS_gettid,
        libc::SYS_lseek,
        libc::SYS_madvise,
        libc::SYS_mremap,
        libc::SYS_munmap,
        libc::SYS_newfstatat,
        libc::SYS_openat,
        libc::SYS_pread64,
        libc::SYS_prlimit64,
        libc::SYS_read,
        libc::SYS_readlinkat,
        libc::SYS_recvfrom,
        libc::SYS_recvmsg,
        libc::SYS_restart_syscall,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sched_yield,
        libc::SYS_sendmsg,
        libc::SYS_sendto,
        libc::SYS_setsockopt,
        libc::SYS_sigaltstack,
        libc::SYS_statx,
        libc::SYS_tgkill,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_getcwd,
    ];
    /// Calls that a machine has besides: x86 keeps those without a directory, elsewhere the C library makes them of others.
    #[cfg(target_arch = "x86_64")]
    const OWN_CALLS: &[libc::c_long] =
        &[libc::SYS_lstat, libc::SYS_open, libc::SYS_poll, libc::SYS_readlink, libc::SYS_stat];
    #[cfg(target_arch = "aarch64")]
    const OWN_CALLS: &[libc::c_long] = &[libc::SYS_ppoll];
    /// Calls that open by a path.
    #[cfg(target_arch = "x86_64")]
    const OPENS: &[libc::c_long] = &[libc::SYS_open, libc::SYS_openat];
    #[cfg(target_arch = "aarch64")]
    const OPENS: &[libc::c_long] = &[libc::SYS_openat];
    #[cfg(target_arch = "x86_64")]
    const MACHINE: TargetArch = TargetArch::x86_64;
    #[cfg(target_arch = "aarch64")]
    const MACHINE: TargetArch = TargetArch::aarch64;
    /// PROT_EXEC must not be among what these ask for, their third argument.
    const NO_CODE: [libc::c_long; 2] = [libc::SYS_mmap, libc::SYS_mprotect];

    fn apply(rules: FilterRules, otherwise: SeccompAction, listed: SeccompAction) -> FilterResult<()> {
        let program: BpfProgram = SeccompFilter::new(rules, otherwise, listed, MACHINE)?.try_into()?;
        Ok(seccompiler::apply_filter(&program)?)
    }

    /// Makes an open from here on what [`opened`] makes of it.
    pub(super) fn trap_opens() -> FilterResult<()> {
        opened::answer_traps()?;
        let opens = OPENS.iter().map(|nr| (*nr, Vec::new())).collect();
        apply(opens, SeccompAction::Allow, SeccompAction::Trap)
    }

    /// Other calls than those listed get EPERM.
    pub(super) fn allow_calls() -> FilterResult<()> {
        let mut rules: FilterRules = CALLS.iter().chain(OWN_CALLS).map(|nr| (*nr, Vec::new())).collect();
        let op = SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64);
        for nr in NO_CODE {
            let condition = SeccompCondition::new(2, SeccompCmpArgLen::Dword, op.clone(), 0)?;
            rules.insert(nr, vec![SeccompRule::new(vec![condition])?]);
        }
        apply(rules, SeccompAction::Errno(libc::EPERM as u32), SeccompAction::Allow)
    }
}
