//! The socket between the calling process and the child: messages with a length, descriptors beside one of them.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Most descriptors beside a message.
pub(crate) const MOST_FDS: usize = 2;

/// Room for the descriptors in a control message: the header and the numbers, padded. Aligned as a header must be.
type ControlBuffer = [u64; 4];

fn ensure_room() {
    // SAFETY: CMSG_SPACE computes a number from a number.
    const _: () = assert!(
        unsafe { libc::CMSG_SPACE((MOST_FDS * size_of::<RawFd>()) as u32) } as usize <= size_of::<ControlBuffer>()
    );
}

/// The longest wait for the next step of a message; None = for ever. An error of it, such as TimedOut, ends the message.
pub(crate) type Left<'a> = &'a dyn Fn() -> io::Result<Option<Duration>>;

/// No message takes too long.
pub(crate) fn for_ever() -> io::Result<Option<Duration>> {
    Ok(None)
}

/// Sends a message, its length first, and `fds` with its first byte. An error of `left` is one of the message.
pub(crate) fn send(socket: &UnixStream, message: &[u8], fds: &[BorrowedFd<'_>], left: Left<'_>) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(4 + message.len());
    bytes.extend_from_slice(&(message.len() as u32).to_ne_bytes());
    bytes.extend_from_slice(message);
    let mut fds = fds;
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        socket.set_write_timeout(left()?)?;
        match send_some(socket, rest, fds) {
            Ok(n) => {
                fds = &[];
                rest = &rest[n..];
            }
            Err(error) => retry_or(error)?,
        }
    }
    Ok(())
}

fn send_some(socket: &UnixStream, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    ensure_room();
    let mut iov = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut control: ControlBuffer = [0; 4];
    // SAFETY: all zeroes is a message header without anything.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = &raw mut iov;
    header.msg_iovlen = 1;
    let fds = &fds[..fds.len().min(MOST_FDS)];
    if !fds.is_empty() {
        let bytes = size_of_val(fds) as u32;
        header.msg_control = (&raw mut control).cast();
        // SAFETY: `control` has room for a header and that many descriptors (asserted above), so that CMSG_FIRSTHDR points into it.
        unsafe {
            header.msg_controllen = libc::CMSG_SPACE(bytes) as _;
            let first = libc::CMSG_FIRSTHDR(&raw const header);
            (*first).cmsg_level = libc::SOL_SOCKET;
            (*first).cmsg_type = libc::SCM_RIGHTS;
            (*first).cmsg_len = libc::CMSG_LEN(bytes) as _;
            for (at, fd) in fds.iter().enumerate() {
                libc::CMSG_DATA(first).cast::<RawFd>().add(at).write_unaligned(fd.as_raw_fd());
            }
        }
    }
    // SAFETY: `header` points at `iov` and `control`, which live until the call returns; the kernel only reads them.
    let n = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL) };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// Receives a message of at most `longest` bytes, and the descriptors that came with it. The end of input before a message is None.
pub(crate) fn receive(
    socket: &UnixStream,
    longest: usize,
    left: Left<'_>,
) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    let mut length = [0; 4];
    let mut fds = Vec::new();
    if fill(socket, &mut length, &mut fds, left)? < length.len() {
        return Ok(None);
    }
    let length = u32::from_ne_bytes(length) as usize;
    if length > longest {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a message of {length} bytes, over {longest}")));
    }
    let mut message = vec![0; length];
    if fill(socket, &mut message, &mut fds, left)? < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some((message, fds)))
}

/// Fills `buf`; less only at the end of input.
fn fill(socket: &UnixStream, buf: &mut [u8], fds: &mut Vec<OwnedFd>, left: Left<'_>) -> io::Result<usize> {
    let mut have = 0;
    while have < buf.len() {
        socket.set_read_timeout(left()?)?;
        match receive_some(socket, &mut buf[have..], fds) {
            Ok(0) => break,
            Ok(n) => have += n,
            Err(error) => retry_or(error)?,
        }
    }
    Ok(have)
}

fn receive_some(socket: &UnixStream, buf: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let mut iov = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
    let mut control: ControlBuffer = [0; 4];
    // SAFETY: all zeroes is a message header without anything.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = &raw mut iov;
    header.msg_iovlen = 1;
    header.msg_control = (&raw mut control).cast();
    header.msg_controllen = size_of::<ControlBuffer>() as _;
    // SAFETY: `header` points at `iov` (over `buf`) and `control`, both writable and alive until the call returns.
    let n = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_CMSG_CLOEXEC) };
    let n = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel wrote the control messages it says it did into `control`; each SCM_RIGHTS message holds as many descriptors as
    // its length says, they are new ones and owned by nobody else.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(&raw const header);
        while !message.is_null() {
            if (*message).cmsg_level == libc::SOL_SOCKET && (*message).cmsg_type == libc::SCM_RIGHTS {
                let data = libc::CMSG_DATA(message).cast::<RawFd>();
                let bytes = ((*message).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
                for at in 0..bytes / size_of::<RawFd>() {
                    fds.push(OwnedFd::from_raw_fd(data.add(at).read_unaligned()));
                }
            }
            message = libc::CMSG_NXTHDR(&raw const header, message);
        }
    }
    Ok(n)
}

/// Repeats interrupted calls, and those whose time-out passed; `left` then says whether that was the last one.
fn retry_or(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => Ok(()),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::time::Instant;

    /// The time left until `until`.
    fn until(until: Instant) -> io::Result<Option<Duration>> {
        match until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(Some(left)),
        }
    }

    #[test]
    fn a_descriptor_travels_with_its_message() {
        let (a, b) = UnixStream::pair().unwrap();
        let file = File::open("/proc/self/stat").unwrap();
        send(&a, b"with", &[file.as_fd(), file.as_fd()], &for_ever).unwrap();
        send(&a, b"without", &[], &for_ever).unwrap();
        let (message, mut fds) = receive(&b, 100, &for_ever).unwrap().unwrap();
        assert_eq!((&message[..], fds.len()), (&b"with"[..], 2));
        let mut text = String::new();
        File::from(fds.swap_remove(0)).read_to_string(&mut text).unwrap();
        assert!(text.starts_with(&std::process::id().to_string()), "{text}");
        let (message, fds) = receive(&b, 100, &for_ever).unwrap().unwrap();
        assert_eq!((&message[..], fds.len()), (&b"without"[..], 0));
        drop(a);
        assert!(receive(&b, 100, &for_ever).unwrap().is_none());
    }

    #[test]
    fn long_cut_and_late_messages_are_errors() {
        let (mut a, b) = UnixStream::pair().unwrap();
        a.write_all(&u32::MAX.to_ne_bytes()).unwrap();
        assert_eq!(receive(&b, 100, &for_ever).unwrap_err().kind(), io::ErrorKind::InvalidData);

        let soon = Instant::now() + Duration::from_millis(20);
        assert_eq!(receive(&b, 100, &|| until(soon)).unwrap_err().kind(), io::ErrorKind::TimedOut);
        let soon = Instant::now() + Duration::from_millis(20);
        assert_eq!(send(&a, &vec![0; 16 << 20], &[], &|| until(soon)).unwrap_err().kind(), io::ErrorKind::TimedOut);

        let (mut a, b) = UnixStream::pair().unwrap();
        a.write_all(&[9, 0, 0, 0, 1, 2]).unwrap();
        drop(a);
        assert_eq!(receive(&b, 100, &for_ever).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
