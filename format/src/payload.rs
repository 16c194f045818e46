//! Between a Cap'n Proto message and a block's payload: one zstd frame with a content size, hashed as stored.
//!
//! Every length is checked before memory is allocated: `raw_len` of the header (at most [`MAX_RAW`]) must equal the
//! zstd frame's content size, and a reader may traverse only a small multiple of it.

use std::cell::RefCell;

use capnp::Word;
use capnp::message::{Builder, HeapAllocator, Reader, ReaderOptions};
use capnp::serialize::BufferSegments;
use capnp::traits::HasStructSize;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result, capnp_err};
use crate::header::{BlockKind, HEADER_LEN, Header, MAX_RAW, MAX_STORED};
use crate::source::Source;

/// A decoded message and its number of words, which bounds list lengths.
pub(crate) type Message<'a> = Reader<BufferSegments<&'a [u8]>>;

/// Most levels of nesting in a message; the schema needs 6.
const NESTING: i32 = 12;
/// How often the reader may traverse a message. Each part is read once or twice; more means that pointers share targets
/// to make a small message look large.
const TRAVERSALS: usize = 4;
/// Buffers larger than this are not kept from one block to the next.
const KEEP: usize = 4 << 20;

/// A block ready to be written: the writer fills in tape, chunk, segment, seq and groups.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) header: Header,
    pub(crate) stored: Vec<u8>,
}

/// Makes payloads; owns the zstd context, so keep one per thread.
pub(crate) struct Packer {
    zstd: zstd::bulk::Compressor<'static>,
    raw: Vec<u8>,
    stored: Vec<u8>,
}

/// An empty message with room for `bytes`, so that it becomes one Cap'n Proto segment.
pub(crate) fn new_message(bytes: usize) -> Builder<HeapAllocator> {
    let words = (bytes / 8 + 64).min(MAX_RAW as usize / 8 + 64);
    Builder::new(HeapAllocator::new().first_segment_words(words as u32))
}

impl Packer {
    /// `level` is zstd's (1 to 9 make sense).
    pub(crate) fn new(level: i32) -> Self {
        let mut zstd = zstd::bulk::Compressor::default();
        // Levels above 19 have windows larger than a block can use; below -50 nothing is compressed. The parameter is
        // only refused outside zstd's own bounds, which are wider.
        let _ = zstd.set_compression_level(level.clamp(-50, 19));
        Self { zstd, raw: Vec::new(), stored: Vec::new() }
    }

    /// The block of `kind` with `message` in it.
    pub(crate) fn pack(&mut self, kind: BlockKind, message: &Builder<HeapAllocator>) -> Result<Block> {
        let bytes = capnp::serialize::compute_serialized_size_in_words(message) * 8;
        if bytes > MAX_RAW as usize {
            let what = format!("cannot write {} block", kind.name());
            return Err(Error::TooLarge { what, len: bytes as u64, limit: u64::from(MAX_RAW) });
        }
        self.raw.clear();
        self.raw.reserve(bytes);
        capnp::serialize::write_message(&mut self.raw, message).map_err(capnp_err(kind.name()))?;
        let raw = std::mem::take(&mut self.raw);
        let block = self.pack_raw(kind, &raw);
        self.raw = kept(raw);
        block
    }

    /// The block of `kind` with a serialized message in it.
    pub(crate) fn pack_raw(&mut self, kind: BlockKind, raw: &[u8]) -> Result<Block> {
        // a block may wait in memory for long: with no more room than it needs, though zstd wants room for what nothing is saved of
        let mut room = std::mem::take(&mut self.stored);
        room.clear();
        room.reserve(zstd::zstd_safe::compress_bound(raw.len()));
        let packed = self.zstd.compress_to_buffer(raw, &mut room);
        let stored = room.to_vec();
        self.stored = kept(room);
        packed.map_err(|e| Error::Zstd { what: "compress", why: e.to_string() })?;
        let mut header = Header::new(kind, [0; 16]);
        header.raw_len = raw.len() as u32;
        header.stored_len = stored.len() as u32;
        header.hash = xxh3_64(&stored);
        Ok(Block { header, stored })
    }
}

/// A buffer for the next block; one that had to be large is given back.
fn kept(buffer: Vec<u8>) -> Vec<u8> {
    if buffer.capacity() > KEEP { Vec::new() } else { buffer }
}

/// Buffers and zstd context of one reading thread.
struct Scratch {
    zstd: zstd::bulk::Decompressor<'static>,
    stored: Vec<u8>,
    raw: Vec<Word>,
}

thread_local! {
    static SCRATCH: RefCell<Option<Scratch>> = const { RefCell::new(None) };
}

/// Expected place and kind of a block, from the index or from its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) kind: BlockKind,
    pub(crate) offset: u64,
    pub(crate) stored_len: u32,
    pub(crate) raw_len: u32,
    pub(crate) chunk: u32,
}

impl Place {
    /// The place of a block whose header was read.
    pub(crate) fn of(offset: u64, header: &Header) -> Self {
        let Header { kind, stored_len, raw_len, chunk, .. } = *header;
        Self { kind, offset, stored_len, raw_len, chunk }
    }

    /// First byte after the block, padding not counted.
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(HEADER_LEN as u64).saturating_add(u64::from(self.stored_len))
    }

    /// The mismatch between `header` and this place in tape `tape_id` and segment `segment`, if any.
    pub(crate) fn mismatch(&self, header: &Header, tape_id: &[u8; 16], segment: u32) -> Option<String> {
        let differs = |what: &str, found: u64, expected: u64| {
            (found != expected).then(|| format!("{what} is {found} where the index says {expected}"))
        };
        if header.tape_id != *tape_id {
            return Some("it belongs to another tape".to_owned());
        }
        differs("kind", u64::from(header.kind.raw()), u64::from(self.kind.raw()))
            .or_else(|| differs("segment", u64::from(header.segment), u64::from(segment)))
            .or_else(|| differs("chunk", u64::from(header.chunk), u64::from(self.chunk)))
            .or_else(|| differs("stored length", u64::from(header.stored_len), u64::from(self.stored_len)))
            .or_else(|| differs("raw length", u64::from(header.raw_len), u64::from(self.raw_len)))
    }
}

/// Reads, checks and decodes the block at `place`, then hands its header and message to `f`.
pub(crate) fn read<R>(
    source: &Source,
    place: &Place,
    tape_id: &[u8; 16],
    segment: u32,
    f: impl FnOnce(&Header, &Message<'_>) -> Result<R>,
) -> Result<R> {
    // Taken out of the cell, not borrowed: `f` could read another block.
    let mut scratch = match SCRATCH.with(|cell| cell.borrow_mut().take()) {
        Some(scratch) => scratch,
        None => Scratch { zstd: zstd::bulk::Decompressor::default(), stored: Vec::new(), raw: Vec::new() },
    };
    let result = read_with(&mut scratch, source, place, tape_id, segment, f);
    if scratch.stored.capacity() + scratch.raw.capacity() * 8 <= KEEP {
        SCRATCH.with(|cell| *cell.borrow_mut() = Some(scratch));
    }
    result
}

fn read_with<R>(
    scratch: &mut Scratch,
    source: &Source,
    place: &Place,
    tape_id: &[u8; 16],
    segment: u32,
    f: impl FnOnce(&Header, &Message<'_>) -> Result<R>,
) -> Result<R> {
    let what = place.kind.name();
    check_lengths(place)?;
    scratch.stored.resize(HEADER_LEN + place.stored_len as usize, 0);
    source.read_exact_at(&mut scratch.stored, place.offset, what)?;
    let bad = |why: String| Error::BadHeader { offset: place.offset, why };
    let (head, stored) = scratch.stored.split_first_chunk::<HEADER_LEN>().ok_or_else(|| bad("too short".to_owned()))?;
    let header = Header::parse(head).map_err(|e| bad(e.to_string()))?;
    if let Some(why) = place.mismatch(&header, tape_id, segment) {
        return Err(bad(why));
    }
    if header.unknown_incompat() != 0 {
        return Err(Error::UnsupportedIncompat { what, bits: header.unknown_incompat() });
    }
    let found = xxh3_64(stored);
    if found != header.hash {
        return Err(Error::BadHash { offset: place.offset, expected: header.hash, found });
    }
    decompress(&mut scratch.zstd, stored, &mut scratch.raw, header.raw_len)?;
    let mut words = Word::words_to_bytes(&scratch.raw);
    let options =
        ReaderOptions { traversal_limit_in_words: Some(scratch.raw.len() * TRAVERSALS + 1024), nesting_limit: NESTING };
    let message = capnp::serialize::read_message_from_flat_slice(&mut words, options).map_err(capnp_err(what))?;
    f(&header, &message)
}

/// The block at `place` as stored, with its hash checked and its payload not decoded.
pub(crate) fn read_raw(source: &Source, place: &Place, tape_id: &[u8; 16], segment: u32) -> Result<Block> {
    check_lengths(place)?;
    let mut stored = vec![0; HEADER_LEN + place.stored_len as usize];
    source.read_exact_at(&mut stored, place.offset, place.kind.name())?;
    let bad = |why: String| Error::BadHeader { offset: place.offset, why };
    let head = stored.first_chunk::<HEADER_LEN>().ok_or_else(|| bad("too short".to_owned()))?;
    let header = Header::parse(head).map_err(|e| bad(e.to_string()))?;
    if let Some(why) = place.mismatch(&header, tape_id, segment) {
        return Err(bad(why));
    }
    if header.unknown_incompat() != 0 {
        return Err(Error::UnsupportedIncompat { what: place.kind.name(), bits: header.unknown_incompat() });
    }
    stored.drain(..HEADER_LEN);
    let found = xxh3_64(&stored);
    if found != header.hash {
        return Err(Error::BadHash { offset: place.offset, expected: header.hash, found });
    }
    Ok(Block { header, stored })
}

/// Lengths for which a reader will allocate.
fn check_lengths(place: &Place) -> Result<()> {
    let what = place.kind.name();
    let limit = |name: &str, len: u32, limit: u32| {
        let what = format!("cannot read {what} block at offset {:#x}: {name}", place.offset);
        if len > limit { Err(Error::TooLarge { what, len: u64::from(len), limit: u64::from(limit) }) } else { Ok(()) }
    };
    limit("raw", place.raw_len, MAX_RAW)?;
    limit("stored", place.stored_len, MAX_STORED)?;
    if place.raw_len == 0 || !place.raw_len.is_multiple_of(8) {
        return Err(Error::invalid(what, format!("raw length {} is not a whole number of words", place.raw_len)));
    }
    Ok(())
}

/// Decompresses exactly one frame of exactly `raw_len` bytes into `raw`.
fn decompress(
    zstd: &mut zstd::bulk::Decompressor<'static>,
    stored: &[u8],
    raw: &mut Vec<Word>,
    raw_len: u32,
) -> Result<()> {
    let fail = |why: String| Error::Zstd { what: "decompress", why };
    match zstd::zstd_safe::get_frame_content_size(stored) {
        Ok(Some(size)) if size == u64::from(raw_len) => {}
        Ok(Some(size)) => return Err(fail(format!("the frame holds {size} bytes, the header says {raw_len}"))),
        Ok(None) => return Err(fail("the frame does not say its size".to_owned())),
        Err(_) => return Err(fail("not a zstd frame".to_owned())),
    }
    let frame = zstd::zstd_safe::find_frame_compressed_size(stored)
        .map_err(|code| fail(zstd::zstd_safe::get_error_name(code).to_owned()))?;
    if frame != stored.len() {
        return Err(fail(format!("the frame is {frame} bytes long, the block {}", stored.len())));
    }
    // The output is bounded by the buffer, not by what the frame claims. Old content is overwritten: a frame that
    // gives fewer bytes is refused below.
    raw.resize(raw_len as usize / 8, capnp::word(0, 0, 0, 0, 0, 0, 0, 0));
    let got = zstd.decompress_to_buffer(stored, Word::words_to_bytes_mut(raw)).map_err(|e| fail(e.to_string()))?;
    if got != raw_len as usize {
        return Err(fail(format!("{got} bytes came out, the header says {raw_len}")));
    }
    Ok(())
}

/// `len` of a list of structs `B`, refused when a message of this size cannot hold it.
///
/// A list may claim structs without fields, which take no bytes: its length alone does not bound memory. Ours are never
/// smaller than in the version that added them.
pub(crate) fn list_len<B: HasStructSize>(what: &'static str, name: &str, len: u32, header: &Header) -> Result<usize> {
    let words = u32::from(B::STRUCT_SIZE.data) + u32::from(B::STRUCT_SIZE.pointers);
    plain_len(what, name, len, words * 8, header)
}

/// Length of a list as [`list_len`] has it, for elements of `bytes` bytes.
pub(crate) fn plain_len(what: &'static str, name: &str, len: u32, bytes: u32, header: &Header) -> Result<usize> {
    if u64::from(len) * u64::from(bytes) > u64::from(header.raw_len) {
        let why = format!("{name} has {len} entries, more than {} bytes can hold", header.raw_len);
        return Err(Error::invalid(what, why));
    }
    Ok(len as usize)
}
