//! Values of si_code that say where a signal comes from (include/uapi/asm-generic/siginfo.h).

/// kill, and whatever says so.
pub const SI_USER: i32 = 0;
/// The kernel, somewhere.
pub const SI_KERNEL: i32 = 0x80;
/// A signal of sigqueue.
pub const SI_QUEUE: i32 = -1;
/// A POSIX timer.
pub const SI_TIMER: i32 = -2;
/// A message queue.
pub const SI_MESGQ: i32 = -3;
/// Asynchronous I/O.
pub const SI_ASYNCIO: i32 = -4;
/// A signal of queued SIGIO.
pub const SI_SIGIO: i32 = -5;
/// tkill, tgkill.
pub const SI_TKILL: i32 = -6;
/// SIGSYS: seccomp.
pub const SYS_SECCOMP: i32 = 1;
/// SIGSYS: syscall user dispatch.
pub const SYS_USER_DISPATCH: i32 = 2;
/// SIGBUS: an unaligned access.
pub const BUS_ADRALN: i32 = 1;
/// SIGBUS: memory is broken, and the process must do something about it.
pub const BUS_MCEERR_AR: i32 = 4;
/// SIGBUS: memory is broken.
pub const BUS_MCEERR_AO: i32 = 5;
