//! Single constants of the kernel's headers for user space that are the same on x86 and arm64.

pub use linux_raw_sys::general::{
    __O_TMPFILE, CLONE_FILES, F_DUPFD, F_DUPFD_CLOEXEC, F_GET_SEALS, F_GETFD, F_GETFL, F_GETLEASE, F_GETOWN,
    F_GETPIPE_SZ, F_GETSIG, F_SETFD, FD_CLOEXEC, MAP_ANONYMOUS, O_CLOEXEC, O_CREAT,
};
pub use linux_raw_sys::ioctl::{FIOCLEX, FIONCLEX};

// a sockaddr has its family in 16 bits
macro_rules! families {
    ($($name:ident)*) => { $(pub const $name: u16 = linux_raw_sys::net::$name as u16;)* };
}
families!(AF_UNIX AF_INET AF_INET6 AF_NETLINK AF_PACKET AF_VSOCK);

// include/uapi/linux/close_range.h
pub const CLOSE_RANGE_UNSHARE: u32 = 1 << 1;
pub const CLOSE_RANGE_CLOEXEC: u32 = 1 << 2;

/// `SECCOMP_IOCTL_NOTIF_ADDFD`, `_IOW('!', 3, struct seccomp_notif_addfd)`.
pub const SECCOMP_IOCTL_NOTIF_ADDFD: u32 = 0x4018_2103;
