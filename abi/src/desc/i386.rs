//! Calls of i386 that differ from 64-bit x86: 64-bit numbers split over two registers, old structures, argument blocks in memory,
//! and calls x86-64 never had. The others share the description of the same name.
//!
//! Names follow `SYSCALL_DEFINE` and `COMPAT_SYSCALL_DEFINE` (kernel/, fs/, ipc/, arch/x86/kernel/sys_ia32.c). `struct timespec` of
//! calls without `time64` in their name holds 32-bit numbers.

use super::calls;
use super::structs::Struct::{
    FdSet, Itimerspec, Itimerspec32, PollFds, Rlimit, SigSet, Stat64, Timespec, Timespec32, Timeval, TwoTimespecs,
    TwoTimespecs32, WaitStatus,
};
use crate::flags::{
    AT, CLONE, FADVISE, FALLOCATE, FAN_MARK, FCNTL, FUTEX, IPCCALL, MMAP, MSG, PROT, RLIMIT, RWF, SIG_HOW, SOCKETCALL,
    SYNC_RANGE, TFD_SETTIME, TIMER, WAIT, WHENCE,
};

calls! {
    // 64-bit numbers in two registers, low half first
    pread64(fd: Fd, ubuf: BufOut, count: Size, poslo: LowHalf, poshi: HighHalf) -> Int;
    pwrite64(fd: Fd, ubuf: BufIn{len_arg: 2}, count: Size, poslo: LowHalf, poshi: HighHalf) -> Int;
    preadv(fd: Fd, vec: Iovec{cnt_arg: 2}, vlen: ULong, pos_low: LowHalf, pos_high: HighHalf) -> Int;
    pwritev(fd: Fd, vec: Iovec{cnt_arg: 2}, vlen: ULong, pos_low: LowHalf, pos_high: HighHalf) -> Int;
    preadv2(fd: Fd, vec: Iovec{cnt_arg: 2}, vlen: ULong, pos_low: LowHalf, pos_high: HighHalf, flags: Flags(&RWF)) -> Int;
    pwritev2(fd: Fd, vec: Iovec{cnt_arg: 2}, vlen: ULong, pos_low: LowHalf, pos_high: HighHalf, flags: Flags(&RWF)) -> Int;
    truncate64(filename: Path, offset_low: LowHalf, offset_high: HighHalf) -> Int;
    ftruncate64(fd: Fd, offset_low: LowHalf, offset_high: HighHalf) -> Int;
    readahead(fd: Fd, off_lo: LowHalf, off_hi: HighHalf, count: Size) -> Int;
    fadvise64(fd: Fd, offset_lo: LowHalf, offset_hi: HighHalf, len: Size, advice: Flags(&FADVISE)) -> Int;
    fadvise64_64(fd: Fd, offset_low: LowHalf, offset_high: HighHalf, len_low: LowHalf, len_high: HighHalf, advice: Flags(&FADVISE)) -> Int;
    fallocate(fd: Fd, mode: Flags(&FALLOCATE), offset_lo: LowHalf, offset_hi: HighHalf, len_lo: LowHalf, len_hi: HighHalf) -> Int;
    sync_file_range(fd: Fd, off_low: LowHalf, off_hi: HighHalf, n_low: LowHalf, n_hi: HighHalf, flags: Flags(&SYNC_RANGE)) -> Int;
    fanotify_mark(fanotify_fd: Fd, flags: Flags(&FAN_MARK), mask_lo: LowHalf, mask_hi: HighHalf, dfd: DirFd, pathname: Path) -> Int;
    _llseek(fd: Fd, offset_high: HighHalf, offset_low: LowHalf, result: Ptr, whence: Flags(&WHENCE)) -> Int;

    // another order of arguments, or a block of them in memory
    clone(clone_flags: Flags(&CLONE), newsp: Ptr, parent_tidptr: Ptr, tls: Ptr, child_tidptr: Ptr) -> Pid, Clone;
    mmap(arg: Ptr) -> Ptr;
    mmap2(addr: Ptr, len: Size, prot: Flags(&PROT), flags: Flags(&MMAP), fd: Fd, pgoff: OffsetPages) -> Ptr;
    select(arg: Ptr) -> Timeout;
    _newselect(n: Int, inp: InOut(FdSet), outp: InOut(FdSet), exp: InOut(FdSet), tvp: InOut(Timeval)) -> Timeout;
    socketcall(call: Flags(&SOCKETCALL), args: Ptr) -> Int, SocketCall;
    ipc(call: Flags(&IPCCALL), first: Int, second: ULong, third: ULong, ptr: Ptr, fifth: Long) -> Int;

    // old structures for time
    nanosleep(rqtp: In(Timespec32), rmtp: Left(Timespec32)) -> Int;
    clock_gettime(which_clock: ClockId, tp: Out(Timespec32)) -> Int;
    clock_settime(which_clock: ClockId, tp: In(Timespec32)) -> Int;
    clock_getres(which_clock: ClockId, tp: Out(Timespec32)) -> Int;
    clock_nanosleep(which_clock: ClockId, flags: Flags(&TIMER), rqtp: In(Timespec32), rmtp: Left(Timespec32)) -> Int;
    ppoll(ufds: InOut(PollFds), nfds: UInt, tsp: InOut(Timespec32), sigmask: In(SigSet), sigsetsize: Size) -> Timeout;
    pselect6(n: Int, inp: InOut(FdSet), outp: InOut(FdSet), exp: InOut(FdSet), tsp: InOut(Timespec32), sig: Ptr) -> Timeout;
    futex(uaddr: Futex, op: Flags(&FUTEX), val: UInt, utime: In(Timespec32), uaddr2: Ptr, val3: UInt) -> Int;
    rt_sigtimedwait(uthese: In(SigSet), uinfo: Ptr, uts: In(Timespec32), sigsetsize: Size) -> Int;
    recvmmsg(fd: Fd, mmsg: Ptr, vlen: UInt, flags: Flags(&MSG), timeout: InOut(Timespec32)) -> Int, RecvFds;
    semtimedop(semid: Int, tsems: Ptr, nsops: UInt, timeout: In(Timespec32)) -> Int;
    mq_timedsend(mqdes: Fd, u_msg_ptr: BufIn{len_arg: 2}, msg_len: Size, msg_prio: UInt, u_abs_timeout: In(Timespec32)) -> Int;
    mq_timedreceive(mqdes: Fd, u_msg_ptr: BufOut, msg_len: Size, u_msg_prio: Ptr, u_abs_timeout: In(Timespec32)) -> Int;
    sched_rr_get_interval(pid: Pid, interval: Out(Timespec32)) -> Int;
    io_getevents(ctx_id: Hex, min_nr: Long, nr: Long, events: Ptr, timeout: In(Timespec32)) -> Timeout;
    io_pgetevents(ctx_id: Hex, min_nr: Long, nr: Long, events: Ptr, timeout: In(Timespec32), usig: Ptr) -> Timeout;
    utimensat(dfd: DirFd, filename: Path, utimes: In(TwoTimespecs32), flags: Flags(&AT)) -> Int;
    timer_gettime(timer_id: Int, setting: Out(Itimerspec32)) -> Int;
    timer_settime(timer_id: Int, flags: Flags(&TIMER), new_setting: In(Itimerspec32), old_setting: Out(Itimerspec32)) -> Int;
    timerfd_gettime(ufd: Fd, otmr: Out(Itimerspec32)) -> Int;
    timerfd_settime(ufd: Fd, flags: Flags(&TFD_SETTIME), utmr: In(Itimerspec32), otmr: Out(Itimerspec32)) -> Int;

    // the same calls with 64-bit times
    clock_gettime64(which_clock: ClockId, tp: Out(Timespec)) -> Int;
    clock_settime64(which_clock: ClockId, tp: In(Timespec)) -> Int;
    clock_adjtime64(which_clock: ClockId, utx: Ptr) -> Int;
    clock_getres_time64(which_clock: ClockId, tp: Out(Timespec)) -> Int;
    clock_nanosleep_time64(which_clock: ClockId, flags: Flags(&TIMER), rqtp: In(Timespec), rmtp: Left(Timespec)) -> Int;
    timer_gettime64(timer_id: Int, setting: Out(Itimerspec)) -> Int;
    timer_settime64(timer_id: Int, flags: Flags(&TIMER), new_setting: In(Itimerspec), old_setting: Out(Itimerspec)) -> Int;
    timerfd_gettime64(ufd: Fd, otmr: Out(Itimerspec)) -> Int;
    timerfd_settime64(ufd: Fd, flags: Flags(&TFD_SETTIME), utmr: In(Itimerspec), otmr: Out(Itimerspec)) -> Int;
    utimensat_time64(dfd: DirFd, filename: Path, utimes: In(TwoTimespecs), flags: Flags(&AT)) -> Int;
    pselect6_time64(n: Int, inp: InOut(FdSet), outp: InOut(FdSet), exp: InOut(FdSet), tsp: InOut(Timespec), sig: Ptr) -> Timeout;
    ppoll_time64(ufds: InOut(PollFds), nfds: UInt, tsp: InOut(Timespec), sigmask: In(SigSet), sigsetsize: Size) -> Timeout;
    io_pgetevents_time64(ctx_id: Hex, min_nr: Long, nr: Long, events: Ptr, timeout: In(Timespec), usig: Ptr) -> Timeout;
    recvmmsg_time64(fd: Fd, mmsg: Ptr, vlen: UInt, flags: Flags(&MSG), timeout: InOut(Timespec)) -> Int, RecvFds;
    mq_timedsend_time64(mqdes: Fd, u_msg_ptr: BufIn{len_arg: 2}, msg_len: Size, msg_prio: UInt, u_abs_timeout: In(Timespec)) -> Int;
    mq_timedreceive_time64(mqdes: Fd, u_msg_ptr: BufOut, msg_len: Size, u_msg_prio: Ptr, u_abs_timeout: In(Timespec)) -> Int;
    semtimedop_time64(semid: Int, tsops: Ptr, nsops: UInt, timeout: In(Timespec)) -> Int;
    rt_sigtimedwait_time64(uthese: In(SigSet), uinfo: Ptr, uts: In(Timespec), sigsetsize: Size) -> Int;
    futex_time64(uaddr: Futex, op: Flags(&FUTEX), val: UInt, utime: In(Timespec), uaddr2: Ptr, val3: UInt) -> Int;
    sched_rr_get_interval_time64(pid: Pid, interval: Out(Timespec)) -> Int;

    // later widths of older calls: the plain names take 16-bit ids and 32-bit offsets
    chown32(filename: Path, user: Uid, group: Gid) -> Int;
    fchown32(fd: Fd, user: Uid, group: Gid) -> Int;
    lchown32(filename: Path, user: Uid, group: Gid) -> Int;
    getuid32() -> Uid;
    geteuid32() -> Uid;
    getgid32() -> Gid;
    getegid32() -> Gid;
    getgroups32(gidsetsize: Int, grouplist: Ptr) -> Int;
    getresuid32(ruidp: Ptr, euidp: Ptr, suidp: Ptr) -> Int;
    getresgid32(rgidp: Ptr, egidp: Ptr, sgidp: Ptr) -> Int;
    setuid32(uid: Uid) -> Int, Cred;
    setgid32(gid: Gid) -> Int, Cred;
    setreuid32(ruid: Uid, euid: Uid) -> Int, Cred;
    setregid32(rgid: Gid, egid: Gid) -> Int, Cred;
    setresuid32(ruid: Uid, euid: Uid, suid: Uid) -> Int, Cred;
    setresgid32(rgid: Gid, egid: Gid, sgid: Gid) -> Int, Cred;
    setfsuid32(uid: Uid) -> Uid, Cred;
    setfsgid32(gid: Gid) -> Gid, Cred;
    setgroups32(gidsetsize: Int, grouplist: Ptr) -> Int, Cred;
    fcntl64(fd: Fd, cmd: Flags(&FCNTL), arg: Hex) -> Int, Fcntl;
    sendfile64(out_fd: Fd, in_fd: Fd, offset: Ptr, count: Size) -> Int;
    stat64(filename: Path, statbuf: Out(Stat64)) -> Int;
    lstat64(filename: Path, statbuf: Out(Stat64)) -> Int;
    fstat64(fd: Fd, statbuf: Out(Stat64)) -> Int;
    fstatat64(dfd: DirFd, filename: Path, statbuf: Out(Stat64), flag: Flags(&AT)) -> Int;
    statfs64(pathname: Path, sz: Size, buf: Ptr) -> Int;
    fstatfs64(fd: Fd, sz: Size, buf: Ptr) -> Int;
    ugetrlimit(resource: Flags(&RLIMIT), rlim: Out(Rlimit)) -> Int;

    // calls x86-64 was born without
    waitpid(pid: Pid, stat_addr: Out(WaitStatus), options: Flags(&WAIT)) -> Pid;
    umount(name: Path) -> Int;
    nice(increment: Int) -> Int;
    stime(tptr: Ptr) -> Int;
    oldstat(filename: Path, statbuf: Ptr) -> Int;
    oldlstat(filename: Path, statbuf: Ptr) -> Int;
    oldfstat(fd: Fd, statbuf: Ptr) -> Int;
    olduname(name: Ptr) -> Int;
    oldolduname(name: Ptr) -> Int;
    readdir(fd: Fd, dirent: Ptr, count: UInt) -> Int;
    signal(sig: Signal, handler: Ptr) -> Ptr;
    sigaction(sig: Signal, act: Ptr, oact: Ptr) -> Int;
    sigprocmask(how: Flags(&SIG_HOW), nset: Ptr, oset: Ptr) -> Int;
    sigpending(uset: Ptr) -> Int;
    sigsuspend(unused1: Int, unused2: Int, mask: Hex) -> Int;
    sigreturn() -> NoReturn;
    sgetmask() -> Hex;
    ssetmask(newmask: Hex) -> Hex;
    vm86(cmd: ULong, arg: Hex) -> Int;
    vm86old(user_vm86: Ptr) -> Int;
}
