//! Calls on mounted file systems.

use super::calls;
use crate::flags::{AT, FSCONFIG, FSMOUNT, FSOPEN, FSPICK, MOUNT, MOUNT_ATTR, MOVE_MOUNT, OPEN_TREE, SWAPON, UMOUNT};

calls! {
    ustat(dev: Dev, ubuf: Ptr) -> Int;
    statfs(pathname: Path, buf: Ptr) -> Int;
    fstatfs(fd: Fd, buf: Ptr) -> Int;
    sysfs(option: Int, arg1: ULong, arg2: ULong) -> Int;
    pivot_root(new_root: Path, put_old: Path) -> Int, PivotRoot;
    chroot(filename: Path) -> Int, Chroot;
    sync() -> Int;
    acct(name: Path) -> Int;
    mount(dev_name: FileName, dir_name: Path, type: Str, flags: Flags(&MOUNT), data: Ptr) -> Int;
    umount2(name: Path, flags: Flags(&UMOUNT)) -> Int;
    swapon(specialfile: Path, swap_flags: Flags(&SWAPON)) -> Int;
    swapoff(specialfile: Path) -> Int;
    quotactl(cmd: Hex32, special: Path, id: Int, addr: Ptr) -> Int;
    syncfs(fd: Fd) -> Int;
    open_tree(dfd: DirFd, filename: Path, flags: Flags(&OPEN_TREE)) -> Fd, NewFd;
    move_mount(from_dfd: DirFd, from_pathname: Path, to_dfd: DirFd, to_pathname: Path, flags: Flags(&MOVE_MOUNT)) -> Int;
    fsopen(_fs_name: Str, flags: Flags(&FSOPEN)) -> Fd, NewFd;
    fsconfig(fd: Fd, cmd: Flags(&FSCONFIG), _key: Str, _value: Ptr, aux: Int) -> Int;
    fsmount(fs_fd: Fd, flags: Flags(&FSMOUNT), attr_flags: Flags(&MOUNT_ATTR)) -> Fd, NewFd;
    fspick(dfd: DirFd, path: Path, flags: Flags(&FSPICK)) -> Fd, NewFd;
    mount_setattr(dfd: DirFd, path: Path, flags: Flags(&AT), uattr: Ptr, usize: Size) -> Int;
    quotactl_fd(fd: Fd, cmd: Hex32, id: Int, addr: Ptr) -> Int;
    statmount(req: Ptr, buf: Ptr, bufsize: Size, flags: UInt) -> Int;
    listmount(req: Ptr, mnt_ids: Ptr, nr_mnt_ids: Size, flags: UInt) -> Int;
    open_tree_attr(dfd: DirFd, filename: Path, flags: Flags(&OPEN_TREE), uattr: Ptr, usize: Size) -> Fd, NewFd;
}
