//! The summary per thread over a tape, on all CPUs, nothing printed.

#[path = "inputs/report.rs"]
mod report;
#[path = "inputs/tape.rs"]
mod tape;
#[path = "inputs/windows.rs"]
mod windows;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use systape_analyzer::exercise::{Context, Plan, SummaryMode, collect};

fn summary(c: &mut Criterion) {
    let config = report::config(&["--summary"]);
    let mut group = c.benchmark_group("summary");
    for (name, windows) in windows::inputs(1 << 20) {
        let tape = tape::tape(&windows);
        let context = Context::new(&config, &tape).expect("own tape");
        let (rows, plan) = (windows::rows(&windows), Plan::mode(SummaryMode::Thread));
        group.throughput(Throughput::Elements(rows));
        group.bench_function(name, |b| {
            b.iter(|| collect(&tape, &context.question.scope, &context.question.book, &plan))
        });
    }
    group.finish();
}

criterion_group!(benches, summary);
criterion_main!(benches);
