//! The chunks in memory: compressed pieces of the last while, from which a tape is made without reading or changing
//! them.

use std::collections::VecDeque;
use std::sync::Arc;

use systape_format::encode::EncodedSegment;
use systape_format::model::{Appeared, Kept};

use super::dump::{Begin, Dump, Plan};
use super::piece::Piece;
use super::step::{ChunkMark, Ready, Step};
use crate::own::say::say;

/// Bytes of paths of cgroups that appeared in chunks which are gone.
const MOST_CGROUPS: usize = 1 << 20;

/// A checkpoint and what follows it.
#[derive(Debug)]
struct Chunk {
    mark: ChunkMark,
    prologue: Option<Arc<EncodedSegment>>,
    pieces: Vec<Arc<Piece>>,
    bytes: u64,
}

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingBounds {
    /// Time that is kept, ns; 0 = nothing but the last chunk.
    pub last: u64,
    /// Bytes that are kept.
    pub bytes: u64,
}

/// Chunks that are kept in memory.
#[derive(Debug)]
pub(crate) struct ChunkRing {
    bounds: RingBounds,
    chunks: VecDeque<Chunk>,
    bytes: u64,
    /// Something was evicted for the size that the time would have kept, and it is not older than the time yet.
    cut: Option<u64>,
    /// What appeared in chunks that are gone.
    appeared: Appeared,
    appeared_bytes: usize,
    plan: Arc<Plan>,
    dump: Option<Dump>,
    /// Tapes that were ended and are still being written.
    ending: Vec<Dump>,
}

impl ChunkRing {
    /// An empty one.
    pub(crate) fn new(bounds: RingBounds, plan: Arc<Plan>) -> Self {
        Self {
            bounds,
            chunks: VecDeque::new(),
            bytes: 0,
            cut: None,
            appeared: Appeared::default(),
            appeared_bytes: 0,
            plan,
            dump: None,
            ending: Vec::new(),
        }
    }

    /// Keeps a piece; a tape that is being written gets it too.
    pub(crate) fn add(&mut self, piece: Piece) {
        let piece = Arc::new(piece);
        if let Some(dump) = &mut self.dump {
            dump.add(&piece);
        }
        // before the first mark there is nothing
        if let Some(chunk) = self.chunks.back_mut() {
            chunk.bytes += piece.bytes();
            self.bytes += piece.bytes();
            chunk.pieces.push(piece);
            self.evict_for_size();
        }
        self.tell();
    }

    /// Does what the encoder says.
    pub(crate) fn step(&mut self, step: Ready) {
        match step {
            Step::Chunk(mark) => {
                let newest = mark.ts;
                self.chunks.push_back(Chunk { mark, prologue: None, pieces: Vec::new(), bytes: 0 });
                self.evict_for_time(newest);
                if let Some(names) = &self.plan.names {
                    names.trim(self.chunks.iter().flat_map(|chunk| &chunk.pieces).map(|piece| piece.places()));
                }
            }
            Step::Prologue(segment) => {
                if let Some(chunk) = self.chunks.back_mut() {
                    chunk.bytes += segment.stored_bytes();
                    self.bytes += segment.stored_bytes();
                    chunk.prologue = Some(Arc::new(segment));
                }
            }
            Step::Open(opening, rows) => {
                self.ending.retain(|dump| !dump.is_finished());
                let Some(begin) = self.begin() else { return };
                match Dump::start(Arc::clone(&self.plan), begin, opening, rows, self.bounds.bytes) {
                    Ok(dump) => self.dump = Some(dump),
                    Err(e) => say(format_args!("no tape: {e:#}")),
                }
            }
            Step::Close(closing, rows) => {
                if let Some(dump) = self.dump.take() {
                    self.ending.push(dump.close(closing, rows));
                }
            }
        }
    }

    /// What a tape begins with: everything that is kept.
    fn begin(&self) -> Option<Begin> {
        let first = self.chunks.front()?;
        let mut session = self.plan.session.clone();
        (session.window_open, session.clock) = (first.mark.ts, first.mark.clock);
        let new = |id| !self.plan.session.cgroups.iter().any(|(of, _)| *of == id);
        session.cgroups.extend(self.appeared.cgroups.iter().filter(|(id, _)| new(*id)).cloned());
        session.containers.extend(self.appeared.containers.iter().cloned());
        session.kept = Some(Kept {
            last: if self.bounds.last == u64::MAX { 0 } else { self.bounds.last },
            ring_bytes: self.bounds.bytes,
            full: self.cut.is_some(),
            recording_open: self.plan.session.window_open,
        });
        let pieces = self.chunks.iter().flat_map(|chunk| chunk.pieces.iter().cloned()).collect();
        Some(Begin { session, prologue: first.prologue.clone(), pieces, sums: first.mark.sums.clone() })
    }

    fn evict_for_time(&mut self, newest: u64) {
        let oldest = newest.saturating_sub(self.bounds.last);
        while self.chunks.get(1).is_some_and(|next| next.mark.ts <= oldest) {
            self.evict();
        }
        self.cut = self.cut.filter(|ts| *ts > oldest);
    }

    fn evict_for_size(&mut self) {
        while self.bytes > self.bounds.bytes && self.chunks.len() > 1 {
            self.evict();
            self.cut = self.chunks.front().map(|chunk| chunk.mark.ts);
        }
    }

    fn evict(&mut self) {
        let Some(chunk) = self.chunks.pop_front() else { return };
        self.bytes -= chunk.bytes;
        for piece in &chunk.pieces {
            let Piece::Segment(segment, _) = &**piece else { continue };
            for (id, path) in &segment.appeared().cgroups {
                self.appeared_bytes += 32 + path.len();
                self.appeared.cgroups.push((*id, path.clone()));
            }
            self.appeared.containers.extend(segment.appeared().containers.iter().cloned());
        }
        // of very many the oldest are most likely gone
        while self.appeared_bytes > MOST_CGROUPS {
            let half = self.appeared.cgroups.len() / 2;
            self.appeared.cgroups.drain(..half.max(1));
            self.appeared_bytes = self.appeared.cgroups.iter().map(|(_, path)| 32 + path.len()).sum();
        }
        let containers = self.appeared.containers.len();
        self.appeared.containers.drain(..containers.saturating_sub(4096));
    }

    /// Passes on how much there is.
    fn tell(&self) {
        let mut now = self.plan.status.now();
        now.held.0 = self.chunks.front().map_or(0, |chunk| chunk.mark.ts);
        (now.used, now.chunks, now.full) = (self.bytes, self.chunks.len(), self.cut.is_some());
        now.writing = self.dump.is_some() || self.ending.iter().any(|dump| !dump.is_finished());
    }

    /// Waits until every tape is written.
    pub(crate) fn finish(self) {
        self.ending.into_iter().chain(self.dump).for_each(Dump::finish);
    }
}
