//! Facts by which a report skips a segment: [`SegmentInfo`] from headers alone, or with its content.

use crate::header::Header;
use crate::kinds::Rows;
use crate::message::{MAX_CALLS, MAX_PIDS};
use crate::model::{BlockIo, Call, Gap, SegmentInfo, Task, is_failure, pid_bloom};

/// The facts in the headers of a segment's blocks. Content is "not known"; see [`add_content`].
pub(crate) fn from_headers<'a>(headers: impl Iterator<Item = &'a Header>) -> SegmentInfo {
    let mut info = SegmentInfo { max_dur: u64::MAX, failures: u32::MAX, ..SegmentInfo::default() };
    // (start, least end, greatest end) of everything that has a time.
    let mut span: Option<(u64, u64, u64)> = None;
    let mut gaps: Option<(u64, u64, u64)> = None;
    let union = |span: &mut Option<(u64, u64, u64)>, (start, min, max): (u64, u64, u64)| {
        let (s, lo, hi) = span.unwrap_or((start, min, max));
        *span = Some((s.min(start), lo.min(min), hi.max(max)));
    };
    for h in headers {
        (info.segment, info.chunk) = (h.segment, h.chunk);
        let times = (h.start_min, h.end_min, h.end_max);
        match h.kind.rows() {
            // Several groups tell the same: whichever is left after damage counts.
            Some(Rows::Calls) => {
                (info.rows, info.carry_rows) = (h.rows, h.carry_rows);
                info.carry_start_min = if h.carry_rows > 0 { h.start_min } else { 0 };
                union(&mut span, times);
            }
            Some(Rows::Events) => union(&mut span, times),
            Some(Rows::Losses) => union(&mut gaps, times),
            Some(Rows::Tables) => (info.table_start_min, info.table_end_max) = (h.start_min, h.end_max),
            Some(Rows::Tape | Rows::Names) | None => {}
        }
    }
    if let Some(gaps) = gaps {
        // A gap has no start of its own: it must not hold back a listing by start.
        let start = span.map_or(gaps.0, |span| span.0);
        union(&mut span, (start, gaps.1, gaps.2));
    }
    (info.start_min, info.end_min, info.end_max) = span.unwrap_or((0, 0, 0));
    info
}

/// Start of a block I/O, as far as it is known.
pub(crate) fn block_start(io: &BlockIo) -> u64 {
    [io.queued, io.issued].into_iter().filter(|&t| t != 0).fold(io.complete, u64::min)
}

/// Pids of an index entry: a list, or a filter.
pub(crate) type Pids = (Option<Vec<u32>>, Option<Box<[u8; 256]>>);

/// Adds the facts that only the content has.
///
/// `calls` is empty for a segment that neither stores nor counts calls, even if its other events name some.
pub(crate) fn add_content(
    info: &mut SegmentInfo,
    (dur, errno, ledger): (&[u64], &[u16], bool),
    calls: Option<Vec<Call>>,
    pids: Pids,
) {
    info.max_dur = dur.iter().max().copied().unwrap_or(0);
    info.failures = errno.iter().filter(|&&e| is_failure(e)).count() as u32;
    info.calls = if info.rows == 0 && !ledger { Some(Vec::new()) } else { calls };
    (info.pids, info.pid_bloom) = pids;
}

/// Calls of an index entry; None = too many, or a number that the packing cannot hold.
pub(crate) fn listed_calls(calls: &[Call]) -> Option<Vec<Call>> {
    let mut calls = calls.to_vec();
    calls.sort_unstable();
    (calls.len() <= MAX_CALLS && calls.iter().all(|c| c.nr < 1 << 24)).then_some(calls)
}

/// Distinct pids of tasks and gaps for an index entry: a list when few, else a filter.
pub(crate) fn listed_pids(tasks: &[Task], gaps: &[Gap]) -> Pids {
    let of_gaps = gaps.iter().map(|g| g.pid).filter(|&pid| pid != 0);
    let mut pids: Vec<u32> = tasks.iter().map(|t| t.pid).chain(of_gaps).collect();
    pids.sort_unstable();
    pids.dedup();
    match pids.len() {
        0 => (None, None),
        n if n <= MAX_PIDS => (Some(pids), None),
        _ => (None, Some(pid_bloom(&pids))),
    }
}
