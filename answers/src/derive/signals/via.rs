//! How a signal was sent, derived from all its facts: si_code alone cannot distinguish kill(2) from cgroup.kill.
//!
//! Facts about the kernel are those of Linux 5.10 to 6.12, with the sending function where it matters.

use systape_abi::signal_name;
use systape_format::model::{SIGNAL_PDEATHSIG, SIGNAL_SENDER_EXITING, SignalEvent, SignalInfo, Task};

use super::oom::Marks;
use super::sent::Sent;
use systape_abi::si_code as code;
use systape_abi::signo::{
    SIGALRM, SIGBUS, SIGCHLD, SIGCONT, SIGFPE, SIGHUP, SIGILL, SIGINT, SIGIO, SIGKILL, SIGPIPE, SIGPROF, SIGQUIT,
    SIGSEGV, SIGSTOP, SIGSYS, SIGTRAP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGVTALRM, SIGWINCH, SIGXCPU, SIGXFSZ,
};

/// How a signal was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Via {
    /// The call kill(2).
    Kill,
    /// The call tkill(2).
    Tkill,
    /// tgkill(2): raise, abort and pthread_kill.
    Tgkill,
    /// The call pidfd_send_signal(2).
    PidfdSendSignal,
    /// rt_sigqueueinfo(2): sigqueue.
    RtSigqueueinfo,
    /// rt_tgsigqueueinfo(2): pthread_sigqueue.
    RtTgsigqueueinfo,
    /// A write to a cgroup.kill file.
    CgroupKill,
    /// Keys, hangup or size of a terminal, or job control.
    Terminal,
    /// A POSIX timer.
    Timer,
    /// alarm or setitimer.
    Alarm,
    /// The parent's death, as asked for by PR_SET_PDEATHSIG.
    Pdeathsig,
    /// The OOM killer's choice.
    Oom,
    /// The target shares memory with the OOM killer's choice.
    OomSharedMm,
    /// The thread's own instruction.
    Fault,
    /// A write to a pipe or socket that nobody reads.
    Sigpipe,
    /// RLIMIT_CPU or RLIMIT_RTTIME.
    RlimitCpu,
    /// The limit RLIMIT_FSIZE.
    RlimitFsize,
    /// A seccomp filter or strict mode.
    Seccomp,
    /// The call prctl(PR_SET_SYSCALL_USER_DISPATCH).
    UserDispatch,
    /// A child's change of state.
    Child,
    /// I/O is possible (O_ASYNC), urgent data, a lease.
    Sigio,
    /// Asynchronous I/O has ended.
    Aio,
    /// A message came into a queue.
    Mqueue,
    /// A tracer.
    Ptrace,
    /// The init process of its pid namespace ended.
    PidNamespace,
    /// A key of /proc/sysrq-trigger.
    Sysrq,
    /// Broken memory.
    MemoryError,
    /// The kernel, for none of these reasons.
    Kernel,
    /// Not known.
    Unknown,
}

/// The actor of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Actor {
    /// The task that ran.
    Sender,
    /// The task that ran, if it is a user's and was not interrupted by an interrupt.
    User,
    /// No task.
    Nobody,
}

impl Via {
    /// Name of the way, in every form of the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Tkill => "tkill",
            Self::Tgkill => "tgkill",
            Self::PidfdSendSignal => "pidfd_send_signal",
            Self::RtSigqueueinfo => "rt_sigqueueinfo",
            Self::RtTgsigqueueinfo => "rt_tgsigqueueinfo",
            Self::CgroupKill => "cgroup.kill",
            Self::Terminal => "terminal",
            Self::Timer => "timer",
            Self::Alarm => "alarm",
            Self::Pdeathsig => "pdeathsig",
            Self::Oom => "oom",
            Self::OomSharedMm => "oom-shared-mm",
            Self::Fault => "fault",
            Self::Sigpipe => "sigpipe",
            Self::RlimitCpu => "rlimit-cpu",
            Self::RlimitFsize => "rlimit-fsize",
            Self::Seccomp => "seccomp",
            Self::UserDispatch => "user-dispatch",
            Self::Child => "child",
            Self::Sigio => "sigio",
            Self::Aio => "aio",
            Self::Mqueue => "mqueue",
            Self::Ptrace => "ptrace",
            Self::PidNamespace => "pid-namespace",
            Self::Sysrq => "sysrq",
            Self::MemoryError => "memory-error",
            Self::Kernel => "kernel",
            Self::Unknown => "unknown",
        }
    }

    /// The actor, by the way alone.
    pub(crate) fn actor(self) -> Actor {
        match self {
            Self::Timer | Self::Alarm | Self::MemoryError | Self::Unknown => Actor::Nobody,
            Self::Terminal | Self::Kernel | Self::Sigio | Self::Aio | Self::Mqueue => Actor::User,
            // the tick that found the limit reached came upon the very task
            _ => Actor::Sender,
        }
    }

    /// Whether a call sent it: then whoever made that call is the sender.
    pub fn is_call(self) -> bool {
        Self::of_call(self.name()) == Some(self)
    }

    /// The way a call of this name sends signals.
    fn of_call(name: &str) -> Option<Self> {
        Some(match name {
            "kill" => Self::Kill,
            "tkill" => Self::Tkill,
            "tgkill" => Self::Tgkill,
            "pidfd_send_signal" => Self::PidfdSendSignal,
            "rt_sigqueueinfo" => Self::RtSigqueueinfo,
            "rt_tgsigqueueinfo" => Self::RtTgsigqueueinfo,
            _ => return None,
        })
    }
}

/// How `sent` was sent; `marks` are those of the whole tape, later ones included.
pub fn via(sent: &Sent, marks: &Marks) -> Via {
    let via = by_all_facts(sent, marks);
    let unsure = sent.call_unknown && sent.call.is_none();
    if unsure && depends_on_call(sent, via) { Via::Unknown } else { via }
}

/// Whether the sender's call, if it were known, could show another way.
fn depends_on_call(sent: &Sent, via: Via) -> bool {
    let event = &sent.event;
    match via {
        Via::Kernel | Via::Kill | Via::Tkill | Via::RtSigqueueinfo => true,
        // not one that exits: exit_group, or the call that writes to sysrq-trigger
        Via::RlimitCpu => event.sig == SIGKILL,
        Via::Sigio => event.info == SignalInfo::Siginfo && event.code > 0,
        _ => false,
    }
}

fn by_all_facts(sent: &Sent, marks: &Marks) -> Via {
    match sent.event.info {
        SignalInfo::Priv => by_kernel(sent, marks),
        SignalInfo::NoInfo => on_behalf(sent),
        SignalInfo::Siginfo => with_info(sent),
        SignalInfo::Unknown => sent.call_name().and_then(Via::of_call).unwrap_or(Via::Unknown),
    }
}

/// Whether the sender is in a write to a file whose path ends in `/name`.
fn writes_to(sent: &Sent, name: &str) -> bool {
    let write = matches!(sent.call_name(), Some("write" | "pwrite64" | "writev" | "pwritev" | "pwritev2"));
    let path = &sent.event.call_path;
    write && path.strip_suffix(name.as_bytes()).is_some_and(|dir| dir.ends_with(b"/"))
}

fn exiting(sent: &Sent) -> bool {
    sent.event.flags & SIGNAL_SENDER_EXITING != 0 || matches!(sent.call_name(), Some("exit" | "exit_group"))
}

/// SEND_SIG_PRIV.
fn by_kernel(sent: &Sent, marks: &Marks) -> Via {
    if writes_to(sent, "sysrq-trigger") {
        // send_sig_all: SysRq e and i; SysRq f runs in a kernel thread and is an OOM kill
        return Via::Sysrq;
    }
    match sent.event.sig {
        SIGKILL => kernel_kill(sent, marks),
        SIGXCPU => Via::RlimitCpu,
        // it_real_fn and check_cpu_itimer
        SIGALRM | SIGVTALRM | SIGPROF => Via::Alarm,
        SIGINT | SIGQUIT | SIGTSTP | SIGHUP | SIGTTIN | SIGTTOU | SIGWINCH | SIGCONT => Via::Terminal,
        SIGIO | SIGURG => Via::Sigio,
        // ptrace_attach
        SIGSTOP if sent.call_name() == Some("ptrace") => Via::Ptrace,
        _ => Via::Kernel,
    }
}

fn kernel_kill(sent: &Sent, marks: &Marks) -> Via {
    let (event, target) = (&sent.event, &sent.target);
    let of_other = |sender: &Task| marks.of_other(sender, target, event.ts).is_some();
    if marks.of_victim(target, event.ts).is_some() {
        Via::Oom
    } else if sent.sender.as_deref().is_some_and(of_other) {
        Via::OomSharedMm
    } else if sent.to_own_process() && !exiting(sent) {
        // check_process_timers: the hard limit, from the tick or from work it left to the task. No SIGXCPU needs to have come
        // before: where the soft limit is the hard one it is looked at first
        Via::RlimitCpu
    } else if sent.to_own_process() {
        Via::Kernel
    } else if exiting(sent) && sent.user().is_some_and(|sender| sender.ns_pid == 1) {
        // zap_pid_ns_processes
        Via::PidNamespace
    } else if exiting(sent) && sent.user().is_some() {
        // exit_ptrace: PTRACE_O_EXITKILL
        Via::Ptrace
    } else {
        Via::Kernel
    }
}

/// SEND_SIG_NOINFO: the kernel acts for its current task.
fn on_behalf(sent: &Sent) -> Via {
    let event = &sent.event;
    if event.sig == SIGKILL && writes_to(sent, "cgroup.kill") {
        return Via::CgroupKill;
    }
    if event.flags & SIGNAL_PDEATHSIG != 0 && exiting(sent) {
        return Via::Pdeathsig;
    }
    match event.sig {
        // ptrace_request: PTRACE_KILL
        SIGKILL if sent.call_name() == Some("ptrace") && sent.user().is_some() => Via::Ptrace,
        SIGPIPE if sent.to_itself() => Via::Sigpipe,
        SIGXFSZ if sent.to_itself() => Via::RlimitFsize,
        // a traced program has become another
        SIGTRAP if sent.to_itself() => Via::Ptrace,
        _ => Via::Kernel,
    }
}

fn with_info(sent: &Sent) -> Via {
    let event = &sent.event;
    match event.code {
        code::SI_TIMER => Via::Timer,
        code::SI_MESGQ => Via::Mqueue,
        code::SI_ASYNCIO => Via::Aio,
        code::SI_SIGIO => Via::Sigio,
        1.. => with_reason(sent),
        _ if event.sig == SIGKILL && writes_to(sent, "cgroup.kill") => Via::CgroupKill,
        _ if event.flags & SIGNAL_PDEATHSIG != 0 && exiting(sent) => Via::Pdeathsig,
        // a program may put any negative code into what it queues, so the call decides where it is known
        code => match (sent.call_name(), code) {
            (Some(name), _) => Via::of_call(name).unwrap_or(Via::Kernel),
            (None, code::SI_USER) => Via::Kill,
            (None, code::SI_TKILL) => Via::Tkill,
            (None, code::SI_QUEUE) => Via::RtSigqueueinfo,
            _ => Via::Unknown,
        },
    }
}

/// Codes above 0: only the kernel can send them.
fn with_reason(sent: &Sent) -> Via {
    let (sig, code) = (sent.event.sig, sent.event.code);
    match sig {
        SIGCHLD => Via::Child,
        SIGSYS if code == code::SYS_SECCOMP => Via::Seccomp,
        SIGSYS if code == code::SYS_USER_DISPATCH => Via::UserDispatch,
        SIGBUS if matches!(code, code::BUS_MCEERR_AR | code::BUS_MCEERR_AO) => Via::MemoryError,
        SIGSEGV | SIGBUS | SIGFPE | SIGILL | SIGTRAP if sent.to_itself() => Via::Fault,
        SIGTRAP => Via::Ptrace,
        _ if code == code::SI_KERNEL => Via::Kernel,
        // a child made by clone may tell its end by any signal, F_SETSIG may choose any too
        _ if exiting(sent) => Via::Child,
        _ => Via::Sigio,
    }
}

/// The address of a fault signal; None = it has none, or the kernel did not report it.
///
/// With SI_KERNEL the processor reported none: a non-canonical address, a privileged instruction, `int3` (force_sig()).
/// The same holds for x86's alignment check, which passes 0, an aligned address.
pub fn fault_address(event: &SignalEvent, via: Via) -> Option<u64> {
    let coded = event.info == SignalInfo::Siginfo && (1..code::SI_KERNEL).contains(&event.code);
    let misaligned_null = event.sig == SIGBUS && event.code == code::BUS_ADRALN && event.addr == 0;
    let has_address = matches!(via, Via::Fault | Via::Seccomp | Via::UserDispatch | Via::MemoryError);
    (coded && has_address && !misaligned_null).then_some(event.addr)
}

/// Name of a si_code, e.g. `SI_USER`, `SEGV_MAPERR`; the number if it has none.
pub fn code_name(sig: u32, code: i32) -> String {
    let by_signal: &[&str] = match sig {
        SIGILL => &["ILL_ILLOPC", "ILL_ILLOPN", "ILL_ILLADR", "ILL_ILLTRP", "ILL_PRVOPC", "ILL_PRVREG", "ILL_COPROC"],
        SIGFPE => &["FPE_INTDIV", "FPE_INTOVF", "FPE_FLTDIV", "FPE_FLTOVF", "FPE_FLTUND", "FPE_FLTRES", "FPE_FLTINV"],
        SIGSEGV => &["SEGV_MAPERR", "SEGV_ACCERR", "SEGV_BNDERR", "SEGV_PKUERR"],
        SIGBUS => &["BUS_ADRALN", "BUS_ADRERR", "BUS_OBJERR", "BUS_MCEERR_AR", "BUS_MCEERR_AO"],
        SIGTRAP => &["TRAP_BRKPT", "TRAP_TRACE", "TRAP_BRANCH", "TRAP_HWBKPT", "TRAP_UNK", "TRAP_PERF"],
        SIGCHLD => &["CLD_EXITED", "CLD_KILLED", "CLD_DUMPED", "CLD_TRAPPED", "CLD_STOPPED", "CLD_CONTINUED"],
        SIGIO => &["POLL_IN", "POLL_OUT", "POLL_MSG", "POLL_ERR", "POLL_PRI", "POLL_HUP"],
        SIGSYS => &["SYS_SECCOMP", "SYS_USER_DISPATCH"],
        _ => &[],
    };
    let known = match code {
        code::SI_USER => Some("SI_USER"),
        code::SI_KERNEL => Some("SI_KERNEL"),
        code::SI_QUEUE => Some("SI_QUEUE"),
        code::SI_TIMER => Some("SI_TIMER"),
        code::SI_MESGQ => Some("SI_MESGQ"),
        code::SI_ASYNCIO => Some("SI_ASYNCIO"),
        code::SI_SIGIO => Some("SI_SIGIO"),
        code::SI_TKILL => Some("SI_TKILL"),
        1.. => by_signal.get(code as usize - 1).copied(),
        _ => None,
    };
    known.map_or_else(|| code.to_string(), str::to_owned)
}

/// Name of a signal, `SIGKILL`.
pub fn name(sig: u32) -> String {
    signal_name(sig).into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::exercise::{event, sent, task};
    use super::super::oom::Mark;
    use super::*;
    use systape_format::model::SIGNAL_SENDER_KTHREAD;

    const KILL: SignalInfo = SignalInfo::Siginfo;
    const NONE: SignalInfo = SignalInfo::NoInfo;
    const PRIV: SignalInfo = SignalInfo::Priv;

    fn made(sig: u32, info: SignalInfo, code: i32) -> SignalEvent {
        SignalEvent { info, code, ..event(1_000, sig, 0, 1) }
    }

    /// From process 10 to process 20.
    fn to_other(event: SignalEvent, call: Option<&str>) -> Via {
        via(&sent(event, 10, 20, call), &Marks::default())
    }

    /// From process 10 to itself.
    fn to_self(event: SignalEvent, call: Option<&str>) -> Via {
        via(&sent(event, 10, 10, call), &Marks::default())
    }

    #[test]
    fn calls() {
        let user = |call| to_other(made(15, KILL, 0), Some(call));
        assert_eq!(user("kill"), Via::Kill);
        assert_eq!(user("pidfd_send_signal"), Via::PidfdSendSignal);
        assert_eq!(to_other(made(15, KILL, -6), Some("tkill")), Via::Tkill);
        assert_eq!(to_self(made(6, KILL, -6), Some("tgkill")), Via::Tgkill);
        // any code may be queued, that of kill and of a timer alike
        assert_eq!(to_other(made(10, KILL, -1), Some("rt_sigqueueinfo")), Via::RtSigqueueinfo);
        assert_eq!(to_other(made(10, KILL, -77), Some("rt_tgsigqueueinfo")), Via::RtTgsigqueueinfo);
        assert_eq!(to_other(made(9, KILL, 0), None), Via::Kill);
        assert_eq!(to_other(made(9, KILL, -6), None), Via::Tkill);
        assert_eq!(to_other(made(9, KILL, -1), None), Via::RtSigqueueinfo);
        assert_eq!(to_other(made(9, KILL, 0), Some("read")), Via::Kernel);
        assert_eq!(to_other(made(9, SignalInfo::Unknown, 0), None), Via::Unknown);
    }

    #[test]
    fn without_the_senders_call_only_what_needs_none_is_known() {
        let hidden =
            |event, target| via(&Sent { call_unknown: true, ..sent(event, 10, target, None) }, &Marks::default());
        for event in [made(15, KILL, 0), made(15, KILL, -6), made(10, KILL, -1), made(9, NONE, 0), made(15, PRIV, 0)] {
            assert_eq!(hidden(event.clone(), 20), Via::Unknown, "{event:?}");
        }
        assert_eq!(hidden(made(SIGKILL, PRIV, 0), 10), Via::Unknown, "a limit of CPU time, or it exits");
        assert_eq!(hidden(made(10, KILL, 1), 20), Via::Unknown, "I/O, or a child's end");
        assert_eq!(hidden(made(10, KILL, code::SI_TIMER), 20), Via::Timer);
        assert_eq!(hidden(made(SIGSEGV, KILL, 1), 10), Via::Fault);
        assert_eq!(hidden(made(SIGINT, PRIV, 0), 20), Via::Terminal);
        assert_eq!(hidden(made(SIGPIPE, NONE, 0), 10), Via::Sigpipe);
        let known = Sent { call_unknown: true, ..sent(made(15, KILL, 0), 10, 20, Some("kill")) };
        assert_eq!(via(&known, &Marks::default()), Via::Kill);
    }

    #[test]
    fn a_write_to_cgroup_kill_is_no_kill() {
        let with = |path: &[u8], info| SignalEvent { call_path: path.to_vec(), ..made(9, info, 0) };
        assert_eq!(to_other(with(b"/sys/fs/cgroup/a/cgroup.kill", NONE), Some("write")), Via::CgroupKill);
        assert_eq!(to_other(with(b"/sys/fs/cgroup/a/cgroup.kill", KILL), Some("writev")), Via::CgroupKill);
        assert_eq!(to_other(with(b"/tmp/not-cgroup.kill", NONE), Some("write")), Via::Kernel);
        assert_eq!(to_other(with(b"/sys/fs/cgroup/a/cgroup.kill", NONE), Some("read")), Via::Kernel);
        assert_eq!(to_other(with(b"/proc/sysrq-trigger", PRIV), Some("write")), Via::Sysrq);
    }

    #[test]
    fn the_kernels_own() {
        for sig in [SIGINT, SIGQUIT, SIGTSTP, SIGHUP, SIGTTIN, SIGTTOU, SIGWINCH, SIGCONT] {
            assert_eq!(to_other(made(sig, PRIV, 0), None), Via::Terminal, "{sig}");
        }
        for sig in [SIGALRM, SIGVTALRM, SIGPROF] {
            assert_eq!(to_other(made(sig, PRIV, 0), None), Via::Alarm, "{sig}");
        }
        assert_eq!(to_other(made(10, KILL, code::SI_TIMER), None), Via::Timer);
        assert_eq!(to_other(made(10, KILL, code::SI_MESGQ), Some("mq_timedsend")), Via::Mqueue);
        assert_eq!(to_other(made(10, KILL, code::SI_ASYNCIO), None), Via::Aio);
        assert_eq!(to_other(made(29, PRIV, 0), None), Via::Sigio);
        assert_eq!(to_other(made(SIGIO, KILL, 1), None), Via::Sigio);
        assert_eq!(to_other(made(SIGSTOP, PRIV, 0), Some("ptrace")), Via::Ptrace);
        assert_eq!(to_other(made(SIGCHLD, KILL, 1), Some("exit_group")), Via::Child);
        assert_eq!(to_other(made(9, NONE, 0), Some("ptrace")), Via::Ptrace, "PTRACE_KILL");
        assert_eq!(to_other(made(9, NONE, 0), Some("write")), Via::Kernel);
        assert_eq!(to_other(made(9, PRIV, 0), None), Via::Kernel);
        assert_eq!(Via::Timer.actor(), Actor::Nobody);
    }

    #[test]
    fn what_a_thread_does_to_itself() {
        for sig in [SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP] {
            assert_eq!(to_self(made(sig, KILL, 1), None), Via::Fault, "{sig}");
        }
        assert_eq!(to_self(made(SIGSEGV, KILL, code::SI_KERNEL), None), Via::Fault);
        assert_eq!(to_self(made(SIGSEGV, KILL, 0), Some("kill")), Via::Kill, "a SIGSEGV may be sent too");
        assert_eq!(to_other(made(SIGBUS, KILL, code::BUS_MCEERR_AO), None), Via::MemoryError);
        assert_eq!(to_self(made(SIGPIPE, NONE, 0), Some("write")), Via::Sigpipe);
        assert_eq!(to_self(made(SIGXFSZ, NONE, 0), Some("write")), Via::RlimitFsize);
        assert_eq!(to_self(made(SIGSYS, KILL, 1), Some("getpid")), Via::Seccomp);
        assert_eq!(to_self(made(SIGSYS, KILL, 2), Some("getpid")), Via::UserDispatch);
        assert_eq!(to_self(made(SIGTRAP, NONE, 0), Some("execve")), Via::Ptrace);
    }

    #[test]
    fn an_address_nobody_told_is_none() {
        let address = |sig, code, addr, via| fault_address(&SignalEvent { addr, ..made(sig, KILL, code) }, via);
        assert_eq!(address(SIGSEGV, 1, 0, Via::Fault), Some(0), "the null pointer");
        assert_eq!(address(SIGSEGV, code::SI_KERNEL, 0, Via::Fault), None, "not canonical");
        assert_eq!(address(SIGTRAP, code::SI_KERNEL, 0, Via::Fault), None, "int3");
        assert_eq!(address(SIGBUS, code::BUS_ADRALN, 0, Via::Fault), None, "the alignment check");
        assert_eq!(address(SIGBUS, code::BUS_ADRALN, 0x1001, Via::Fault), Some(0x1001), "a split lock");
        assert_eq!(address(SIGIO, 1, 0x41, Via::Sigio), None, "events of poll lie there");
        assert_eq!(fault_address(&SignalEvent { addr: 0, ..made(SIGSEGV, PRIV, 0) }, Via::Fault), None);
    }

    #[test]
    fn limits_of_cpu_time() {
        assert_eq!(to_self(made(SIGXCPU, PRIV, 0), None), Via::RlimitCpu);
        let kill = made(SIGKILL, PRIV, 0);
        assert_eq!(to_self(kill.clone(), None), Via::RlimitCpu);
        assert_eq!(to_self(kill.clone(), Some("exit_group")), Via::Kernel, "who exits is not looked at");
        assert_eq!(to_other(kill, None), Via::Kernel);
    }

    #[test]
    fn deaths_of_others() {
        let pdeath = SignalEvent { flags: SIGNAL_PDEATHSIG | SIGNAL_SENDER_EXITING, ..made(9, NONE, 0) };
        assert_eq!(to_other(pdeath.clone(), None), Via::Pdeathsig);
        assert_eq!(
            to_other(SignalEvent { flags: SIGNAL_PDEATHSIG, ..pdeath.clone() }, Some("exit_group")),
            Via::Pdeathsig
        );
        assert_eq!(to_other(SignalEvent { flags: SIGNAL_PDEATHSIG, ..pdeath }, Some("write")), Via::Kernel);
        let exiting = SignalEvent { flags: SIGNAL_SENDER_EXITING, ..made(9, PRIV, 0) };
        assert_eq!(to_other(exiting.clone(), None), Via::Ptrace, "PTRACE_O_EXITKILL");
        let mut container = sent(exiting.clone(), 10, 20, None);
        container.sender = Some(Task { ns_pid: 1, ..task(10) }.into());
        assert_eq!(via(&container, &Marks::default()), Via::PidNamespace);
        let worker = SignalEvent { flags: SIGNAL_SENDER_EXITING | SIGNAL_SENDER_KTHREAD, ..exiting };
        assert_eq!(to_other(worker, None), Via::Kernel);
    }

    #[test]
    fn the_oom_killer_marks_its_victim_afterwards() {
        let mut marks = Marks::default();
        marks.push(Mark { ts: 41_000, victim: task(20), short: Some(task(10)), memory: Default::default() });
        let kill = |ts, target| {
            let event = SignalEvent { ts, ..made(9, PRIV, 0) };
            via(&sent(event, 10, target, None), &marks)
        };
        assert_eq!(kill(1_000, 20), Via::Oom);
        assert_eq!(kill(42_000, 30), Via::OomSharedMm);
        assert_eq!(kill(42_000, 20), Via::Kernel, "a mark explains no later signal");
        assert_eq!(kill(5_000_000_000, 30), Via::Kernel, "another matter by then");
        let user = SignalEvent { ts: 1_000, ..made(9, KILL, 0) };
        assert_eq!(via(&sent(user, 10, 20, Some("kill")), &marks), Via::Kill);
    }

    #[test]
    fn names_of_codes() {
        assert_eq!([code_name(11, 1), code_name(11, 0), code_name(7, 3)], ["SEGV_MAPERR", "SI_USER", "BUS_OBJERR"]);
        assert_eq!([code_name(11, 99), code_name(35, 1), code_name(9, -6)], ["99", "1", "SI_TKILL"]);
    }
}
