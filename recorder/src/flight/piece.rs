//! Compressed pieces that stay in memory.

use systape_format::encode::{EncodedCheckpoint, EncodedSegment};

/// A piece that stays in memory.
#[derive(Debug)]
pub(crate) enum Piece {
    /// The head of a chunk.
    Checkpoint(EncodedCheckpoint),
    /// A window's events, and the places on its stacks.
    Segment(EncodedSegment, Box<[u64]>),
}

impl Piece {
    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Checkpoint(checkpoint) => checkpoint.stored_bytes(),
            Self::Segment(segment, places) => segment.stored_bytes() + 8 * places.len() as u64,
        }
    }

    /// The places on its stacks.
    pub(crate) fn places(&self) -> &[u64] {
        match self {
            Self::Checkpoint(_) => &[],
            Self::Segment(_, places) => places,
        }
    }
}
