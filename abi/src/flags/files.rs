//! Flags of calls on files and descriptors.

use super::{FlagForm, flag_sets};

flag_sets! {
    /// Flags of `open` on x86: an access mode in the low two bits, then bits.
    OPEN: FlagForm::Mixed { mask: 3 }, "O_";
    [general: O_RDONLY = 0, O_WRONLY = 1, O_RDWR = 2, O_ACCMODE = 3]
    [uapi "asm-generic/fcntl.h": O_TMPFILE = 0o20200000]
    [general: O_SYNC = 0o4010000, O_CREAT = 0o100, O_EXCL = 0o200, O_NOCTTY = 0o400, O_TRUNC = 0o1000,
        O_APPEND = 0o2000, O_NONBLOCK = 0o4000, O_DSYNC = 0o10000]
    [uapi "asm-generic/fcntl.h": O_ASYNC = 0o20000, O_DIRECT = 0o40000, O_LARGEFILE = 0o100000,
        O_DIRECTORY = 0o200000, O_NOFOLLOW = 0o400000]
    [general: O_NOATIME = 0o1000000, O_CLOEXEC = 0o2000000, O_PATH = 0o10000000]

    /// [`OPEN`] on arm64, which numbers four of the bits differently.
    OPEN_ARM64: FlagForm::Mixed { mask: 3 }, "O_";
    [general: O_RDONLY = 0, O_WRONLY = 1, O_RDWR = 2, O_ACCMODE = 3]
    [uapi "arch/arm64/include/uapi/asm/fcntl.h": O_TMPFILE = 0o20040000]
    [general: O_SYNC = 0o4010000, O_CREAT = 0o100, O_EXCL = 0o200, O_NOCTTY = 0o400, O_TRUNC = 0o1000,
        O_APPEND = 0o2000, O_NONBLOCK = 0o4000, O_DSYNC = 0o10000]
    [uapi "arch/arm64/include/uapi/asm/fcntl.h": O_ASYNC = 0o20000, O_DIRECT = 0o200000, O_LARGEFILE = 0o400000,
        O_DIRECTORY = 0o40000, O_NOFOLLOW = 0o100000]
    [general: O_NOATIME = 0o1000000, O_CLOEXEC = 0o2000000, O_PATH = 0o10000000]

    /// How a `*at` call resolves its path; `AT_STATX_*` are for statx only.
    AT: FlagForm::Bits, "AT_";
    [general: AT_SYMLINK_NOFOLLOW = 0x100, AT_SYMLINK_FOLLOW = 0x400, AT_NO_AUTOMOUNT = 0x800, AT_EMPTY_PATH = 0x1000,
        AT_STATX_FORCE_SYNC = 0x2000, AT_STATX_DONT_SYNC = 0x4000, AT_RECURSIVE = 0x8000]

    /// Flags of `faccessat2`.
    FACCESSAT: FlagForm::Bits, "AT_";
    [general: AT_EACCESS = 0x200, AT_SYMLINK_NOFOLLOW = 0x100, AT_EMPTY_PATH = 0x1000]

    /// Flags of `unlinkat`.
    UNLINKAT: FlagForm::Bits, "AT_";
    [general: AT_REMOVEDIR = 0x200]

    /// Flags of `name_to_handle_at`.
    HANDLE_AT: FlagForm::Bits, "AT_";
    [general: AT_HANDLE_FID = 0x200]
    [uapi "linux/fcntl.h": AT_HANDLE_MNT_ID_UNIQUE = 1, AT_HANDLE_CONNECTABLE = 2]
    [general: AT_SYMLINK_FOLLOW = 0x400, AT_EMPTY_PATH = 0x1000]

    /// Flags of `execveat`.
    EXECVEAT: FlagForm::Bits, "AT_";
    [general: AT_SYMLINK_NOFOLLOW = 0x100, AT_EMPTY_PATH = 0x1000]
    [uapi "linux/fcntl.h": AT_EXECVE_CHECK = 0x10000]

    /// Mode of `access`.
    ACCESS: FlagForm::Bits, "";
    [general: F_OK = 0, R_OK = 4, W_OK = 2, X_OK = 1]

    /// Where `lseek` counts from.
    WHENCE: FlagForm::Enum, "SEEK_";
    [general: SEEK_SET = 0, SEEK_CUR = 1, SEEK_END = 2, SEEK_DATA = 3, SEEK_HOLE = 4]

    /// Commands of `fcntl`.
    FCNTL: FlagForm::Enum, "F_";
    [general: F_DUPFD = 0, F_GETFD = 1, F_SETFD = 2, F_GETFL = 3, F_SETFL = 4, F_GETLK = 5, F_SETLK = 6, F_SETLKW = 7,
        F_SETOWN = 8, F_GETOWN = 9, F_SETSIG = 10, F_GETSIG = 11]
    [uapi "linux/fcntl.h": F_GETLK64 = 12, F_SETLK64 = 13, F_SETLKW64 = 14]
    [general: F_SETOWN_EX = 15, F_GETOWN_EX = 16, F_GETOWNER_UIDS = 17, F_OFD_GETLK = 36, F_OFD_SETLK = 37,
        F_OFD_SETLKW = 38, F_SETLEASE = 1024, F_GETLEASE = 1025, F_NOTIFY = 1026]
    [uapi "linux/fcntl.h": F_DUPFD_QUERY = 1027, F_CREATED_QUERY = 1028]
    [general: F_CANCELLK = 1029, F_DUPFD_CLOEXEC = 1030, F_SETPIPE_SZ = 1031, F_GETPIPE_SZ = 1032, F_ADD_SEALS = 1033,
        F_GET_SEALS = 1034, F_GET_RW_HINT = 1035, F_SET_RW_HINT = 1036, F_GET_FILE_RW_HINT = 1037,
        F_SET_FILE_RW_HINT = 1038]
    [uapi "linux/fcntl.h": F_GETDELEG = 1039, F_SETDELEG = 1040]

    /// Operations of `flock`: one of four, and `LOCK_NB`.
    FLOCK: FlagForm::Bits, "LOCK_";
    [general: LOCK_SH = 1, LOCK_EX = 2, LOCK_UN = 8, LOCK_NB = 4]

    /// Modes of `fallocate`.
    FALLOCATE: FlagForm::Bits, "FALLOC_FL_";
    [uapi "linux/falloc.h": FALLOC_FL_ALLOCATE_RANGE = 0]
    [general: FALLOC_FL_KEEP_SIZE = 1, FALLOC_FL_PUNCH_HOLE = 2, FALLOC_FL_NO_HIDE_STALE = 4,
        FALLOC_FL_COLLAPSE_RANGE = 8, FALLOC_FL_ZERO_RANGE = 0x10, FALLOC_FL_INSERT_RANGE = 0x20,
        FALLOC_FL_UNSHARE_RANGE = 0x40]
    [uapi "linux/falloc.h": FALLOC_FL_WRITE_ZEROES = 0x80]

    /// Advice of `fadvise64`.
    FADVISE: FlagForm::Enum, "POSIX_FADV_";
    [general: POSIX_FADV_NORMAL = 0, POSIX_FADV_RANDOM = 1, POSIX_FADV_SEQUENTIAL = 2, POSIX_FADV_WILLNEED = 3,
        POSIX_FADV_DONTNEED = 4, POSIX_FADV_NOREUSE = 5]

    /// Flags of `sync_file_range`.
    SYNC_RANGE: FlagForm::Bits, "SYNC_FILE_RANGE_";
    [general: SYNC_FILE_RANGE_WAIT_BEFORE = 1, SYNC_FILE_RANGE_WRITE = 2, SYNC_FILE_RANGE_WAIT_AFTER = 4]

    /// Flags of `splice`, `tee` and `vmsplice`.
    SPLICE: FlagForm::Bits, "SPLICE_F_";
    [uapi "include/linux/splice.h": SPLICE_F_MOVE = 1, SPLICE_F_NONBLOCK = 2, SPLICE_F_MORE = 4, SPLICE_F_GIFT = 8]

    /// Flags of `preadv2` and `pwritev2`.
    RWF: FlagForm::Bits, "RWF_";
    [general: RWF_HIPRI = 1, RWF_DSYNC = 2, RWF_SYNC = 4, RWF_NOWAIT = 8, RWF_APPEND = 0x10]
    [uapi "linux/fs.h": RWF_NOAPPEND = 0x20, RWF_ATOMIC = 0x40, RWF_DONTCACHE = 0x80, RWF_NOSIGNAL = 0x100]

    /// Flags of `renameat2`.
    RENAME: FlagForm::Bits, "RENAME_";
    [general: RENAME_NOREPLACE = 1, RENAME_EXCHANGE = 2, RENAME_WHITEOUT = 4]

    /// Fields asked of `statx`.
    STATX: FlagForm::Bits, "STATX_";
    [uapi "linux/stat.h": STATX_ALL = 0xfff]
    [general: STATX_BASIC_STATS = 0x7ff, STATX_TYPE = 1, STATX_MODE = 2, STATX_NLINK = 4, STATX_UID = 8,
        STATX_GID = 0x10, STATX_ATIME = 0x20, STATX_MTIME = 0x40, STATX_CTIME = 0x80, STATX_INO = 0x100,
        STATX_SIZE = 0x200, STATX_BLOCKS = 0x400, STATX_BTIME = 0x800, STATX_MNT_ID = 0x1000, STATX_DIOALIGN = 0x2000]
    [uapi "linux/stat.h": STATX_MNT_ID_UNIQUE = 0x4000, STATX_SUBVOL = 0x8000, STATX_WRITE_ATOMIC = 0x10000,
        STATX_DIO_READ_ALIGN = 0x20000]

    /// Flags of `setxattr`.
    XATTR: FlagForm::Bits, "XATTR_";
    [general: XATTR_CREATE = 1, XATTR_REPLACE = 2]

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
    [general: IN_ACCESS = 1, IN_MODIFY = 2, IN_ATTRIB = 4, IN_CLOSE_WRITE = 8, IN_CLOSE_NOWRITE = 0x10,
        IN_OPEN = 0x20, IN_MOVED_FROM = 0x40, IN_MOVED_TO = 0x80, IN_CREATE = 0x100, IN_DELETE = 0x200,
        IN_DELETE_SELF = 0x400, IN_MOVE_SELF = 0x800, IN_ONLYDIR = 0x1000000, IN_DONT_FOLLOW = 0x2000000,
        IN_EXCL_UNLINK = 0x4000000, IN_MASK_CREATE = 0x10000000, IN_MASK_ADD = 0x20000000, IN_ISDIR = 0x40000000,
        IN_ONESHOT = 0x80000000]

    /// Flags of calls that make a descriptor and share `O_CLOEXEC` and `O_NONBLOCK` (`EFD_`, `SFD_`, `IN_`, `TFD_`, `EPOLL_` are the same bits).
    FD_FLAGS: FlagForm::Bits, "O_";
    [general: O_NONBLOCK = 0o4000, O_CLOEXEC = 0o2000000]

    /// Flags of `pipe2` on x86.
    PIPE2: FlagForm::Bits, "O_";
    [general: O_EXCL = 0o200, O_NONBLOCK = 0o4000]
    [uapi "asm-generic/fcntl.h": O_DIRECT = 0o40000]
    [general: O_CLOEXEC = 0o2000000]

    /// Flags of `pipe2` on arm64.
    PIPE2_ARM64: FlagForm::Bits, "O_";
    [general: O_EXCL = 0o200, O_NONBLOCK = 0o4000]
    [uapi "arch/arm64/include/uapi/asm/fcntl.h": O_DIRECT = 0o200000]
    [general: O_CLOEXEC = 0o2000000]

    /// Operations of `epoll_ctl`.
    EPOLL_OP: FlagForm::Enum, "EPOLL_CTL_";
    [general: EPOLL_CTL_ADD = 1, EPOLL_CTL_DEL = 2, EPOLL_CTL_MOD = 3]

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
    [general: EPOLL_CLOEXEC = 0x80000]

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
