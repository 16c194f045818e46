//! The build id of an ELF file, read with pread: a mapped file that is cut short would raise SIGBUS.
//!
//! Only facts that distinguish one file from another are read. Sizes are bounded; anything invalid ends the search.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use object::elf::PT_NOTE;

use crate::notes::build_id as of_notes;

/// Most program headers read; linkers make about a dozen.
const HEADERS_MAX: u64 = 256;
/// Most bytes of one note segment read.
const NOTES_MAX: u64 = 64 << 10;
/// Most note segments read.
const SEGMENTS_MAX: usize = 16;

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Source of an ELF image's bytes.
pub(crate) trait ImageBytes {
    /// Fills `buf` from `offset`.
    ///
    /// # Errors
    /// The image ends before, or cannot be read.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;
}

impl ImageBytes for File {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(buf, offset)
    }
}

impl ImageBytes for [u8] {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let from = usize::try_from(offset).ok().and_then(|from| self.get(from..)?.get(..buf.len()));
        buf.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// Whether an image is ELF, and its build id (empty = none found).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ident {
    /// Begins with ELF's magic number.
    pub elf: bool,
    /// Empty = none.
    pub build_id: Vec<u8>,
}

/// Reads an image's [`Ident`]. Little-endian files only: others do not run here.
pub(crate) fn ident(image: &(impl ImageBytes + ?Sized)) -> Ident {
    let mut magic = [0; 4];
    if image.read_at(&mut magic, 0).is_err() || magic != *b"\x7fELF" {
        return Ident::default();
    }
    Ident { elf: true, build_id: build_id(image).unwrap_or_default() }
}

/// The build id of an image in the memory of this process, that of the vDSO.
pub fn image_build_id(image: &[u8]) -> Vec<u8> {
    ident(image).build_id
}

fn build_id(image: &(impl ImageBytes + ?Sized)) -> Option<Vec<u8>> {
    let mut header = [0; 64];
    // a 32-bit header has 52 bytes; a file that ends there has no program headers either
    image.read_at(&mut header, 0).ok()?;
    let wide = header[4] == 2;
    let (offset, size, count) = if wide {
        (u64_at(&header, 32)?, u16_at(&header, 54)?, u16_at(&header, 56)?)
    } else {
        (u64::from(u32_at(&header, 28)?), u16_at(&header, 42)?, u16_at(&header, 44)?)
    };
    if size != if wide { 56 } else { 32 } || header[5] != 1 {
        return None;
    }
    let mut headers = vec![0; (u64::from(count).min(HEADERS_MAX) * u64::from(size)) as usize];
    image.read_at(&mut headers, offset).ok()?;
    let notes = headers.chunks_exact(size.into()).filter(|header| u32_at(header, 0) == Some(PT_NOTE));
    notes.take(SEGMENTS_MAX).find_map(|header| {
        let (from, length, align) = if wide {
            (u64_at(header, 8)?, u64_at(header, 32)?, u64_at(header, 48)?)
        } else {
            (u32_at(header, 4)?.into(), u32_at(header, 16)?.into(), u32_at(header, 28)?.into())
        };
        let mut notes = vec![0; length.min(NOTES_MAX) as usize];
        image.read_at(&mut notes, from).ok()?;
        of_notes(&notes, if align == 8 { 8 } else { 4 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image with one note segment of two notes: something, then a build id.
    fn image(align: u64) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[32..40].copy_from_slice(&64u64.to_le_bytes());
        bytes[54..56].copy_from_slice(&56u16.to_le_bytes());
        bytes[56..58].copy_from_slice(&1u16.to_le_bytes());
        let pad = |bytes: &mut Vec<u8>, from: usize| {
            bytes.resize(from + (bytes.len() - from).next_multiple_of(align as usize), 0)
        };
        let from = bytes.len();
        for (name, contents, kind) in [(&b"XYZ\0"[..], &[1, 2, 3][..], 1u32), (b"GNU\0", &[7; 20], 3)] {
            bytes.extend((name.len() as u32).to_le_bytes());
            bytes.extend((contents.len() as u32).to_le_bytes());
            bytes.extend(kind.to_le_bytes());
            bytes.extend(name);
            pad(&mut bytes, from);
            bytes.extend(contents);
            pad(&mut bytes, from);
        }
        let length = bytes.len() - from;
        bytes[64..68].copy_from_slice(&PT_NOTE.to_le_bytes());
        bytes[72..80].copy_from_slice(&(from as u64).to_le_bytes());
        bytes[96..104].copy_from_slice(&(length as u64).to_le_bytes());
        bytes[112..120].copy_from_slice(&align.to_le_bytes());
        bytes
    }

    #[test]
    fn a_build_id_is_found_behind_other_notes() {
        for align in [4, 8] {
            assert_eq!(ident(&image(align)[..]), Ident { elf: true, build_id: vec![7; 20] });
        }
    }

    #[test]
    fn what_is_cut_or_nonsense_has_none() {
        let whole = image(4);
        for cut in 0..whole.len() {
            assert!(ident(&whole[..cut]).build_id.is_empty(), "cut at {cut}");
        }
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                // no panic, and no more memory than the bounds allow
                ident(&bytes[..]);
            }
        }
        assert_eq!(ident(&b"#!/bin/sh\n"[..]), Ident::default());
    }
}
