//! Operations of io_uring and io_submit by number.

/// Names of IORING_OP_ by number (include/uapi/linux/io_uring.h up to 6.18; numbers are never given anew).
#[rustfmt::skip]
const OPS: [&str; 63] = [
    "NOP", "READV", "WRITEV", "FSYNC", "READ_FIXED", "WRITE_FIXED", "POLL_ADD", "POLL_REMOVE", "SYNC_FILE_RANGE",
    "SENDMSG", "RECVMSG", "TIMEOUT", "TIMEOUT_REMOVE", "ACCEPT", "ASYNC_CANCEL", "LINK_TIMEOUT", "CONNECT", "FALLOCATE",
    "OPENAT", "CLOSE", "FILES_UPDATE", "STATX", "READ", "WRITE", "FADVISE", "MADVISE", "SEND", "RECV", "OPENAT2",
    "EPOLL_CTL", "SPLICE", "PROVIDE_BUFFERS", "REMOVE_BUFFERS", "TEE", "SHUTDOWN", "RENAMEAT", "UNLINKAT", "MKDIRAT",
    "SYMLINKAT", "LINKAT", "MSG_RING", "FSETXATTR", "SETXATTR", "FGETXATTR", "GETXATTR", "SOCKET", "URING_CMD",
    "SEND_ZC", "SENDMSG_ZC", "READ_MULTISHOT", "WAITID", "FUTEX_WAIT", "FUTEX_WAKE", "FUTEX_WAITV", "FIXED_FD_INSTALL",
    "FTRUNCATE", "BIND", "LISTEN", "RECV_ZC", "EPOLL_WAIT", "READV_FIXED", "WRITEV_FIXED", "PIPE",
];

/// Name of an operation, or `op63`.
pub fn iouring_op_name(op: u8) -> String {
    OPS.get(usize::from(op)).map_or_else(|| format!("op{op}"), |name| (*name).to_owned())
}

/// Names of IOCB_CMD_ by number (include/uapi/linux/aio_abi.h); "" was never used.
const AIO_OPS: [&str; 9] = ["PREAD", "PWRITE", "FSYNC", "FDSYNC", "", "POLL", "NOOP", "PREADV", "PWRITEV"];

/// Name of an operation of io_submit, or `op9`.
pub fn aio_op_name(op: u8) -> String {
    let known = AIO_OPS.get(usize::from(op)).filter(|name| !name.is_empty());
    known.map_or_else(|| format!("op{op}"), |name| (*name).to_owned())
}
