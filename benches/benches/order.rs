//! Records of several rings into one order of time, as before encoding.

#[path = "inputs/records.rs"]
mod records;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use systape_recorder::rings::order::{Batch, Order};

/// As many rings, each read into one batch.
fn rings(n: usize) -> Vec<Batch> {
    let ring = |i: usize| {
        let mut batch = Batch::default();
        let records = records::ring(records::ROWS / n, i as u64 * 700, 0);
        records.iter().for_each(|record| batch.push(record));
        batch
    };
    (0..n).map(ring).collect()
}

fn order(c: &mut Criterion) {
    let mut group = c.benchmark_group("record_order");
    group.throughput(Throughput::Elements(records::ROWS as u64));
    for n in [1, 2, 16, 64, 256] {
        let sort = |batches: Vec<Batch>| {
            let mut order = Order::default();
            batches.into_iter().for_each(|batch| order.add(batch));
            order.take(u64::MAX)
        };
        group.bench_function(format!("{n}_rings"), |b| b.iter_batched(|| rings(n), sort, BatchSize::LargeInput));
    }
    group.finish();
}

criterion_group!(benches, order);
criterion_main!(benches);
