//! How a `record` holds the tape that it writes: by a lock of its own on the file, until that is whole.

use std::fs::File;
#[cfg(unix)]
use std::{io, os::fd::AsRawFd as _};

/// Holds `file` for as long as it is open. A file system without locks cannot tell others.
#[cfg(unix)]
pub fn hold(file: &File) {
    lock(file, libc::LOCK_EX).ok();
}

/// Whether another process holds `file`.
#[cfg(unix)]
pub fn is_held(file: &File) -> bool {
    lock(file, libc::LOCK_SH).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// Whether another process holds `file`: no, as only unix has its locks.
#[cfg(not(unix))]
pub fn is_held(_file: &File) -> bool {
    false
}

/// Locks a file until it is closed, or reports that another process has.
#[cfg(unix)]
fn lock(file: &File, how: i32) -> io::Result<()> {
    // SAFETY: the descriptor is open; flock takes two numbers.
    if unsafe { libc::flock(file.as_raw_fd(), how | libc::LOCK_NB) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_held_until_it_is_closed() {
        let path = std::env::temp_dir().join(format!("systape-held-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        let held = || is_held(&File::open(&path).unwrap());
        assert!(!held());
        hold(&file);
        assert!(held());
        drop(file);
        assert!(!held());
        std::fs::remove_file(&path).unwrap();
    }
}
