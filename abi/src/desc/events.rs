//! Waiting for descriptors, file events and asynchronous I/O.

use super::calls;
use super::structs::Struct::{EpollEvent, EpollEvents, FdSet, PollFds, SigSet, Timespec, Timeval};
use crate::flags::{
    EFD, EPOLL_CREATE, EPOLL_OP, FAN_INIT, FAN_MARK, FAN_MASK, INOTIFY_INIT, INOTIFY_MASK, IORING_ENTER,
    IORING_REGISTER, OPEN, PERF_OPEN,
};

calls! {
    poll(ufds: InOut(PollFds), nfds: UInt, timeout_msecs: TimeoutMs) -> Timeout;
    select(n: Int, inp: InOut(FdSet), outp: InOut(FdSet), exp: InOut(FdSet), tvp: InOut(Timeval)) -> Timeout;
    io_setup(nr_events: UInt, ctxp: Ptr) -> Int;
    io_destroy(ctx: Hex) -> Int;
    io_getevents(ctx_id: Hex, min_nr: Long, nr: Long, events: Ptr, timeout: In(Timespec)) -> Timeout;
    io_submit(ctx_id: Hex, nr: Long, iocbpp: Ptr) -> Int;
    io_cancel(ctx_id: Hex, iocb: Ptr, result: Ptr) -> Int;
    epoll_create(size: Int) -> Fd, NewFd;
    epoll_wait(epfd: Fd, events: Out(EpollEvents), maxevents: Int, timeout: TimeoutMs) -> Timeout;
    epoll_ctl(epfd: Fd, op: Flags(&EPOLL_OP), fd: Fd, event: In(EpollEvent)) -> Int;
    inotify_init() -> Fd, NewFd;
    inotify_add_watch(fd: Fd, pathname: Path, mask: Flags(&INOTIFY_MASK)) -> Int;
    inotify_rm_watch(fd: Fd, wd: Int) -> Int;
    pselect6(n: Int, inp: InOut(FdSet), outp: InOut(FdSet), exp: InOut(FdSet), tsp: InOut(Timespec), sig: Ptr) -> Timeout;
    ppoll(ufds: InOut(PollFds), nfds: UInt, tsp: InOut(Timespec), sigmask: In(SigSet), sigsetsize: Size) -> Timeout;
    epoll_pwait(epfd: Fd, events: Out(EpollEvents), maxevents: Int, timeout: TimeoutMs, sigmask: In(SigSet), sigsetsize: Size) -> Timeout;
    eventfd(count: UInt) -> Fd, NewFd;
    eventfd2(count: UInt, flags: Flags(&EFD)) -> Fd, NewFd;
    epoll_create1(flags: Flags(&EPOLL_CREATE)) -> Fd, NewFd;
    inotify_init1(flags: Flags(&INOTIFY_INIT)) -> Fd, NewFd;
    perf_event_open(attr_uptr: Ptr, pid: Pid, cpu: Int, group_fd: Fd, flags: Flags(&PERF_OPEN)) -> Fd, NewFd;
    fanotify_init(flags: Flags(&FAN_INIT), event_f_flags: Flags(&OPEN)) -> Fd, NewFd;
    fanotify_mark(fanotify_fd: Fd, flags: Flags(&FAN_MARK), mask: Flags(&FAN_MASK), dfd: DirFd, pathname: Path) -> Int;
    io_pgetevents(ctx_id: Hex, min_nr: Long, nr: Long, events: Ptr, timeout: In(Timespec), usig: Ptr) -> Timeout;
    io_uring_setup(entries: UInt, params: Ptr) -> Fd, NewFd;
    io_uring_enter(fd: Fd, to_submit: UInt, min_complete: UInt, flags: Flags(&IORING_ENTER), argp: Ptr, argsz: Size) -> Int, IoUringEnter;
    io_uring_register(fd: Fd, opcode: Flags(&IORING_REGISTER), arg: Ptr, nr_args: UInt) -> Int, IoUringRegister;
    epoll_pwait2(epfd: Fd, events: Out(EpollEvents), maxevents: Int, timeout: In(Timespec), sigmask: In(SigSet), sigsetsize: Size) -> Timeout;
}
