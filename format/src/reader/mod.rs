//! Opens a tape and returns its segments; recovers the whole blocks of a damaged or unfinished one.
//!
//! A tape that ended cleanly is opened by its footer and index. Without them, or when they disagree with the blocks'
//! headers, the headers are walked instead: the answers are the same, but some fields of [`SegmentInfo`] are not known.
//! Nothing is decoded until requested. Reads are by pread, and a [`Tape`] may be used from many threads.

mod feed;
mod misses;
mod open;
mod segment;

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::encode::MAX_PARTS;
use crate::error::{Error, Result};
use crate::header::{BlockKind, FLAG_CONTINUED, FLAG_CONTINUES, HEADER_LEN, NO_SEGMENT};
use crate::message;
use crate::model::{Appeared, Checkpoint, End, SegmentInfo, Session, Symbols};
use crate::payload::{self, Place};
use crate::scan::scan;
use crate::source::Source;
use crate::table::TableDef;
use crate::tables::MAX_TABLES;

pub use crate::order::PickedRows;
pub use crate::scan::TapeFault;
pub use feed::Feed;
pub use misses::{Miss, Misses};
pub use open::HEAD_SEARCH;
pub(crate) use open::{by_headers, header_at, same_header_part};
pub use segment::Segment;
pub(crate) use segment::kind_of;

/// A block, from its header.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockInfo {
    /// Kind of the block.
    pub kind: BlockKind,
    /// Offset of its header from the file's first byte.
    pub offset: u64,
    /// Bytes of payload in the file; the header's 128 and padding come on top.
    pub stored_len: u32,
    /// Bytes of payload when decompressed.
    pub raw_len: u32,
    /// Number of its segment; None for a block of no segment.
    pub segment: Option<u32>,
    /// Number of its chunk.
    pub chunk: u32,
    /// Number of the block.
    pub seq: u64,
    /// Least start.
    pub start_min: u64,
    /// Least end.
    pub end_min: u64,
    /// Greatest end.
    pub end_max: u64,
    /// Events in it (dict and checkpoint: tasks).
    pub rows: u32,
    /// Features a reader must know.
    pub incompat: u64,
}

/// Where a segment's blocks are.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    pub(crate) places: Vec<Place>,
    /// Kinds with which the segment was written, as the header's `groups`.
    pub(crate) groups: u64,
}

/// An opened tape.
#[derive(Debug)]
pub struct Tape {
    pub(crate) source: Source,
    pub(crate) len: u64,
    /// Offset of the first whole header.
    pub(crate) first: u64,
    pub(crate) tape_id: [u8; 16],
    pub(crate) version: (u16, u16),
    pub(crate) session: Session,
    pub(crate) session_whole: bool,
    /// No session block can be read. One made by a repair can.
    pub(crate) session_lost: bool,
    pub(crate) segments: Vec<SegmentInfo>,
    /// Blocks of each of `segments`.
    pub(crate) blocks: Vec<Blocks>,
    /// (chunk, parts), by chunk.
    pub(crate) checkpoints: Vec<(u32, Vec<Place>)>,
    /// Blocks of names, by offset.
    pub(crate) symbols: Vec<Place>,
    /// Blocks of definitions of tables, by offset.
    pub(crate) table_defs: Vec<Place>,
    /// What appeared after the session was written; the session has it too.
    pub(crate) appeared: Appeared,
    /// Definitions by number, after the first read.
    pub(crate) defs: OnceLock<HashMap<u64, Arc<TableDef>>>,
    pub(crate) end: Option<End>,
    /// The end mark has the bit of an abnormal end.
    pub(crate) cut: bool,
    pub(crate) complete_until: u64,
    pub(crate) from_index: bool,
    pub(crate) findings: Vec<TapeFault>,
    /// Misses of all reads so far.
    pub(crate) misses: Arc<Misses>,
    pub(crate) being_written: bool,
    pub(crate) followed: bool,
}

impl Tape {
    /// Opens a tape, however it ended.
    ///
    /// # Errors
    /// There is nothing to read: it is no tape, empty, written by a later systape, or the file system refuses.
    pub fn open(path: &Path) -> Result<Self> {
        let (source, len) = Source::open(path)?;
        open::open(source, len)
    }

    /// Opens a tape as [`Self::open`] does, from a file that is open.
    ///
    /// # Errors
    /// As those of [`Self::open`].
    pub fn from_file(file: File) -> Result<Self> {
        let (source, len) = Source::file(file, &|| "read the tape".to_owned())?;
        open::open(source, len)
    }

    /// Fails as [`Self::from_file`] would, because no tape begins in the first [`HEAD_SEARCH`] bytes of `file`.
    ///
    /// # Errors
    /// See above.
    pub fn check_begin(file: &File) -> Result<()> {
        let file = file.try_clone().map_err(|e| Error::io("read the tape", e))?;
        let (source, len) = Source::file(file, &|| "read the tape".to_owned())?;
        open::check_begin(&source, len)
    }

    /// Opens a tape in memory as [`Self::open`] does.
    ///
    /// # Errors
    /// As those of [`Self::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        let len = bytes.len() as u64;
        open::open(Source::Bytes(bytes), len)
    }

    /// Facts about machine and recording. When the session block is damaged ([`Self::session_is_whole`]) most of it is
    /// default, but the clock and the start of the window come from the first checkpoint if there is one.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Whether the recording's own session block could be read. False too when a repair made it.
    pub fn session_is_whole(&self) -> bool {
        self.session_whole
    }

    /// The segments by number. Numbers may have holes in a damaged tape.
    pub fn segments(&self) -> &[SegmentInfo] {
        &self.segments
    }

    /// How the recording ended; None: abnormally (killed, disk full, power cut), or the tape was cut.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref().filter(|_| !self.cut)
    }

    /// Whether who opened the tape knows that `record` still writes it: then it has no end yet.
    pub fn is_being_written(&self) -> bool {
        self.being_written
    }

    /// Says that `record` still writes the tape; one that has an end is not being written.
    pub fn set_being_written(&mut self) {
        self.being_written = self.end.is_none();
    }

    /// Whether it is what a [`Feed`] read last of a tape, whose end may still come: that it has none is no loss.
    pub fn is_followed(&self) -> bool {
        self.followed
    }

    /// The end mark, also that of a repaired tape whose recording ended abnormally: then [`Self::end`] is None.
    pub fn end_mark(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// The end mark, or one with the facts known without it, for a copy.
    pub(crate) fn known_end(&self) -> End {
        self.end.clone().unwrap_or_else(|| End {
            window_close: self.complete_until(),
            reason: "the recording ended abnormally".to_owned(),
            command_exit: -1,
            ..End::default()
        })
    }

    /// Damage found while opening. [`Self::verify`] finds the rest.
    pub fn findings(&self) -> &[TapeFault] {
        &self.findings
    }

    /// The requested blocks that could not be read, so far. Answers from this tape lack their contents.
    pub fn misses(&self) -> &Arc<Misses> {
        &self.misses
    }

    /// Whether the segments come from the index: then max_dur, calls and pids of each are known.
    pub fn has_index(&self) -> bool {
        self.from_index
    }

    /// The time up to which the tape is complete: end of the recording, or of the last whole segment's window; start of
    /// the recording when there is none.
    pub fn complete_until(&self) -> u64 {
        self.complete_until.max(self.session.window_open)
    }

    /// The segment at position `i` of [`Self::segments`].
    ///
    /// # Panics
    ///
    /// When there is no such segment, like the index of a slice.
    pub fn segment(&self, i: usize) -> Segment<'_> {
        Segment::new(self, &self.segments[i], &self.blocks[i])
    }

    /// Number of checkpoints found.
    pub fn checkpoints(&self) -> usize {
        self.checkpoints.len()
    }

    /// Number of the chunk whose head is checkpoint `i`; equal to `i` unless a checkpoint is missing.
    pub fn checkpoint_chunk(&self, i: usize) -> Option<u32> {
        self.checkpoints.get(i).map(|&(chunk, _)| chunk)
    }

    /// The `i`-th checkpoint, of all its parts.
    ///
    /// # Errors
    /// There is no such checkpoint, or a part of it is damaged.
    pub fn checkpoint(&self, i: usize) -> Result<Checkpoint> {
        let what = BlockKind::Checkpoint.name();
        let (chunk, parts) =
            self.checkpoints.get(i).ok_or(Error::Missing { what, segment: u32::try_from(i).unwrap_or(u32::MAX) })?;
        self.misses.note(BlockKind::Checkpoint, *chunk, self.checkpoint_parts(*chunk, parts))
    }

    fn checkpoint_parts(&self, chunk: u32, parts: &[Place]) -> Result<Checkpoint> {
        let what = BlockKind::Checkpoint.name();
        let missing = || Error::Missing { what, segment: chunk };
        if parts.len() > MAX_PARTS {
            let what = format!("cannot read checkpoint of chunk {chunk}: blocks");
            return Err(Error::TooLarge { what, len: parts.len() as u64, limit: MAX_PARTS as u64 });
        }
        let mut cp = Checkpoint::default();
        let mut next_seq = None;
        for (i, place) in parts.iter().enumerate() {
            payload::read(&self.source, place, &self.tape_id, NO_SEGMENT, |header, message| {
                let first = header.flags & FLAG_CONTINUED == 0;
                let last = header.flags & FLAG_CONTINUES == 0;
                if first != (i == 0) || last != (i + 1 == parts.len()) || next_seq.is_some_and(|s| s != header.seq) {
                    return Err(missing());
                }
                next_seq = header.seq.checked_add(1);
                message::read_checkpoint_part(header, message, first, &mut cp)
            })?;
        }
        Ok(cp)
    }

    /// Blocks of names in the tape, in the order in which they were written: if two name a place, the later one wins.
    pub fn symbol_blocks(&self) -> usize {
        self.symbols.len()
    }

    /// The `i`-th block of names, complete in itself.
    ///
    /// # Errors
    /// There is no such block, or it is damaged.
    pub fn symbols(&self, i: usize) -> Result<Symbols> {
        let missing = Error::Missing { what: BlockKind::Symbols.name(), segment: NO_SEGMENT };
        let place = self.symbols.get(i).ok_or(missing)?;
        let read = payload::read(&self.source, place, &self.tape_id, NO_SEGMENT, message::read_symbols);
        self.misses.note(BlockKind::Symbols, u32::try_from(i).unwrap_or(u32::MAX), read)
    }

    /// The tape's definitions of tables, by the number in their rows. Read once. A definition without a readable copy
    /// is missing: its rows are a hole.
    pub fn table_defs(&self) -> &HashMap<u64, Arc<TableDef>> {
        self.defs.get_or_init(|| {
            let mut defs = HashMap::new();
            for place in &self.table_defs {
                let read = payload::read(&self.source, place, &self.tape_id, NO_SEGMENT, message::read_table_defs);
                // there are copies of it: rows whose definition is in none are told of when they are asked for
                for def in read.into_iter().flat_map(|read| read.tables).take(MAX_TABLES.saturating_sub(defs.len())) {
                    defs.insert(message::table_id(&def), def);
                }
            }
            defs
        })
    }

    /// Length of the file when it was opened.
    pub fn len_bytes(&self) -> u64 {
        self.len
    }

    /// The tape's random id.
    pub fn tape_id(&self) -> [u8; 16] {
        self.tape_id
    }

    /// (major, minor) of the format, from the first block.
    pub fn version(&self) -> (u16, u16) {
        self.version
    }

    /// Every whole block of the tape in file order, by walking the headers. Empty when the file can no longer be read.
    pub fn blocks(&self) -> Vec<BlockInfo> {
        let blocks = scan(&self.source, self.len, self.first, &self.tape_id).map(|s| s.blocks).unwrap_or_default();
        let info = |(offset, h): (u64, crate::header::Header)| BlockInfo {
            kind: h.kind,
            offset,
            stored_len: h.stored_len,
            raw_len: h.raw_len,
            segment: (h.segment != NO_SEGMENT).then_some(h.segment),
            chunk: h.chunk,
            seq: h.seq,
            start_min: h.start_min,
            end_min: h.end_min,
            end_max: h.end_max,
            rows: h.rows,
            incompat: h.features_incompat,
        };
        blocks.into_iter().map(info).collect()
    }
}

/// Bytes of a block without its payload, for callers that add up sizes.
pub const BLOCK_OVERHEAD: u64 = HEADER_LEN as u64;
