//! Tapes that lie: any content in blocks whose lengths, hashes and CRCs are right.
//!
//! Damage by chance is refused at the hash. Whoever makes a tape on purpose gets that right, and then it is the decoders that must hold.

use crate::error::Error;
use crate::footer::Footer;
use crate::header::{ALIGN, BlockKind, HEADER_LEN, Header, MAX_RAW};
use crate::message;
use crate::payload::{Packer, Place, read};
use crate::scan::scan;
use crate::source::Source;
use xxhash_rust::xxh3::xxh3_64;

/// A block taken apart: its message before compression.
#[derive(Clone, Debug)]
pub struct ForgedBlock {
    /// Lengths, hash and CRC are made right by [`seal`]; the rest is as it is here.
    pub header: Header,
    /// The Cap'n Proto message.
    pub raw: Vec<u8>,
    /// Where it was, by which an index finds it.
    offset: u64,
}

impl ForgedBlock {
    /// Makes `raw` its content, filled up to a whole number of words.
    pub fn set_raw(&mut self, raw: &[u8]) {
        self.raw.clear();
        self.raw.extend_from_slice(&raw[..raw.len().min(MAX_RAW as usize)]);
        self.raw.resize(self.raw.len().next_multiple_of(8), 0);
    }
}

/// The blocks of a sound tape.
///
/// # Errors
/// It is no tape.
pub fn unseal(bytes: &[u8]) -> Result<Vec<ForgedBlock>, Error> {
    let first = bytes.first_chunk::<HEADER_LEN>().ok_or(Error::Empty)?;
    let id = Header::parse(first).map_err(|e| Error::BadHeader { offset: 0, why: e.to_string() })?.tape_id;
    let walk = scan(&Source::Bytes(bytes.to_vec()), bytes.len() as u64, 0, &id)?;
    let block = |(offset, header): (u64, Header)| {
        let from = offset as usize + HEADER_LEN;
        let stored = bytes.get(from..from + header.stored_len as usize)?;
        let raw = zstd::bulk::decompress(stored, MAX_RAW as usize).ok()?;
        Some(ForgedBlock { header, raw, offset })
    };
    Ok(walk.blocks.into_iter().filter_map(block).collect())
}

/// A tape of `blocks`: lengths, hashes, CRCs and the footer are right, and an index that can be read says where they are.
pub fn seal(blocks: &[ForgedBlock]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut places: Vec<(u64, Place)> = Vec::new();
    let (mut index, mut end) = (Vec::new(), 0);
    for block in blocks {
        let moved = (block.header.kind == BlockKind::Index).then(|| moved_index(block, &places)).flatten();
        let raw = moved.as_deref().unwrap_or(&block.raw);
        let offset = out.len() as u64;
        let mut header = block.header;
        let stored = zstd::bulk::compress(raw, 1).unwrap_or_default();
        (header.raw_len, header.stored_len) = (raw.len() as u32, stored.len() as u32);
        header.hash = xxh3_64(&stored);
        out.extend_from_slice(&header.to_bytes());
        out.extend_from_slice(&stored);
        out.resize(out.len().next_multiple_of(ALIGN as usize), 0);
        places.push((block.offset, Place::of(offset, &header)));
        match header.kind {
            BlockKind::Index => index.push(offset),
            BlockKind::End => end = offset,
            _ => {}
        }
    }
    if let (Some(first), Some(index_offset)) = (blocks.first(), index.first()) {
        let footer = Footer {
            tape_id: first.header.tape_id,
            index_offset: *index_offset,
            end_offset: end,
            footer_offset: out.len() as u64,
            index_blocks: index.len() as u32,
        };
        out.extend_from_slice(&footer.to_bytes());
    }
    out
}

/// The index's message with blocks where they are now; None when it cannot be read.
fn moved_index(block: &ForgedBlock, places: &[(u64, Place)]) -> Option<Vec<u8>> {
    let packed = Packer::new(1).pack_raw(BlockKind::Index, &block.raw).ok()?;
    let header = Header {
        stored_len: packed.header.stored_len,
        raw_len: packed.header.raw_len,
        hash: packed.header.hash,
        ..block.header
    };
    let bytes = [&header.to_bytes()[..], &packed.stored].concat();
    let (mut entries, mut checkpoints, mut symbols, mut defs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    read(&Source::Bytes(bytes), &Place::of(0, &header), &header.tape_id, header.segment, |header, message| {
        message::read_index(header, message, &mut entries, &mut checkpoints, &mut symbols, &mut defs)
    })
    .ok()?;
    let in_entries = entries.iter_mut().flat_map(|entry| entry.blocks.iter_mut());
    for place in in_entries.chain(&mut checkpoints).chain(&mut symbols).chain(&mut defs) {
        if let Some((_, now)) = places.iter().find(|(before, _)| *before == place.offset) {
            (place.offset, place.stored_len, place.raw_len) = (now.offset, now.stored_len, now.raw_len);
        }
    }
    let message = message::write_index(&entries, &checkpoints, &symbols, &defs);
    let mut raw = Vec::new();
    capnp::serialize::write_message(&mut raw, &message).ok()?;
    Some(raw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{End, Session, SyscallRow, Task};
    use crate::{Encoder, SegmentBuilder, Tape, Writer};

    fn tape() -> Vec<u8> {
        let mut writer = Writer::create(Vec::new(), [3; 16], &Session::default()).expect("a tape");
        for i in 0..3u64 {
            let mut builder = SegmentBuilder::new(i * 100);
            let task = builder.intern_task(&Task { tid: 1, pid: 1, ..Task::default() });
            let call = builder.intern_call(crate::Call { abi: 1, nr: 0 });
            builder.push_syscall(SyscallRow { end: i * 100 + 7, dur: 5, task, call, ..SyscallRow::default() });
            writer.segment(Encoder::new(3).segment(builder.finish(i * 100 + 99)).expect("a segment")).expect("written");
        }
        writer.finish(&End::default()).expect("ended")
    }

    #[test]
    fn what_is_sealed_again_is_sound_index_and_all() {
        let mut blocks = unseal(&tape()).unwrap();
        // Longer than it was, so that everything behind it moves.
        let longer = blocks[1].raw.len() + 4096;
        blocks[1].raw.resize(longer, 0);
        let forged = Tape::from_bytes(seal(&blocks)).unwrap();
        assert!(forged.has_index() && forged.end().is_some());
        assert_eq!(forged.findings(), []);
        assert_eq!(forged.segments().len(), 3);
        assert_eq!(forged.segments(), Tape::from_bytes(tape()).unwrap().segments());
    }
}
