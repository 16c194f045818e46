//! The program's role inside a tracer: runs a workload, measures it and writes the rate into a file.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::workloads;

/// `bench inner NAME SIZE DIR RATE [--cpu N]`. No word of it may hold a space: bpftrace -c splits there.
#[derive(Debug, clap::Args)]
pub struct Run {
    /// Which workload.
    pub name: String,
    /// How much of it.
    pub size: u64,
    /// Where its files are.
    pub dir: PathBuf,
    /// The file for the rate.
    pub rate: PathBuf,
    /// The CPU it stays on.
    #[arg(long)]
    pub cpu: Option<usize>,
}

/// Runs it.
pub fn run(run: &Run) -> Result<()> {
    let workload = workloads::named(&run.name).with_context(|| format!("no workload {}", run.name))?;
    if let Some(cpu) = run.cpu {
        stay_on(cpu)?;
    }
    let rate = (workload.run)(&run.dir, run.size).with_context(|| run.name.clone())?;
    fs::write(&run.rate, rate.to_string()).with_context(|| run.rate.display().to_string())
}

/// What [`run`] wrote: units of the workload per second.
pub fn rate(file: &Path) -> Result<f64> {
    let text = fs::read_to_string(file).context("the workload did not run")?;
    fs::remove_file(file)?;
    match text.parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(rate),
        _ => bail!("the workload's rate is {text:?}"),
    }
}

fn stay_on(cpu: usize) -> Result<()> {
    // SAFETY: zeroed bytes are an empty cpu_set_t; CPU_SET checks the number against its size; the call reads `set` only.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set)
    };
    if set == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()).context("cannot stay on one CPU") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_positive_number() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("rate");
        assert!(rate(&file).is_err());
        for (text, expected) in [("2500.5", Some(2500.5)), ("0", None), ("NaN", None), ("inf", None), ("", None)] {
            fs::write(&file, text).expect("a file");
            assert_eq!(rate(&file).ok(), expected, "{text}");
        }
    }
}
