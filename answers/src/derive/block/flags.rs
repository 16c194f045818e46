//! cmd_flags of a block I/O in words and letters.
//!
//! include/linux/blk_types.h is no ABI, but these have not moved from 4.10 to 6.18: the operation in the low 8 bits with the numbers
//! below, and REQ_ bits 8 to 20 (compared: `enum req_flag_bits` of 4.10, 5.10 and 6.12 sources, BTF of 6.18). Zone operations
//! were renumbered in 6.18 (ZONE_OPEN 10 → 11, ZONE_RESET 15 → 17) and bits from 21 on differ: they stay numbers.

use systape_format::model::{BlockIo, BlockLayer};

/// Bits that hold the operation.
const OP_MASK: u32 = 0xff;

/// (bit, name) of the flags with the same meaning on every kernel.
const FLAGS: [(u32, &str); 13] = [
    (8, "FAILFAST_DEV"),
    (9, "FAILFAST_TRANSPORT"),
    (10, "FAILFAST_DRIVER"),
    (11, "SYNC"),
    (12, "META"),
    (13, "PRIO"),
    (14, "NOMERGE"),
    (15, "IDLE"),
    (16, "INTEGRITY"),
    (17, "FUA"),
    (18, "PREFLUSH"),
    (19, "RAHEAD"),
    (20, "BACKGROUND"),
];

const SYNC: u32 = 1 << 11;
const META: u32 = 1 << 12;
const FUA: u32 = 1 << 17;
const PREFLUSH: u32 = 1 << 18;
const RAHEAD: u32 = 1 << 19;

/// Operation of a block I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// Data is read.
    Read,
    /// Data is written.
    Write,
    /// Flush of the device's cache.
    Flush,
    /// Discard (trim).
    Discard,
    /// Discard that erases the data.
    SecureErase,
    /// Write of zeroes without data.
    WriteZeroes,
    /// Driver's own command that reads.
    DriverIn,
    /// Driver's own command that writes.
    DriverOut,
    /// Any other, by number: zone operations among them.
    Other(u8),
}

impl Op {
    /// The operation in `flags`.
    pub fn of(flags: u32) -> Self {
        match (flags & OP_MASK) as u8 {
            0 => Self::Read,
            1 => Self::Write,
            2 => Self::Flush,
            3 => Self::Discard,
            5 => Self::SecureErase,
            9 => Self::WriteZeroes,
            34 => Self::DriverIn,
            35 => Self::DriverOut,
            other => Self::Other(other),
        }
    }

    /// The operation of `io`. An empty write with a flush flag to a device without requests is a flush.
    pub fn of_io(io: &BlockIo) -> Self {
        match Self::of(io.flags) {
            Self::Write if io.layer == BlockLayer::Bio && io.bytes == 0 && io.flags & PREFLUSH != 0 => Self::Flush,
            op => op,
        }
    }

    /// Name of the operation: `read`, `write_zeroes`, `op17`.
    pub fn name(self) -> String {
        match self {
            Self::Read => "read".to_owned(),
            Self::Write => "write".to_owned(),
            Self::Flush => "flush".to_owned(),
            Self::Discard => "discard".to_owned(),
            Self::SecureErase => "secure_erase".to_owned(),
            Self::WriteZeroes => "write_zeroes".to_owned(),
            Self::DriverIn => "drv_in".to_owned(),
            Self::DriverOut => "drv_out".to_owned(),
            Self::Other(number) => format!("op{number}"),
        }
    }
}

/// The letters of blktrace: F flush before it, then R W F D DE or N (any other), then F forced to the medium, A read
/// ahead, S synchronous, M metadata.
pub fn letters(flags: u32) -> String {
    let mut text = String::with_capacity(8);
    if flags & PREFLUSH != 0 {
        text.push('F');
    }
    text.push_str(match Op::of(flags) {
        Op::Read => "R",
        Op::Write => "W",
        Op::Flush => "F",
        Op::Discard => "D",
        Op::SecureErase => "DE",
        _ => "N",
    });
    for (bit, letter) in [(FUA, 'F'), (RAHEAD, 'A'), (SYNC, 'S'), (META, 'M')] {
        if flags & bit != 0 {
            text.push(letter);
        }
    }
    text
}

/// Flags in words: `WRITE|SYNC|FUA`; flags without a stable name are a number: `READ|0x200000`.
pub fn text(flags: u32) -> String {
    let mut text = Op::of(flags).name().to_ascii_uppercase();
    let mut rest = flags & !OP_MASK;
    for (bit, name) in FLAGS {
        if rest & 1 << bit != 0 {
            rest &= !(1 << bit);
            text.push('|');
            text.push_str(name);
        }
    }
    if rest != 0 {
        text.push_str(&format!("|{rest:#x}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_write_to_a_stacked_disk_is_a_flush() {
        let io = |flags, bytes, layer| BlockIo { flags, bytes, layer, ..BlockIo::default() };
        assert_eq!(Op::of_io(&io(1 | PREFLUSH, 0, BlockLayer::Bio)), Op::Flush);
        assert_eq!(Op::of_io(&io(1 | PREFLUSH, 512, BlockLayer::Bio)), Op::Write);
        assert_eq!(Op::of_io(&io(1, 0, BlockLayer::Bio)), Op::Write);
    }

    #[test]
    fn letters_as_blktrace_has_them() {
        for (flags, expected) in [
            (0, "R"),
            (RAHEAD, "RA"),
            (1 | SYNC, "WS"),
            (1 | PREFLUSH | FUA | SYNC | META, "FWFSM"),
            (2 | PREFLUSH, "FF"),
            (3, "D"),
            (5, "DE"),
            (9, "N"),
            (34, "N"),
        ] {
            assert_eq!(letters(flags), expected, "{flags:#x}");
        }
    }

    #[test]
    fn what_moves_between_kernels_stays_a_number() {
        assert_eq!(text(1 | SYNC | FUA), "WRITE|SYNC|FUA");
        assert_eq!(text(17 | 1 << 21), "OP17|0x200000");
    }
}
