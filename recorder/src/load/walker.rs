//! Iterators over the kernel's current tasks and their calls.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use anyhow::{Context, Result};
use systape_bpf::wire::{self, Snap};

use crate::iterate::{iterate, open_iterator};

/// Walks all tasks of this pid namespace, and the known ones outside.
#[derive(Debug)]
pub(crate) struct Walker {
    tasks: OwnedFd,
    outsiders: Option<OwnedFd>,
    sockets: Option<OwnedFd>,
}

impl Walker {
    /// By the links of the iterators; `outsiders`: None when no task outside is recorded; `sockets`: None when the kernel
    /// refused it.
    pub(super) fn new(
        tasks: BorrowedFd<'_>,
        outsiders: Option<BorrowedFd<'_>>,
        sockets: Option<BorrowedFd<'_>>,
    ) -> Result<Self> {
        let owned = |link: Option<BorrowedFd<'_>>| link.map(|link| link.try_clone_to_owned()).transpose();
        Ok(Self { tasks: tasks.try_clone_to_owned()?, outsiders: owned(outsiders)?, sockets: owned(sockets)? })
    }

    /// The sockets that descriptors of recorded tasks stand for, up to a bound; one may be there more than once.
    pub(crate) fn sockets(&self) -> Vec<wire::Socket> {
        const MOST: u64 = 64 << 20;
        let Some(sockets) = &self.sockets else { return Vec::new() };
        let mut bytes = Vec::new();
        // what was read until an error is right
        let read = open_iterator(sockets.as_fd()).map(|file| file.take(MOST).read_to_end(&mut bytes));
        drop(read);
        wire::sockets(&bytes).collect()
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
