//! The listing of a tape as text, on all CPUs, to /dev/null.

#[path = "inputs/report.rs"]
mod report;
#[path = "inputs/tape.rs"]
mod tape;
#[path = "inputs/windows.rs"]
mod windows;

use std::fs::File;
use std::io::BufWriter;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use systape_analyzer::exercise::{Context, Out, listing};

fn lines(c: &mut Criterion) {
    let config = report::config(&[]);
    let mut group = c.benchmark_group("listing");
    group.sample_size(20);
    for (name, windows) in windows::inputs(256 << 10) {
        let tape = tape::tape(&windows);
        let mut out = Out::from(BufWriter::with_capacity(1 << 18, File::create("/dev/null").expect("/dev/null")));
        group.throughput(Throughput::Elements(windows::rows(&windows)));
        group.bench_function(name, |b| {
            b.iter(|| {
                let mut context = Context::new(&config, &tape).expect("own tape");
                listing(&mut context, &mut out).expect("/dev/null takes anything");
            });
        });
    }
    group.finish();
}

criterion_group!(benches, lines);
criterion_main!(benches);
