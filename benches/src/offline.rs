//! How fast what was recorded is read: analyze on the tape beside perf trace on its file, of the same workload.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::stats::{Samples, table};
use crate::timed::children_cpu;
use crate::tools::Tools;
use crate::workload::Traces;

/// Times a summary and a listing, output thrown away, and prints the table.
pub fn run(tools: &Tools, traces: &Traces, rounds: usize) -> Result<()> {
    let analyze = tools.analyze.to_string_lossy();
    let mut ways = vec![
        (vec![&*analyze, "--summary", "-i"], traces.tape.as_path(), "summary", "analyze --summary"),
        (vec![&*analyze, "-i"], traces.tape.as_path(), "listing", "analyze"),
    ];
    if let Some(perf) = &traces.perf {
        ways.push((vec!["perf", "trace", "-s", "-i"], perf, "summary", "perf trace -s -i"));
        ways.push((vec!["perf", "trace", "-i"], perf, "listing", "perf trace -i"));
    }
    let mut samples = vec![(Samples::default(), Samples::default()); ways.len()];
    for _ in 0..rounds {
        for ((argv, file, ..), (wall, cpu)) in ways.iter().zip(&mut samples) {
            let (w, c) = time(argv, file)?;
            wall.push(w);
            cpu.push(c);
        }
    }
    println!("\nReading it ({} calls), output to /dev/null:\n", traces.calls);
    let rows = ways.iter().zip(&samples).map(|((_, _, kind, name), (wall, cpu))| {
        let peer = ways.iter().zip(&samples).find(|((.., k, n), _)| k == kind && n.starts_with("perf"));
        let faster = peer.map_or_else(|| "-".into(), |(_, (p, _))| format!("{:.1}x", p.median() / wall.median()));
        vec![(*name).to_owned(), format!("{wall:.3}"), format!("{cpu:.3}"), faster]
    });
    table(&["", "wall s", "CPU s", "perf's time / its time"], &rows.collect::<Vec<_>>());
    Ok(())
}

fn time(argv: &[&str], file: &Path) -> Result<(f64, f64)> {
    let (cpu, started) = (children_cpu(), Instant::now());
    let status = Command::new(argv[0])
        .args(&argv[1..])
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .with_context(|| format!("{argv:?}"))?;
    if !status.success() {
        bail!("{argv:?}: {status}");
    }
    Ok((started.elapsed().as_secs_f64(), children_cpu() - cpu))
}
