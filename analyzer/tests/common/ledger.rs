//! Calls of which some are stored and some are counted, written through systape-format's own writer; and one small tape with everything
//! a ledger can have.

use std::collections::BTreeMap;
use std::path::Path;

use systape_format::SegmentBuilder;
use systape_format::model::{
    CallState, Checkpoint, ERRNO_ANY, Family, Gap, GapCause, LedgerReason, LedgerRow, Session, size_bucket,
};

use super::{OPEN, Row, Tape, US, call, gap, session, task};

/// Calls that are counted, in one row: of the process of a thread, one call, outcome and CPU. CPUs are those [`super::push`] gives.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    /// The calls.
    pub rows: Vec<Row<'a>>,
    pub reason: LedgerReason,
    /// Of a process nobody knows: then their errors are any, their sizes unknown.
    pub coarse: bool,
}

/// Groups `rows` as a recorder does.
pub fn parts<'a>(rows: &[Row<'a>], reason: LedgerReason, coarse: bool) -> Vec<Part<'a>> {
    let mut parts: BTreeMap<(u32, &str, u16, u8, u32), Part<'a>> = BTreeMap::new();
    for row in rows {
        let pid = if coarse { 0 } else { task(row.tid).pid };
        let errno = if coarse { u16::from(row.errno != 0) } else { row.errno };
        let key = (pid, row.name, errno, row.state as u8, row.tid % 4);
        parts.entry(key).or_insert_with(|| Part { rows: Vec::new(), reason, coarse }).rows.push(row.clone());
    }
    parts.into_values().collect()
}

/// Adds one row of a ledger.
pub fn count(builder: &mut SegmentBuilder, part: &Part<'_>) {
    let Part { rows, reason, coarse } = part;
    let one = &rows[0];
    let leader = builder.intern_task(&task(task(one.tid).pid));
    let durs: Vec<u64> = rows.iter().map(|row| row.dur * US).collect();
    let ends: Vec<u64> = rows.iter().map(|row| OPEN + (row.start + row.dur) * US).collect();
    let mut sizes = BTreeMap::new();
    durs.iter().for_each(|dur| *sizes.entry(size_bucket(*dur)).or_insert(0) += 1);
    let call = builder.intern_call(call(one.name));
    builder.push_ledger(LedgerRow {
        task: (!coarse).then_some(leader),
        call,
        reason: *reason,
        errno: if *coarse && one.errno != 0 { ERRNO_ANY } else { one.errno },
        state: one.state,
        cpu: one.tid % 4,
        count: durs.len() as u64,
        sum: durs.iter().sum(),
        min: *durs.iter().min().unwrap(),
        max: *durs.iter().max().unwrap(),
        first: *ends.iter().min().unwrap(),
        last: *ends.iter().max().unwrap(),
        sizes: if *coarse { Vec::new() } else { sizes.into_iter().collect() },
    });
}

/// The gap that tells of `count` calls in the ledger.
pub fn counted_gap(cause: GapCause, cpu: u32, count: u64, (first, last): (u64, u64)) -> Gap {
    Gap { cause, cpu, count, first: OPEN + first * US, last: OPEN + last * US, ledger: true, ..gap() }
}

/// Of a whole system, with these options that store only some calls.
pub fn system(filters: &str) -> Session {
    Session {
        target: "system-wide".into(),
        families: vec![Family::Syscall, Family::Process, Family::State],
        call_filters: filters.split(' ').filter(|word| !word.is_empty()).map(|word| word.as_bytes().to_vec()).collect(),
        ..session()
    }
}

/// What every thread is called at the start.
pub fn start() -> Checkpoint {
    Checkpoint {
        ts: OPEN,
        tasks: [100, 101, 102, 103].map(task).to_vec(),
        source: "snapshot".into(),
        ..Checkpoint::default()
    }
}

/// Writes it: calls that were stored, lost and counted, counted of nobody known, of a process over its share, counted and stored to
/// check, and lost without being counted (`plain`).
pub fn write(path: &Path, plain: &[Gap]) {
    let row = |tid, name, start, dur| Row { tid, name, start, dur, ..Row::default() };
    let mut tape = Tape::create_at(path, &system(""), &start());
    let stored = [
        Row { args: [3, 0x7f00, 4096, 0, 0, 0], ret: 4096, path: Some("/data/log"), ..row(100, "read", 100, 20) },
        Row { args: [3, 0x7f00, 4096, 0, 0, 0], ret: 4096, path: Some("/data/log"), ..row(101, "read", 140, 30) },
        Row { errno: 2, ..row(102, "openat", 200, 8) },
        // what it stands for now nobody knows: a record of an open was lost
        Row { args: [3, 0x7f00, 64, 0, 0, 0], ret: 64, ..row(100, "read", 900, 10) },
    ];
    let reads: Vec<Row<'_>> = (0..40).map(|i| row(100, "read", 400 + i * 5, 3 + i % 4)).collect();
    let lost = [&reads[..], &[Row { errno: 4, ..row(100, "read", 640, 30) }, row(100, "close", 600, 2)]].concat();
    let mut gaps = vec![counted_gap(GapCause::RingFull, 0, lost.len() as u64, (403, 670))];
    gaps.extend(plain);
    tape.segment_with(1_000, &stored, &gaps, |builder| {
        parts(&lost, LedgerReason::Lost, false).iter().for_each(|part| count(builder, part));
        let checked = parts(&stored[..1], LedgerReason::Checked, false);
        checked.iter().for_each(|part| count(builder, part));
    });
    let hog: Vec<Row<'_>> = (0..9).map(|i| row(102, "write", 1_100 + i * 4, 2)).collect();
    let nobody = [row(103, "futex", 1_300, 100), Row { errno: 11, ..row(103, "futex", 1_420, 40) }];
    let child = Row { state: CallState::CloneChild, ..row(102, "clone", 1_500, 0) };
    let open = Row { state: CallState::BeganBefore, ..row(102, "poll", 0, 1_600) };
    let gaps = [
        counted_gap(GapCause::OverShare, 2, hog.len() as u64, (1_102, 1_134)),
        counted_gap(GapCause::RingFull, 3, nobody.len() as u64, (1_400, 1_460)),
        counted_gap(GapCause::RingFull, 2, 2, (1_500, 1_600)),
    ];
    let mut over = gaps[0];
    over.pid = 102;
    tape.segment_with(2_000, &[row(102, "write", 1_050, 40)], &[over, gaps[1], gaps[2]], |builder| {
        parts(&hog, LedgerReason::OverShare, false).iter().for_each(|part| count(builder, part));
        parts(&nobody, LedgerReason::Lost, true).iter().for_each(|part| count(builder, part));
        parts(&[child, open], LedgerReason::Lost, false).iter().for_each(|part| count(builder, part));
    });
    tape.finish();
}
