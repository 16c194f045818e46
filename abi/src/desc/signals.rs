//! Calls on signals.

use super::calls;
use super::structs::Struct::{SigSet, Sigaction, Timespec};
use crate::flags::{PIDFD_SIGNAL, SFD, SIG_HOW};

calls! {
    rt_sigaction(sig: Signal, act: In(Sigaction), oact: Out(Sigaction), sigsetsize: Size) -> Int;
    rt_sigprocmask(how: Flags(&SIG_HOW), nset: In(SigSet), oset: Out(SigSet), sigsetsize: Size) -> Int;
    rt_sigreturn() -> NoReturn;
    pause() -> Int;
    kill(pid: Pid, sig: Signal) -> Int;
    rt_sigpending(uset: Out(SigSet), sigsetsize: Size) -> Int;
    rt_sigtimedwait(uthese: In(SigSet), uinfo: Ptr, uts: In(Timespec), sigsetsize: Size) -> Int;
    rt_sigqueueinfo(pid: Pid, sig: Signal, uinfo: Ptr) -> Int;
    rt_sigsuspend(unewset: In(SigSet), sigsetsize: Size) -> Int;
    sigaltstack(uss: Ptr, uoss: Ptr) -> Int;
    tkill(pid: Pid, sig: Signal) -> Int;
    tgkill(tgid: Pid, pid: Pid, sig: Signal) -> Int;
    signalfd(ufd: Fd, user_mask: In(SigSet), sizemask: Size) -> Fd, NewFd;
    signalfd4(ufd: Fd, user_mask: In(SigSet), sizemask: Size, flags: Flags(&SFD)) -> Fd, NewFd;
    rt_tgsigqueueinfo(tgid: Pid, pid: Pid, sig: Signal, uinfo: Ptr) -> Int;
    pidfd_send_signal(pidfd: Fd, sig: Signal, info: Ptr, flags: Flags(&PIDFD_SIGNAL)) -> Int;
}
