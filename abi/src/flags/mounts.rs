//! Flags of mounts, swap and fanotify.

use super::{FlagForm, flag_sets};

flag_sets! {
    /// Flags of `mount`.
    MOUNT: FlagForm::Bits, wide, "MS_";
    [uapi "linux/mount.h": MS_MGC_VAL = 0xc0ed0000]
    [general: MS_RDONLY = 1, MS_NOSUID = 2, MS_NODEV = 4, MS_NOEXEC = 8, MS_SYNCHRONOUS = 0x10, MS_REMOUNT = 0x20,
        MS_MANDLOCK = 0x40, MS_DIRSYNC = 0x80, MS_NOSYMFOLLOW = 0x100, MS_NOATIME = 0x400, MS_NODIRATIME = 0x800,
        MS_BIND = 0x1000, MS_MOVE = 0x2000, MS_REC = 0x4000, MS_SILENT = 0x8000, MS_POSIXACL = 0x10000,
        MS_UNBINDABLE = 0x20000, MS_PRIVATE = 0x40000, MS_SLAVE = 0x80000, MS_SHARED = 0x100000, MS_RELATIME = 0x200000,
        MS_KERNMOUNT = 0x400000, MS_I_VERSION = 0x800000, MS_STRICTATIME = 0x1000000, MS_LAZYTIME = 0x2000000]

    /// Flags of `umount2`.
    UMOUNT: FlagForm::Bits, "";
    [uapi "include/linux/fs.h": MNT_FORCE = 1, MNT_DETACH = 2, MNT_EXPIRE = 4, UMOUNT_NOFOLLOW = 8]

    /// Flags of `move_mount`.
    MOVE_MOUNT: FlagForm::Bits, "MOVE_MOUNT_";
    [general: MOVE_MOUNT_F_SYMLINKS = 1, MOVE_MOUNT_F_AUTOMOUNTS = 2, MOVE_MOUNT_F_EMPTY_PATH = 4,
        MOVE_MOUNT_T_SYMLINKS = 0x10, MOVE_MOUNT_T_AUTOMOUNTS = 0x20, MOVE_MOUNT_T_EMPTY_PATH = 0x40]
    [uapi "linux/mount.h": MOVE_MOUNT_SET_GROUP = 0x100, MOVE_MOUNT_BENEATH = 0x200]

    /// Flags of `open_tree`.
    OPEN_TREE: FlagForm::Bits, "";
    [general: OPEN_TREE_CLONE = 1]
    [uapi "linux/mount.h": OPEN_TREE_CLOEXEC = 0o2000000]
    [general: AT_RECURSIVE = 0x8000, AT_SYMLINK_NOFOLLOW = 0x100, AT_NO_AUTOMOUNT = 0x800, AT_EMPTY_PATH = 0x1000]

    /// Flags of `fsopen`.
    FSOPEN: FlagForm::Bits, "FSOPEN_";
    [general: FSOPEN_CLOEXEC = 1]

    /// Flags of `fsmount`.
    FSMOUNT: FlagForm::Bits, "FSMOUNT_";
    [general: FSMOUNT_CLOEXEC = 1]

    /// Flags of `fspick`.
    FSPICK: FlagForm::Bits, "FSPICK_";
    [general: FSPICK_CLOEXEC = 1, FSPICK_SYMLINK_NOFOLLOW = 2, FSPICK_NO_AUTOMOUNT = 4, FSPICK_EMPTY_PATH = 8]

    /// Commands of `fsconfig`.
    FSCONFIG: FlagForm::Enum, "FSCONFIG_";
    [uapi "linux/mount.h": FSCONFIG_SET_FLAG = 0, FSCONFIG_SET_STRING = 1, FSCONFIG_SET_BINARY = 2,
        FSCONFIG_SET_PATH = 3, FSCONFIG_SET_PATH_EMPTY = 4, FSCONFIG_SET_FD = 5, FSCONFIG_CMD_CREATE = 6,
        FSCONFIG_CMD_RECONFIGURE = 7, FSCONFIG_CMD_CREATE_EXCL = 8]

    /// Attributes of `fsmount`.
    MOUNT_ATTR: FlagForm::Bits, "MOUNT_ATTR_";
    [general: MOUNT_ATTR_RDONLY = 1, MOUNT_ATTR_NOSUID = 2, MOUNT_ATTR_NODEV = 4, MOUNT_ATTR_NOEXEC = 8,
        MOUNT_ATTR_NOATIME = 0x10, MOUNT_ATTR_STRICTATIME = 0x20, MOUNT_ATTR_NODIRATIME = 0x80,
        MOUNT_ATTR_IDMAP = 0x100000]
    [uapi "linux/mount.h": MOUNT_ATTR_NOSYMFOLLOW = 0x200000]

    /// Flags of `swapon`.
    SWAPON: FlagForm::Bits, "SWAP_FLAG_";
    [uapi "include/linux/swap.h": SWAP_FLAG_PREFER = 0x8000, SWAP_FLAG_DISCARD = 0x10000,
        SWAP_FLAG_DISCARD_ONCE = 0x20000, SWAP_FLAG_DISCARD_PAGES = 0x40000]

    /// Flags of `fanotify_init`.
    FAN_INIT: FlagForm::Bits, "FAN_";
    [uapi "linux/fanotify.h": FAN_CLOEXEC = 1, FAN_NONBLOCK = 2, FAN_CLASS_CONTENT = 4, FAN_CLASS_PRE_CONTENT = 8,
        FAN_UNLIMITED_QUEUE = 0x10, FAN_UNLIMITED_MARKS = 0x20, FAN_ENABLE_AUDIT = 0x40, FAN_REPORT_PIDFD = 0x80,
        FAN_REPORT_TID = 0x100, FAN_REPORT_FID = 0x200, FAN_REPORT_DIR_FID = 0x400, FAN_REPORT_NAME = 0x800,
        FAN_REPORT_TARGET_FID = 0x1000, FAN_REPORT_FD_ERROR = 0x2000, FAN_REPORT_MNT = 0x4000]

    /// Flags of `fanotify_mark`.
    FAN_MARK: FlagForm::Bits, "FAN_MARK_";
    [uapi "linux/fanotify.h": FAN_MARK_ADD = 1, FAN_MARK_REMOVE = 2, FAN_MARK_DONT_FOLLOW = 4, FAN_MARK_ONLYDIR = 8,
        FAN_MARK_MNTNS = 0x110, FAN_MARK_MOUNT = 0x10, FAN_MARK_IGNORED_MASK = 0x20,
        FAN_MARK_IGNORED_SURV_MODIFY = 0x40, FAN_MARK_FLUSH = 0x80, FAN_MARK_FILESYSTEM = 0x100,
        FAN_MARK_EVICTABLE = 0x200, FAN_MARK_IGNORE = 0x400]

    /// Events of `fanotify_mark`.
    FAN_MASK: FlagForm::Bits, wide, "FAN_";
    [uapi "linux/fanotify.h": FAN_ACCESS = 1, FAN_MODIFY = 2, FAN_ATTRIB = 4, FAN_CLOSE_WRITE = 8,
        FAN_CLOSE_NOWRITE = 0x10, FAN_OPEN = 0x20, FAN_MOVED_FROM = 0x40, FAN_MOVED_TO = 0x80, FAN_CREATE = 0x100,
        FAN_DELETE = 0x200, FAN_DELETE_SELF = 0x400, FAN_MOVE_SELF = 0x800, FAN_OPEN_EXEC = 0x1000,
        FAN_Q_OVERFLOW = 0x4000, FAN_FS_ERROR = 0x8000, FAN_OPEN_PERM = 0x10000, FAN_ACCESS_PERM = 0x20000,
        FAN_OPEN_EXEC_PERM = 0x40000, FAN_PRE_ACCESS = 0x100000, FAN_MNT_ATTACH = 0x1000000,
        FAN_MNT_DETACH = 0x2000000, FAN_EVENT_ON_CHILD = 0x8000000, FAN_RENAME = 0x10000000, FAN_ONDIR = 0x40000000]
}
