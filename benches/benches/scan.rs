//! `syscalls.core` read and decoded: what a summary does before it adds up.

#[path = "inputs/tape.rs"]
mod tape;
#[path = "inputs/windows.rs"]
mod windows;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use systape_format::{Core, Tape};

fn scan(c: &mut Criterion) {
    let mut group = c.benchmark_group("scan_core");
    for (name, windows) in windows::inputs(512 << 10) {
        let tape = tape::tape(&windows);
        group.throughput(Throughput::Elements(windows::rows(&windows)));
        group.bench_function(name, |b| b.iter(|| durations(&tape)));
    }
    group.finish();
}

/// Every segment's core, into the same buffers.
fn durations(tape: &Tape) -> u64 {
    let mut core = Core::default();
    let mut sum = 0_u64;
    for at in 0..tape.segments().len() {
        let segment = tape.segment(at);
        let dict = segment.dict().expect("own tape");
        segment.core_into(&dict, &mut core).expect("own tape");
        sum = sum.wrapping_add(core.dur.iter().sum());
    }
    sum
}

criterion_group!(benches, scan);
criterion_main!(benches);
