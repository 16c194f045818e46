//! Every way in which a tape can lose something, done to one tape.

use std::collections::BTreeSet;

use systape_format::header::{BlockKind, HEADER_LEN};
use systape_format::model::{CPU_NONE, Family, GapCause, LedgerReason};
use systape_format::reader::{BlockInfo, Tape};

use super::copy::{Event, Fate, copy};

/// A tape that lacks something.
#[derive(Clone, Debug)]
pub(crate) struct Damaged {
    /// What was done.
    pub what: String,
    pub bytes: Vec<u8>,
    /// Bytes of it are against the rules of the format; else it says by itself what it lacks.
    pub torn: bool,
    /// Nothing but calls that the ledger counts is missing.
    pub counted: bool,
}

impl Damaged {
    fn torn(what: String, bytes: Vec<u8>) -> Self {
        Self { what, bytes, torn: true, counted: false }
    }
}

/// All of them of `bytes`.
pub(crate) fn all(bytes: &[u8]) -> Vec<Damaged> {
    let tape = Tape::from_bytes(bytes.to_vec()).unwrap();
    let mut made = of_segments(&tape, bytes);
    made.extend(of_ends(&tape, bytes));
    made.extend(of_blocks(&tape, bytes));
    made.extend(of_events(&tape));
    made.extend(of_ledgers(&tape));
    made
}

/// First, middle and last of `count`.
fn some(count: usize) -> BTreeSet<usize> {
    if count == 0 { BTreeSet::new() } else { [0, count / 2, count - 1].into() }
}

/// Bytes of a block with its header.
fn range(block: &BlockInfo) -> std::ops::Range<usize> {
    let from = block.offset as usize;
    from..from + HEADER_LEN + block.stored_len as usize
}

/// Whole segments overwritten, and taken out.
fn of_segments(tape: &Tape, bytes: &[u8]) -> Vec<Damaged> {
    let numbers: Vec<u32> = tape.segments().iter().map(|info| info.segment).collect();
    let mut made = Vec::new();
    for at in some(numbers.len()) {
        let mut blocks = tape.blocks();
        blocks.retain(|block| block.segment == Some(numbers[at]));
        let mut zero = bytes.to_vec();
        blocks.iter().for_each(|block| zero[range(block)].fill(0));
        made.push(Damaged::torn(format!("segment {at} overwritten"), zero));
        blocks.sort_by_key(|block| std::cmp::Reverse(block.offset));
        let mut out = bytes.to_vec();
        for block in &blocks {
            let range = range(block);
            out.drain(range.start..range.end.next_multiple_of(8).min(bytes.len()));
        }
        made.push(Damaged::torn(format!("segment {at} taken out"), out));
    }
    made
}

/// Cut at a checkpoint, at and inside segments, before the index and before the end mark.
fn of_ends(tape: &Tape, bytes: &[u8]) -> Vec<Damaged> {
    let mut made = Vec::new();
    let blocks = tape.blocks();
    let mut add = |what: &str, at: usize| made.push(Damaged::torn(format!("cut {what}"), bytes[..at].to_vec()));
    for at in some(tape.segments().len()) {
        let number = tape.segments()[at].segment;
        let inside: Vec<_> = blocks.iter().filter(|block| block.segment == Some(number)).collect();
        if at > 0 {
            add(&format!("before segment {at}"), inside[0].offset as usize);
        }
        add(&format!("inside segment {at}"), range(inside[inside.len() / 2]).end - 3);
    }
    for block in &blocks {
        match block.kind {
            BlockKind::Checkpoint if block.chunk > 0 => add("at a chunk", block.offset as usize),
            BlockKind::Index => add("before the index", block.offset as usize),
            BlockKind::End => add("before the end mark", block.offset as usize),
            _ => {}
        }
    }
    made
}

/// A block of each kind with a wrong byte, in the first, the middle and the last segment that have it.
fn of_blocks(tape: &Tape, bytes: &[u8]) -> Vec<Damaged> {
    let mut made = Vec::new();
    for kind in BlockKind::ALL {
        let mut blocks = tape.blocks();
        blocks.retain(|block| block.kind == *kind && block.stored_len > 0);
        for at in some(blocks.len()) {
            let range = range(&blocks[at]);
            let mut wrong = bytes.to_vec();
            wrong[(range.start + HEADER_LEN + range.end) / 2] ^= 0x55;
            made.push(Damaged::torn(format!("block {at} of {} damaged", kind.name()), wrong));
        }
    }
    made
}

/// Every event of the tape.
fn events(tape: &Tape) -> Vec<Event> {
    let mut all = Vec::new();
    copy(tape, |event| {
        all.push(*event);
        Fate::Stored
    });
    all
}

/// Events of each family missing: of the first, middle and last segment all, those of one CPU in the later half, and a single one.
fn of_events(tape: &Tape) -> Vec<Damaged> {
    let all = events(tape);
    let mut made = Vec::new();
    for family in Family::ALL.iter().copied() {
        let segments: Vec<usize> =
            all.iter().filter(|e| e.family == family).map(|e| e.segment).collect::<BTreeSet<_>>().into_iter().collect();
        for at in some(segments.len()) {
            let segment = segments[at];
            let of_it = |e: &Event| e.family == family && e.segment == segment;
            let mut here: Vec<Event> = all.iter().filter(|e| of_it(e)).copied().collect();
            here.sort_by_key(|e| e.ts);
            let one = here[here.len() / 2];
            let mut add = |what: &str, lost: &dyn Fn(&Event) -> bool, cause| {
                let fate = |e: &Event| if of_it(e) && lost(e) { Fate::Lost(cause) } else { Fate::Stored };
                let what = format!("{what} of {family:?} lost in segment {segment}");
                made.push(Damaged { what, bytes: copy(tape, fate), torn: false, counted: false });
            };
            add("all", &|_| true, GapCause::QueueFull);
            add(&format!("one, at {} ns,", one.ts), &|e| same(e, &one), GapCause::Skipped);
            if one.cpu != CPU_NONE {
                let later = |e: &Event| e.cpu == one.cpu && e.ts >= one.ts;
                add(&format!("the later ones of CPU {}", one.cpu), &later, GapCause::RingFull);
            }
            if family == Family::Syscall {
                let theirs = |e: &Event| e.pid == one.pid && e.ts >= one.ts;
                add(&format!("the later ones of process {}", one.pid), &theirs, GapCause::OverShare);
            }
        }
    }
    made
}

fn same(a: &Event, b: &Event) -> bool {
    (a.ts, a.cpu, a.pid) == (b.ts, b.cpu, b.pid)
}

/// Calls that returned moved into the ledger: all, those of one process, a single one.
fn of_ledgers(tape: &Tape) -> Vec<Damaged> {
    let calls: Vec<Event> = events(tape).into_iter().filter(|e| e.returned).collect();
    let Some(one) = calls.get(calls.len() / 2).copied() else { return Vec::new() };
    let mut made = Vec::new();
    let mut add = |what: String, counted: &dyn Fn(&Event) -> bool, reason| {
        let fate = |e: &Event| {
            if e.returned && e.family == Family::Syscall && counted(e) { Fate::Counted(reason) } else { Fate::Stored }
        };
        made.push(Damaged { what, bytes: copy(tape, fate), torn: false, counted: true });
    };
    add("all calls counted".into(), &|_| true, LedgerReason::Lost);
    add(format!("calls of segment {} counted", one.segment), &|e| e.segment == one.segment, LedgerReason::Lost);
    add(format!("calls of process {} counted", one.pid), &|e| e.pid == one.pid, LedgerReason::OverShare);
    add(format!("the call that ended at {} ns counted", one.ts), &|e| same(e, &one), LedgerReason::Lost);
    made
}
