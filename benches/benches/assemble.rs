//! Ordered records into rows of a segment, as the encoder's thread does it: tasks and descriptors are followed, nothing is compressed.

#[path = "inputs/mixed.rs"]
mod mixed;
#[path = "inputs/records.rs"]
mod records;

use std::sync::Arc;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use systape_abi::Selection;
use systape_format::model::StackSettings;
use systape_recorder::calls::filter::CallFilter;
use systape_recorder::encode::{Assembler, Settings};
use systape_recorder::own::memory;
use systape_recorder::rings::order::Batch;
use systape_recorder::tasks::targets::Targets;

/// Records of a batch: as many as the drain puts into one.
const BATCH: usize = 1 << 10;

fn encoder() -> Assembler {
    Assembler::new(Settings {
        env: Default::default(),
        selection: Selection::all(),
        stores: CallFilter::default(),
        window_open: 1,
        flush: Duration::from_secs(3600),
        looks: false,
        stacks: StackSettings::default(),
        targets: Targets::default(),
        triggers: Vec::new(),
        chunks_stand_alone: false,
        own_pid: 1,
        nested: false,
        follows_rings: false,
        tracepoints: Vec::new(),
        probes: Vec::new(),
        static_probes: Vec::new(),
        devices: Vec::new(),
        lock_names: Arc::default(),
    })
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

fn run(mut encoder: Assembler, events: usize) -> Assembler {
    encoder.advance(u64::MAX);
    assert_eq!(encoder.totals().sum(), events as u64);
    encoder
}

fn assemble(c: &mut Criterion) {
    memory::keep();
    let mut group = c.benchmark_group("record_assemble");
    let calls = |every| vec![records::ring(records::ROWS, 1000, every)];
    let times = records::ROWS / mixed::PER_FILE;
    for (name, rings, events) in [
        ("dd", calls(0), records::ROWS),
        ("paths", calls(4), records::ROWS),
        ("switches", vec![mixed::switches(records::ROWS)], records::ROWS),
        ("mixed", mixed::files(times).into(), times * mixed::PER_FILE),
    ] {
        group.throughput(Throughput::Elements(events as u64));
        let run = |encoder| run(encoder, events);
        group.bench_function(name, |b| b.iter_batched(|| filled(&rings), run, BatchSize::PerIteration));
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
        let run = |encoder| run(encoder, records::ROWS);
        group.bench_function(format!("{cpus}_cpus"), |b| {
            b.iter_batched(|| filled(&rings), run, BatchSize::PerIteration)
        });
    }
    group.finish();
}

criterion_group!(benches, assemble, cpus);
criterion_main!(benches);
