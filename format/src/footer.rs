//! The last 64 bytes of a tape that ended cleanly: where the index is.
//!
//! | offset | size | field |
//! |---:|---:|---|
//! | 0 | 8 | magic `8f 65 6e 64 74 61 70 65` ("\x8fendtape") |
//! | 8 | 16 | tape_id, as in every header |
//! | 24 | 8 | offset of the first index block, from the tape's first byte |
//! | 32 | 8 | offset of the end block |
//! | 40 | 8 | offset of this footer, so bytes of the tape without it |
//! | 48 | 4 | number of index blocks |
//! | 52 | 8 | reserved, 0 |
//! | 60 | 4 | CRC32C of bytes 0..60 |
//!
//! Little-endian. The footer is no block: it has no payload and no number. A reader that does not find it in the last
//! 64 bytes walks the headers; if it finds the footer on that walk, the tape ends there.

/// First bytes of the footer.
pub(crate) const FOOTER_MAGIC: [u8; 8] = *b"\x8fendtape";
/// Bytes of a footer.
pub const FOOTER_LEN: usize = 64;

/// Where index and end mark of a tape are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) tape_id: [u8; 16],
    pub(crate) index_offset: u64,
    pub(crate) end_offset: u64,
    pub(crate) footer_offset: u64,
    pub(crate) index_blocks: u32,
}

impl Footer {
    /// The footer's bytes, CRC included.
    pub(crate) fn to_bytes(self) -> [u8; FOOTER_LEN] {
        let mut b = [0u8; FOOTER_LEN];
        b[..8].copy_from_slice(&FOOTER_MAGIC);
        b[8..24].copy_from_slice(&self.tape_id);
        b[24..32].copy_from_slice(&self.index_offset.to_le_bytes());
        b[32..40].copy_from_slice(&self.end_offset.to_le_bytes());
        b[40..48].copy_from_slice(&self.footer_offset.to_le_bytes());
        b[48..52].copy_from_slice(&self.index_blocks.to_le_bytes());
        let crc = crc32c::crc32c(&b[..60]);
        b[60..].copy_from_slice(&crc.to_le_bytes());
        b
    }

    /// The footer in `b`, which starts at offset `at` of the tape; None when there is none or it is invalid.
    pub(crate) fn parse(b: &[u8; FOOTER_LEN], at: u64) -> Option<Self> {
        let u64_at = |i: usize| b.get(i..i + 8)?.try_into().ok().map(u64::from_le_bytes);
        let u32_at = |i: usize| b.get(i..i + 4)?.try_into().ok().map(u32::from_le_bytes);
        if b[..8] != FOOTER_MAGIC || u32_at(60)? != crc32c::crc32c(&b[..60]) {
            return None;
        }
        let footer = Self {
            tape_id: b.get(8..24)?.try_into().ok()?,
            index_offset: u64_at(24)?,
            end_offset: u64_at(32)?,
            footer_offset: u64_at(40)?,
            index_blocks: u32_at(48)?,
        };
        let ordered = footer.index_offset < footer.end_offset && footer.end_offset < footer.footer_offset;
        (ordered && footer.footer_offset == at).then_some(footer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_offsets() {
        let footer =
            Footer { tape_id: [7; 16], index_offset: 128, end_offset: 256, footer_offset: 400, index_blocks: 3 };
        let b = footer.to_bytes();
        assert_eq!(b[24], 128);
        assert_eq!(b[32..34], [0, 1]);
        assert_eq!(b[48], 3);
        assert_eq!(Footer::parse(&b, 400), Some(footer));
        assert_eq!(Footer::parse(&b, 408), None, "moved");
        for bit in 0..FOOTER_LEN * 8 {
            let mut bad = b;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Footer::parse(&bad, 400), None, "bit {bit}");
        }
    }
}
