//! The kernel's current tasks, their calls and their sockets, by programs that read them.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use anyhow::{Context, Result};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use rustc_hash::FxHashMap;
use systape_bpf::wire::{self, Snap};

use super::per_key::PerKey;
use crate::kernel::iterate::{iterate, open_iterator};

/// What descriptors stand for when the recording begins.
#[derive(Debug, Default)]
pub(crate) struct FirstDescriptors {
    /// Sockets of these descriptors; one may be there more than once.
    pub sockets: Vec<wire::Socket>,
    /// Other files, by process and descriptor.
    pub files: FxHashMap<(u32, i32), wire::Inode>,
}

/// Walks all tasks of this pid namespace, and the known ones outside.
#[derive(Debug)]
pub(crate) struct Walker {
    tasks: OwnedFd,
    outsiders: Option<Outsiders>,
    opens: Option<OwnedFd>,
}

/// Reads the calls of recorded tasks outside this pid namespace, which an iterator does not show.
#[derive(Debug)]
pub(super) struct Outsiders {
    /// Elements that read_outsider reads.
    pub each: PerKey,
    /// Map outsider_call.
    pub call: MapHandle,
}

impl Walker {
    /// Makes one of the links of the iterators; `outsiders`: None when no task outside is recorded; `opens`: None when the kernel
    /// refused it.
    pub(super) fn new(
        tasks: BorrowedFd<'_>,
        outsiders: Option<Outsiders>,
        opens: Option<BorrowedFd<'_>>,
    ) -> Result<Self> {
        let opens = opens.map(|link| link.try_clone_to_owned()).transpose()?;
        Ok(Self { tasks: tasks.try_clone_to_owned()?, outsiders, opens })
    }

    /// What descriptors of recorded tasks stand for, up to a bound; a socket may be there more than once.
    pub(crate) fn opens(&self) -> FirstDescriptors {
        const MOST: u64 = 64 << 20;
        let Some(opens) = &self.opens else { return FirstDescriptors::default() };
        let mut bytes = Vec::new();
        // what was read until an error is right
        let read = open_iterator(opens.as_fd()).map(|file| file.take(MOST).read_to_end(&mut bytes));
        drop(read);
        let mut found = FirstDescriptors::default();
        for (open, socket) in wire::opens(&bytes) {
            match socket {
                Some(socket) => found.sockets.push(socket),
                None => drop(found.files.insert((open.pid, open.fd), open.inode)),
            }
        }
        found
    }

    /// One record per task of this pid namespace.
    pub(crate) fn walk(&self) -> Result<Vec<Snap>> {
        Ok(wire::snaps(&iterate(self.tasks.as_fd()).context("cannot walk the tasks")?).0)
    }

    /// Walks all tasks, and every open call of a recorded task outside.
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
