//! Finds a tape's parts: by footer and index, else by walking the headers.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, OnceLock};

use super::{Blocks, Tape};
use crate::error::{Error, Result};
use crate::footer::{FOOTER_LEN, Footer};
use crate::header::{
    ALIGN, BlockKind, COMPAT_MADE, HEADER_LEN, Header, HeaderError, INCOMPAT_CUT, MAJOR, MAX_RAW, MAX_STORED,
    NO_SEGMENT,
};
use crate::info::from_headers;
use crate::message::{self, IndexEntry};
use crate::model::{Appeared, End, SegmentInfo, Session};
use crate::other;
use crate::payload::{self, Place};
use crate::scan::{Findings, ScanResult, find_header, scan};
use crate::source::Source;

/// Bytes of a file in which its first block is looked for when it does not begin with one: two blocks' length.
pub const HEAD_SEARCH: u64 = 2 * (MAX_STORED as u64 + HEADER_LEN as u64);
/// Segments whose headers are compared with the index on opening; the rest is compared when read.
const SAMPLED: usize = 64;

/// The parts of a tape.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub(crate) segments: Vec<SegmentInfo>,
    pub(crate) blocks: Vec<Blocks>,
    pub(crate) checkpoints: Vec<(u32, Vec<Place>)>,
    pub(crate) symbols: Vec<Place>,
    pub(crate) table_defs: Vec<Place>,
    pub(crate) end: Option<End>,
    pub(crate) cut: bool,
    pub(crate) complete_until: u64,
    pub(crate) from_index: bool,
}

impl Layout {
    /// Adds segment `number`, which has these blocks.
    pub(super) fn add_segment(&mut self, number: u32, blocks: &[(u64, Header)], findings: &mut Findings) {
        let mut places: Vec<Place> = Vec::with_capacity(blocks.len());
        let mut groups = 0;
        for (offset, header) in blocks {
            if places.iter().any(|p| p.kind == header.kind) {
                findings.push(*offset, format!("segment {number} has a second {} block", header.kind.name()));
                continue;
            }
            places.push(Place::of(*offset, header));
            groups |= header.groups | header.kind.group_bit();
        }
        let missing: Vec<&str> = BlockKind::of_segment()
            .filter(|k| groups & k.group_bit() != 0 && places.iter().all(|p| p.kind != *k))
            .map(BlockKind::name)
            .collect();
        if missing.is_empty() {
            let dict = blocks.iter().find(|(_, h)| h.kind == BlockKind::Dict);
            self.complete_until = self.complete_until.max(dict.map_or(0, |(_, h)| h.end_max));
        } else {
            let at = places.first().map_or(0, |p| p.offset);
            findings.push(at, format!("segment {number} lacks its {} blocks", missing.join(", ")));
        }
        self.segments.push(from_headers(blocks.iter().map(|(_, h)| h)));
        self.blocks.push(Blocks { places, groups });
    }
}

/// Opens what `source` holds.
pub(super) fn open(source: Source, len: u64) -> Result<Tape> {
    let mut findings = Findings::default();
    let (first, header) = first_block(&source, len, &mut findings)?;
    let tape_id = header.tape_id;
    let session = read_first_session(&source, first, &header, &mut findings)?;
    let layout = match by_index(&source, len, &tape_id) {
        Ok(Some(layout)) => {
            missing_numbers(&layout, &mut findings);
            layout
        }
        other => {
            if let Err(why) = other {
                findings.push(len, format!("the index is not used: {why}"));
            }
            let mut walk = scan(&source, len, first, &tape_id)?;
            findings.extend(std::mem::take(&mut walk.findings));
            by_headers(&source, &tape_id, &walk, &mut findings)
        }
    };
    let Layout { segments, blocks, checkpoints, symbols, table_defs, end, cut, complete_until, from_index } = layout;
    let made = header.features_compat & COMPAT_MADE != 0;
    let lost = session.is_none();
    let mut tape = Tape {
        source,
        len,
        first,
        tape_id,
        version: (header.major, header.minor),
        session_whole: !lost && !made,
        session_lost: lost,
        session: session.unwrap_or_default(),
        segments,
        blocks,
        checkpoints,
        symbols,
        table_defs,
        appeared: Appeared::default(),
        defs: OnceLock::new(),
        end,
        cut,
        complete_until,
        from_index,
        findings: Vec::new(),
        misses: Arc::default(),
        being_written: false,
        followed: false,
    };
    if lost && let Ok(cp) = tape.checkpoint(0) {
        (tape.session.clock, tape.session.window_open) = (cp.clock, cp.ts);
    }
    tape.findings = findings.into_vec();
    name_what_appeared(&mut tape);
    Ok(tape)
}

/// Adds the cgroups and containers that appeared during the recording to the session. A block that cannot be read leaves
/// them without names.
fn name_what_appeared(tape: &mut Tape) {
    let mut all = Appeared::default();
    let mut known: HashSet<u64> = tape.session.cgroups.iter().map(|(id, _)| *id).collect();
    for place in &tape.table_defs {
        let read = payload::read(&tape.source, place, &tape.tape_id, NO_SEGMENT, message::read_table_defs);
        let Ok(message::Definitions { appeared, .. }) = read else { continue };
        add_appeared(&mut all, appeared, &mut known);
    }
    tape.session.cgroups.extend(all.cgroups.iter().cloned());
    tape.session.containers.extend(all.containers.iter().cloned());
    tape.appeared = all;
}

/// Adds to `all` what is not `known`.
pub(super) fn add_appeared(all: &mut Appeared, appeared: Appeared, known: &mut HashSet<u64>) {
    const MOST: usize = 1 << 20;
    all.cgroups.extend(appeared.cgroups.into_iter().filter(|(id, _)| known.len() < MOST && known.insert(*id)));
    let room = MOST.saturating_sub(all.containers.len());
    all.containers.extend(appeared.containers.into_iter().take(room));
}

/// The first whole header, normally at 0.
pub(super) fn first_block(source: &Source, len: u64, findings: &mut Findings) -> Result<(u64, Header)> {
    if len == 0 {
        return Err(Error::Empty);
    }
    let mut bytes = [0u8; HEADER_LEN];
    let n = source.read_at(&mut bytes, 0)?;
    let parsed = if n == HEADER_LEN { Header::parse(&bytes) } else { Err(HeaderError::Magic) };
    let why = match parsed {
        Ok(header) => return Ok((0, header)),
        Err(HeaderError::NewerMajor(found)) => return Err(Error::NewerMajor { found, known: MAJOR }),
        Err(why) => why,
    };
    // a compressed tape has blocks in it that are not compressed again
    let mut head = [0; other::HEAD];
    let n_head = source.read_at(&mut head, 0)?;
    if let Some(other) = head.get(..n_head).and_then(other::of) {
        return Err(Error::Other(other));
    }
    let searched = len.min(HEAD_SEARCH);
    if let Some(at) = find_header(source, 0, searched, |_, _| true)? {
        source.read_exact_at(&mut bytes, at, "first block")?;
        let header = Header::parse(&bytes).map_err(|e| Error::BadHeader { offset: at, why: e.to_string() })?;
        findings.push(0, format!("the tape does not begin with a block ({why}); the first one is at offset {at:#x}"));
        return Ok((at, header));
    }
    if matches!(why, HeaderError::Crc { .. }) {
        return Err(Error::BadHeader { offset: 0, why: why.to_string() });
    }
    Err(Error::NotATape { found: bytes.get(..n.min(8)).unwrap_or_default().to_vec(), searched })
}

/// Fails when there is no first block.
pub(crate) fn check_begin(source: &Source, len: u64) -> Result<()> {
    first_block(source, len, &mut Findings::default()).map(drop)
}

/// The session, None when its block is damaged.
fn read_first_session(source: &Source, at: u64, header: &Header, findings: &mut Findings) -> Result<Option<Session>> {
    let what = BlockKind::Session.name();
    if header.kind != BlockKind::Session {
        findings.push(at, format!("the first block is of kind {}, not {what}", header.kind.name()));
        return Ok(None);
    }
    match payload::read(source, &Place::of(at, header), &header.tape_id, header.segment, message::read_session) {
        Ok(session) => Ok(Some(session)),
        // It says that the whole tape means something else than this version thinks.
        Err(e @ (Error::UnsupportedIncompat { .. } | Error::Io { .. })) => Err(e),
        Err(e) => {
            findings.push(at, format!("the session is lost: {e}"));
            Ok(None)
        }
    }
}

/// Reads and parses a header.
pub(crate) fn header_at(source: &Source, at: u64) -> Result<Header, String> {
    let mut bytes = [0u8; HEADER_LEN];
    source.read_exact_at(&mut bytes, at, "block header").map_err(|e| e.to_string())?;
    Header::parse(&bytes).map_err(|e| format!("bad header at {at:#x}: {e}"))
}

/// The layout by footer and index. None: there is no footer; Err: the reason why they cannot be used.
fn by_index(source: &Source, len: u64, tape_id: &[u8; 16]) -> Result<Option<Layout>, String> {
    let Some(at) = len.checked_sub(FOOTER_LEN as u64) else { return Ok(None) };
    let mut bytes = [0u8; FOOTER_LEN];
    source.read_exact_at(&mut bytes, at, "footer").map_err(|e| e.to_string())?;
    let Some(footer) = Footer::parse(&bytes, at).filter(|f| f.tape_id == *tape_id) else { return Ok(None) };
    let mut places = Vec::new();
    let mut pos = footer.index_offset;
    for _ in 0..footer.index_blocks {
        let header = header_at(source, pos)?;
        if header.kind != BlockKind::Index || pos >= footer.end_offset {
            return Err(format!("a block of kind {} at {pos:#x} where the footer puts the index", header.kind.name()));
        }
        places.push(Place::of(pos, &header));
        pos = pos.saturating_add(header.span());
    }
    if pos != footer.end_offset {
        return Err(format!("it ends at {pos:#x}, the footer puts the end mark at {:#x}", footer.end_offset));
    }
    let end = header_at(source, pos)?;
    if end.kind != BlockKind::End || pos.saturating_add(end.span()) != footer.footer_offset {
        return Err(format!("no end mark at {pos:#x}"));
    }
    let (end, cut) = read_end(source, &Place::of(pos, &end), tape_id).map_err(|e| e.to_string())?;
    let Entries { entries, checkpoints, symbols, table_defs } = read_entries(source, tape_id, &places)?;
    sample(source, tape_id, &entries)?;
    let complete_until = end.window_close;
    let mut layout =
        Layout { symbols, table_defs, complete_until, end: Some(end), cut, from_index: true, ..Layout::default() };
    for IndexEntry { info, blocks } in entries {
        layout.segments.push(info);
        let groups = blocks.iter().fold(0, |bits, p| bits | p.kind.group_bit());
        layout.blocks.push(Blocks { places: blocks, groups });
    }
    for place in checkpoints {
        match layout.checkpoints.last_mut() {
            Some((chunk, parts)) if *chunk == place.chunk => parts.push(place),
            _ => layout.checkpoints.push((place.chunk, vec![place])),
        }
    }
    Ok(Some(layout))
}

/// The end mark, and whether the recording ended abnormally.
pub(super) fn read_end(source: &Source, place: &Place, tape_id: &[u8; 16]) -> Result<(End, bool)> {
    payload::read(source, place, tape_id, NO_SEGMENT, |header, message| {
        Ok((message::read_end(header, message)?, header.features_incompat & INCOMPAT_CUT != 0))
    })
}

/// Contents of an index.
#[derive(Default)]
struct Entries {
    entries: Vec<IndexEntry>,
    checkpoints: Vec<Place>,
    symbols: Vec<Place>,
    table_defs: Vec<Place>,
}

/// All entries of the index, with their places checked: inside the tape, one after the other. That also bounds their
/// number, whatever the blocks claim.
fn read_entries(source: &Source, tape_id: &[u8; 16], index: &[Place]) -> Result<Entries, String> {
    let limit = index.first().map_or(0, |p| p.offset);
    let Entries { mut entries, mut checkpoints, mut symbols, mut table_defs } = Entries::default();
    let (mut entry_end, mut checkpoint_end, mut symbols_end, mut defs_end) = (0, 0, 0, 0);
    let mut last = None;
    for place in index {
        let (old_entries, old_checkpoints, old_symbols) = (entries.len(), checkpoints.len(), symbols.len());
        let old_defs = table_defs.len();
        payload::read(source, place, tape_id, NO_SEGMENT, |header, message| {
            message::read_index(header, message, &mut entries, &mut checkpoints, &mut symbols, &mut table_defs)
        })
        .map_err(|e| e.to_string())?;
        for IndexEntry { info, blocks } in entries.iter().skip(old_entries) {
            if last.is_some_and(|(segment, chunk)| info.segment <= segment || info.chunk < chunk) {
                return Err(format!("segment {} of chunk {} is out of order", info.segment, info.chunk));
            }
            last = Some((info.segment, info.chunk));
            let mut kinds = 0;
            for p in blocks {
                follows(p, &mut entry_end, limit)?;
                if kinds & p.kind.group_bit() != 0 || p.chunk != info.chunk {
                    return Err(format!("segment {} lists block {} wrongly", info.segment, p.kind.name()));
                }
                kinds |= p.kind.group_bit();
            }
            if blocks.is_empty() || info.carry_rows > info.rows {
                let why = format!("segment {} has {} blocks, {} rows", info.segment, blocks.len(), info.rows);
                return Err(format!("{why}, {} carry rows", info.carry_rows));
            }
        }
        let new = checkpoints.iter().skip(old_checkpoints);
        of_kind(BlockKind::Checkpoint, new, &mut checkpoint_end, limit)?;
        of_kind(BlockKind::Symbols, symbols.iter().skip(old_symbols), &mut symbols_end, limit)?;
        of_kind(BlockKind::TableDefs, table_defs.iter().skip(old_defs), &mut defs_end, limit)?;
    }
    Ok(Entries { entries, checkpoints, symbols, table_defs })
}

/// Checks that `places` are of `kind` and follow each other.
fn of_kind<'a>(
    kind: BlockKind,
    places: impl Iterator<Item = &'a Place>,
    end: &mut u64,
    limit: u64,
) -> Result<(), String> {
    for p in places {
        follows(p, end, limit)?;
        if p.kind != kind {
            return Err(format!("a block of kind {} is listed as {}", p.kind.name(), kind.name()));
        }
    }
    Ok(())
}

/// Checks that `place` lies after `end` and before `limit`, then moves `end` behind it.
fn follows(place: &Place, end: &mut u64, limit: u64) -> Result<(), String> {
    let inside = place.offset >= *end && place.end() <= limit && place.offset.is_multiple_of(ALIGN);
    if !inside || place.raw_len > MAX_RAW || place.stored_len > MAX_STORED {
        return Err(format!("it puts a block of {} bytes at {:#x}", place.stored_len, place.offset));
    }
    *end = place.end();
    Ok(())
}

/// Compares evenly spread entries with the headers they point to.
fn sample(source: &Source, tape_id: &[u8; 16], entries: &[IndexEntry]) -> Result<(), String> {
    let step = entries.len().div_ceil(SAMPLED).max(1);
    for entry in entries.iter().step_by(step).chain(entries.last()) {
        compare(source, tape_id, entry)?;
    }
    Ok(())
}

/// Compares an entry of the index with the headers it points to.
pub(crate) fn compare(source: &Source, tape_id: &[u8; 16], entry: &IndexEntry) -> Result<(), String> {
    let segment = entry.info.segment;
    let groups = entry.blocks.iter().fold(0, |bits, p| bits | p.kind.group_bit());
    let mut headers = Vec::with_capacity(entry.blocks.len());
    for place in &entry.blocks {
        let header = header_at(source, place.offset)?;
        if let Some(why) = place.mismatch(&header, tape_id, segment) {
            return Err(format!("block at {:#x}: {why}", place.offset));
        }
        if header.groups != groups {
            return Err(format!("segment {segment} has groups {:#x}, the index lists {groups:#x}", header.groups));
        }
        headers.push(header);
    }
    let by_headers = from_headers(headers.iter());
    if !same_header_part(&entry.info, &by_headers) {
        return Err(format!("segment {segment}: headers give {by_headers:?}, the index {:?}", entry.info));
    }
    Ok(())
}

/// Whether the fields that headers have are equal.
pub(crate) fn same_header_part(a: &SegmentInfo, b: &SegmentInfo) -> bool {
    let part = |i: &SegmentInfo| {
        let tables = (i.table_start_min, i.table_end_max);
        (i.segment, i.chunk, i.rows, i.carry_rows, i.carry_start_min, i.start_min, i.end_min, i.end_max, tables)
    };
    part(a) == part(b)
}

/// Reports absent segment numbers.
fn missing_numbers(layout: &Layout, findings: &mut Findings) {
    let mut next = 0u32;
    for info in &layout.segments {
        if info.segment > next {
            let offset = layout.blocks.first().and_then(|b| b.places.first()).map_or(0, |p| p.offset);
            findings.push(offset, format!("segments {next} to {} are missing", info.segment - 1));
        }
        next = info.segment.saturating_add(1);
    }
}

/// The layout by the headers of a walk.
pub(crate) fn by_headers(source: &Source, tape_id: &[u8; 16], walk: &ScanResult, findings: &mut Findings) -> Layout {
    numbers(walk, findings);
    let mut layout = Layout::default();
    let mut segments: BTreeMap<u32, Vec<(u64, Header)>> = BTreeMap::new();
    let mut checkpoints: BTreeMap<u32, Vec<Place>> = BTreeMap::new();
    let (mut index, mut end) = (Vec::new(), None);
    let mut seen = BTreeSet::new();
    for &(offset, header) in &walk.blocks {
        if !seen.insert(header.seq) {
            continue;
        }
        let place = Place::of(offset, &header);
        match header.kind {
            BlockKind::Checkpoint => checkpoints.entry(header.chunk).or_default().push(place),
            BlockKind::Symbols => layout.symbols.push(place),
            BlockKind::TableDefs => layout.table_defs.push(place),
            BlockKind::Index => index.push(place),
            BlockKind::End => end = Some(place),
            _ if header.segment != NO_SEGMENT => segments.entry(header.segment).or_default().push((offset, header)),
            _ => {}
        }
    }
    layout.checkpoints = checkpoints.into_iter().collect();
    for (number, blocks) in segments {
        layout.add_segment(number, &blocks, findings);
    }
    missing_numbers(&layout, findings);
    if let Some(place) = end {
        match read_end(source, &place, tape_id) {
            Ok((end, cut)) => {
                layout.complete_until = end.window_close;
                (layout.end, layout.cut) = (Some(end), cut);
            }
            Err(e) => findings.push(place.offset, format!("the end mark is lost: {e}")),
        }
    }
    if !index.is_empty() {
        add_index(source, tape_id, &index, &mut layout, findings);
    }
    layout
}

/// Adds to each segment what headers lack, from an index that agrees with them otherwise.
fn add_index(source: &Source, tape_id: &[u8; 16], index: &[Place], layout: &mut Layout, findings: &mut Findings) {
    let at = index.first().map_or(0, |p| p.offset);
    let entries = match read_entries(source, tape_id, index) {
        Ok(read) => read.entries,
        Err(why) => return findings.push(at, format!("the index is not used: {why}")),
    };
    let mut known: BTreeMap<u32, IndexEntry> = entries.into_iter().map(|e| (e.info.segment, e)).collect();
    let mut agreed = 0;
    for (info, blocks) in layout.segments.iter_mut().zip(&layout.blocks) {
        match known.remove(&info.segment) {
            Some(entry) if same_header_part(&entry.info, info) && entry.blocks == blocks.places => {
                *info = entry.info;
                agreed += 1;
            }
            Some(entry) => {
                let number = entry.info.segment;
                findings.push(
                    at,
                    format!("the index disagrees with the blocks of segment {number} and is not used for it"),
                );
            }
            None => {}
        }
    }
    layout.from_index = agreed == layout.segments.len() && known.is_empty();
}

/// Holes, repetitions and disorder in the blocks' numbers.
fn numbers(walk: &ScanResult, findings: &mut Findings) {
    let mut order: Vec<(u64, u64)> = walk.blocks.iter().map(|(at, h)| (h.seq, *at)).collect();
    if let Some(pair) = order.windows(2).find(|pair| matches!(pair, [a, b] if b.0 < a.0)) {
        findings.push(pair[1].1, format!("block {} stands behind block {}", pair[1].0, pair[0].0));
    }
    order.sort_unstable();
    let mut next = 0u64;
    for (seq, at) in order {
        if seq > next {
            findings.push(at, format!("blocks {next} to {} are missing", seq - 1));
        } else if seq < next {
            findings.push(at, format!("block {seq} is there twice"));
        }
        next = next.max(seq.saturating_add(1));
    }
}
