//! Segments sorted, narrowed, put into Cap'n Proto and compressed, by zstd's level. `record` uses 1.

#[path = "inputs/windows.rs"]
mod windows;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use systape_format::Encoder;

fn encode(c: &mut Criterion) {
    for (name, windows) in windows::inputs(64 << 10) {
        let mut group = c.benchmark_group(format!("segment_write_{name}"));
        group.throughput(Throughput::Elements(windows::rows(&windows)));
        for level in [1, 3, 6] {
            let mut encoder = Encoder::new(level);
            group.bench_function(format!("zstd_{level}"), |b| {
                let fill = || windows.iter().map(|window| window.fill()).collect::<Vec<_>>();
                let encode = |filled: Vec<_>| {
                    filled.into_iter().map(|data| encoder.segment(data).expect("own rows").stored_bytes()).sum::<u64>()
                };
                b.iter_batched(fill, encode, BatchSize::LargeInput);
            });
        }
        group.finish();
    }
}

criterion_group!(benches, encode);
criterion_main!(benches);
