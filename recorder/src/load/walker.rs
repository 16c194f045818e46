//! Iterators over what the kernel has now: its tasks, and the calls they are in.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use anyhow::{Context, Result};
use systape_bpf::wire::{self, Snap};

use crate::iterate::iterate;

/// Walks all tasks of this pid namespace, and what is known of those outside.
#[derive(Debug)]
pub(crate) struct Walker {
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
    pub(crate) fn walk(&self) -> Result<Vec<Snap>> {
        read_iterator(&self.tasks)
    }

    /// The same, and one of every call that a recorded task outside is in.
    pub(crate) fn open_calls(&self) -> Result<Vec<Snap>> {
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
