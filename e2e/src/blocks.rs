//! Reads the headers of a tape's blocks: the 128 bytes documented in `docs/reference/tape-format.md`, and nothing else.

use std::path::Path;

/// Bytes of a header.
pub const HEADER: usize = 128;
/// Kind of a block with the outcome of calls, one row each.
pub const CORE: u16 = 3;
/// Block of no segment.
pub const NO_SEGMENT: u32 = u32::MAX;
const MAGIC: &[u8; 8] = b"\x8fsystape";

/// One block.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Where its header begins.
    pub start: usize,
    /// Where its payload ends.
    pub end: usize,
    /// What it holds.
    pub kind: u16,
    /// The segment it belongs to.
    pub segment: u32,
    /// Events in it.
    pub rows: u32,
}

/// Every block, in the order of the file.
///
/// # Panics
/// When a header is damaged, or blocks do not follow each other.
#[must_use]
pub fn blocks(tape: &[u8]) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut at = 0;
    while at + HEADER <= tape.len() {
        let header = &tape[at..at + HEADER];
        assert_eq!(&header[..8], MAGIC, "block at {at}");
        let u32_at = |i: usize| u32::from_le_bytes(header[i..i + 4].try_into().expect("4 bytes"));
        assert_eq!(crc32c(&header[..124]), u32_at(124), "CRC of the header at {at}");
        let seq = u64::from_le_bytes(header[40..48].try_into().expect("8 bytes"));
        assert_eq!(seq, found.len() as u64, "number of the block at {at}");
        let end = at + HEADER + u32_at(76) as usize;
        let kind = u16::from_le_bytes([header[12], header[13]]);
        found.push(Block { start: at, end, kind, segment: u32_at(36), rows: u32_at(72) });
        at = end.next_multiple_of(8);
    }
    assert!(found.last().is_some_and(|last| last.end <= tape.len()), "the last block ends after the file");
    found
}

/// What every block of a tape holds, decompressed, one after the other.
///
/// # Panics
/// When the file cannot be read, or a block is no zstd frame.
#[must_use]
pub fn unpacked(tape: &Path) -> Vec<u8> {
    let tape = std::fs::read(tape).unwrap_or_else(|e| panic!("{}: {e}", tape.display()));
    let stored = |block: &Block| &tape[block.start + HEADER..block.end];
    blocks(&tape).iter().flat_map(|block| zstd::stream::decode_all(stored(block)).expect("one zstd frame")).collect()
}

/// Calls in segments whose every block ends within the first `len` bytes, and calls in all such blocks.
#[must_use]
pub fn rows_within(all: &[Block], len: usize) -> (u64, u64) {
    let core = all.iter().filter(|b| b.kind == CORE);
    let sum = |blocks: &mut dyn Iterator<Item = &Block>| blocks.map(|b| u64::from(b.rows)).sum();
    let whole = |segment: u32| all.iter().filter(|b| b.segment == segment).all(|b| b.end <= len);
    (sum(&mut core.clone().filter(|b| whole(b.segment))), sum(&mut core.clone().filter(|b| b.end <= len)))
}

/// Changes bytes of the header at `at` and makes its checksum right again.
pub fn patch(tape: &mut [u8], at: usize, offset: usize, bytes: &[u8]) {
    let header = &mut tape[at..at + HEADER];
    header[offset..offset + bytes.len()].copy_from_slice(bytes);
    let crc = crc32c(&header[..124]);
    header[124..].copy_from_slice(&crc.to_le_bytes());
}

/// CRC-32C (Castagnoli), bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |c, _| if c & 1 == 1 { (c >> 1) ^ 0x82f6_3b78 } else { c >> 1 })
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn crc32c_of_the_check_string() {
        assert_eq!(super::crc32c(b"123456789"), 0xe306_9283); // RFC 3720, B.4
    }
}
