//! What of an ELF file is needed to unwind through it.

use std::fs::File;

/// How much of a file is read.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most bytes of unwind information kept of one file.
    pub unwind_bytes: u64,
}

/// Why a file cannot be unwound through.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ModuleError(pub String);

/// An ELF file's unwind information, owned: the file may change or vanish afterwards.
#[derive(Debug)]
pub struct Module {}

impl Module {
    /// Reads what is needed, by pread (a mapped file that is cut short would raise SIGBUS).
    ///
    /// # Errors
    /// Not an ELF file of this machine, too large, or nothing in it makes sense.
    pub fn open(_file: &File, _limits: Limits) -> Result<Self, ModuleError> {
        Err(ModuleError("not built yet".into()))
    }

    /// As [`Self::open`] for an image in memory as the kernel maps it (the vDSO).
    pub fn from_bytes(_bytes: &[u8], _limits: Limits) -> Result<Self, ModuleError> {
        Err(ModuleError("not built yet".into()))
    }

    /// The build id note; empty = it has none.
    pub fn build_id(&self) -> &[u8] {
        &[]
    }

    /// The address that the file itself gives to what stands at file offset `offset` (by its PT_LOAD headers).
    pub fn address_of(&self, _offset: u64) -> Option<u64> {
        None
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        0
    }
}
