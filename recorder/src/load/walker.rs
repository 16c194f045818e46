//! Iterators over what the kernel has now: its tasks, and the calls they are in.

use std::fs;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use anyhow::{Context, Result};
use systape_bpf::wire::{self, Snap};

/// Walks all tasks of this pid namespace, and what is known of those outside.
#[derive(Debug)]
pub struct Walker {
    tasks: OwnedFd,
    outsiders: Option<OwnedFd>,
}

impl Walker {
    /// By the links of the iterators; `outsiders`: None when nobody outside is recorded.
    pub(super) fn new(tasks: BorrowedFd<'_>, outsiders: Option<BorrowedFd<'_>>) -> Result<Self> {
        let outsiders = outsiders.map(|link| link.try_clone_to_owned()).transpose()?;
        Ok(Self { tasks: tasks.try_clone_to_owned()?, outsiders })
    }

    /// One record per task of this pid namespace.
    pub fn walk(&self) -> Result<Vec<Snap>> {
        read_iterator(&self.tasks)
    }

    /// The same, and one of every call that a recorded task outside is in.
    pub fn open_calls(&self) -> Result<Vec<Snap>> {
        let mut snaps = self.walk()?;
        if let Some(outsiders) = &self.outsiders {
            snaps.extend(read_iterator(outsiders)?);
        }
        Ok(snaps)
    }
}

fn read_iterator(link: &OwnedFd) -> Result<Vec<Snap>> {
    Ok(wire::snaps(&iterate(link.as_fd()).context("cannot walk the tasks")?).0)
}

/// Runs an iterator over all it goes through; what it wrote.
pub(super) fn iterate(link: BorrowedFd<'_>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_iterator(link)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A file whose reading runs an iterator.
///
/// # Errors
/// When the kernel does not make one.
pub fn open_iterator(link: BorrowedFd<'_>) -> Result<fs::File> {
    // SAFETY: the descriptor is an iterator link, which is what bpf_iter_create expects; it is open as long as `link` lives.
    let fd = unsafe { libbpf_rs::libbpf_sys::bpf_iter_create(link.as_raw_fd()) };
    if fd < 0 {
        return Err(std::io::Error::from_raw_os_error(-fd).into());
    }
    // SAFETY: bpf_iter_create returned a new descriptor that nobody else has.
    Ok(unsafe { fs::File::from_raw_fd(fd) })
}
