//! Opens only regular files.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a path for reading; None = it names a directory, device, FIFO or socket.
///
/// Paths belong to the traced programs. Opening a device can have effects (a watchdog is armed), and opening a FIFO
/// wakes its writer. So the path is opened without touching its file (`O_PATH`), and that very file is opened again if
/// it is a regular one.
///
/// # Errors
/// Those of open(2) and statx(2).
pub fn open_regular(path: &Path) -> io::Result<Option<File>> {
    open(path, 0)
}

/// Opens a regular file, but a path whose last part is a symlink counts as not regular.
///
/// # Errors
/// As [`open_regular`].
pub fn open_regular_no_follow(path: &Path) -> io::Result<Option<File>> {
    open(path, libc::O_NOFOLLOW)
}

fn open(path: &Path, flags: i32) -> io::Result<Option<File>> {
    let named = OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_CLOEXEC | flags).open(path)?;
    if !is_regular(&named)? {
        return Ok(None);
    }
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags).open(format!("/proc/self/fd/{}", named.as_raw_fd())).map(Some)
}

/// By the kernel's cache, without a request to a server.
fn is_regular(file: &File) -> io::Result<bool> {
    let mut raw = MaybeUninit::<libc::statx>::zeroed();
    let flags = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
    // SAFETY: file is open, the path an empty string that ends with zero, raw has room for a statx.
    let result = unsafe { libc::statx(file.as_raw_fd(), c"".as_ptr(), flags, libc::STATX_TYPE, raw.as_mut_ptr()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeroed is a valid statx, and the kernel has written to it.
    let raw = unsafe { raw.assume_init() };
    Ok(u32::from(raw.stx_mode) & libc::S_IFMT == libc::S_IFREG)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    #[test]
    fn regular_files_and_links_to_them() {
        let dir = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| dir.path().join(name));
        fs::write(&file, "text").unwrap();
        symlink(&file, &link).unwrap();
        for path in [&file, &link] {
            let mut text = String::new();
            open_regular(path).unwrap().unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "text");
        }
        assert!(open_regular_no_follow(&file).unwrap().is_some());
        assert!(open_regular_no_follow(&link).unwrap().is_none());
        assert!(open_regular(&dir.path().join("none")).is_err());
    }
}
