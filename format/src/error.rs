//! How reading or writing a tape can fail: one variant per way, each with the values that disagree.

use std::io;

/// Why a tape, or a part of it, cannot be read or written.
///
/// An error from opening concerns the whole tape. An error from a [`crate::reader::Segment`] getter concerns that one
/// block: the caller counts a hole (every total it touches becomes "at least") and goes on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system said no.
    #[error("cannot {what}")]
    Io {
        /// What was tried, e.g. `open trace.tape`.
        what: String,
        /// What the system answered.
        #[source]
        source: io::Error,
    },
    /// Zero bytes long.
    #[error("the tape is empty (0 bytes): record was stopped before it wrote anything, or the disk was full")]
    Empty,
    /// No block header anywhere near the start.
    #[error("not a tape: it starts with {found:02x?}, not with {magic:02x?}, and its first {searched} bytes hold no block", magic = crate::header::MAGIC)]
    NotATape {
        /// First bytes.
        found: Vec<u8>,
        /// Bytes searched for a block header.
        searched: u64,
    },
    /// Written by a later systape whose layout this one cannot know.
    #[error("the tape has format {found}, this program reads up to {known}: use a newer analyze")]
    NewerMajor {
        /// Major version of the tape.
        found: u16,
        /// Greatest major version this crate reads.
        known: u16,
    },
    /// A block header that does not hold together.
    #[error("bad block header at offset {offset:#x}: {why}; try 'analyze check'")]
    BadHeader {
        /// From the tape's first byte.
        offset: u64,
        /// What is wrong.
        why: String,
    },
    /// The payload is not what was written.
    #[error(
        "block at offset {offset:#x} is damaged: hash of its payload is {found:#018x}, its header says {expected:#018x}; try 'analyze check'"
    )]
    BadHash {
        /// Of the block, from the tape's first byte.
        offset: u64,
        /// By the header.
        expected: u64,
        /// Of the bytes read.
        found: u64,
    },
    /// Over a limit that keeps memory bounded.
    #[error("{what}: length {len} > limit {limit}")]
    TooLarge {
        /// What is too large.
        what: String,
        /// How large it claims to be.
        len: u64,
        /// How large it may be.
        limit: u64,
    },
    /// The file ends before something it should hold.
    #[error(
        "the tape ends too early: {what} needs {wanted} bytes at offset {offset:#x}, the file has {available}; it was truncated, perhaps while being read"
    )]
    Truncated {
        /// What was to be read.
        what: String,
        /// From the tape's first byte.
        offset: u64,
        /// Bytes needed.
        wanted: u64,
        /// Bytes there.
        available: u64,
    },
    /// zstd refused the payload.
    #[error("cannot {what} block: zstd: {why}")]
    Zstd {
        /// `compress` or `decompress`.
        what: &'static str,
        /// zstd's words.
        why: String,
    },
    /// Cap'n Proto refused the message.
    #[error("{what} block is not a valid message: {source}")]
    Capnp {
        /// Kind of the block.
        what: &'static str,
        /// capnp's words.
        #[source]
        source: capnp::Error,
    },
    /// A "must" of schemas/trace.capnp is broken.
    #[error("{what} block breaks a rule of the format: {why}")]
    Invalid {
        /// Kind of the block.
        what: &'static str,
        /// Which rule, with the offending values.
        why: String,
    },
    /// The block uses a feature that changes its meaning and that this version does not know.
    #[error("{what} block needs features {bits:#x} that this program does not know: use a newer analyze")]
    UnsupportedIncompat {
        /// Kind of the block.
        what: &'static str,
        /// The unknown bits.
        bits: u64,
    },
    /// The block was written (its siblings say so) but is not in the file.
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

    /// An I/O error with what was tried.
    pub(crate) fn io(what: impl Into<String>, source: io::Error) -> Self {
        Self::Io { what: what.into(), source }
    }
}

/// Turns capnp's error into ours, naming the kind of block.
pub(crate) fn capnp_err(what: &'static str) -> impl Fn(capnp::Error) -> Error {
    move |source| Error::Capnp { what, source }
}

/// What this crate returns.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;
