//! Lines of segments merged by start: those that began before their segment's window find their places among earlier ones.

#[path = "inputs/windows.rs"]
mod windows;

use std::io;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use systape_analyzer::exercise::{Loose, Merger, StreamPart as Part};
use systape_benches::synth::SynthWindow;

const LINE: &[u8] =
    b"     0.000 ( 0.001 ms): nginx/4711 read(fd: 3</srv/data/shard07/part-00911.dat>, count: 4096) = 4096\n";

/// A segment's lines: by start, and those that began before its window. Of the rest each `early`th is taken to have done so too.
fn lines(number: u32, window: &SynthWindow, early: usize) -> (Part, Vec<Loose>) {
    let (mut part, mut carry) = (Part::default(), Vec::new());
    let mut starts: Vec<_> = window.rows.iter().map(|row| row.row.end - row.row.dur).collect();
    starts.sort_unstable();
    for (row, key) in starts.into_iter().enumerate() {
        if key < window.start || row % early == early - 1 {
            carry.push(Loose { key, tie: Some((number, row as u32)), line: LINE.to_vec() });
        } else {
            part.bytes.extend_from_slice(LINE);
            part.end_line(key);
        }
    }
    (part, carry)
}

fn merge(c: &mut Criterion) {
    let [_, (_, windows)] = windows::inputs(256 << 10);
    let mut group = c.benchmark_group("merge_by_start");
    group.throughput(Throughput::Elements(windows::rows(&windows)));
    for (name, early) in [("each_256th_early", 256), ("each_16th_early", 16)] {
        let lines: Vec<_> = windows.iter().zip(0..).map(|(window, n)| lines(n, window, early)).collect();
        let (parts, carries): (Vec<_>, Vec<_>) = lines.into_iter().unzip();
        let merge = |mut carries: Vec<Vec<Loose>>| {
            let mut merger = Merger::new(io::sink(), u64::MAX);
            for (part, carry) in parts.iter().zip(&mut carries) {
                carry.drain(..).for_each(|line| merger.push(line));
                merger.part(part).expect("a sink");
            }
            merger.finish().expect("a sink");
        };
        group.bench_function(name, |b| b.iter_batched(|| carries.clone(), merge, BatchSize::LargeInput));
    }
    group.finish();
}

criterion_group!(benches, merge);
criterion_main!(benches);
