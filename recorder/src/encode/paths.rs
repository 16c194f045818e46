//! Paths of open files that records refer to by the kernel's address of the directory entry.

use systape_bpf::wire;

use super::recent::Recent;

/// Paths by the addresses of directory entries.
#[derive(Debug, Default)]
pub(super) struct OpenFilePaths {
    /// By the address, which is never stored: the tag of the name, and the path; None = it has none.
    known: Recent<(u64, Option<Vec<u8>>)>,
}

impl OpenFilePaths {
    /// The file has this path from now on.
    pub(super) fn name(&mut self, f: &wire::File, name: &[u8]) {
        self.known.insert(f.address, (f.tag, wire::name(name)));
    }

    /// The path with this tag; None = it has none, or that was lost.
    pub(super) fn of(&mut self, address: u64, tag: u64) -> Option<&[u8]> {
        self.known.get(address, |(known, _)| *known == tag)?.1.as_deref()
    }
}
