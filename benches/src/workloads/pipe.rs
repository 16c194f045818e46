//! Context switches: two processes that wake each other through pipes, on one CPU.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::{CostRelation, Workload};
use crate::tools::Need;

/// 200,000 times there and back.
pub(super) const WORKLOAD: Workload = Workload {
    name: "pipe",
    title: "Two processes that wake each other",
    text: |n| format!("perf bench sched pipe -l {n}"),
    unit: "trips",
    cost: CostRelation::Added,
    full: 200_000,
    quick: 20_000,
    short: 5_000,
    least_rounds: 0,
    pinned: true,
    read: false,
    needs: &[Need::new(&["perf"], "linux-perf"), Need::new(&["taskset"], "util-linux")],
    prepare: |_, _| Ok(None),
    run: |_, n| run(n),
};

fn run(n: u64) -> Result<f64> {
    let mut command = Command::new("perf");
    command.args(["bench", "-f", "simple", "sched", "pipe", "-l", &n.to_string()]);
    let out = command.stdin(Stdio::null()).stderr(Stdio::null()).output().context("perf bench")?;
    let seconds: f64 = String::from_utf8_lossy(&out.stdout).trim().parse().context("what perf bench prints")?;
    if !out.status.success() || seconds <= 0.0 {
        bail!("perf bench sched pipe: {}", out.status);
    }
    Ok(n as f64 / seconds)
}
