//! Calls on sockets.

use super::calls;
use super::structs::Struct::Timespec;
use crate::flags::{ACCEPT4, FAMILY, MSG, SHUT, SOCK, SOL};

calls! {
    socket(family: Flags(&FAMILY), type: Flags(&SOCK), protocol: SockProto{family_arg: 0}) -> Fd, NewFd;
    connect(fd: Fd, uservaddr: SockaddrIn{len_arg: 2}, addrlen: Int) -> Int, NamesSocket;
    accept(fd: Fd, upeer_sockaddr: SockaddrOut{len_ptr_arg: 2}, upeer_addrlen: Ptr) -> Fd, NewFd;
    sendto(fd: Fd, buff: BufIn{len_arg: 2}, len: Size, flags: Flags(&MSG), addr: SockaddrIn{len_arg: 5}, addr_len: Int) -> Int, MayBindSocket;
    recvfrom(fd: Fd, ubuf: BufOut, size: Size, flags: Flags(&MSG), addr: SockaddrOut{len_ptr_arg: 5}, addr_len: Ptr) -> Int;
    sendmsg(fd: Fd, msg: Msghdr, flags: Flags(&MSG)) -> Int;
    recvmsg(fd: Fd, msg: Msghdr, flags: Flags(&MSG)) -> Int, RecvFds;
    shutdown(fd: Fd, how: Flags(&SHUT)) -> Int;
    bind(fd: Fd, umyaddr: SockaddrIn{len_arg: 2}, addrlen: Int) -> Int, NamesSocket;
    listen(fd: Fd, backlog: Int) -> Int, NamesSocket;
    getsockname(fd: Fd, usockaddr: SockaddrOut{len_ptr_arg: 2}, usockaddr_len: Ptr) -> Int, ReadsSocket;
    getpeername(fd: Fd, usockaddr: SockaddrOut{len_ptr_arg: 2}, usockaddr_len: Ptr) -> Int;
    socketpair(family: Flags(&FAMILY), type: Flags(&SOCK), protocol: SockProto{family_arg: 0}, usockvec: FdPair) -> Int, NewFdPair;
    setsockopt(fd: Fd, level: Flags(&SOL), optname: SockOpt{level_arg: 1}, optval: BufIn{len_arg: 4}, optlen: Int) -> Int;
    getsockopt(fd: Fd, level: Flags(&SOL), optname: SockOpt{level_arg: 1}, optval: Ptr, optlen: Ptr) -> Int;
    accept4(fd: Fd, upeer_sockaddr: SockaddrOut{len_ptr_arg: 2}, upeer_addrlen: Ptr, flags: Flags(&ACCEPT4)) -> Fd, NewFd;
    recvmmsg(fd: Fd, mmsg: Ptr, vlen: UInt, flags: Flags(&MSG), timeout: InOut(Timespec)) -> Int, RecvFds;
    sendmmsg(fd: Fd, mmsg: Ptr, vlen: UInt, flags: Flags(&MSG)) -> Int;
}
