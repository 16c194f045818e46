//! The compiled programs. They are stored compressed, because they are an eighth of `record`'s size otherwise, and are
//! in memory while libbpf reads them.

use std::cell::Cell;
use std::mem::MaybeUninit;

use libbpf_rs::skel::SkelBuilder;
use libbpf_rs::{Error, OpenObject, Result};
use memmap2::{Mmap, MmapMut, UncheckedAdvice};

use crate::skeleton::{OpenSystapeSkel, SystapeSkelBuilder};

/// What clang made, by build.rs.
const STORED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/systape.bpf.o.zst"));
/// Its length.
const LEN: usize = include!(concat!(env!("OUT_DIR"), "/systape.bpf.o.len"));

thread_local! {
    /// What the skeleton is to be made of, while it is.
    static OBJECT: Cell<&'static [u8]> = const { Cell::new(&[]) };
}

/// What the generated skeleton reads: see build.rs.
pub(crate) fn bytes() -> &'static [u8] {
    OBJECT.get()
}

/// Opens the programs in `storage`, which their skeleton borrows.
///
/// # Errors
/// When there is no memory for them, or libbpf refuses them.
pub fn open(storage: &mut MaybeUninit<OpenObject>) -> Result<OpenSystapeSkel<'_>> {
    let mut memory = MmapMut::map_anon(LEN)?;
    zstd::bulk::decompress_to_buffer(STORED, &mut memory)?;
    // the skeleton keeps a reference for its whole life, so the addresses are never used again: 1.4 MB of 128 TiB
    let memory: &'static Mmap = Box::leak(Box::new(memory.make_read_only()?));
    OBJECT.set(memory);
    let opened = SystapeSkelBuilder::default().open(storage);
    OBJECT.set(&[]);
    // SAFETY: libbpf has copied what it keeps (bpf_object_open ends with bpf_object__elf_finish), so nobody reads these
    // bytes any more. They read as zeros from now on.
    unsafe { memory.unchecked_advise(UncheckedAdvice::DontNeed) }.map_err(Error::from)?;
    opened
}
