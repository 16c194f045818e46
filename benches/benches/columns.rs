//! Rows pushed into a segment: interning and vectors, before any sorting.

#[path = "inputs/windows.rs"]
mod windows;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn columns(c: &mut Criterion) {
    let mut group = c.benchmark_group("column_build");
    for (name, windows) in windows::inputs(64 << 10) {
        group.throughput(Throughput::Elements(windows::rows(&windows)));
        group.bench_function(name, |b| b.iter(|| windows.iter().map(|window| window.fill().rows()).sum::<usize>()));
    }
    group.finish();
}

criterion_group!(benches, columns);
criterion_main!(benches);
