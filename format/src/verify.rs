//! Reads all of a tape and checks every rule: what `analyze check` prints.
//!
//! The headers are walked again however the tape was opened, so an index is compared with all of them. Each block is
//! decoded once: its getter checks hash, sizes, lists and ranges; rules about several blocks are checked here.

use std::collections::{BTreeMap, HashSet};

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};
use crate::header::{ALIGN, BlockKind, HEADER_LEN, Header, NO_SEGMENT};
use crate::info::{add_content, block_start, listed_calls, listed_pids};
use crate::message;
use crate::model::{Checkpoint, Core, Dict, Gap, LedgerRow, SegmentInfo, Time};
use crate::payload::{self, Place};
use crate::reader::{Segment, Tape, by_headers, same_header_part};
use crate::scan::{Findings, TapeFault, scan};
use crate::tables::TableRows;

impl Tape {
    /// Reads everything and checks every rule of the format: hashes, orders, ranges, numbers, index, clean end.
    ///
    /// `progress` is called now and then with the bytes done, of [`Self::len_bytes`].
    pub fn verify(&self, progress: &dyn Fn(u64)) -> Vec<TapeFault> {
        verify(self, progress)
    }
}

fn verify(tape: &Tape, progress: &dyn Fn(u64)) -> Vec<TapeFault> {
    let mut findings = Findings::default();
    let mut walk = match scan(&tape.source, tape.len, tape.first, &tape.tape_id) {
        Ok(walk) => walk,
        Err(e) => return vec![TapeFault { offset: 0, text: e.to_string() }],
    };
    findings.extend(std::mem::take(&mut walk.findings));
    let layout = by_headers(&tape.source, &tape.tape_id, &walk, &mut findings);
    for finding in &tape.findings {
        if !findings.contains(finding) {
            findings.push(finding.offset, finding.text.clone());
        }
    }
    if layout.end.is_none() {
        let why = match tape.being_written {
            true => "no end mark: the tape is still being written",
            false => "no end mark: the recording ended abnormally, or the tape was cut",
        };
        findings.push(walk.end, why.to_owned());
    } else if walk.footer.is_none() {
        findings.push(walk.end, "no footer behind the end mark: the last bytes are missing".to_owned());
    }
    for (offset, header) in &walk.blocks {
        block(tape, *offset, header, &mut findings);
    }
    single(&walk.blocks, &mut findings);

    // The index, where it was used, against all headers.
    let mut by_walk: BTreeMap<u32, (&SegmentInfo, &[Place])> = BTreeMap::new();
    for (info, blocks) in layout.segments.iter().zip(&layout.blocks) {
        by_walk.insert(info.segment, (info, &blocks.places));
    }
    let mut window_end = 0;
    for i in 0..tape.segments.len() {
        let segment = tape.segment(i);
        let info = segment.info();
        let at = tape.blocks[i].places.first().map_or(0, |p| p.offset);
        match by_walk.remove(&info.segment) {
            Some((other, places)) if same_header_part(info, other) && tape.blocks[i].places == places => {}
            _ => findings.push(at, format!("segment {}: index and headers differ", info.segment)),
        }
        check_segment(segment, at, &mut window_end, &mut findings);
        progress(at);
    }
    for number in by_walk.keys() {
        findings.push(walk.end, format!("segment {number} is not in the index"));
    }
    let parts = |list: &[(u32, Vec<Place>)]| list.iter().flat_map(|(_, p)| p.clone()).collect::<Vec<_>>();
    if parts(&tape.checkpoints) != parts(&layout.checkpoints) {
        findings.push(walk.end, "the index lists other checkpoints than there are".to_owned());
    }
    for i in 0..tape.checkpoints() {
        let at = tape.checkpoints[i].1.first().map_or(0, |p| p.offset);
        match tape.checkpoint(i) {
            Ok(cp) => check_checkpoint(&cp, at, &mut findings),
            Err(e) => findings.push(at, e.to_string()),
        }
    }
    if tape.symbols != layout.symbols {
        findings.push(walk.end, "the index lists other blocks of symbols than there are".to_owned());
    }
    if tape.table_defs != layout.table_defs {
        findings.push(walk.end, "the index lists other definitions of tables than there are".to_owned());
    }
    for place in &layout.table_defs {
        if let Err(e) = payload::read(&tape.source, place, &tape.tape_id, NO_SEGMENT, message::read_table_defs) {
            findings.push(place.offset, e.to_string());
        }
    }
    for (i, place) in tape.symbols.iter().enumerate() {
        if let Err(e) = tape.symbols(i) {
            findings.push(place.offset, e.to_string());
        }
        progress(place.offset);
    }
    progress(tape.len);
    findings.into_vec()
}

/// Rules for one block of any kind, unknown kinds included: padding, features, hash.
fn block(tape: &Tape, offset: u64, header: &Header, findings: &mut Findings) {
    let what = header.kind.name();
    if header.unknown_incompat() != 0 {
        let bits = header.unknown_incompat();
        findings.push(offset, format!("{what} block needs features {bits:#x} that this program does not know"));
    }
    if !offset.wrapping_sub(tape.first).is_multiple_of(ALIGN) {
        findings.push(offset, format!("{what} block is not at a multiple of {ALIGN}: a write failed before it"));
    }
    if matches!(header.kind, BlockKind::Other(_)) {
        let mut payload = vec![0; header.stored_len as usize];
        match tape.source.read_exact_at(&mut payload, offset + HEADER_LEN as u64, what) {
            Ok(()) if xxh3_64(&payload) == header.hash => {}
            Ok(()) => findings.push(offset, format!("block of kind {} is damaged", header.kind.raw())),
            Err(e) => findings.push(offset, e.to_string()),
        }
    }
    let end = offset + HEADER_LEN as u64 + u64::from(header.stored_len);
    let mut padding = [0u8; ALIGN as usize];
    let n = (offset + header.span() - end) as usize;
    match tape.source.read_at(&mut padding[..n], end) {
        Ok(_) if padding.iter().all(|&b| b == 0) => {}
        Ok(_) => findings.push(end, "padding that is not 0".to_owned()),
        Err(e) => findings.push(end, e.to_string()),
    }
}

/// Blocks that a tape has once, at a fixed place.
fn single(blocks: &[(u64, Header)], findings: &mut Findings) {
    for (i, (offset, header)) in blocks.iter().enumerate() {
        match header.kind {
            BlockKind::Session if i > 0 => findings.push(*offset, "a second session block".to_owned()),
            BlockKind::End if i + 1 < blocks.len() => {
                findings.push(*offset, "blocks follow the end mark".to_owned());
            }
            _ => {}
        }
    }
}

/// Decodes every group of a segment and checks the rules about several of them.
fn check_segment(segment: Segment<'_>, at: u64, window_end: &mut u64, findings: &mut Findings) {
    let number = segment.info().segment;
    let mut fail = |e: Error| findings.push(at, format!("segment {number}: {e}"));
    let gaps = segment.gaps().map_err(&mut fail).ok();
    segment.stacks().map_err(&mut fail).ok();
    let Ok(dict) = segment.dict().map_err(&mut fail) else { return };
    let events = events(segment, &dict, &mut fail);
    let tables = segment.tables(&dict).map_err(&mut fail).ok();
    let ledger = segment.ledger(&dict).map_err(&mut fail).ok();
    let core = segment.core(&dict).map_err(&mut fail).ok();
    let time = core.as_ref().and_then(|core| {
        segment.args(core).map_err(&mut fail).ok();
        segment.fds(core).map_err(&mut fail).ok();
        segment.captured(core).map_err(&mut fail).ok();
        // A repair leaves out times that were lost: such calls are counted and not listed.
        if core.dur.is_empty() || segment.has(BlockKind::SyscallsTime) {
            segment.time(&dict, core).map_err(&mut fail).ok()
        } else {
            None
        }
    });
    let mut say = |text: String| findings.push(at, format!("segment {number}: {text}"));
    if dict.window_start < *window_end {
        say(format!("its window begins at {}, the one before ends at {window_end}", dict.window_start));
    }
    if dict.window_end < dict.window_start {
        say(format!("its window ends at {}, begins at {}", dict.window_end, dict.window_start));
    }
    *window_end = (*window_end).max(dict.window_end);
    if dict.calls.iter().collect::<HashSet<_>>().len() < dict.calls.len() {
        say("a call is listed twice".to_owned());
    }
    let (Some(core), Some(time)) = (core, time) else { return };
    check_order(&dict, &core, &time, &mut say);
    if let (Some(events), Some(gaps), Some(ledger)) = (events, gaps, ledger) {
        check_info(
            segment.info(),
            &dict,
            (&core, &time),
            &events,
            (&gaps[..], &ledger[..]),
            tables.as_deref(),
            &mut say,
        );
    }
}

/// Row order, the carry rule and the window.
fn check_order(dict: &Dict, core: &Core, time: &Time, say: &mut impl FnMut(String)) {
    let (start, carry) = (&time.start, core.carry_rows);
    if let Some(&late) = start.iter().take(carry).find(|&&s| s >= dict.window_start) {
        say(format!("a carry row starts at {late}, the window at {}", dict.window_start));
    }
    if let Some(&early) = start.iter().skip(carry).find(|&&s| s < dict.window_start) {
        say(format!("a row starts at {early}, before the window at {}, but is no carry row", dict.window_start));
    }
    let keys: Vec<(u64, u32)> = start.iter().copied().zip(core.task.iter().copied()).take(carry).collect();
    if !keys.is_sorted() {
        say("carry rows are not sorted by (start, task)".to_owned());
    }
    // The rest is sorted by end because deltas are not negative.
    let ends = start.iter().zip(&core.dur).map(|(s, d)| s.saturating_add(*d));
    if let Some(end) = ends.max().filter(|&end| end > dict.window_end) {
        say(format!("a call ends at {end}, after the window, {}", dict.window_end));
    }
}

/// Times of the events of one kind.
struct Span {
    start: u64,
    end_min: u64,
    end_max: u64,
}

/// Times of all events except calls, without kinds that have no events; None when a kind cannot be read.
fn events(segment: Segment<'_>, dict: &Dict, fail: &mut impl FnMut(Error)) -> Option<Vec<Span>> {
    fn span<T>(events: Result<Vec<T>>, time: impl Fn(&T) -> (u64, u64)) -> Result<Option<Span>> {
        Ok(events?.iter().map(time).map(|(start, end)| Span { start, end_min: end, end_max: end }).reduce(|a, b| {
            let start = a.start.min(b.start);
            Span { start, end_min: a.end_min.min(b.end_min), end_max: a.end_max.max(b.end_max) }
        }))
    }
    let spans = [
        span(segment.processes(dict), |e| (e.ts, e.ts)),
        span(segment.switches(dict), |e| (e.ts, e.ts)),
        span(segment.wakeups(dict), |e| (e.ts, e.ts)),
        span(segment.blocks(dict), |e| (block_start(e), e.complete)),
        span(segment.signals(dict), |e| (e.ts, e.ts)),
        span(segment.nets(dict), |e| (e.ts, e.ts)),
        span(segment.urings(dict), |e| (e.ts, e.ts)),
        span(segment.samples(dict), |e| (e.ts, e.ts)),
        span(segment.sleepers(dict), |e| (e.ts, e.ts)),
    ];
    // Every damaged kind is told, not the first one only.
    let read: Vec<Option<Option<Span>>> = spans.into_iter().map(|span| span.map_err(&mut *fail).ok()).collect();
    Some(read.into_iter().collect::<Option<Vec<_>>>()?.into_iter().flatten().collect())
}

/// Compares the facts from index or headers with the contents.
fn check_info(
    info: &SegmentInfo,
    dict: &Dict,
    (core, time): (&Core, &Time),
    events: &[Span],
    (gaps, ledger): (&[Gap], &[LedgerRow]),
    tables: Option<&[TableRows]>,
    say: &mut impl FnMut(String),
) {
    let ends = || time.start.iter().zip(&core.dur).map(|(s, d)| s.saturating_add(*d));
    let starts = time.start.iter().copied().chain(events.iter().map(|e| e.start)).min();
    let missed = || gaps.iter().map(|g| (g.first, g.last)).chain(ledger.iter().map(|l| (l.first, l.last)));
    let missed_from = missed().map(|(first, _)| first).min();
    let missed_to = missed().map(|(_, last)| last).max();
    let mut real = SegmentInfo {
        segment: info.segment,
        chunk: info.chunk,
        rows: core.dur.len() as u32,
        carry_rows: core.carry_rows as u32,
        carry_start_min: if core.carry_rows > 0 { time.start.first().copied().unwrap_or(0) } else { 0 },
        start_min: starts.or(missed_from).unwrap_or(0),
        end_min: ends().chain(events.iter().map(|e| e.end_min)).chain(missed_from).min().unwrap_or(0),
        end_max: ends().chain(events.iter().map(|e| e.end_max)).chain(missed_to).max().unwrap_or(0),
        ..SegmentInfo::default()
    };
    let of_tables = tables.iter().copied().flatten();
    real.table_start_min = of_tables.clone().filter_map(|table| table.ts.first()).min().copied().unwrap_or(0);
    real.table_end_max = of_tables.filter_map(|table| table.ts.last()).max().copied().unwrap_or(0);
    if tables.is_none() {
        (real.table_start_min, real.table_end_max) = (info.table_start_min, info.table_end_max);
    }
    let pids = listed_pids(&dict.tasks, gaps);
    add_content(&mut real, (&core.dur, &core.errno, !ledger.is_empty()), listed_calls(&dict.calls), pids);
    // What is not known is not wrong.
    if info.max_dur == u64::MAX && info.failures == u32::MAX {
        (real.max_dur, real.failures) = (info.max_dur, info.failures);
    }
    if info.calls.is_none() {
        real.calls = None;
    }
    if info.pids.is_none() && info.pid_bloom.is_none() {
        (real.pids, real.pid_bloom) = (None, None);
    }
    if *info != real {
        say(format!("index or headers say {info:?}, the events {real:?}"));
    }
}

fn check_checkpoint(cp: &Checkpoint, at: u64, findings: &mut Findings) {
    let mut upids = HashSet::new();
    for table in &cp.fd_tables {
        if !upids.insert((table.upid, table.thread)) {
            findings.push(at, format!("checkpoint has two fd tables of upid {}", table.upid));
        }
        if !table.fds.is_sorted_by(|a, b| a.fd < b.fd) {
            findings.push(at, format!("fds of upid {} are not ascending", table.upid));
        }
    }
}
