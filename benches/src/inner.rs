//! The program's role inside a tracer: runs a workload, measures it and writes the result into a file.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::process::cpu_of;
use crate::workloads;

/// `bench inner NAME SIZE DIR RESULT [--cpu N]`. No word of it may hold a space: bpftrace -c splits there.
#[derive(Debug, clap::Args)]
pub(crate) struct InnerRun {
    /// Which workload.
    pub name: String,
    /// How much of it.
    pub size: u64,
    /// Where its files are.
    pub dir: PathBuf,
    /// The file for what came of it.
    pub result: PathBuf,
    /// The CPU it stays on.
    #[arg(long)]
    pub cpu: Option<usize>,
}

/// What one run found out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Found {
    /// Units of the workload per second.
    pub rate: f64,
    /// Who started it: the system, unless that has helpers.
    pub parent: u32,
    /// CPU seconds that the parent had taken when the workload began. Loading programs takes longer than recording a
    /// million calls does, and is not the same from run to run: it is told apart here, within one run.
    pub before: f64,
}

/// Runs it.
pub(crate) fn run(run: &InnerRun) -> Result<()> {
    let workload = workloads::named(&run.name).with_context(|| format!("no workload {}", run.name))?;
    if let Some(cpu) = run.cpu {
        stay_on(cpu)?;
    }
    let parent = std::os::unix::process::parent_id();
    let before = cpu_of(parent).context("the CPU time of the parent")?;
    let rate = (workload.run)(&run.dir, run.size).with_context(|| run.name.clone())?;
    fs::write(&run.result, format!("{rate} {parent} {before}")).with_context(|| run.result.display().to_string())
}

/// What [`run`] wrote.
pub(crate) fn found(file: &Path) -> Result<Found> {
    let text = fs::read_to_string(file).context("the workload did not run")?;
    fs::remove_file(file)?;
    parse(&text).with_context(|| format!("what the workload found: {text:?}"))
}

fn parse(text: &str) -> Option<Found> {
    let mut words = text.split(' ');
    let rate = words.next()?.parse().ok().filter(|r: &f64| r.is_finite() && *r > 0.0)?;
    Some(Found { rate, parent: words.next()?.parse().ok()?, before: words.next()?.parse().ok()? })
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
        assert_eq!(parse("2500.5 12 0.25"), Some(Found { rate: 2500.5, parent: 12, before: 0.25 }));
        for text in ["0 12 0.25", "NaN 12 0.25", "inf 12 0.25", "1", ""] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_run_tells_who_started_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let result = dir.path().join("result");
        let nothing =
            InnerRun { name: "nothing".into(), size: 1, dir: dir.path().into(), result: result.clone(), cpu: None };
        run(&nothing).expect("true");
        let found = found(&result).expect("a result");
        assert_eq!(found.parent, std::os::unix::process::parent_id());
        assert!(found.before >= 0.0);
    }
}
