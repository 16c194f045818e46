//! The mappings of every process at any moment, and the mapped files, opened while they exist.
//!
//! A stack from BPF is a list of addresses. [`Tracker`] turns an address of a process into a [`Region`] and an offset
//! in it:
//!
//! - [`sideband`] has every new executable mapping, fork, exec and exit of the machine with its time (perf's MMAP2,
//!   FORK, COMM and EXIT records); [`proc_maps`] reads earlier mappings.
//! - [`files`] opens a mapped file at its first mapping, because both the file and the process may be gone a
//!   millisecond later; [`exec_watch`] keeps executables that are gone even sooner.
//! - [`space`] applies the changes in order of time: address spaces as they were at the time of a stack.
//!
//! Not recorded: unmapping (a region stays until another mapping takes its place, or exec, or exit) and mremap. Code of
//! a file moved by mremap is not found until /proc is read again.

mod bytes;
pub(crate) mod exec_watch;
pub(crate) mod files;
pub(crate) mod open;
pub mod proc_maps;
pub(crate) mod sideband;
pub(crate) mod space;
pub(crate) mod tracker;
pub(crate) mod vdso;

use bytes::u64_at;

pub use files::{FileNumber, Files};
pub use space::{Backing, Region};
pub use tracker::{Lost, Tracker, TrackerConfig};
pub use vdso::Vdso;

/// An executable mapping, from the side-band or /proc/PID/maps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapped {
    /// First address.
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// File offset of `start`, bytes.
    pub pgoff: u64,
    /// Device of the file's inode, as makedev(3) puts it; 0 = no file.
    pub dev: u64,
    /// Inode number; 0 = no file.
    pub inode: u64,
    /// The inode's generation, which differs when a number is reused; 0 = not known.
    pub generation: u64,
    /// Name of the file in the kernel's form: a path with " (deleted)" if so, or `[vdso]`, `//anon`, …
    pub path: Vec<u8>,
}

impl Mapped {
    /// Writes the mapping of a process as bytes, for another process of ours.
    pub(crate) fn to_bytes(&self, pid: u32) -> Vec<u8> {
        let Self { start, end, pgoff, dev, inode, generation, path } = self;
        let numbers = [u64::from(pid), *start, *end, *pgoff, *dev, *inode, *generation];
        numbers.into_iter().flat_map(u64::to_le_bytes).chain(path.iter().copied()).collect()
    }

    /// Reads what [`Self::to_bytes`] wrote.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<(u32, Self)> {
        let number = |at: usize| u64_at(bytes, 8 * at);
        let this = Self {
            start: number(1)?,
            end: number(2)?,
            pgoff: number(3)?,
            dev: number(4)?,
            inode: number(5)?,
            generation: number(6)?,
            path: bytes.get(56..)?.to_vec(),
        };
        Some((u32::try_from(number(0)?).ok()?, this))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_survives() {
        let mapped = Mapped { start: 1, end: 2, pgoff: 3, dev: 4, inode: 5, generation: 6, path: b"/a".to_vec() };
        let bytes = mapped.to_bytes(7);
        assert_eq!(Mapped::from_bytes(&bytes), Some((7, mapped)));
        assert!((0..56).all(|cut| Mapped::from_bytes(&bytes[..cut]).is_none()));
    }
}
