//! What a stack costs: ns per stack of 11 and 68 frames, with every rule remembered and with none.
//!
//! `cargo run --release -p systape-unwind --example timing`

#[path = "../tests/traced/mod.rs"]
mod traced;

use std::hint::black_box;
use std::time::{Duration, Instant};

use systape_unwind::{StackCopy, UnwindEnd, Unwinder};
use traced::{Stop, Traced, compile};

const WARM: u32 = 200_000;
const COLD: u32 = 5_000;

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = compile("cc", "depth.c", &["-O2"], dir.path()) else { return };
    for frames_wanted in [11, 68] {
        // even(n) makes n + 1 frames; below are main, two of libc and _start.
        let depth = (frames_wanted - 5usize).next_multiple_of(2).to_string();
        let traced = Traced::start(&program, &[&depth]);
        assert_eq!(traced.go(0), Stop::Signal(5));
        let space = traced.space();
        let registers = traced.registers();
        let (base, bytes, cut) = traced.stack(&space, &registers, 64 << 10);
        let stack = StackCopy { base, bytes: &bytes, absent: 0, cut, in_call: false, entry: 0 };
        let mut unwinder = Unwinder::new(65536);
        let mut frames = Vec::new();

        let mut cold = Duration::ZERO;
        for _ in 0..COLD {
            (0..space.paths().count() as u32).for_each(|id| unwinder.forget(id));
            frames.clear();
            let start = Instant::now();
            let end = unwinder.unwind(&space, &registers, &stack, 1000, &mut frames);
            cold += start.elapsed();
            assert_eq!(end, UnwindEnd::Complete);
        }
        let start = Instant::now();
        for _ in 0..WARM {
            frames.clear();
            black_box(unwinder.unwind(&space, black_box(&registers), &stack, 1000, &mut frames));
        }
        let warm = start.elapsed() / WARM;
        let mut rules: Vec<_> = frames.iter().map(|f| f.address).collect();
        rules.sort_unstable();
        rules.dedup();
        println!(
            "{} frames, {} bytes of stack: {} ns warm, {} ns cold ({} rules)",
            frames.len(),
            bytes.len(),
            warm.as_nanos(),
            (cold / COLD).as_nanos(),
            rules.len()
        );
    }
}
