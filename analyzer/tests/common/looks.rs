//! A tape of `record --sample`: a second with 20 looks and samples of four CPUs, in which threads run, wait for a CPU, a disk, a lock and for work.

use std::path::Path;
use std::sync::Arc;

use systape_format::SegmentBuilder;
use systape_format::families::{LOOK_IDLE, LOOK_SECOND, LOOK_STAY};
use systape_format::model::{Family, Gap, Sample, Session, StackOf, StackSettings};
use systape_format::tables::Field;

use super::{OPEN, Tape, US, session, task};

const MS: u64 = 1000 * US;

/// A row of a stay: thread, state, call, file, lock and its owner, first look, looks, ns that it had been so; it goes on from a row before.
struct Stay(u32, &'static str, &'static str, &'static str, Option<(u64, u64)>, u64, u64, Option<u64>, bool);

const STAYS: [Stay; 10] = [
    Stay(100, "D", "fsync", "/var/db/journal", None, 0, 1, Some(3_000_000), false),
    Stay(100, "D", "fsync", "/var/db/journal", None, 2, 5, Some(20_000_000), false),
    Stay(101, "S", "futex", "", Some((0x7f00_0000_1000, 100)), 2, 5, Some(1_000_000), false),
    Stay(101, "R", "", "", None, 8, 1, Some(40_000), false),
    Stay(102, "S", "read", "pipe:[17]", None, 0, 10, None, false),
    Stay(102, "S", "read", "pipe:[17]", None, 10, 8, None, true),
    Stay(102, "D", "", "", None, 19, 1, Some(9_000_000), false),
    Stay(103, "S", "connect", "TCP:[10.0.0.1:40002->10.0.0.2:443]", None, 4, 12, Some(2_000), false),
    Stay(103, "S", "read", "/dev/pts/0", None, 17, 2, Some(5_000), false),
    Stay(104, "D", "openat", "", None, 6, 14, Some(30_000_000), false),
];

fn number(value: Option<u64>) -> Field<'static> {
    value.map_or(Field::Unknown, Field::Number)
}

fn text(value: &'static str) -> Field<'static> {
    if value.is_empty() { Field::Unknown } else { Field::Bytes(value.as_bytes()) }
}

fn stays(builder: &mut SegmentBuilder) {
    let def = Arc::new(LOOK_STAY.clone());
    for Stay(tid, state, call, file, lock, look, looks, since, goes_on) in STAYS {
        let task = builder.intern_task(&task(tid));
        // at the look after its last one, or at the end
        let end = (look + looks).min(19);
        let ago = (end - (look + looks - 1)) * 50 * MS;
        let abi = if call.is_empty() { "" } else { "x86_64" };
        let path = if call == "openat" { "fifo" } else { "" };
        let arg = |value: u64| number((!call.is_empty()).then_some(value));
        let fields = [
            Field::Task(task),
            text(state),
            text(call),
            text(abi),
            Field::Number(u64::from(!goes_on)),
            Field::Number(looks),
            Field::Number(50 * MS),
            Field::Number((looks - 1) * 50 * MS),
            Field::Number(ago),
            number(since),
            Field::Number(look),
            text(file),
            text(path),
            number(lock.map(|(lock, _)| lock)),
            number(lock.map(|(_, owner)| owner)),
            arg(3),
            arg(0x7ffd_0000_1000),
            arg(4096),
            arg(0),
            arg(0),
            arg(0),
            Field::Number(1),
            number(file.starts_with("TCP").then_some(1)),
            Field::Unknown,
            Field::Unknown,
        ];
        builder.push_table_row(&def, OPEN + (25 + 50 * end) * MS, &fields).unwrap();
    }
}

fn looks(builder: &mut SegmentBuilder) {
    let (seconds, idle) = (Arc::new(LOOK_SECOND.clone()), Arc::new(LOOK_IDLE.clone()));
    let ts = OPEN + 1000 * MS;
    // look, looks, interval, span, skipped, threads, noted, displaced, stopped, over, uncopied, cost
    let numbers = [0, 20, 50 * MS, 1000 * MS, 1, 2000, 59, 20, 20, 0, 2, 7 * MS];
    builder.push_table_row(&seconds, ts, &numbers.map(Field::Number)).unwrap();
    for (call, threads) in [("epoll_wait", 160), ("clock_nanosleep", 21)] {
        let fields = [text(call), Field::Number(threads), Field::Number(20), Field::Number(50 * MS)];
        builder.push_table_row(&idle, ts, &fields).unwrap();
    }
    for (tid, cpu, kernel, every) in [(100, 0, false, 1), (103, 1, false, 2), (104, 2, true, 7)] {
        let task = builder.intern_task(&task(tid));
        for at in (0..20).step_by(every) {
            builder.push_sample(Sample { ts: OPEN + (10 + 50 * at) * MS, cpu, task, kernel });
        }
    }
}

/// Writes the tape.
pub fn write(path: &Path, gaps: &[Gap]) {
    let families = vec![Family::Process, Family::Signal, Family::Look, Family::Sample];
    let stacks = StackSettings { on: vec![StackOf::Sample, StackOf::Row], frequency: 20, ..StackSettings::default() };
    let mut tape = Tape::create_with(path, &Session { families, stacks, target: "system-wide".into(), ..session() });
    tape.segment_with(1_000_000, &[], gaps, |builder| {
        stays(builder);
        looks(builder);
    });
    tape.finish();
}
