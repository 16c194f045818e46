//! Who is at the other end of a local socket, as the kernel says.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// This process's user, whose files it makes.
pub(super) fn own_uid() -> u32 {
    // SAFETY: asks for a number.
    unsafe { libc::geteuid() }
}

/// Whether what user `uid` says is believed: root, and this user.
pub(super) fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == own_uid()
}

/// Process and user that made the other end: of a connection the client's, of a server's the one that listens.
///
/// # Errors
/// The kernel does not say.
pub(super) fn of(stream: &UnixStream) -> io::Result<(i32, u32)> {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: peer is a ucred of `length` bytes to write to.
    let done = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    if done != 0 { Err(io::Error::last_os_error()) } else { Ok((peer.pid, peer.uid)) }
}
