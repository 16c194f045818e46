//! Files in memory. A file that is cut short meanwhile ends this process.

use std::fs::File;
use std::os::fd::AsRawFd;

/// A file in memory, for reading.
pub(super) struct MappedFile {
    at: *mut libc::c_void,
    len: usize,
}

impl MappedFile {
    /// Maps a regular file.
    pub(super) fn new(file: &File) -> Result<Self, String> {
        let meta = file.metadata().map_err(|error| error.to_string())?;
        if !meta.is_file() {
            return Err("it is no regular file".into());
        }
        let len = usize::try_from(meta.len()).unwrap_or(usize::MAX);
        if len == 0 {
            return Err("it is empty".into());
        }
        // SAFETY: a new mapping, of which nothing else knows.
        let at =
            unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0) };
        if at == libc::MAP_FAILED {
            return Err(format!("it cannot be mapped: {}", std::io::Error::last_os_error()));
        }
        Ok(Self { at, len })
    }

    /// What is in it.
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: mapped for reading, until it is dropped. Who writes to the file meanwhile changes what is read, as with any
        // file; nothing is checked once and used twice but by bounds of this length.
        unsafe { std::slice::from_raw_parts(self.at.cast::<u8>(), self.len) }
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: the mapping made above; no slice of it outlives this.
        unsafe { libc::munmap(self.at, self.len) };
    }
}
