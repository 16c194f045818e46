//! Calls on address spaces.

use super::calls;
use crate::flags::{
    FD_FLAGS, MADVISE, MEMBARRIER, MEMFD, MLOCK2, MLOCKALL, MMAP, MPOL, MPOL_GET, MPOL_MF, MREMAP, MSYNC, PKEY, PROT,
    SHADOW_STACK, UFFD,
};

calls! {
    mmap(addr: Ptr, len: Size, prot: Flags(&PROT), flags: Flags(&MMAP), fd: Fd, off: Offset) -> Ptr;
    mprotect(start: Ptr, len: Size, prot: Flags(&PROT)) -> Int;
    munmap(addr: Ptr, len: Size) -> Int;
    brk(brk: Ptr) -> Ptr;
    mremap(addr: Ptr, old_len: Size, new_len: Size, flags: Flags(&MREMAP), new_addr: Ptr) -> Ptr;
    msync(start: Ptr, len: Size, flags: Flags(&MSYNC)) -> Int;
    mincore(start: Ptr, len: Size, vec: Ptr) -> Int;
    madvise(start: Ptr, len_in: Size, behavior: Flags(&MADVISE)) -> Int;
    mlock(start: Ptr, len: Size) -> Int;
    munlock(start: Ptr, len: Size) -> Int;
    mlockall(flags: Flags(&MLOCKALL)) -> Int;
    munlockall() -> Int;
    remap_file_pages(start: Ptr, size: Size, prot: Flags(&PROT), pgoff: ULong, flags: Flags(&MMAP)) -> Int;
    mbind(start: Ptr, len: Size, mode: Flags(&MPOL), nmask: Ptr, maxnode: ULong, flags: Flags(&MPOL_MF)) -> Int;
    set_mempolicy(mode: Flags(&MPOL), nmask: Ptr, maxnode: ULong) -> Int;
    get_mempolicy(policy: Ptr, nmask: Ptr, maxnode: ULong, addr: Ptr, flags: Flags(&MPOL_GET)) -> Int;
    migrate_pages(pid: Pid, maxnode: ULong, old_nodes: Ptr, new_nodes: Ptr) -> Int;
    move_pages(pid: Pid, nr_pages: ULong, pages: Ptr, nodes: Ptr, status: Ptr, flags: Flags(&MPOL_MF)) -> Int;
    process_vm_readv(pid: Pid, lvec: Iovec{cnt_arg: 2}, liovcnt: ULong, rvec: Iovec{cnt_arg: 4}, riovcnt: ULong, flags: ULong) -> Int;
    process_vm_writev(pid: Pid, lvec: Iovec{cnt_arg: 2}, liovcnt: ULong, rvec: Iovec{cnt_arg: 4}, riovcnt: ULong, flags: ULong) -> Int;
    memfd_create(uname: Str, flags: Flags(&MEMFD)) -> Fd, NewFd;
    userfaultfd(flags: Flags(&UFFD)) -> Fd, NewFd;
    membarrier(cmd: Flags(&MEMBARRIER), flags: UInt, cpu_id: Int) -> Int;
    mlock2(start: Ptr, len: Size, flags: Flags(&MLOCK2)) -> Int;
    pkey_mprotect(start: Ptr, len: Size, prot: Flags(&PROT), pkey: Int) -> Int;
    pkey_alloc(flags: ULong, init_val: Flags(&PKEY)) -> Int;
    pkey_free(pkey: Int) -> Int;
    process_madvise(pidfd: Fd, vec: Iovec{cnt_arg: 2}, vlen: Size, behavior: Flags(&MADVISE), flags: UInt) -> Int;
    memfd_secret(flags: Flags(&FD_FLAGS)) -> Fd, NewFd;
    process_mrelease(pidfd: Fd, flags: UInt) -> Int;
    set_mempolicy_home_node(start: Ptr, len: Size, home_node: ULong, flags: ULong) -> Int;
    cachestat(fd: Fd, cstat_range: Ptr, cstat: Ptr, flags: UInt) -> Int;
    map_shadow_stack(addr: Ptr, size: Size, flags: Flags(&SHADOW_STACK)) -> Ptr;
    mseal(start: Ptr, len: Size, flags: ULong) -> Int;
}
