//! Where the parts of a file are in its own addresses.

use crate::bytes::u64_at;
use crate::elf::LoadSegment;
use crate::numbers::PAGE;

/// Bytes of a segment in [`Segments::to_bytes`].
const EACH: usize = 25;

/// The PT_LOAD headers of a file.
#[derive(Debug, Default)]
pub struct Segments(pub(crate) Vec<LoadSegment>);

impl Segments {
    /// The file's own address for file offset `offset`.
    ///
    /// Mappings are whole pages, so a page at the edge of two segments is mapped twice; the executable segment applies,
    /// because lookups are of code.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        let exact = |s: &&LoadSegment| (s.offset..s.offset.saturating_add(s.file_size)).contains(&offset);
        let pages = |s: &&LoadSegment| {
            let end = s.offset.saturating_add(s.file_size);
            s.file_size > 0
                && (s.offset & !(PAGE - 1)..end.checked_next_multiple_of(PAGE).unwrap_or(end)).contains(&offset)
        };
        let executable = || self.0.iter().filter(|s| s.executable);
        let segment = executable()
            .find(exact)
            .or_else(|| executable().find(pages))
            .or_else(|| self.0.iter().find(exact))
            .or_else(|| self.0.iter().find(pages))?;
        Some(offset.wrapping_sub(segment.offset).wrapping_add(segment.address))
    }

    /// Writes them as bytes, for another process.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.0.len() * EACH);
        for segment in &self.0 {
            for number in [segment.offset, segment.address, segment.file_size] {
                bytes.extend(number.to_le_bytes());
            }
            bytes.push(segment.executable.into());
        }
        bytes
    }

    /// Reads what [`Self::to_bytes`] wrote; None = another process has made them up.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let segment = |bytes: &[u8]| {
            Some(LoadSegment {
                offset: u64_at(bytes, 0)?,
                address: u64_at(bytes, 8)?,
                file_size: u64_at(bytes, 16)?,
                executable: bytes.last() == Some(&1),
            })
        };
        let whole = bytes.len().is_multiple_of(EACH);
        whole.then(|| bytes.chunks_exact(EACH).map(segment).collect::<Option<_>>().map(Self)).flatten()
    }

    /// Bytes of memory used.
    pub(crate) fn memory(&self) -> usize {
        self.0.capacity() * size_of::<LoadSegment>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_survive() {
        let code = LoadSegment { offset: 0x1000, address: 0x40_1000, file_size: 0x2345, executable: true };
        let data = LoadSegment { offset: 0x3000, address: 0x40_4000, file_size: 0x10, executable: false };
        let bytes = Segments(vec![data, code]).to_bytes();
        let segments = Segments::from_bytes(&bytes).unwrap();
        assert_eq!(segments.to_bytes(), bytes);
        assert_eq!(segments.address_of(0x3344), Some(0x40_3344), "the page of both is code");
        assert_eq!(segments.address_of(0x4000), None);
        assert!(Segments::from_bytes(&bytes[1..]).is_none());
        assert!(Segments::from_bytes(&[]).unwrap().address_of(0).is_none());
    }
}
