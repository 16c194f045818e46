//! The socket in the directory of the tapes. Whoever has its name must be this user or root: in a directory like /tmp
//! anybody can make a file of that name before.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::dir::Dir;
use super::peer;
use crate::own::say::quoted;

/// The socket's name.
pub(super) const SOCKET: &str = "record.sock";
/// How long a connection may take: one to a program that accepts none waits.
const PATIENCE: Duration = Duration::from_secs(5);

/// A socket of ours in the directory, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct BoundSocket {
    dir: Arc<Dir>,
    /// Device and inode: another file of its name is not ours.
    made: Option<(u64, u64)>,
}

impl Drop for BoundSocket {
    fn drop(&mut self) {
        let path = self.dir.at(SOCKET);
        if self.made.is_some() && fs::symlink_metadata(&path).ok().map(|meta| identity(&meta)) == self.made {
            fs::remove_file(&path).ok();
        }
    }
}

fn identity(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

/// Makes the socket, in place of what an ended recorder left. No other thread may be running: it changes the mask of new
/// files for a moment.
///
/// # Errors
/// When another recorder has it, somebody else its name, or it cannot be made.
pub(super) fn bind(dir: &Arc<Dir>) -> Result<(UnixListener, BoundSocket)> {
    let path = dir.at(SOCKET);
    let context = || format!("--dir {}", dir.path().display());
    if looked_at(&path, dir.path())? {
        match connected(&path) {
            Ok(other) => {
                let (pid, _) = peer::of(&other).unwrap_or_default();
                bail!("{}: another record uses it (pid {pid})", context());
            }
            // its recorder is gone
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                fs::remove_file(&path).with_context(|| format!("{}: cannot remove the old {SOCKET}", context()))?;
            }
            Err(error) => return Err(error).with_context(|| format!("{}: {SOCKET} does not answer", context())),
        }
    }
    // SAFETY: numbers only.
    let before = unsafe { libc::umask(0o177) };
    let bound = UnixListener::bind(&path);
    // SAFETY: numbers only.
    unsafe { libc::umask(before) };
    let listener = bound.with_context(|| format!("{}: cannot make {SOCKET}", context()))?;
    let made = fs::symlink_metadata(&path).ok().map(|meta| identity(&meta));
    let bound = BoundSocket { dir: Arc::clone(dir), made };
    listener.set_nonblocking(true)?;
    Ok((listener, bound))
}

/// A connection to the recorder of `dir`, which is of this user or root.
///
/// # Errors
/// None runs there, or somebody else has its socket's name.
pub(super) fn connect(dir: &Path) -> Result<UnixStream> {
    let none = || format!("no record with --last or --rotate runs for {}", dir.display());
    // what is looked at is what is connected to, and no path is too long for a socket
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
    let opened = File::options().read(true).custom_flags(flags).open(dir).with_context(none)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd())).join(SOCKET);
    if !looked_at(&path, dir)? {
        bail!("{}: there is no {SOCKET}", none());
    }
    let stream = connected(&path).with_context(none)?;
    let (pid, uid) = peer::of(&stream).context("the kernel does not say whose recorder it is")?;
    if !peer::is_trusted(uid) {
        bail!("{}: pid {pid} listens there, which is uid {uid}'s, and is not asked: ask as that user", dir.display());
    }
    Ok(stream)
}

/// Whether a socket of root or this user is at `path`, in the directory that was named `dir`.
fn looked_at(path: &Path, dir: &Path) -> Result<bool> {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error).with_context(|| format!("cannot look at {}", dir.join(SOCKET).display())),
    };
    if meta.file_type().is_socket() && peer::is_trusted(meta.uid()) {
        return Ok(true);
    }
    let what = match meta.file_type() {
        kind if kind.is_socket() => "a socket",
        kind if kind.is_symlink() => "a symbolic link",
        kind if kind.is_dir() => "a directory",
        _ => "a file",
    };
    bail!(
        "--dir {}: {SOCKET} there is {what} of uid {}, not a recorder's socket: somebody took its name. Remove it \
         (rm -r {}), or name a directory that is yours alone",
        dir.display(),
        meta.uid(),
        quoted(dir.join(SOCKET))
    )
}

/// A connection, within [`PATIENCE`].
fn connected(path: &Path) -> io::Result<UnixStream> {
    let mut address = libc::sockaddr_un { sun_family: libc::AF_UNIX as libc::sa_family_t, sun_path: [0; 108] };
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() >= address.sun_path.len() {
        return Err(ErrorKind::InvalidFilename.into());
    }
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    // SAFETY: numbers only; a new descriptor comes back, or -1.
    let fd = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave this descriptor to us.
    let stream = unsafe { UnixStream::from_raw_fd(fd) };
    // a connection waits as long as a write
    stream.set_write_timeout(Some(PATIENCE))?;
    let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: address is a sockaddr_un of that length.
    match unsafe { libc::connect(stream.as_raw_fd(), (&raw const address).cast(), length) } {
        0 => Ok(stream),
        _ => Err(io::Error::last_os_error()),
    }
}
