//! Records of a ring, from bytes to values: without captures, and with a path in each fourth.

#[path = "inputs/records.rs"]
mod records;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use systape_bpf::wire;

fn parse(c: &mut Criterion) {
    let mut group = c.benchmark_group("wire_parse");
    for (name, every) in [("dd", 0), ("mixed", 4)] {
        let records = records::ring(records::ROWS, 0, every);
        group.throughput(Throughput::Elements(records::ROWS as u64));
        group.bench_function(name, |b| b.iter(|| records.iter().filter(|bytes| wire::parse(bytes).is_ok()).count()));
    }
    group.finish();
}

criterion_group!(benches, parse);
criterion_main!(benches);
