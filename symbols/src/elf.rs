//! Headers of ELF files: file offsets in the address space, identity, names.
//!
//! Read with pread and bounds, never mapped: the calling process uses it too ([`crate::DebugDirs`]).

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use object::Endian;
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::read::{FileKind, ReadCache, ReadRef};

use crate::notes::first_build_id;

/// Most bytes of headers, notes and section names read of a file.
const MOST: u64 = 32 << 20;
/// Longest note section or segment looked at.
const LONGEST_NOTES: u64 = 1 << 20;
/// Most sections read.
const MOST_SECTIONS: usize = 65_536;

/// A PT_LOAD segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LoadedRange {
    offset: u64,
    address: u64,
    file_size: u64,
    memory_size: u64,
    align: u64,
    executable: bool,
}

/// Facts in the headers.
#[derive(Debug, Default)]
pub(crate) struct ElfHeaders {
    loads: Vec<LoadedRange>,
    /// Empty: none.
    pub build_id: Vec<u8>,
    /// Whether it has .debug_info.
    pub has_dwarf: bool,
    /// Whether it has .symtab.
    pub has_symtab: bool,
    /// Where .gnu_debugdata is in the file: more symbols, compressed.
    pub packed_symbols: Option<Range<u64>>,
    /// File name and CRC-32 in .gnu_debuglink.
    pub debug_link: Option<(Vec<u8>, u32)>,
    /// Addresses of sections with instructions, sorted.
    code: Vec<Range<u64>>,
    /// Whether those sections have no data: it is a separate debug file.
    pub is_debug_file: bool,
}

impl ElfHeaders {
    /// Reads the headers of `file`.
    pub(crate) fn read(file: &File) -> Result<Self, String> {
        let cache = ReadCache::new(At { file, pos: 0 });
        let data = LimitedReader { cache: &cache, left: &Cell::new(MOST) };
        match FileKind::parse(data) {
            Ok(FileKind::Elf64) => Self::of_class::<elf::FileHeader64<object::Endianness>>(data),
            Ok(FileKind::Elf32) => Self::of_class::<elf::FileHeader32<object::Endianness>>(data),
            _ => Err("it is not an ELF file".into()),
        }
    }

    fn of_class<H: FileHeader<Endian = object::Endianness>>(data: LimitedReader<'_>) -> Result<Self, String> {
        let damaged = |error: object::read::Error| format!("its ELF headers are damaged: {error}");
        let header = H::parse(data).map_err(damaged)?;
        let endian = header.endian().map_err(damaged)?;
        let mut this = Self::default();
        for segment in header.program_headers(endian, data).map_err(damaged)? {
            let (offset, file_size) = segment.file_range(endian);
            match segment.p_type(endian) {
                elf::PT_LOAD => this.loads.push(LoadedRange {
                    offset,
                    address: segment.p_vaddr(endian).into(),
                    file_size,
                    memory_size: segment.p_memsz(endian).into(),
                    align: segment.p_align(endian).into(),
                    executable: segment.p_flags(endian) & elf::PF_X != 0,
                }),
                elf::PT_NOTE if this.build_id.is_empty() && file_size <= LONGEST_NOTES => {
                    if let Ok(Some(notes)) = segment.notes(endian, data) {
                        this.build_id = first_build_id(endian, notes).unwrap_or_default();
                    }
                }
                _ => {}
            }
        }
        // A file without section headers still has segments; what is damaged there costs debug information only.
        if let Ok(sections) = header.sections(endian, data) {
            for section in sections.iter().take(MOST_SECTIONS) {
                this.section::<H>(endian, data, section, sections.section_name(endian, section).unwrap_or_default());
            }
        }
        this.code.sort_unstable_by_key(|range| range.start);
        if this.is_debug_file {
            this.restore_offsets();
        }
        Ok(this)
    }

    fn section<H: FileHeader>(
        &mut self,
        endian: H::Endian,
        data: LimitedReader<'_>,
        section: &H::SectionHeader,
        name: &[u8],
    ) {
        let kind = section.sh_type(endian);
        let flags: u64 = section.sh_flags(endian).into();
        let size: u64 = section.sh_size(endian).into();
        if flags & u64::from(elf::SHF_EXECINSTR) != 0 && flags & u64::from(elf::SHF_ALLOC) != 0 && size > 0 {
            let start: u64 = section.sh_addr(endian).into();
            self.is_debug_file = kind == elf::SHT_NOBITS && (self.code.is_empty() || self.is_debug_file);
            self.code.push(start..start.saturating_add(size));
        }
        match kind {
            elf::SHT_SYMTAB => self.has_symtab = true,
            elf::SHT_NOTE if self.build_id.is_empty() && size <= LONGEST_NOTES => {
                if let Ok(Some(notes)) = section.notes(endian, data) {
                    self.build_id = first_build_id(endian, notes).unwrap_or_default();
                }
            }
            elf::SHT_PROGBITS if name == b".debug_info" && size > 0 => self.has_dwarf = true,
            elf::SHT_PROGBITS if name == b".gnu_debugdata" => {
                let start: u64 = section.sh_offset(endian).into();
                self.packed_symbols = Some(start..start.saturating_add(size));
            }
            elf::SHT_PROGBITS if name == b".gnu_debuglink" && size <= 4096 => {
                self.debug_link =
                    section.data(endian, data).ok().and_then(|link| debug_link(link, endian.is_big_endian()));
            }
            _ => {}
        }
    }

    /// The address of the byte at a file offset; None = no segment has it.
    pub(crate) fn address(&self, offset: u64) -> Option<u64> {
        let within = |load: &&LoadedRange| offset.checked_sub(load.offset).is_some_and(|at| at < load.file_size);
        // Neighbouring segments may share bytes of the file; code is in the executable one.
        let mut loads = self.loads.iter().filter(within);
        let load = loads.clone().find(|load| load.executable).or_else(|| loads.next())?;
        load.address.checked_add(offset - load.offset)
    }

    /// The section of instructions that an address is in; None when there is none, or no section headers.
    pub(crate) fn code_at(&self, address: u64) -> Option<&Range<u64>> {
        let after = self.code.partition_point(|range| range.start <= address);
        self.code[..after].last().filter(|range| address < range.end)
    }

    /// Separate debug files made by objcopy have other offsets and smaller file sizes in their segments (those by
    /// elfutils keep both). All linkers lay segments out alike: each at the first offset after the one before that is
    /// congruent to its address.
    fn restore_offsets(&mut self) {
        if self.loads.iter().all(|load| !load.executable || load.file_size == load.memory_size) {
            return;
        }
        let mut end = 0u64;
        for load in &mut self.loads {
            let align = load.align.max(1);
            load.offset = end.saturating_add((load.address % align + align - end % align) % align);
            load.file_size = load.memory_size;
            end = load.offset.saturating_add(load.file_size);
        }
    }
}

/// A file name, zeros up to a multiple of 4, the CRC-32 of that file in this file's byte order.
fn debug_link(link: &[u8], big_endian: bool) -> Option<(Vec<u8>, u32)> {
    let len = link.iter().position(|byte| *byte == 0).filter(|len| *len > 0)?;
    let crc = *link.get((len + 1).next_multiple_of(4)..)?.first_chunk()?;
    Some((link[..len].to_vec(), if big_endian { u32::from_be_bytes(crc) } else { u32::from_le_bytes(crc) }))
}

/// Reads with pread: the position of the caller's descriptor does not change.
pub(crate) struct At<'a> {
    pub file: &'a File,
    pub pos: u64,
}

impl Read for At<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read_at(buf, self.pos)?;
        self.pos += n as u64;
        Ok(n)
    }
}

impl Seek for At<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let pos = match to {
            SeekFrom::Start(pos) => Some(pos),
            SeekFrom::End(by) => self.file.metadata()?.len().checked_add_signed(by),
            SeekFrom::Current(by) => self.pos.checked_add_signed(by),
        };
        self.pos = pos.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.pos)
    }
}

/// Refuses to read beyond its budget: the cache below keeps everything read, and sections may overlap.
#[derive(Clone, Copy)]
struct LimitedReader<'a> {
    cache: &'a ReadCache<At<'a>>,
    left: &'a Cell<u64>,
}

impl LimitedReader<'_> {
    fn take(self, size: u64) -> Result<(), ()> {
        self.left.set(self.left.get().checked_sub(size).ok_or(())?);
        Ok(())
    }
}

impl<'a> ReadRef<'a> for LimitedReader<'a> {
    fn len(self) -> Result<u64, ()> {
        self.cache.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        self.take(size)?;
        self.cache.read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        let bytes = self.cache.read_bytes_at_until(range, delimiter)?;
        self.take(bytes.len() as u64 + 64)?;
        Ok(bytes)
    }
}
