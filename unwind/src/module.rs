//! The parts of an ELF file needed for unwinding.

use std::fs::File;

use crate::cfi::{Cfi, Context, Missing, Rules};
use crate::elf::{self, FileSource, LoadSegment, Source, UnwindSections};
use crate::limits::{ModuleError, ModuleLimits};

/// An ELF file's unwind information, owned: the file may change or vanish afterwards.
///
/// It has the headers, the build id, `.eh_frame` with its search table, and `.debug_frame` (left out beyond the limit),
/// which is used where `.eh_frame` has no rules. A file without section headers is read by its program headers. A file
/// without unwind information is a module too: it has a build id and addresses.
#[derive(Debug)]
pub struct Module {
    segments: Vec<LoadSegment>,
    /// `.eh_frame`, then `.debug_frame`.
    cfi: Vec<Cfi>,
}

impl Module {
    /// Reads the needed parts by pread (a mapped file that is cut short would raise SIGBUS).
    ///
    /// # Errors
    /// Not an ELF file of this machine (32-bit files included), too large, or invalid.
    pub fn open(file: &File, limits: ModuleLimits) -> Result<Self, ModuleError> {
        Self::read(&FileSource::new(file)?, limits)
    }

    /// As [`Self::open`] for an image in memory as the kernel maps it (the vDSO: its memory is its file).
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn from_bytes(bytes: &[u8], limits: ModuleLimits) -> Result<Self, ModuleError> {
        Self::read(&bytes, limits)
    }

    fn read(source: &impl Source, limits: ModuleLimits) -> Result<Self, ModuleError> {
        let UnwindSections { segments, eh_frame, eh_frame_hdr, debug_frame } = elf::parse(source, limits)?;
        let eh_frame = eh_frame.map(|section| Cfi::eh_frame(section, eh_frame_hdr));
        let cfi = eh_frame.into_iter().chain(debug_frame.map(Cfi::debug_frame)).collect();
        Ok(Self { segments, cfi })
    }

    /// The file's own address for file offset `offset` (by its PT_LOAD headers).
    ///
    /// Mappings are whole pages, so a page at the edge of two segments is mapped twice; the executable segment applies,
    /// because lookups are of code.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        const PAGE: u64 = 4096;
        let exact = |s: &&LoadSegment| (s.offset..s.offset.saturating_add(s.file_size)).contains(&offset);
        let pages = |s: &&LoadSegment| {
            let end = s.offset.saturating_add(s.file_size);
            s.file_size > 0
                && (s.offset & !(PAGE - 1)..end.checked_next_multiple_of(PAGE).unwrap_or(end)).contains(&offset)
        };
        let executable = || self.segments.iter().filter(|s| s.executable);
        let segment = executable()
            .find(exact)
            .or_else(|| executable().find(pages))
            .or_else(|| self.segments.iter().find(exact))
            .or_else(|| self.segments.iter().find(pages))?;
        Some(offset.wrapping_sub(segment.offset).wrapping_add(segment.address))
    }

    /// Bytes of memory used.
    pub fn memory(&self) -> usize {
        size_of::<Self>()
            + self.segments.capacity() * size_of::<LoadSegment>()
            + self.cfi.capacity() * size_of::<Cfi>()
            + self.cfi.iter().map(Cfi::memory).sum::<usize>()
    }

    /// Whether there is any unwind information.
    pub(crate) fn has_rules(&self) -> bool {
        !self.cfi.is_empty()
    }

    /// The rules at an address of the file.
    pub(crate) fn rules<'a>(
        &'a self,
        address: u64,
        context: &'a mut Context,
        budget: &mut u64,
    ) -> Result<Rules<'a>, Missing> {
        match self.cfi.as_slice() {
            [] => Err(Missing::NoFde),
            [only] => only.rules(address, context, budget),
            [first, second, ..] => if first.covers(address) { first } else { second }.rules(address, context, budget),
        }
    }

    /// Whether there are rules for an address of the file.
    pub(crate) fn covers(&self, address: u64) -> bool {
        self.cfi.iter().any(|cfi| cfi.covers(address))
    }

    /// Whether a function begins at an address of the file.
    pub(crate) fn begins_at(&self, address: u64) -> bool {
        self.cfi.iter().any(|cfi| cfi.begins_at(address))
    }
}
