//! The kernel's current tasks, their calls and their sockets, by programs that read them.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use anyhow::{Context, Result};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use systape_bpf::wire::{self, Snap};

use super::per_key::PerKey;
use crate::iterate::{iterate, open_iterator};

/// Walks all tasks of this pid namespace, and the known ones outside.
#[derive(Debug)]
pub(crate) struct Walker {
    tasks: OwnedFd,
    outsiders: Option<Outsiders>,
    sockets: Option<OwnedFd>,
}

/// Reads the calls of recorded tasks outside this pid namespace, which an iterator does not show.
#[derive(Debug)]
pub(super) struct Outsiders {
    /// Of read_outsider.
    pub each: PerKey,
    /// outsider_call.
    pub call: MapHandle,
}

impl Walker {
    /// By the links of the iterators; `outsiders`: None when no task outside is recorded; `sockets`: None when the kernel
    /// refused it.
    pub(super) fn new(
        tasks: BorrowedFd<'_>,
        outsiders: Option<Outsiders>,
        sockets: Option<BorrowedFd<'_>>,
    ) -> Result<Self> {
        let sockets = sockets.map(|link| link.try_clone_to_owned()).transpose()?;
        Ok(Self { tasks: tasks.try_clone_to_owned()?, outsiders, sockets })
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
        Ok(wire::snaps(&iterate(self.tasks.as_fd()).context("cannot walk the tasks")?).0)
    }

    /// The same, and one for every open call of a recorded task outside.
    pub(crate) fn open_calls(&self) -> Result<Vec<Snap>> {
        let mut snaps = self.walk()?;
        if let Some(outsiders) = &self.outsiders {
            outsiders.read(&mut snaps).context("cannot read the calls of tasks outside")?;
        }
        Ok(snaps)
    }
}

impl Outsiders {
    fn read(&self, into: &mut Vec<Snap>) -> Result<()> {
        self.each.run(|| {
            let bytes = self.call.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default();
            into.extend(wire::snaps(&bytes).0);
            Ok(())
        })
    }
}
