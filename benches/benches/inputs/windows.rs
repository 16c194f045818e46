//! The two inputs: one thread that reads and writes a byte, and a machine with paths, strings and many processes.

use systape_benches::synth::{Plan, SynthWindow, SynthWorld, dd};

/// A name and its windows, about `rows` calls together.
pub(crate) fn inputs(rows: usize) -> [(&'static str, Vec<SynthWindow>); 2] {
    let plan = Plan { calls: rows as u64, processes: 600, host: 0 };
    let world = SynthWorld::new(plan).expect("a plan that makes sense");
    [("dd", dd(rows)), ("mixed", (0..world.windows()).map(|at| world.window(at)).collect())]
}

/// Calls of all of them.
pub(crate) fn rows(windows: &[SynthWindow]) -> u64 {
    windows.iter().map(|window| window.rows.len() as u64).sum()
}
