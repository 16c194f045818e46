//! Flags of calls on files and descriptors.

use super::{FlagForm, flag_sets};

flag_sets! {
    /// Flags of `open` on x86: an access mode in the low two bits, then bits.
    OPEN: FlagForm::Mixed { mask: 3 }, "O_";
    [general: O_RDONLY, O_WRONLY, O_RDWR, O_ACCMODE]
    [uapi "asm-generic/fcntl.h": O_TMPFILE = 0o20200000]
    [general: O_SYNC, O_CREAT, O_EXCL, O_NOCTTY, O_TRUNC, O_APPEND, O_NONBLOCK, O_DSYNC]
    [uapi "asm-generic/fcntl.h": O_ASYNC = 0o20000, O_DIRECT = 0o40000, O_LARGEFILE = 0o100000,
        O_DIRECTORY = 0o200000, O_NOFOLLOW = 0o400000]
    [general: O_NOATIME, O_CLOEXEC, O_PATH]

    /// [`OPEN`] on arm64, which numbers four of the bits differently.
    OPEN_ARM64: FlagForm::Mixed { mask: 3 }, "O_";
    [general: O_RDONLY, O_WRONLY, O_RDWR, O_ACCMODE]
    [uapi "arch/arm64/include/uapi/asm/fcntl.h": O_TMPFILE = 0o20040000]
    [general: O_SYNC, O_CREAT, O_EXCL, O_NOCTTY, O_TRUNC, O_APPEND, O_NONBLOCK, O_DSYNC]
    [uapi "arch/arm64/include/uapi/asm/fcntl.h": O_ASYNC = 0o20000, O_DIRECT = 0o200000, O_LARGEFILE = 0o400000,
        O_DIRECTORY = 0o40000, O_NOFOLLOW = 0o100000]
    [general: O_NOATIME, O_CLOEXEC, O_PATH]

    /// How a `*at` call resolves its path; `AT_STATX_*` are for statx only.
    AT: FlagForm::Bits, "AT_";
    [general: AT_SYMLINK_NOFOLLOW, AT_SYMLINK_FOLLOW, AT_NO_AUTOMOUNT, AT_EMPTY_PATH, AT_STATX_FORCE_SYNC,
        AT_STATX_DONT_SYNC, AT_RECURSIVE]

    /// Flags of `faccessat2`.
    FACCESSAT: FlagForm::Bits, "AT_";
    [general: AT_EACCESS, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH]

    /// Flags of `unlinkat`.
    UNLINKAT: FlagForm::Bits, "AT_";
    [general: AT_REMOVEDIR]

    /// Flags of `name_to_handle_at`.
    HANDLE_AT: FlagForm::Bits, "AT_";
    [general: AT_HANDLE_FID]
    [uapi "linux/fcntl.h": AT_HANDLE_MNT_ID_UNIQUE = 1, AT_HANDLE_CONNECTABLE = 2]
    [general: AT_SYMLINK_FOLLOW, AT_EMPTY_PATH]

    /// Flags of `execveat`.
    EXECVEAT: FlagForm::Bits, "AT_";
    [general: AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH]
    [uapi "linux/fcntl.h": AT_EXECVE_CHECK = 0x10000]

    /// Mode of `access`.
    ACCESS: FlagForm::Bits, "";
    [general: F_OK, R_OK, W_OK, X_OK]

    /// Where `lseek` counts from.
    WHENCE: FlagForm::Enum, "SEEK_";
    [general: SEEK_SET, SEEK_CUR, SEEK_END, SEEK_DATA, SEEK_HOLE]

    /// Commands of `fcntl`.
    FCNTL: FlagForm::Enum, "F_";
    [general: F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GETLK, F_SETLK, F_SETLKW, F_SETOWN, F_GETOWN, F_SETSIG,
        F_GETSIG]
    [uapi "linux/fcntl.h": F_GETLK64 = 12, F_SETLK64 = 13, F_SETLKW64 = 14]
    [general: F_SETOWN_EX, F_GETOWN_EX, F_GETOWNER_UIDS, F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW, F_SETLEASE,
        F_GETLEASE, F_NOTIFY]
    [uapi "linux/fcntl.h": F_DUPFD_QUERY = 1027, F_CREATED_QUERY = 1028]
    [general: F_CANCELLK, F_DUPFD_CLOEXEC, F_SETPIPE_SZ, F_GETPIPE_SZ, F_ADD_SEALS, F_GET_SEALS, F_GET_RW_HINT,
        F_SET_RW_HINT, F_GET_FILE_RW_HINT, F_SET_FILE_RW_HINT]
    [uapi "linux/fcntl.h": F_GETDELEG = 1039, F_SETDELEG = 1040]

    /// Operations of `flock`: one of four, and `LOCK_NB`.
    FLOCK: FlagForm::Bits, "LOCK_";
    [general: LOCK_SH, LOCK_EX, LOCK_UN, LOCK_NB]

    /// Modes of `fallocate`.
    FALLOCATE: FlagForm::Bits, "FALLOC_FL_";
    [uapi "linux/falloc.h": FALLOC_FL_ALLOCATE_RANGE = 0]
    [general: FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE, FALLOC_FL_NO_HIDE_STALE, FALLOC_FL_COLLAPSE_RANGE,
        FALLOC_FL_ZERO_RANGE, FALLOC_FL_INSERT_RANGE, FALLOC_FL_UNSHARE_RANGE]
    [uapi "linux/falloc.h": FALLOC_FL_WRITE_ZEROES = 0x80]

    /// Advice of `fadvise64`.
    FADVISE: FlagForm::Enum, "POSIX_FADV_";
    [general: POSIX_FADV_NORMAL, POSIX_FADV_RANDOM, POSIX_FADV_SEQUENTIAL, POSIX_FADV_WILLNEED, POSIX_FADV_DONTNEED,
        POSIX_FADV_NOREUSE]

    /// Flags of `sync_file_range`.
    SYNC_RANGE: FlagForm::Bits, "SYNC_FILE_RANGE_";
    [general: SYNC_FILE_RANGE_WAIT_BEFORE, SYNC_FILE_RANGE_WRITE, SYNC_FILE_RANGE_WAIT_AFTER]

    /// Flags of `splice`, `tee` and `vmsplice`.
    SPLICE: FlagForm::Bits, "SPLICE_F_";
    [uapi "include/linux/splice.h": SPLICE_F_MOVE = 1, SPLICE_F_NONBLOCK = 2, SPLICE_F_MORE = 4, SPLICE_F_GIFT = 8]

    /// Flags of `preadv2` and `pwritev2`.
    RWF: FlagForm::Bits, "RWF_";
    [general: RWF_HIPRI, RWF_DSYNC, RWF_SYNC, RWF_NOWAIT, RWF_APPEND]
    [uapi "linux/fs.h": RWF_NOAPPEND = 0x20, RWF_ATOMIC = 0x40, RWF_DONTCACHE = 0x80, RWF_NOSIGNAL = 0x100]

    /// Flags of `renameat2`.
    RENAME: FlagForm::Bits, "RENAME_";
    [general: RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT]

    /// Fields asked of `statx`.
    STATX: FlagForm::Bits, "STATX_";
    [uapi "linux/stat.h": STATX_ALL = 0xfff]
    [general: STATX_BASIC_STATS, STATX_TYPE, STATX_MODE, STATX_NLINK, STATX_UID, STATX_GID, STATX_ATIME, STATX_MTIME,
        STATX_CTIME, STATX_INO, STATX_SIZE, STATX_BLOCKS, STATX_BTIME, STATX_MNT_ID, STATX_DIOALIGN]
    [uapi "linux/stat.h": STATX_MNT_ID_UNIQUE = 0x4000, STATX_SUBVOL = 0x8000, STATX_WRITE_ATOMIC = 0x10000,
        STATX_DIO_READ_ALIGN = 0x20000]

    /// Flags of `setxattr`.
    XATTR: FlagForm::Bits, "XATTR_";
    [general: XATTR_CREATE, XATTR_REPLACE]

    /// Flags of `memfd_create`.
    MEMFD: FlagForm::Bits, "MFD_";
    [uapi "linux/memfd.h": MFD_CLOEXEC = 1, MFD_ALLOW_SEALING = 2, MFD_HUGETLB = 4, MFD_NOEXEC_SEAL = 8,
        MFD_EXEC = 0x10]

    /// Flags of `close_range`.
    CLOSE_RANGE: FlagForm::Bits, "CLOSE_RANGE_";
    [uapi "linux/close_range.h": CLOSE_RANGE_UNSHARE = 2, CLOSE_RANGE_CLOEXEC = 4]

    /// Events of an inotify watch.
    INOTIFY_MASK: FlagForm::Bits, "IN_";
    [uapi "linux/inotify.h": IN_ALL_EVENTS = 0xfff]
    [general: IN_ACCESS, IN_MODIFY, IN_ATTRIB, IN_CLOSE_WRITE, IN_CLOSE_NOWRITE, IN_OPEN, IN_MOVED_FROM, IN_MOVED_TO,
        IN_CREATE, IN_DELETE, IN_DELETE_SELF, IN_MOVE_SELF, IN_ONLYDIR, IN_DONT_FOLLOW, IN_EXCL_UNLINK,
        IN_MASK_CREATE, IN_MASK_ADD, IN_ISDIR, IN_ONESHOT]

    /// Flags of calls that make a descriptor and share `O_CLOEXEC` and `O_NONBLOCK` (`EFD_`, `SFD_`, `IN_`, `TFD_`, `EPOLL_` are the same bits).
    FD_FLAGS: FlagForm::Bits, "O_";
    [general: O_NONBLOCK, O_CLOEXEC]

    /// Flags of `pipe2` on x86.
    PIPE2: FlagForm::Bits, "O_";
    [general: O_EXCL, O_NONBLOCK]
    [uapi "asm-generic/fcntl.h": O_DIRECT = 0o40000]
    [general: O_CLOEXEC]

    /// Flags of `pipe2` on arm64.
    PIPE2_ARM64: FlagForm::Bits, "O_";
    [general: O_EXCL, O_NONBLOCK]
    [uapi "arch/arm64/include/uapi/asm/fcntl.h": O_DIRECT = 0o200000]
    [general: O_CLOEXEC]

    /// Operations of `epoll_ctl`.
    EPOLL_OP: FlagForm::Enum, "EPOLL_CTL_";
    [general: EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD]

    /// Attributes that `statx` finds.
    STATX_ATTR: FlagForm::Bits, wide, "STATX_ATTR_";
    [uapi "linux/stat.h": STATX_ATTR_COMPRESSED = 4, STATX_ATTR_IMMUTABLE = 0x10, STATX_ATTR_APPEND = 0x20,
        STATX_ATTR_NODUMP = 0x40, STATX_ATTR_ENCRYPTED = 0x800, STATX_ATTR_AUTOMOUNT = 0x1000,
        STATX_ATTR_MOUNT_ROOT = 0x2000, STATX_ATTR_VERITY = 0x100000, STATX_ATTR_DAX = 0x200000,
        STATX_ATTR_WRITE_ATOMIC = 0x400000]

    /// Types of files, in the upper bits of a mode.
    FILE_TYPE: FlagForm::Enum, "S_IF";
    [uapi "linux/stat.h": S_IFSOCK = 0o140000, S_IFLNK = 0o120000, S_IFREG = 0o100000, S_IFBLK = 0o60000,
        S_IFDIR = 0o40000, S_IFCHR = 0o20000, S_IFIFO = 0o10000]

    /// Events of `poll`.
    POLL: FlagForm::Bits, "POLL";
    [uapi "asm-generic/poll.h": POLLIN = 1, POLLPRI = 2, POLLOUT = 4, POLLRDNORM = 0x40, POLLRDBAND = 0x80,
        POLLWRNORM = 0x100, POLLWRBAND = 0x200, POLLMSG = 0x400, POLLREMOVE = 0x1000, POLLRDHUP = 0x2000, POLLERR = 8,
        POLLHUP = 0x10, POLLNVAL = 0x20]

    /// Events of `epoll_ctl` and `epoll_wait`.
    EPOLL: FlagForm::Bits, "EPOLL";
    [uapi "linux/eventpoll.h": EPOLLIN = 1, EPOLLPRI = 2, EPOLLOUT = 4, EPOLLRDNORM = 0x40, EPOLLRDBAND = 0x80,
        EPOLLWRNORM = 0x100, EPOLLWRBAND = 0x200, EPOLLMSG = 0x400, EPOLLERR = 8, EPOLLHUP = 0x10, EPOLLRDHUP = 0x2000,
        EPOLLEXCLUSIVE = 0x10000000, EPOLLWAKEUP = 0x20000000, EPOLLONESHOT = 0x40000000, EPOLLET = 0x80000000]

    /// Flags of `epoll_create1`.
    EPOLL_CREATE: FlagForm::Bits, "EPOLL_";
    [general: EPOLL_CLOEXEC]

    /// Flags of `eventfd2`.
    EFD: FlagForm::Bits, "EFD_";
    [uapi "linux/eventfd.h": EFD_SEMAPHORE = 1, EFD_NONBLOCK = 0o4000, EFD_CLOEXEC = 0o2000000]

    /// Flags of `signalfd4`.
    SFD: FlagForm::Bits, "SFD_";
    [uapi "linux/signalfd.h": SFD_NONBLOCK = 0o4000, SFD_CLOEXEC = 0o2000000]

    /// Flags of `inotify_init1`.
    INOTIFY_INIT: FlagForm::Bits, "IN_";
    [uapi "linux/inotify.h": IN_NONBLOCK = 0o4000, IN_CLOEXEC = 0o2000000]

    /// Flags of `timerfd_create`.
    TFD_CREATE: FlagForm::Bits, "TFD_";
    [uapi "linux/timerfd.h": TFD_NONBLOCK = 0o4000, TFD_CLOEXEC = 0o2000000]

    /// Flags of `timerfd_settime`.
    TFD_SETTIME: FlagForm::Bits, "TFD_TIMER_";
    [uapi "linux/timerfd.h": TFD_TIMER_ABSTIME = 1, TFD_TIMER_CANCEL_ON_SET = 2]
}
