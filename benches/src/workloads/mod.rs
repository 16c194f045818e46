//! What is run under each system. The same work every time; each measures itself and gives a rate.
//!
//! `prepare` makes what it works on, once, outside every tracer; `run` is called inside one, once for each run.

mod build;
mod dd;
mod files;
mod find;
mod fio;
mod pipe;
mod redis;
mod sqlite;
mod stacked;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::mount::Mounted;
use crate::tools::Need;

pub(crate) use stacked::{CHAIN, PYTHON};

/// How the cost of a system is put in relation to the floor's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CostRelation {
    /// Time added per unit.
    Added,
    /// Throughput lost.
    Lost,
}

/// One workload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    /// For `--workloads`.
    pub name: &'static str,
    /// In a heading.
    pub title: &'static str,
    /// What is run, as one would type it, at a given size.
    pub text: fn(u64) -> String,
    /// What the rate counts.
    pub unit: &'static str,
    /// How its cost is compared.
    pub cost: CostRelation,
    /// Size of a run.
    pub full: u64,
    /// With `--quick`.
    pub quick: u64,
    /// For a system that takes a hundred times as long.
    pub short: u64,
    /// Unless told otherwise it runs this often under each system.
    pub least_rounds: usize,
    /// On one CPU, the tracer on another.
    pub pinned: bool,
    /// Its tapes serve for measuring how fast they are read.
    pub read: bool,
    /// What it cannot do without.
    pub needs: &'static [Need],
    /// Makes its files in a directory of its own. What it returns is held as long as they are needed.
    pub prepare: fn(&Path, u64) -> Result<Option<Mounted>>,
    /// Does the work; units per second.
    pub run: fn(&Path, u64) -> Result<f64>,
}

/// In the order in which they run.
pub(crate) const ALL: &[Workload] = &[
    dd::WORKLOAD,
    files::WORKLOAD,
    pipe::WORKLOAD,
    fio::WORKLOAD,
    redis::WORKLOAD,
    sqlite::WORKLOAD,
    build::WORKLOAD,
    find::WORKLOAD,
];

/// Nothing: what it costs to start a system and to end it.
pub(crate) const NOTHING: Workload = Workload {
    name: "nothing",
    title: "Nothing",
    text: |_| "true".into(),
    unit: "runs",
    cost: CostRelation::Added,
    full: 1,
    quick: 1,
    short: 1,
    least_rounds: 0,
    pinned: false,
    read: false,
    needs: &[],
    prepare: |_, _| Ok(None),
    run: |_, n| time(n, &mut Command::new("true")),
};

/// The workload of a name, those that are not listed too.
pub(crate) fn named(name: &str) -> Option<&'static Workload> {
    ALL.iter().chain([&NOTHING, &CHAIN, &PYTHON]).find(|w| w.name == name)
}

/// Runs a command and gives `n` by the seconds it took. What it prints is thrown away.
fn time(n: u64, command: &mut Command) -> Result<f64> {
    let started = Instant::now();
    succeed(command)?;
    Ok(n as f64 / started.elapsed().as_secs_f64())
}

/// Runs a command that has to succeed. What it prints is thrown away.
fn succeed(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let status = status.with_context(|| format!("{command:?}"))?;
    if status.success() { Ok(()) } else { bail!("{command:?}: {status}") }
}

/// A server; gone when this is dropped.
struct WorkloadServer(Child);

impl Drop for WorkloadServer {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_and_differ() {
        let mut names: Vec<_> = ALL.iter().chain([&NOTHING, &CHAIN, &PYTHON]).map(|w| w.name).collect();
        assert!(names.iter().all(|n| n.bytes().all(|b| b.is_ascii_lowercase())));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len() + 3);
    }

    #[test]
    fn a_rate_counts_units_by_the_second() {
        let rate = (NOTHING.run)(Path::new("/"), 1).expect("true");
        assert!(rate > 0.0 && rate.is_finite());
        assert!(time(1, &mut Command::new("false")).is_err());
    }
}
