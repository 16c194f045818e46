//! Iterators over the kernel's current tasks and their calls.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use anyhow::{Context, Result};
use systape_bpf::wire::{self, Snap};

use crate::iterate::iterate;

/// Walks all tasks of this pid namespace, and the known ones outside.
#[derive(Debug)]
pub(crate) struct Walker {
    tasks: OwnedFd,
    outsiders: Option<OwnedFd>,
}

impl Walker {
    /// By the links of the iterators; `outsiders`: None when no task outside is recorded.
    pub(super) fn new(tasks: BorrowedFd<'_>, outsiders: Option<BorrowedFd<'_>>) -> Result<Self> {
        let outsiders = outsiders.map(|link| link.try_clone_to_owned()).transpose()?;
        Ok(Self { tasks: tasks.try_clone_to_owned()?, outsiders })
    }

    /// One record per task of this pid namespace.
    pub(crate) fn walk(&self) -> Result<Vec<Snap>> {
        read_iterator(&self.tasks)
    }

    /// The same, and one for every open call of a recorded task outside.
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
