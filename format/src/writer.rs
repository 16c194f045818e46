//! Appends blocks to a tape: numbers them, writes headers, keeps the index until the end.
//!
//! Only `Write` is needed, so a tape may go into a pipe. The index takes at most about 1.2 KiB of memory per segment.
//! When a write fails (disk full), that block is lost and the error returned. Later calls continue behind the torn
//! block, and a reader finds the whole ones. The caller flushes and syncs.

use std::io::{ErrorKind, Write};
use std::sync::Arc;

use crate::encode::{EncodedCheckpoint, EncodedSegment, EncodedSymbols, Encoder};
use crate::error::{Error, Result};
use crate::footer::Footer;
use crate::header::{ALIGN, BlockKind, FLAG_CONTINUED, FLAG_CONTINUES, INCOMPAT_WINDOW, NO_SEGMENT};
use crate::message::{self, IndexEntry};
use crate::model::{Appeared, End, Session};
use crate::payload::{Block, Packer, Place};
use crate::table::TableDef;

/// Estimated bytes at which the next block of the index begins.
const INDEX_PART: usize = 4 << 20;

/// Level for session, index and end, which are written once: a little higher.
const LEVEL: i32 = 6;

/// A tape being written.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    tape_id: [u8; 16],
    /// Bytes accepted by `out`.
    bytes: u64,
    seq: u64,
    chunk: u32,
    /// Whether the current chunk has any block.
    chunk_begun: bool,
    segments: u32,
    entries: Vec<IndexEntry>,
    checkpoints: Vec<Place>,
    symbols: Vec<Place>,
    table_defs: Vec<Place>,
    /// Tables whose definitions the current chunk has.
    defined: Vec<u64>,
    /// Tables that every chunk defines, also without rows.
    asked: Vec<Arc<TableDef>>,
    buf: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a tape with its session. `tape_id` must be random: it distinguishes this tape's blocks from any other's.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when the session does not fit a block (8 MiB): leave out users or cgroups then. Or it cannot be written.
    pub fn create(w: W, tape_id: [u8; 16], session: &Session) -> Result<Self> {
        Self::begin(w, tape_id, session_block(session)?)
    }

    /// Begins a tape with an encoded session.
    pub(crate) fn begin(w: W, tape_id: [u8; 16], session: Block) -> Result<Self> {
        let mut writer = Self {
            out: w,
            tape_id,
            bytes: 0,
            seq: 0,
            chunk: 0,
            chunk_begun: false,
            segments: 0,
            entries: Vec::new(),
            checkpoints: Vec::new(),
            symbols: Vec::new(),
            table_defs: Vec::new(),
            defined: Vec::new(),
            asked: Vec::new(),
            buf: Vec::new(),
        };
        writer.append(vec![session], NO_SEGMENT)?;
        Ok(writer)
    }

    /// Every chunk defines these tables from now on, also without rows: a reader then knows that nothing happened, and
    /// not that nothing was recorded.
    pub fn define_always(&mut self, defs: Vec<Arc<TableDef>>) {
        self.asked = defs;
    }

    /// Continues in chunk `chunk`, for a copy: later blocks belong to it. Chunks never go back.
    pub(crate) fn in_chunk(&mut self, chunk: u32) {
        if chunk > self.chunk {
            self.chunk = chunk;
            self.defined.clear();
        }
        self.chunk_begun = false;
    }

    /// Writes a checkpoint: the head of a new chunk.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn checkpoint(&mut self, cp: EncodedCheckpoint) -> Result<()> {
        if self.chunk_begun {
            self.chunk = self.chunk.saturating_add(1);
        }
        self.chunk_begun = true;
        self.defined.clear();
        let mut places = self.append(cp.blocks, NO_SEGMENT)?;
        self.checkpoints.append(&mut places);
        let asked = std::mem::take(&mut self.asked);
        let defined = self.define(&asked, &Appeared::default());
        self.asked = asked;
        defined
    }

    /// Writes a segment. Segments are numbered in the order of these calls, which must be that of their windows.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn segment(&mut self, seg: EncodedSegment) -> Result<()> {
        let EncodedSegment { blocks, mut info, defs, appeared } = seg;
        (info.segment, info.chunk) = (self.segments, self.chunk);
        self.chunk_begun = true;
        self.segments = self.segments.saturating_add(1);
        self.define(&defs, &appeared)?;
        let blocks = self.append(blocks, info.segment)?;
        self.entries.push(IndexEntry { info, blocks });
        Ok(())
    }

    /// Writes the definitions of tables that the current chunk lacks, so that a chunk is complete, and names of what appeared.
    pub(crate) fn define(&mut self, defs: &[Arc<TableDef>], appeared: &Appeared) -> Result<()> {
        let new = |def: &&Arc<TableDef>| !self.defined.contains(&message::table_id(def));
        let new: Vec<Arc<TableDef>> = defs.iter().filter(new).cloned().collect();
        if new.is_empty() && appeared.is_empty() {
            return Ok(());
        }
        let block = Encoder::new(LEVEL).table_defs(&new, appeared)?;
        let mut places = self.append(vec![block], NO_SEGMENT)?;
        self.table_defs.append(&mut places);
        self.defined.extend(new.iter().map(|def| message::table_id(def)));
        Ok(())
    }

    /// Writes names. They may stand anywhere, and apply to earlier and later blocks.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn symbols(&mut self, symbols: EncodedSymbols) -> Result<()> {
        let mut places = self.append(symbols.blocks, NO_SEGMENT)?;
        self.symbols.append(&mut places);
        Ok(())
    }

    /// Writes index, end mark and footer; returns the output, not flushed.
    ///
    /// # Errors
    /// It cannot be written, or the index is larger than a block may be (8 MiB).
    pub fn finish(self, end: &End) -> Result<W> {
        self.finish_with(end, 0)
    }

    /// Ends the tape as [`Self::finish`] does; `incompat` are features of the end mark.
    pub(crate) fn finish_with(mut self, end: &End, incompat: u64) -> Result<W> {
        let mut packer = Packer::new(LEVEL);
        let mut index = Vec::new();
        let mut rest = self.entries.as_slice();
        // References of checkpoints and symbols are small and few: those of up to 80,000 and 40,000 go in front, in the
        // first block.
        let mut checkpoints = self.checkpoints.as_slice();
        let mut symbols = self.symbols.as_slice();
        let mut table_defs = self.table_defs.as_slice();
        loop {
            let mut bytes = 0;
            let fit = rest.iter().take_while(|e| {
                bytes += message::entry_bytes(e);
                bytes <= INDEX_PART
            });
            let (entries, later) = rest.split_at(fit.count());
            let (places, later_places) = checkpoints.split_at(checkpoints.len().min(INDEX_PART / 2 / 24));
            let (names, later_names) = symbols.split_at(symbols.len().min(INDEX_PART / 4 / 24));
            let (defs, later_defs) = table_defs.split_at(table_defs.len().min(INDEX_PART / 8 / 24));
            index.push(packer.pack(BlockKind::Index, &message::write_index(entries, places, names, defs))?);
            (rest, checkpoints, symbols, table_defs) = (later, later_places, later_names, later_defs);
            if rest.is_empty() && checkpoints.is_empty() && symbols.is_empty() && table_defs.is_empty() {
                break;
            }
        }
        let blocks = index.len();
        for (i, block) in index.iter_mut().enumerate() {
            block.header.flags =
                if i > 0 { FLAG_CONTINUED } else { 0 } | if i + 1 < blocks { FLAG_CONTINUES } else { 0 };
        }
        let index = self.append(index, NO_SEGMENT)?;
        let mut mark = packer.pack(BlockKind::End, &message::write_end(end))?;
        let h = &mut mark.header;
        h.features_incompat = incompat;
        (h.start_min, h.end_min, h.end_max) = (end.window_close, end.window_close, end.window_close);
        let mark = self.append(vec![mark], NO_SEGMENT)?;
        let at = |places: &[Place]| places.first().map_or(0, |p| p.offset);
        let footer = Footer {
            tape_id: self.tape_id,
            index_offset: at(&index),
            end_offset: at(&mark),
            footer_offset: self.bytes,
            index_blocks: index.len() as u32,
        };
        self.buf.clear();
        self.buf.extend_from_slice(&footer.to_bytes());
        self.write_buf()?;
        Ok(self.out)
    }

    /// Numbers and writes blocks in one go; returns their places.
    fn append(&mut self, blocks: Vec<Block>, segment: u32) -> Result<Vec<Place>> {
        self.buf.clear();
        // After a torn write: blocks start at multiples of 8 again.
        let start = self.bytes.next_multiple_of(ALIGN);
        self.buf.resize((start - self.bytes) as usize, 0);
        let mut places = Vec::with_capacity(blocks.len());
        for Block { mut header, stored } in blocks {
            header.tape_id = self.tape_id;
            header.chunk = self.chunk;
            header.segment = segment;
            header.seq = self.seq;
            self.seq += 1;
            places.push(Place::of(self.bytes + self.buf.len() as u64, &header));
            self.buf.extend_from_slice(&header.to_bytes());
            self.buf.extend_from_slice(&stored);
            let padded = (self.bytes + self.buf.len() as u64).next_multiple_of(ALIGN) - self.bytes;
            self.buf.resize(padded as usize, 0);
        }
        self.write_buf()?;
        Ok(places)
    }

    /// Writes `buf`; counts every accepted byte even when the rest fails.
    fn write_buf(&mut self) -> Result<()> {
        let mut rest = self.buf.as_slice();
        let fail = |at: u64, left: usize, e| Error::io(format!("write {left} bytes at offset {at:#x} of the tape"), e);
        while !rest.is_empty() {
            match self.out.write(rest) {
                Ok(0) => return Err(fail(self.bytes, rest.len(), ErrorKind::WriteZero.into())),
                Ok(n) => {
                    self.bytes += n as u64;
                    rest = rest.get(n..).unwrap_or_default();
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(fail(self.bytes, rest.len(), e)),
            }
        }
        Ok(())
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Segments numbered so far, torn ones included.
    pub fn segments(&self) -> u32 {
        self.segments
    }
}

/// A session as a block.
pub(crate) fn session_block(session: &Session) -> Result<Block> {
    let mut block = Packer::new(LEVEL).pack(BlockKind::Session, &message::write_session(session))?;
    let h = &mut block.header;
    (h.start_min, h.end_min, h.end_max) = (session.window_open, session.window_open, session.window_open);
    if session.cut.is_some() {
        h.features_incompat |= INCOMPAT_WINDOW;
    }
    Ok(block)
}
