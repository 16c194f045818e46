//! How reading or writing a tape can fail: one variant per way, each with the values that disagree.

use std::io;

use crate::header::MAGIC;
use crate::other::Other;

/// Why a tape, or a part of it, cannot be read or written.
///
/// An error from opening concerns the whole tape. An error from a [`crate::reader::Segment`] getter concerns that one
/// block: the caller counts a hole (every total it touches becomes "at least") and continues.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system returned an error.
    #[error("cannot {what}")]
    Io {
        /// The attempted action, e.g. `open trace.tape`.
        what: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// Zero bytes long.
    #[error("the tape is empty (0 bytes): record was stopped before it wrote anything, or the disk was full")]
    Empty,
    /// No block header anywhere near the start.
    #[error("{}", not_a_tape(found, *searched))]
    NotATape {
        /// First bytes.
        found: Vec<u8>,
        /// Bytes that were searched for a block header.
        searched: u64,
    },
    /// A file that begins like one of another kind.
    #[error("not a tape: it is {}{}", .0.what, instead(.0))]
    Other(Other),
    /// Written by a later systape, in a layout unknown to this one.
    #[error("the tape has format {found}, this program reads up to {known}: use a newer analyze")]
    NewerMajor {
        /// Major version of the tape.
        found: u16,
        /// Greatest major version this crate reads.
        known: u16,
    },
    /// An invalid block header.
    #[error("bad block header at offset {offset:#x}: {why}; try 'analyze check'")]
    BadHeader {
        /// Its offset from the tape's first byte.
        offset: u64,
        /// What is wrong.
        why: String,
    },
    /// The payload's hash is wrong.
    #[error(
        "block at offset {offset:#x} is damaged: hash of its payload is {found:#018x}, its header says {expected:#018x}; try 'analyze check'"
    )]
    BadHash {
        /// Offset of the block from the tape's first byte.
        offset: u64,
        /// The hash in the header.
        expected: u64,
        /// The hash of the bytes read.
        found: u64,
    },
    /// Over a limit that keeps memory bounded.
    #[error("{what}: length {len} > limit {limit}")]
    TooLarge {
        /// The thing that is too large.
        what: String,
        /// Its claimed size.
        len: u64,
        /// Its limit.
        limit: u64,
    },
    /// The file ends too early.
    #[error(
        "the tape ends too early: {what} needs {wanted} bytes at offset {offset:#x}, the file has {available}; it was truncated, perhaps while being read"
    )]
    Truncated {
        /// The thing to read.
        what: String,
        /// Its offset from the tape's first byte.
        offset: u64,
        /// Bytes it needs.
        wanted: u64,
        /// Bytes present.
        available: u64,
    },
    /// zstd refused the payload.
    #[error("cannot {what} block: zstd: {why}")]
    Zstd {
        /// `compress` or `decompress`.
        what: &'static str,
        /// zstd's message.
        why: String,
    },
    /// Cap'n Proto refused the message.
    #[error("{what} block is not a valid message: {source}")]
    Capnp {
        /// Kind of the block.
        what: &'static str,
        /// capnp's message.
        #[source]
        source: capnp::Error,
    },
    /// A "must" of schemas/trace.capnp is broken.
    #[error("{what} block breaks a rule of the format: {why}")]
    Invalid {
        /// Kind of the block.
        what: &'static str,
        /// The rule, with the offending values.
        why: String,
    },
    /// The block uses a feature that changes its meaning and is unknown to this version.
    #[error("{what} block needs features {bits:#x} that this program does not know: use a newer analyze")]
    UnsupportedIncompat {
        /// Kind of the block.
        what: &'static str,
        /// The unknown bits.
        bits: u64,
    },
    /// The block was written (other blocks of the segment list it) but is not in the file.
    #[error("the {what} block of segment {segment} is missing: the tape is damaged there; try 'analyze check'")]
    Missing {
        /// Kind of the block.
        what: &'static str,
        /// Number of the segment; for a checkpoint, of the chunk.
        segment: u32,
    },
}

impl Error {
    /// A broken "must".
    pub(crate) fn invalid(what: &'static str, why: impl Into<String>) -> Self {
        Self::Invalid { what, why: why.into() }
    }

    /// An I/O error with the attempted action.
    pub(crate) fn io(what: impl Into<String>, source: io::Error) -> Self {
        Self::Io { what: what.into(), source }
    }
}

/// Turns capnp's error into ours, naming the kind of block.
pub(crate) fn capnp_err(what: &'static str) -> impl Fn(capnp::Error) -> Error {
    move |source| Error::Capnp { what, source }
}

/// Result of this crate.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

fn instead(other: &Other) -> String {
    if other.instead.is_empty() { String::new() } else { format!(": {}", other.instead) }
}

/// Why a file that starts with `found` and has no block in its first `searched` bytes is no tape.
fn not_a_tape(found: &[u8], searched: u64) -> String {
    if found == MAGIC {
        return format!("not a tape: it starts like one, but its first {searched} bytes hold no whole block");
    }
    format!(
        "not a tape: it starts with {found:02x?}, not with {MAGIC:02x?}, and its first {searched} bytes hold no block"
    )
}
