//! The 128-byte header in front of each block, and the kinds of block.
//!
//! | offset | size | field | meaning |
//! |---:|---:|---|---|
//! | 0 | 8 | magic | `8f 73 79 73 74 61 70 65` ("\x8fsystape") |
//! | 8 | 2 | major | 1; a reader refuses a tape with a greater one |
//! | 10 | 2 | minor | [`MINOR`]; a reader ignores it |
//! | 12 | 2 | kind | [`BlockKind`] |
//! | 14 | 2 | flags | [`FLAG_CONTINUES`], [`FLAG_CONTINUED`]; unknown bits are ignored |
//! | 16 | 16 | tape_id | random, the same in every block of a tape; of a flight recorder's half follows from the other and the machine |
//! | 32 | 4 | chunk | number of the chunk, from 0 |
//! | 36 | 4 | segment | number of the segment, from 0; [`NO_SEGMENT`] for a block of no segment |
//! | 40 | 8 | seq | number of the block, from 0 without holes |
//! | 48 | 8 | end_min | least end (ts) of its events; of a dict: start of the window; 0 without events |
//! | 56 | 8 | end_max | greatest end (ts); of a dict: end of the window |
//! | 64 | 8 | start_min | least start |
//! | 72 | 4 | rows | events (dict: tasks) |
//! | 76 | 4 | stored_len | bytes of payload after the header |
//! | 80 | 4 | raw_len | bytes of the payload when decompressed; a multiple of 8, at most [`MAX_RAW`] |
//! | 84 | 4 | carry_rows | syscall groups: rows that began before the window; else 0 |
//! | 88 | 8 | hash | xxh3-64 (seed 0) of the stored payload |
//! | 96 | 8 | features_incompat | a reader that does not know a set bit must not read the payload |
//! | 104 | 8 | features_compat | a reader may ignore them |
//! | 112 | 8 | groups | blocks of a segment: bit k set = the segment was written with a block of kind k |
//! | 120 | 4 | reserved | 0 |
//! | 124 | 4 | crc | CRC32C of bytes 0..124 |
//!
//! Everything is little-endian. A header of zeros is never valid: the CRC of 124 zero bytes is not 0, nor is the magic.

pub use crate::kinds::BlockKind;

/// First bytes of every block, so of every tape. The first byte is neither text nor UTF-8.
pub const MAGIC: [u8; 8] = *b"\x8fsystape";
/// Version of the layout: the only one that this crate writes, and the greatest that it reads.
pub(crate) const MAJOR: u16 = 1;
/// Minor version that this crate writes; a test compares docs/reference/tape-format.md and schemas/CHANGES.md with it.
pub const MINOR: u16 = 5;
/// Bytes of a header.
pub const HEADER_LEN: usize = 128;
/// `segment` of a block of no segment.
pub(crate) const NO_SEGMENT: u32 = u32::MAX;
/// Greatest payload when decompressed.
pub const MAX_RAW: u32 = 8 << 20;
/// Greatest payload as stored: zstd's bound for [`MAX_RAW`] bytes that do not compress, rounded up.
pub(crate) const MAX_STORED: u32 = MAX_RAW + (64 << 10);
/// Greatest number of rows in a group a reader accepts (the builder closes at 64 Ki).
pub(crate) const MAX_ROWS: u32 = 1 << 20;
/// `flags`: the next block (by seq) continues this one.
pub(crate) const FLAG_CONTINUES: u16 = 1;
/// `flags`: this block continues the block before (by seq).
pub(crate) const FLAG_CONTINUED: u16 = 2;
/// `features_incompat` of an end block: the recording ended abnormally, and a repair made the mark. A reader that does
/// not know the bit finds no end mark, which means the same.
pub(crate) const INCOMPAT_CUT: u64 = 1;
/// `features_incompat` of blocks with columns: they may be planes, listed or deltas, which a reader of 1.3 cannot read.
pub(crate) const INCOMPAT_COLUMNS: u64 = 2;
/// `features_incompat` of processes: there may be events of kind
/// [`ProcessKind::Target`](crate::model::ProcessKind::Target), unknown to a reader of 1.4.
pub(crate) const INCOMPAT_TARGETS: u64 = 16;
/// `features_incompat` of a block of wake-ups: some have the flag of a network softirq, which a reader of 1.4 would refuse.
pub(crate) const INCOMPAT_SOFTIRQ: u64 = 4;
/// `features_incompat` of stacks: some are of sleepers, or have a status unknown to a reader of 1.4.
pub(crate) const INCOMPAT_SLEEPERS: u64 = 8;
/// `features_incompat` of a blocks block: an I/O has a cause unknown to a reader of 1.4.
pub(crate) const INCOMPAT_BLOCK_CAUSES: u64 = 32;
/// `features_incompat` of a ledger: some calls were counted for a reason unknown to a reader of 1.4.
pub(crate) const INCOMPAT_BEHIND: u64 = 128;
/// `features_incompat` of a session: the tape is a cut ([`Session::cut`](crate::model::Session::cut)). A reader that does
/// not know it would take what is missing outside of its window for what did not happen.
pub(crate) const INCOMPAT_WINDOW: u64 = 256;
/// `features_incompat` of arguments: some are not known, and a reader that does not know the bit would show their values.
pub(crate) const INCOMPAT_UNKNOWN_ARGS: u64 = 512;
/// `features_compat` of a session: the original was lost, and a repair made this one. Only clock and start of the
/// window are known.
pub(crate) const COMPAT_MADE: u64 = 1;
/// Blocks start at multiples of this; the bytes between are 0.
pub(crate) const ALIGN: u64 = 8;

/// A block's header, decoded. See the [module](self) for the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the module's table has them")]
#[non_exhaustive]
pub struct Header {
    pub major: u16,
    pub minor: u16,
    pub kind: BlockKind,
    pub flags: u16,
    pub tape_id: [u8; 16],
    pub chunk: u32,
    pub segment: u32,
    pub seq: u64,
    pub end_min: u64,
    pub end_max: u64,
    pub start_min: u64,
    pub rows: u32,
    pub stored_len: u32,
    pub raw_len: u32,
    pub carry_rows: u32,
    pub hash: u64,
    pub features_incompat: u64,
    pub features_compat: u64,
    pub groups: u64,
}

/// Why bytes are not a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderError {
    /// The magic is missing.
    Magic,
    /// The magic is right, the CRC is wrong.
    Crc { found: u32, expected: u32 },
    /// Valid, but of a later major version.
    NewerMajor(u16),
    /// Valid, but a length exceeds its limit.
    Length { what: &'static str, len: u32, limit: u32 },
}

impl std::fmt::Display for HeaderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Magic => write!(f, "no magic"),
            Self::Crc { found, expected } => write!(f, "its CRC is {found:#010x}, its bytes give {expected:#010x}"),
            Self::NewerMajor(found) => write!(f, "format {found} is newer than {MAJOR}"),
            Self::Length { what, len, limit } => write!(f, "{what} {len} > limit {limit}"),
        }
    }
}

/// `N` bytes of `bytes` at `at`; `at + N` must be inside a header.
fn field<const N: usize>(bytes: &[u8; HEADER_LEN], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

impl Header {
    /// A header with only version, kind and tape.
    pub(crate) fn new(kind: BlockKind, tape_id: [u8; 16]) -> Self {
        Self {
            major: MAJOR,
            minor: MINOR,
            kind,
            flags: 0,
            tape_id,
            chunk: 0,
            segment: NO_SEGMENT,
            seq: 0,
            end_min: 0,
            end_max: 0,
            start_min: 0,
            rows: 0,
            stored_len: 0,
            raw_len: 0,
            carry_rows: 0,
            hash: 0,
            features_incompat: incompat_of(kind),
            features_compat: 0,
            groups: 0,
        }
    }

    /// The header's bytes, CRC included.
    pub(crate) fn to_bytes(self) -> [u8; HEADER_LEN] {
        let mut b = [0u8; HEADER_LEN];
        let mut put = |at: usize, bytes: &[u8]| b[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &MAGIC);
        put(8, &self.major.to_le_bytes());
        put(10, &self.minor.to_le_bytes());
        put(12, &self.kind.raw().to_le_bytes());
        put(14, &self.flags.to_le_bytes());
        put(16, &self.tape_id);
        put(32, &self.chunk.to_le_bytes());
        put(36, &self.segment.to_le_bytes());
        put(40, &self.seq.to_le_bytes());
        put(48, &self.end_min.to_le_bytes());
        put(56, &self.end_max.to_le_bytes());
        put(64, &self.start_min.to_le_bytes());
        put(72, &self.rows.to_le_bytes());
        put(76, &self.stored_len.to_le_bytes());
        put(80, &self.raw_len.to_le_bytes());
        put(84, &self.carry_rows.to_le_bytes());
        put(88, &self.hash.to_le_bytes());
        put(96, &self.features_incompat.to_le_bytes());
        put(104, &self.features_compat.to_le_bytes());
        put(112, &self.groups.to_le_bytes());
        let crc = crc32c::crc32c(&b[..124]);
        b[124..].copy_from_slice(&crc.to_le_bytes());
        b
    }

    /// Decodes and checks magic, CRC, major version and lengths.
    pub(crate) fn parse(b: &[u8; HEADER_LEN]) -> Result<Self, HeaderError> {
        if b[..8] != MAGIC {
            return Err(HeaderError::Magic);
        }
        let u16_at = |at| u16::from_le_bytes(field(b, at));
        let u32_at = |at| u32::from_le_bytes(field(b, at));
        let u64_at = |at| u64::from_le_bytes(field(b, at));
        let expected = crc32c::crc32c(&b[..124]);
        if u32_at(124) != expected {
            return Err(HeaderError::Crc { found: u32_at(124), expected });
        }
        let header = Self {
            major: u16_at(8),
            minor: u16_at(10),
            kind: BlockKind::from_raw(u16_at(12)),
            flags: u16_at(14),
            tape_id: field(b, 16),
            chunk: u32_at(32),
            segment: u32_at(36),
            seq: u64_at(40),
            end_min: u64_at(48),
            end_max: u64_at(56),
            start_min: u64_at(64),
            rows: u32_at(72),
            stored_len: u32_at(76),
            raw_len: u32_at(80),
            carry_rows: u32_at(84),
            hash: u64_at(88),
            features_incompat: u64_at(96),
            features_compat: u64_at(104),
            groups: u64_at(112),
        };
        if header.major > MAJOR {
            return Err(HeaderError::NewerMajor(header.major));
        }
        // A later minor may have larger blocks only behind an incompat bit, but it must still be possible to step over
        // them: so lengths are checked where the payload is read (crate::payload), except what stepping needs.
        if header.stored_len > MAX_STORED {
            return Err(HeaderError::Length { what: "stored length", len: header.stored_len, limit: MAX_STORED });
        }
        Ok(header)
    }

    /// Bytes from the header's first to the next block's first.
    pub(crate) fn span(&self) -> u64 {
        (HEADER_LEN as u64 + u64::from(self.stored_len)).next_multiple_of(ALIGN)
    }

    /// Bits of `features_incompat` this version does not know.
    pub(crate) fn unknown_incompat(&self) -> u64 {
        let known = match self.kind {
            BlockKind::End => INCOMPAT_CUT,
            BlockKind::Session => INCOMPAT_WINDOW,
            BlockKind::SyscallsArgs => incompat_of(self.kind) | INCOMPAT_UNKNOWN_ARGS,
            BlockKind::Wakeups => incompat_of(self.kind) | INCOMPAT_SOFTIRQ,
            BlockKind::Stacks => incompat_of(self.kind) | INCOMPAT_SLEEPERS,
            BlockKind::Blocks => incompat_of(self.kind) | INCOMPAT_BLOCK_CAUSES,
            BlockKind::Ledger => incompat_of(self.kind) | INCOMPAT_BEHIND,
            kind => incompat_of(kind),
        };
        self.features_incompat & !known
    }
}

/// The id of the tape that these first bytes begin; None = they begin none, or are damaged.
pub fn tape_id(first: &[u8; HEADER_LEN]) -> Option<[u8; 16]> {
    Header::parse(first).ok().map(|header| header.tape_id)
}

/// Bits that this version's writer sets in every block of a kind.
fn incompat_of(kind: BlockKind) -> u64 {
    match kind {
        BlockKind::Processes => INCOMPAT_TARGETS,
        _ if kind.has_columns() => INCOMPAT_COLUMNS,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every field with a value of its own, so that a swapped pair shows.
    fn sample() -> Header {
        Header {
            major: 1,
            minor: 0x0302,
            kind: BlockKind::Other(0x0504),
            flags: 0x0706,
            tape_id: *b"0123456789abcdef",
            chunk: 0x0b0a_0908,
            segment: 0x0f0e_0d0c,
            seq: 0x1716_1514_1312_1110,
            end_min: 0x2726_2524_2322_2120,
            end_max: 0x3736_3534_3332_3130,
            start_min: 0x4746_4544_4342_4140,
            rows: 0x5352_5150,
            stored_len: 0x0000_5554,
            raw_len: 0x5b5a_5958,
            carry_rows: 0x5f5e_5d5c,
            hash: 0x6766_6564_6362_6160,
            features_incompat: 0x7776_7574_7372_7170,
            features_compat: 0x8786_8584_8382_8180,
            groups: 0x9796_9594_9392_9190,
        }
    }

    #[test]
    fn offsets_are_those_of_the_table() {
        let b = sample().to_bytes();
        assert_eq!(b[0..8], MAGIC);
        assert_eq!(b[8..10], [1, 0], "major");
        assert_eq!(b[10..12], [2, 3], "minor");
        assert_eq!(b[12..14], [4, 5], "kind");
        assert_eq!(b[14..16], [6, 7], "flags");
        assert_eq!(b[16..32], *b"0123456789abcdef", "tape_id");
        assert_eq!(b[32..36], [8, 9, 10, 11], "chunk");
        assert_eq!(b[36..40], [12, 13, 14, 15], "segment");
        assert_eq!(b[40], 0x10, "seq");
        assert_eq!(b[48], 0x20, "end_min");
        assert_eq!(b[56], 0x30, "end_max");
        assert_eq!(b[64], 0x40, "start_min");
        assert_eq!(b[72], 0x50, "rows");
        assert_eq!(b[76], 0x54, "stored_len");
        assert_eq!(b[80], 0x58, "raw_len");
        assert_eq!(b[84], 0x5c, "carry_rows");
        assert_eq!(b[88], 0x60, "hash");
        assert_eq!(b[96], 0x70, "features_incompat");
        assert_eq!(b[104], 0x80, "features_compat");
        assert_eq!(b[112], 0x90, "groups");
        assert_eq!(b[120..124], [0; 4], "reserved");
        assert_eq!(b[124..128], crc32c::crc32c(&b[..124]).to_le_bytes(), "crc");
    }

    #[test]
    fn parses_what_it_writes() {
        assert_eq!(Header::parse(&sample().to_bytes()), Ok(sample()));
    }

    #[test]
    fn zeros_do_not_validate() {
        assert_eq!(Header::parse(&[0; HEADER_LEN]), Err(HeaderError::Magic));
        assert_ne!(crc32c::crc32c(&[0; 124]), 0, "a header of zeros would have a valid CRC");
    }

    #[test]
    fn every_flipped_bit_is_seen() {
        let good = sample().to_bytes();
        for bit in 0..HEADER_LEN * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::parse(&bad).is_err(), "bit {bit} flipped and not seen");
        }
    }

    #[test]
    fn newer_major_is_told_apart_from_damage() {
        let header = Header { major: 2, ..sample() };
        assert_eq!(Header::parse(&header.to_bytes()), Err(HeaderError::NewerMajor(2)));
    }

    #[test]
    fn kinds_keep_their_numbers() {
        for raw in 0..100 {
            assert_eq!(BlockKind::from_raw(raw).raw(), raw);
        }
        assert_eq!((BlockKind::End.raw(), BlockKind::Sched.raw(), BlockKind::Uring.raw()), (12, 13, 22));
    }
}
