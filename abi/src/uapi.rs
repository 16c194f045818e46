//! Single constants of the kernel's headers for user space that are the same on x86 and arm64.

/// `$value`. Tests compare it with what module `$module` of `linux-raw-sys` has for `$name`.
#[cfg(all(test, target_os = "linux"))]
macro_rules! compared {
    ($module:ident::$name:ident = $value:literal) => {{
        assert!(
            linux_raw_sys::$module::$name as u64 == $value,
            concat!(stringify!($name), " is another value in linux-raw-sys")
        );
        $value
    }};
}
#[cfg(not(all(test, target_os = "linux")))]
macro_rules! compared {
    ($module:ident::$name:ident = $value:literal) => {
        $value
    };
}
pub(crate) use compared;

/// Public constants of one type, compared with a module of `linux-raw-sys`.
macro_rules! constants {
    ($module:ident, $type:ty: $($name:ident = $value:literal),+ $(,)?) => {
        $(pub const $name: $type = $crate::uapi::compared!($module::$name = $value);)+
    };
}
pub(crate) use constants;

constants! {
    general, u32:
    __O_TMPFILE = 0o20000000, CLONE_FILES = 0x400, F_DUPFD = 0, F_DUPFD_CLOEXEC = 1030, F_GET_SEALS = 1034, F_GETFD = 1,
    F_GETFL = 3, F_GETLEASE = 1025, F_GETOWN = 9, F_GETPIPE_SZ = 1032, F_GETSIG = 11, F_SETFD = 2, FD_CLOEXEC = 1,
    MAP_ANONYMOUS = 0x20, O_CLOEXEC = 0o2000000, O_CREAT = 0o100
}
constants!(ioctl, u32: FIOCLEX = 0x5451, FIONCLEX = 0x5450);
// a sockaddr has its family in 16 bits
constants!(net, u16: AF_UNIX = 1, AF_INET = 2, AF_INET6 = 10, AF_NETLINK = 16, AF_PACKET = 17, AF_VSOCK = 40);

// include/uapi/linux/close_range.h
pub const CLOSE_RANGE_UNSHARE: u32 = 1 << 1;
pub const CLOSE_RANGE_CLOEXEC: u32 = 1 << 2;

/// `SECCOMP_IOCTL_NOTIF_ADDFD`, `_IOW('!', 3, struct seccomp_notif_addfd)`.
pub const SECCOMP_IOCTL_NOTIF_ADDFD: u32 = 0x4018_2103;
