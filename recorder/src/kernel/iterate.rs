//! Runs BPF iterators: reading an iterator's file runs it over all its objects.

use std::fs;
use std::io::Read;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd};

use anyhow::Result;

/// Runs an iterator over all its objects; returns its output.
///
/// # Errors
/// When the kernel does not make one, or its program fails.
pub(crate) fn iterate(link: BorrowedFd<'_>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_iterator(link)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A file whose reading runs an iterator.
///
/// # Errors
/// When the kernel does not make one.
pub(crate) fn open_iterator(link: BorrowedFd<'_>) -> Result<fs::File> {
    // SAFETY: the descriptor is an iterator link, which is what bpf_iter_create expects; it is open as long as `link` lives.
    let fd = unsafe { libbpf_rs::libbpf_sys::bpf_iter_create(link.as_raw_fd()) };
    if fd < 0 {
        return Err(std::io::Error::from_raw_os_error(-fd).into());
    }
    // SAFETY: bpf_iter_create returned a new descriptor that nobody else has.
    Ok(unsafe { fs::File::from_raw_fd(fd) })
}
