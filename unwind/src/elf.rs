//! Finds the parts of an ELF file needed for unwinding. Every offset, count and length comes from the file and is
//! checked against the file's length and against [`ModuleLimits`] before anything is allocated.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use object::elf::{
    ELFCLASS32, ELFCLASS64, ELFCOMPRESS_ZLIB, ELFDATA2LSB, ELFMAG, EM_386, EM_ARM, EM_X86_64, PF_X, PT_GNU_EH_FRAME,
    PT_LOAD, SHF_COMPRESSED, SHT_NOBITS,
};
use object::read::{CompressedData, CompressionFormat};

use crate::bytes::{at, u16_at, u32_at, u64_at};
use crate::eh_frame::{LoadedBytes, eh_frame_address, end_of_entries};
use crate::limits::{ModuleError, ModuleLimits};
use crate::numbers;

/// Offsets of class and byte order in the header.
const EI_CLASS: usize = 4;
const EI_DATA: usize = 5;
/// Most program headers read; linkers make about a dozen.
const MAX_SEGMENTS: u64 = 1024;
/// Section headers looked at: as many as e_shnum can say.
const MAX_SECTIONS: u64 = 0xffff;
/// Most bytes of section names read.
const MAX_NAMES: u64 = 1 << 20;

/// Source of bytes.
pub(crate) trait Source {
    /// Length of the whole.
    fn len(&self) -> u64;
    /// Fills `into` from `offset`, all or nothing.
    fn read_into(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// `length` bytes from `offset`; None when they are not all present. The caller has bounded `length`.
    fn read(&self, offset: u64, length: u64) -> Option<Vec<u8>> {
        if offset.checked_add(length)? > self.len() {
            return None;
        }
        let mut bytes = Vec::new();
        let length = usize::try_from(length).ok()?;
        bytes.try_reserve_exact(length).ok()?;
        bytes.resize(length, 0);
        self.read_into(offset, &mut bytes).ok()?;
        Some(bytes)
    }
}

/// A file, read by pread only.
pub(crate) struct FileSource<'a> {
    file: &'a File,
    len: u64,
}

impl<'a> FileSource<'a> {
    pub(crate) fn new(file: &'a File) -> Result<Self, ModuleError> {
        let metadata = file.metadata().map_err(|e| ModuleError(format!("cannot be examined: {e}")))?;
        if !metadata.is_file() {
            return Err(ModuleError("not a regular file".into()));
        }
        Ok(Self { file, len: metadata.len() })
    }
}

impl Source for FileSource<'_> {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_into(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, offset)
    }
}

impl Source for &[u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read_into(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let from = at(self, offset, into.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        into.copy_from_slice(from);
        Ok(())
    }
}

/// A PT_LOAD header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadSegment {
    pub(crate) offset: u64,
    pub(crate) address: u64,
    pub(crate) file_size: u64,
    pub(crate) executable: bool,
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct UnwindSections {
    pub(crate) segments: Vec<LoadSegment>,
    pub(crate) eh_frame: Option<LoadedBytes>,
    pub(crate) eh_frame_hdr: Option<LoadedBytes>,
    pub(crate) debug_frame: Option<Vec<u8>>,
}

struct ProgramHeader {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    file_size: u64,
}

struct SectionHeader {
    name: u32,
    kind: u32,
    flags: u64,
    address: u64,
    offset: u64,
    size: u64,
}

/// Reads it.
pub(crate) fn parse(source: &impl Source, limits: ModuleLimits) -> Result<UnwindSections, ModuleError> {
    let refuse = |why: &str| ModuleError(why.into());
    let header = source.read(0, 64).ok_or_else(|| refuse("not an ELF file: shorter than its header"))?;
    check_ident(&header)?;
    let programs = program_headers(source, &header);
    let sections = section_headers(source, &header);
    if programs.is_empty() && sections.is_empty() {
        return Err(refuse("neither program headers nor section headers can be read"));
    }
    let names = section_names(source, &header, &sections);
    let named = |name: &[u8]| {
        sections.iter().find(|s| s.kind != SHT_NOBITS && s.size > 0 && section_name(&names, s) == Some(name))
    };

    let segments: Vec<LoadSegment> = programs
        .iter()
        .filter(|p| p.kind == PT_LOAD)
        .map(|p| LoadSegment {
            offset: p.offset,
            address: p.address,
            file_size: p.file_size,
            executable: p.flags & PF_X != 0,
        })
        .collect();
    // Offsets into the sections are kept in 32 bits.
    let mut room = limits.unwind_bytes.min(u32::MAX.into());

    let eh_frame_hdr = programs
        .iter()
        .find(|p| p.kind == PT_GNU_EH_FRAME)
        .map(|p| (p.offset, p.address, p.file_size))
        .or_else(|| named(b".eh_frame_hdr").map(|s| (s.offset, s.address, s.size)))
        .filter(|(_, _, size)| *size <= room)
        .and_then(|(offset, address, size)| Some(LoadedBytes { address, bytes: source.read(offset, size)? }));
    room -= eh_frame_hdr.as_ref().map_or(0, |h| h.bytes.len() as u64);

    let eh_frame = match named(b".eh_frame") {
        Some(s) if s.flags & u64::from(SHF_COMPRESSED) == 0 => {
            if s.size > room {
                return Err(ModuleError(format!(
                    ".eh_frame has {} bytes, over the limit of {} for one file",
                    s.size, limits.unwind_bytes
                )));
            }
            source.read(s.offset, s.size).map(|bytes| LoadedBytes { address: s.address, bytes })
        }
        _ => None,
    };
    let eh_frame = eh_frame.or_else(|| eh_frame_by_segment(source, eh_frame_hdr.as_ref()?, &segments, room));
    room -= eh_frame.as_ref().map_or(0, |s| s.bytes.len() as u64);

    let debug_frame = named(b".debug_frame").and_then(|s| read_debug_frame(source, s, room));
    Ok(UnwindSections { segments, eh_frame, eh_frame_hdr, debug_frame })
}

fn check_ident(header: &[u8]) -> Result<(), ModuleError> {
    let refuse = |why: String| Err(ModuleError(why));
    if !header.starts_with(&ELFMAG) {
        return refuse("not an ELF file".into());
    }
    if header[EI_DATA] != ELFDATA2LSB {
        return refuse("not a little-endian ELF file".into());
    }
    let of = u16_at(header, 18).unwrap_or(0);
    match (header[EI_CLASS], of) {
        (ELFCLASS64, numbers::ELF_MACHINE) => Ok(()),
        (ELFCLASS32, EM_386) => refuse(format!("a 32-bit (i386) file: only {} stacks are unwound", numbers::NAME)),
        (ELFCLASS32, EM_ARM) => refuse(format!("a 32-bit (arm) file: only {} stacks are unwound", numbers::NAME)),
        (ELFCLASS32, EM_X86_64) => refuse(format!("an x32 file: only {} stacks are unwound", numbers::NAME)),
        _ => refuse(format!("an ELF file of another machine ({of})")),
    }
}

fn program_headers(source: &impl Source, header: &[u8]) -> Vec<ProgramHeader> {
    let (Some(offset), Some(size), Some(count)) = (u64_at(header, 32), u16_at(header, 54), u16_at(header, 56)) else {
        return Vec::new();
    };
    if size != 56 {
        return Vec::new();
    }
    let count = u64::from(count).min(MAX_SEGMENTS);
    let Some(table) = source.read(offset, count * 56) else { return Vec::new() };
    table
        .chunks_exact(56)
        .filter_map(|h| {
            Some(ProgramHeader {
                kind: u32_at(h, 0)?,
                flags: u32_at(h, 4)?,
                offset: u64_at(h, 8)?,
                address: u64_at(h, 16)?,
                file_size: u64_at(h, 32)?,
            })
        })
        .collect()
}

fn section_headers(source: &impl Source, header: &[u8]) -> Vec<SectionHeader> {
    let (Some(offset), Some(size), Some(count)) = (u64_at(header, 40), u16_at(header, 58), u16_at(header, 60)) else {
        return Vec::new();
    };
    if offset == 0 || size != 64 {
        return Vec::new();
    }
    let count = u64::from(count).min(MAX_SECTIONS);
    let Some(table) = source.read(offset, count * 64) else { return Vec::new() };
    table
        .chunks_exact(64)
        .filter_map(|h| {
            Some(SectionHeader {
                name: u32_at(h, 0)?,
                kind: u32_at(h, 4)?,
                flags: u64_at(h, 8)?,
                address: u64_at(h, 16)?,
                offset: u64_at(h, 24)?,
                size: u64_at(h, 32)?,
            })
        })
        .collect()
}

fn section_names(source: &impl Source, header: &[u8], sections: &[SectionHeader]) -> Vec<u8> {
    u16_at(header, 62)
        .and_then(|index| sections.get(usize::from(index)))
        .filter(|s| s.kind != SHT_NOBITS)
        .and_then(|s| source.read(s.offset, s.size.min(MAX_NAMES)))
        .unwrap_or_default()
}

fn section_name<'a>(names: &'a [u8], section: &SectionHeader) -> Option<&'a [u8]> {
    let from = names.get(section.name as usize..)?;
    // No name that is looked for is longer.
    let from = &from[..from.len().min(32)];
    from.split(|b| *b == 0).next()
}

/// Without section headers (sstrip) the search table has the start of .eh_frame; it ends before the end of its segment,
/// at an entry of length 0.
fn eh_frame_by_segment(
    source: &impl Source,
    hdr: &LoadedBytes,
    segments: &[LoadSegment],
    room: u64,
) -> Option<LoadedBytes> {
    let address = eh_frame_address(hdr)?;
    let segment =
        segments.iter().find(|s| address.checked_sub(s.address).is_some_and(|within| within < s.file_size))?;
    let within = address - segment.address;
    let offset = segment.offset.checked_add(within)?;
    let length = (segment.file_size - within).min(source.len().checked_sub(offset)?).min(room);
    let mut bytes = source.read(offset, length)?;
    bytes.truncate(end_of_entries(&bytes));
    bytes.shrink_to_fit();
    Some(LoadedBytes { address, bytes })
}

fn read_debug_frame(source: &impl Source, section: &SectionHeader, room: u64) -> Option<Vec<u8>> {
    if section.size > room {
        return None;
    }
    let bytes = source.read(section.offset, section.size)?;
    if section.flags & u64::from(SHF_COMPRESSED) == 0 {
        return Some(bytes);
    }
    let (kind, size) = (u32_at(&bytes, 0)?, u64_at(&bytes, 8)?);
    // Of the two kinds only zlib's decoder stops at the size that is promised here.
    if kind != ELFCOMPRESS_ZLIB || size > room {
        return None;
    }
    let data = CompressedData { format: CompressionFormat::Zlib, data: bytes.get(24..)?, uncompressed_size: size };
    data.decompress().ok().map(std::borrow::Cow::into_owned)
}
