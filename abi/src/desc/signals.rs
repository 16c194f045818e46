//! Calls on signals.

use super::calls;
use crate::flags::{PIDFD_SIGNAL, SFD, SIG_HOW};

calls! {
    rt_sigaction(sig: Signal, act: Ptr, oact: Ptr, sigsetsize: Size) -> Int;
    rt_sigprocmask(how: Flags(&SIG_HOW), nset: SigSet, oset: Ptr, sigsetsize: Size) -> Int;
    rt_sigreturn() -> NoReturn;
    pause() -> Int;
    kill(pid: Pid, sig: Signal) -> Int;
    rt_sigpending(uset: Ptr, sigsetsize: Size) -> Int;
    rt_sigtimedwait(uthese: SigSet, uinfo: Ptr, uts: Timespec, sigsetsize: Size) -> Int;
    rt_sigqueueinfo(pid: Pid, sig: Signal, uinfo: Ptr) -> Int;
    rt_sigsuspend(unewset: SigSet, sigsetsize: Size) -> Int;
    sigaltstack(uss: Ptr, uoss: Ptr) -> Int;
    tkill(pid: Pid, sig: Signal) -> Int;
    tgkill(tgid: Pid, pid: Pid, sig: Signal) -> Int;
    signalfd(ufd: Fd, user_mask: SigSet, sizemask: Size) -> Fd, NewFd;
    signalfd4(ufd: Fd, user_mask: SigSet, sizemask: Size, flags: Flags(&SFD)) -> Fd, NewFd;
    rt_tgsigqueueinfo(tgid: Pid, pid: Pid, sig: Signal, uinfo: Ptr) -> Int;
    pidfd_send_signal(pidfd: Fd, sig: Signal, info: Ptr, flags: Flags(&PIDFD_SIGNAL)) -> Int;
}
