//! find over a large tree: paths, and calls that look at them.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::{CostRelation, Workload};

/// More than there are.
const ALL: u64 = u64::MAX;

/// Up to `n` paths below /usr.
pub(super) const WORKLOAD: Workload = Workload {
    name: "find",
    title: "find: paths",
    text: |n| if n == ALL { "find /usr | cat".into() } else { format!("find /usr | head -n {n}") },
    unit: "paths",
    cost: CostRelation::Added,
    full: ALL,
    quick: 40_000,
    short: 20_000,
    least_rounds: 0,
    pinned: false,
    read: false,
    needs: &[],
    prepare: |_, _| Ok(None),
    run,
};

fn run(_: &Path, n: u64) -> Result<f64> {
    let started = Instant::now();
    let mut find = Command::new("find").arg("/usr").stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut out = BufReader::with_capacity(1 << 16, find.stdout.take().context("a pipe")?);
    let mut seen = 0;
    while seen < n && out.skip_until(b'\n')? > 0 {
        seen += 1;
    }
    let took = started.elapsed().as_secs_f64();
    drop(out);
    // a file that goes away while it looks is an error to find and none to us
    find.wait()?;
    if seen == 0 {
        bail!("find printed nothing");
    }
    Ok(seen as f64 / took)
}
