//! Ordered records into rows of a segment, as the encoder's thread does it: tasks and descriptors are followed, nothing is compressed.

#[path = "inputs/records.rs"]
mod records;

use std::mem::size_of;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use systape_abi::Selection;
use systape_bpf::wire::{Switch, Who};
use systape_format::model::StackSettings;
use systape_recorder::encode::{Assembler, Settings};
use systape_recorder::filter::CallFilter;
use systape_recorder::order::Batch;
use systape_recorder::targets::Targets;

/// Records of a batch: as many as the drain puts into one.
const BATCH: usize = 1 << 10;

fn encoder() -> Assembler {
    Assembler::new(Settings {
        env: Default::default(),
        selection: Selection::all(),
        stores: CallFilter::default(),
        window_open: 1,
        flush: Duration::from_secs(3600),
        stacks: StackSettings::default(),
        targets: Targets::default(),
        triggers: Vec::new(),
        chunks_stand_alone: false,
        own_pid: 1,
        nested: false,
        tracepoints: Vec::new(),
        probes: Vec::new(),
        static_probes: Vec::new(),
        lock_names: Arc::default(),
    })
}

/// Switches between two tasks, 2 µs apart.
fn switches(rows: usize) -> Vec<Vec<u8>> {
    let who = |tid: usize| Who { tid: tid as u32, pid: tid as u32, start: tid as u64, ..Who::default() };
    let one = |row: usize| {
        let mut switch = Switch { ts: row as u64 * 2000, ..Switch::default() };
        switch.hdr.kind = 7;
        (switch.prev, switch.next) = (who(4711 + row % 2), who(4712 - row % 2));
        // SAFETY: a record of integers without padding, read as its bytes.
        unsafe { std::slice::from_raw_parts((&raw const switch).cast::<u8>(), size_of::<Switch>()) }.to_vec()
    };
    (0..rows).map(one).collect()
}

/// An encoder with the records of these rings.
fn filled(rings: &[Vec<Vec<u8>>]) -> Assembler {
    let mut encoder = encoder();
    for some in rings.iter().flat_map(|ring| ring.chunks(BATCH)) {
        let mut batch = Batch::default();
        some.iter().for_each(|record| batch.push(record));
        encoder.add(batch);
    }
    encoder
}

fn run(mut encoder: Assembler) -> Assembler {
    encoder.advance(u64::MAX);
    assert_eq!(encoder.totals().sum(), records::ROWS as u64);
    encoder
}

fn assemble(c: &mut Criterion) {
    let mut group = c.benchmark_group("record_assemble");
    group.throughput(Throughput::Elements(records::ROWS as u64));
    let calls = |every| records::ring(records::ROWS, 1000, every);
    for (name, records) in [("dd", calls(0)), ("paths", calls(4)), ("switches", switches(records::ROWS))] {
        let rings = [records];
        group.bench_function(name, |b| b.iter_batched(|| filled(&rings), run, BatchSize::LargeInput));
    }
    group.finish();
}

/// The serial part for many CPUs, each with a ring of its own whose calls are in time with those of the others: putting
/// them in order, and rows. Each fourth call has a path.
fn cpus(c: &mut Criterion) {
    let mut group = c.benchmark_group("record_cpus");
    group.throughput(Throughput::Elements(records::ROWS as u64));
    for cpus in [1, 8, 64, 256] {
        let ring = |cpu| records::ring(records::ROWS / cpus, 1000 + cpu as u64 * 7, 4);
        let rings: Vec<_> = (0..cpus).map(ring).collect();
        group.bench_function(format!("{cpus}_cpus"), |b| b.iter_batched(|| filled(&rings), run, BatchSize::LargeInput));
    }
    group.finish();
}

criterion_group!(benches, assemble, cpus);
criterion_main!(benches);
