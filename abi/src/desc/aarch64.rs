//! Calls that arm64 has in another form than x86: the order of `clone`'s arguments and the flags whose values it numbers its own way.

use super::calls;
use crate::flags::{CLONE, FAN_INIT, MMAP_ARM64, OPEN_ARM64, PIPE2_ARM64, PROT_ARM64};

calls! {
    openat(dfd: DirFd, filename: Path, flags: Flags(&OPEN_ARM64), mode: Mode) -> Fd, NewFd;
    open_by_handle_at(mountdirfd: DirFd, handle: Ptr, flags: Flags(&OPEN_ARM64)) -> Fd, NewFd;
    mq_open(u_name: FileName, oflag: Flags(&OPEN_ARM64), mode: Mode, u_attr: Ptr) -> Fd, NewFd;
    pipe2(fildes: FdPair, flags: Flags(&PIPE2_ARM64)) -> Int, NewFdPair;
    fanotify_init(flags: Flags(&FAN_INIT), event_f_flags: Flags(&OPEN_ARM64)) -> Fd, NewFd;
    mmap(addr: Ptr, len: Size, prot: Flags(&PROT_ARM64), flags: Flags(&MMAP_ARM64), fd: Fd, off: Offset) -> Ptr;
    mprotect(start: Ptr, len: Size, prot: Flags(&PROT_ARM64)) -> Int;
    pkey_mprotect(start: Ptr, len: Size, prot: Flags(&PROT_ARM64), pkey: Int) -> Int;
    remap_file_pages(start: Ptr, size: Size, prot: Flags(&PROT_ARM64), pgoff: ULong, flags: Flags(&MMAP_ARM64)) -> Int;
    clone(clone_flags: Flags(&CLONE), newsp: Ptr, parent_tidptr: Ptr, tls: Ptr, child_tidptr: Ptr) -> Pid, Clone;
}
