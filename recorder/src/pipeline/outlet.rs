//! Where compressed pieces go: the tape, the flight recorder's memory, or both.

use anyhow::{Context, Result};
use systape_format::encode::{EncodedCheckpoint, EncodedSegment, EncodedSymbols};
use systape_format::writer::Writer;

use crate::flight::piece::Piece;
use crate::flight::ring::ChunkRing;
use crate::flight::step::Ready;
use crate::tape::sink::TapeSink;

/// A compressed piece, or a message that goes with them.
#[derive(Debug)]
pub(crate) enum Compressed {
    /// The head of a chunk.
    Checkpoint(EncodedCheckpoint),
    /// A window's events; for the flight recorder the places on its stacks.
    Segment(EncodedSegment, Box<[u64]>),
    /// Names of frames; the flight recorder keeps them elsewhere.
    Symbols(EncodedSymbols),
    /// A message to the flight recorder.
    Step(Ready),
}

impl Compressed {
    /// Bytes that it takes while it waits.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Checkpoint(piece) => piece.stored_bytes(),
            Self::Segment(piece, places) => piece.stored_bytes() + 8 * places.len() as u64,
            Self::Symbols(piece) => piece.stored_bytes(),
            Self::Step(_) => 0,
        }
    }
}

/// The way out of compressed pieces. Without a tape and without a flight recorder pieces are dropped.
#[derive(Debug)]
pub(crate) struct Outlet {
    tape: Option<Writer<TapeSink>>,
    ring: Option<ChunkRing>,
    /// Bytes so far.
    bytes: u64,
}

impl Outlet {
    /// Pieces go to both, in order.
    pub(crate) fn new(tape: Option<Writer<TapeSink>>, ring: Option<ChunkRing>) -> Self {
        let bytes = tape.as_ref().map_or(0, Writer::bytes);
        Self { tape, ring, bytes }
    }

    /// Bytes of the tape, or without one of all pieces so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Passes a piece on.
    ///
    /// # Errors
    /// When it cannot be written to the tape; what was written before is readable.
    pub(crate) fn add(&mut self, piece: Compressed) -> Result<()> {
        self.bytes += piece.bytes();
        match piece {
            Compressed::Checkpoint(piece) => {
                let piece = self.write(piece, Writer::checkpoint)?;
                keep(&mut self.ring, piece.map(Piece::Checkpoint));
            }
            Compressed::Segment(piece, places) => {
                let piece = self.write(piece, Writer::segment)?;
                keep(&mut self.ring, piece.map(|piece| Piece::Segment(piece, places)));
            }
            Compressed::Symbols(piece) => drop(self.write(piece, Writer::symbols)?),
            Compressed::Step(step) => {
                if let Some(ring) = &mut self.ring {
                    ring.step(step);
                }
            }
        }
        if let Some(tape) = &self.tape {
            self.bytes = tape.bytes();
        }
        Ok(())
    }

    /// Writes a piece to the tape, and returns it for the flight recorder; copied only if there are both.
    fn write<P: Clone>(
        &mut self,
        piece: P,
        write: impl FnOnce(&mut Writer<TapeSink>, P) -> std::result::Result<(), systape_format::Error>,
    ) -> Result<Option<P>> {
        let Some(tape) = &mut self.tape else { return Ok(Some(piece)) };
        let kept = self.ring.is_some().then(|| piece.clone());
        write(tape, piece).context("what was written before is readable")?;
        Ok(kept)
    }

    /// No more pieces come: waits for the flight recorder's tapes; returns the tape, which lacks its end.
    pub(crate) fn finish(self) -> Option<Writer<TapeSink>> {
        if let Some(ring) = self.ring {
            ring.finish();
        }
        self.tape
    }
}

fn keep(ring: &mut Option<ChunkRing>, piece: Option<Piece>) {
    if let Some((ring, piece)) = ring.as_mut().zip(piece) {
        ring.add(piece);
    }
}
