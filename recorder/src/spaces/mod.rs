//! What was mapped where, in every process, at any moment, and the mapped files, opened while they are there.
//!
//! A stack that BPF took is addresses. [`Tracker`] turns an address of a process into a [`Region`] and an offset in it:
//!
//! - [`sideband`] gives every new executable mapping, fork, exec and exit of the machine with its time (perf's MMAP2, FORK, COMM and
//!   EXIT records); [`proc_maps`] reads what was mapped before that.
//! - [`files`] opens a mapped file when it is first heard of, because both the file and the process may be gone a millisecond later;
//!   [`exec_watch`] keeps executables that are gone even sooner.
//! - [`space`] applies the changes in order of time: address spaces as they were when a stack was taken.
//!
//! Not seen: unmapping (a region stays until something else is mapped there, or exec, or exit) and mremap. Code of a file that was
//! moved by mremap is not found until /proc is read again.

mod bytes;
pub(crate) mod elf;
pub(crate) mod exec_watch;
pub(crate) mod files;
pub(crate) mod open;
pub mod proc_maps;
pub(crate) mod ring;
pub(crate) mod sideband;
pub(crate) mod space;
pub(crate) mod tracker;
pub(crate) mod vdso;

pub use files::{FileId, Files};
pub use space::{Backing, Region};
pub use tracker::{Config, Lost, Tracker};
pub use vdso::Vdso;

/// An executable mapping, as the side-band or /proc/PID/maps tells it.
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
    /// The inode's generation, which differs when a number is used again; 0 = not told.
    pub generation: u64,
    /// As the kernel prints it: a path with " (deleted)" behind it if so, or `[vdso]`, `//anon`, …
    pub path: Vec<u8>,
}
