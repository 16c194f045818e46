//! The index: places of blocks, and facts by which a report skips segments.

use crate::error::{Error, Result, capnp_err};
use crate::header::{BlockKind, Header};
use crate::model::{Call, SegmentInfo};
use crate::payload::{Message, Place, list_len, new_message, plain_len};
use crate::trace_capnp as schema;
use capnp::message::{Builder, HeapAllocator};

const INDEX: &str = "index";

/// Calls listed in an entry; a segment with more lists none ("not known").
pub(crate) const MAX_CALLS: usize = 112;
/// Pids listed in an entry; a segment with more has a Bloom filter.
pub(crate) const MAX_PIDS: usize = 64;

/// A segment of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    pub(crate) info: SegmentInfo,
    pub(crate) blocks: Vec<Place>,
}

/// Most bytes of an entry in a message.
pub(crate) fn entry_bytes(e: &IndexEntry) -> usize {
    let calls = e.info.calls.as_ref().map_or(0, Vec::len) * 4;
    let pids = e.info.pids.as_ref().map_or(0, Vec::len) * 4;
    136 + e.blocks.len() * 24 + calls + pids + if e.info.pid_bloom.is_some() { 256 } else { 0 }
}

fn write_place(mut b: schema::block_ref::Builder<'_>, place: &Place) {
    b.set_kind(place.kind.raw());
    b.set_offset(place.offset);
    b.set_stored_len(place.stored_len);
    b.set_raw_len(place.raw_len);
    b.set_chunk(place.chunk);
}

type Places<'a> = capnp::struct_list::Builder<'a, schema::block_ref::Owned>;

fn write_places(mut list: Places<'_>, places: &[Place]) {
    for (i, place) in places.iter().enumerate() {
        write_place(list.reborrow().get(i as u32), place);
    }
}

fn read_place(r: schema::block_ref::Reader<'_>) -> Place {
    Place {
        kind: BlockKind::from_raw(r.get_kind()),
        offset: r.get_offset(),
        stored_len: r.get_stored_len(),
        raw_len: r.get_raw_len(),
        chunk: r.get_chunk(),
    }
}

/// The message of a part of the index.
pub(crate) fn write_index(
    entries: &[IndexEntry],
    checkpoints: &[Place],
    symbols: &[Place],
    table_defs: &[Place],
) -> Builder<HeapAllocator> {
    let bytes =
        entries.iter().map(entry_bytes).sum::<usize>() + (checkpoints.len() + symbols.len() + table_defs.len()) * 24;
    let mut message = new_message(bytes + 256);
    let mut b = message.init_root::<schema::index::Builder<'_>>();
    let mut list = b.reborrow().init_segments(entries.len() as u32);
    for (i, IndexEntry { info, blocks }) in entries.iter().enumerate() {
        let mut b = list.reborrow().get(i as u32);
        b.set_segment(info.segment);
        b.set_chunk(info.chunk);
        write_places(b.reborrow().init_blocks(blocks.len() as u32), blocks);
        b.set_rows(info.rows);
        b.set_carry_rows(info.carry_rows);
        b.set_carry_start_min(info.carry_start_min);
        b.set_start_min(info.start_min);
        b.set_end_min(info.end_min);
        b.set_end_max(info.end_max);
        b.set_max_dur(info.max_dur);
        let calls = info.calls.as_deref().unwrap_or_default();
        let mut list = b.reborrow().init_calls(calls.len() as u32);
        for (i, call) in calls.iter().enumerate() {
            list.set(i as u32, u32::from(call.abi) << 24 | call.nr);
        }
        let pids = info.pids.as_deref().unwrap_or_default();
        let mut list = b.reborrow().init_pids(pids.len() as u32);
        for (i, &pid) in pids.iter().enumerate() {
            list.set(i as u32, pid);
        }
        if let Some(bloom) = &info.pid_bloom {
            b.set_pid_bloom(&bloom[..]);
        }
        b.set_failures(info.failures);
        b.set_table_start_min(info.table_start_min);
        b.set_table_end_max(info.table_end_max);
    }
    write_places(b.reborrow().init_checkpoints(checkpoints.len() as u32), checkpoints);
    write_places(b.reborrow().init_symbols(symbols.len() as u32), symbols);
    write_places(b.init_table_defs(table_defs.len() as u32), table_defs);
    message
}

/// Adds the contents of an index block to `entries`, `checkpoints`, `symbols` and `table_defs`.
pub(crate) fn read_index(
    header: &Header,
    message: &Message<'_>,
    entries: &mut Vec<IndexEntry>,
    checkpoints: &mut Vec<Place>,
    symbols: &mut Vec<Place>,
    table_defs: &mut Vec<Place>,
) -> Result<()> {
    let err = capnp_err(INDEX);
    let r = message.get_root::<schema::index::Reader<'_>>().map_err(&err)?;
    let list = r.get_segments().map_err(&err)?;
    list_len::<schema::segment_entry::Builder<'_>>(INDEX, "segments", list.len(), header)?;
    for r in list {
        let (segment, rows) = (r.get_segment(), r.get_rows());
        let too_many = |what: &str, n: u32, limit: usize| {
            let why = format!("segment {segment} lists {n} {what} > limit {limit}");
            if n as usize > limit { Err(Error::invalid(INDEX, why)) } else { Ok(()) }
        };
        let blocks = r.get_blocks().map_err(&err)?;
        too_many("blocks", blocks.len(), 64)?;
        let calls = r.get_calls().map_err(&err)?;
        too_many("calls", calls.len(), MAX_CALLS)?;
        let pids = r.get_pids().map_err(&err)?;
        too_many("pids", pids.len(), MAX_PIDS)?;
        let bloom = r.get_pid_bloom().map_err(&err)?;
        let pid_bloom = match bloom.len() {
            0 => None,
            _ => match <[u8; 256]>::try_from(bloom) {
                Ok(bloom) => Some(Box::new(bloom)),
                Err(_) => {
                    let why = format!("segment {segment} has a filter of {} bytes, not 256", bloom.len());
                    return Err(Error::invalid(INDEX, why));
                }
            },
        };
        let calls: Vec<Call> = calls.iter().map(|raw| Call { abi: (raw >> 24) as u8, nr: raw & 0x00ff_ffff }).collect();
        let blocks: Vec<Place> = blocks.iter().map(read_place).collect();
        // no list means too many, unless there is nothing that could be listed
        let has_no_calls = rows == 0 && blocks.iter().all(|place| place.kind != BlockKind::Ledger);
        let info = SegmentInfo {
            segment,
            chunk: r.get_chunk(),
            rows,
            carry_rows: r.get_carry_rows(),
            carry_start_min: r.get_carry_start_min(),
            start_min: r.get_start_min(),
            end_min: r.get_end_min(),
            end_max: r.get_end_max(),
            max_dur: r.get_max_dur(),
            calls: (has_no_calls || !calls.is_empty()).then_some(calls),
            pids: pid_bloom.is_none().then(|| pids.iter().collect::<Vec<_>>()).filter(|p| !p.is_empty()),
            pid_bloom,
            failures: r.get_failures(),
            table_start_min: r.get_table_start_min(),
            table_end_max: r.get_table_end_max(),
        };
        entries.push(IndexEntry { info, blocks });
    }
    let list = r.get_checkpoints().map_err(&err)?;
    plain_len(INDEX, "checkpoints", list.len(), 24, header)?;
    checkpoints.extend(list.iter().map(read_place));
    let list = r.get_symbols().map_err(&err)?;
    plain_len(INDEX, "symbols", list.len(), 24, header)?;
    symbols.extend(list.iter().map(read_place));
    let list = r.get_table_defs().map_err(&err)?;
    plain_len(INDEX, "definitions of tables", list.len(), 24, header)?;
    table_defs.extend(list.iter().map(read_place));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_entry_is_within_1344_bytes() {
        let place = Place { kind: BlockKind::Dict, offset: 0, stored_len: 0, raw_len: 0, chunk: 0 };
        let info = SegmentInfo {
            calls: Some(vec![Call::default(); MAX_CALLS]),
            pids: Some(vec![0; MAX_PIDS]),
            ..SegmentInfo::default()
        };
        let entry = IndexEntry { info, blocks: vec![place; BlockKind::of_segment().count()] };
        assert!(entry_bytes(&entry) <= 1344, "{}", entry_bytes(&entry));
        let one = capnp::serialize::compute_serialized_size_in_words(&write_index(
            std::slice::from_ref(&entry),
            &[],
            &[],
            &[],
        ));
        let two = capnp::serialize::compute_serialized_size_in_words(&write_index(
            &[entry.clone(), entry.clone()],
            &[],
            &[],
            &[],
        ));
        assert!((two - one) * 8 <= entry_bytes(&entry), "{} > {}", (two - one) * 8, entry_bytes(&entry));
    }

    /// What is read of the entry's calls after it was written.
    fn calls_read(info: &SegmentInfo, kind: BlockKind) -> Option<Vec<Call>> {
        let place = Place { kind, offset: 0, stored_len: 0, raw_len: 0, chunk: 0 };
        let message = write_index(&[IndexEntry { info: info.clone(), blocks: vec![place] }], &[], &[], &[]);
        let bytes = capnp::serialize::write_message_to_words(&message);
        let read = capnp::serialize::read_message_from_flat_slice(&mut bytes.as_slice(), Default::default()).unwrap();
        let mut entries = Vec::new();
        let header = Header { raw_len: bytes.len() as u32, ..Header::new(BlockKind::Index, [0; 16]) };
        read_index(&header, &read, &mut entries, &mut Vec::new(), &mut Vec::new(), &mut Vec::new()).unwrap();
        entries.remove(0).info.calls
    }

    #[test]
    fn calls_that_are_not_listed_are_not_none() {
        let listed = SegmentInfo { rows: 9, calls: Some(vec![Call { abi: 1, nr: 7 }]), ..SegmentInfo::default() };
        assert_eq!(calls_read(&listed, BlockKind::SyscallsCore), listed.calls);
        let too_many = SegmentInfo { rows: 9, calls: None, ..SegmentInfo::default() };
        assert_eq!(calls_read(&too_many, BlockKind::SyscallsCore), None);
        let counted_only = SegmentInfo { rows: 0, calls: None, ..SegmentInfo::default() };
        assert_eq!(calls_read(&counted_only, BlockKind::Ledger), None);
        let without_any = SegmentInfo { rows: 0, calls: Some(vec![]), ..SegmentInfo::default() };
        assert_eq!(calls_read(&without_any, BlockKind::Sched), Some(vec![]));
    }
}
