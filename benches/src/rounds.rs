//! Runs a workload under every system, round after round.
//!
//! Within a round each system runs once, and each round begins with the next one: drift of the machine meets all of them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::args::Plan;
use crate::inner::{self, Found};
use crate::mount::Mounted;
use crate::outcome::{self, RunOutcome};
use crate::process::{self, ProcessCost};
use crate::stats::Samples;
use crate::systems::{ALL, System};
use crate::tools::Tools;
use crate::workloads::Workload;

/// The CPU of a workload that stays on one, and that of the system then.
const WORK: usize = 0;
/// See [`WORK`].
const TRACE: usize = 1;

/// All runs of one workload under one system.
#[derive(Clone, Debug)]
pub(crate) struct WorkloadRuns {
    /// Which system.
    pub system: &'static System,
    /// Units of the workload per second.
    pub rate: Samples,
    /// Seconds of the whole command.
    pub wall: Samples,
    /// CPU seconds of the system, all of it.
    pub cpu: Samples,
    /// The same from the beginning of the workload on.
    pub cpu_since: Samples,
    /// CPU seconds of system and workload.
    pub all: Samples,
    /// Most memory resident, bytes.
    pub peak: Samples,
    /// Syscalls.
    pub calls: Samples,
    /// Bytes of the file for each call it tells of.
    pub bytes: Samples,
    /// Events missing from the file, all rounds together.
    pub lost: Option<u64>,
    /// A run failed. Why is said when it happens, with paths that do not belong into a page.
    pub failed: bool,
}

/// Runs the workload under every system, as often as the plan says.
pub(crate) fn rounds(
    tools: &Tools,
    plan: &Plan,
    workload: &'static Workload,
    systems: &[&'static System],
    files: &Path,
) -> Result<Vec<WorkloadRuns>> {
    let Some(first) = systems.first() else { return Ok(Vec::new()) };
    let places = Places::prepare(plan, workload, systems, files)?;
    let mut cells: Vec<_> = systems.iter().map(|s| WorkloadRuns::new(s)).collect();
    let n = cells.len();
    // one run that is not counted: caches
    let size = plan.size(workload, first);
    once(tools, workload, first, size, &places.of(size))?;
    for round in 0..plan.rounds_of(workload) {
        for cell in (0..n).map(|i| (i + round) % n) {
            let cell = &mut cells[cell];
            if cell.failed {
                continue;
            }
            process::go_on()?;
            eprintln!("bench: {}, round {}: {}", workload.name, round + 1, cell.system.name);
            let size = plan.size(workload, cell.system);
            let done = once(tools, workload, cell.system, size, &places.of(size));
            // a large file that is left is written to disk while others are measured
            if !(workload.read && round + 1 == plan.rounds_of(workload)) {
                remove_trace(tools, cell.system);
            }
            match done {
                Ok((found, took, outcome)) => cell.push(found, took, outcome),
                Err(e) if process::interrupted() => return Err(e),
                Err(e) => {
                    eprintln!("bench: {}: {e:#}", cell.system.name);
                    cell.failed = true;
                }
            }
        }
    }
    Ok(cells)
}

/// One run: what the workload measured, what the system took, and what it left.
pub(crate) fn once(
    tools: &Tools,
    workload: &Workload,
    system: &System,
    size: u64,
    dir: &Path,
) -> Result<(Found, ProcessCost, RunOutcome)> {
    let trace = system.trace(tools);
    remove_trace(tools, system);
    let pinned = workload.pinned && std::thread::available_parallelism().is_ok_and(|n| n.get() > TRACE);
    let mut inner: Vec<_> = ["./bench", "inner", workload.name, &size.to_string()].map(Into::into).into();
    inner.extend([dir.into(), "result".into()]);
    if pinned {
        inner.extend(["--cpu", &WORK.to_string()].map(Into::into));
    }
    let mut command = system.command(tools, trace.as_deref(), &inner, pinned.then_some(TRACE));
    let took = process::run(&mut command, &tools.file("errors"))?;
    let found = inner::found(&tools.file("result"))?;
    Ok((found, took, outcome::look(tools, system, trace.as_deref())?))
}

/// What the systems left behind; a file of perf may be large.
pub(crate) fn remove_traces(tools: &Tools) {
    ALL.iter().for_each(|system| remove_trace(tools, system));
}

fn remove_trace(tools: &Tools, system: &System) {
    if let Some(trace) = system.trace(tools) {
        fs::remove_file(trace).ok();
    }
}

impl WorkloadRuns {
    /// Before any run.
    pub(crate) fn new(system: &'static System) -> Self {
        let none = Samples::default;
        Self {
            system,
            rate: none(),
            wall: none(),
            cpu: none(),
            cpu_since: none(),
            all: none(),
            peak: none(),
            calls: none(),
            bytes: none(),
            lost: None,
            failed: false,
        }
    }

    /// Adds a run.
    pub(crate) fn push(&mut self, found: Found, took: ProcessCost, outcome: RunOutcome) {
        self.rate.push(found.rate);
        self.wall.push(took.wall);
        self.all.push(took.all);
        if self.system.always() {
            return;
        }
        self.cpu.push(took.cpu);
        if found.parent == took.pid {
            self.cpu_since.push(took.cpu - found.before);
        }
        let push = |samples: &mut Samples, value: Option<f64>| value.into_iter().for_each(|v| samples.push(v));
        push(&mut self.peak, took.peak.map(|b| b as f64));
        push(&mut self.calls, outcome.calls.map(|n| n as f64));
        push(&mut self.bytes, outcome.bytes.zip(outcome.told).map(|(bytes, calls)| bytes as f64 / calls as f64));
        self.lost = outcome.lost.map(|n| n + self.lost.unwrap_or(0));
    }
}

/// A directory for each size of a workload; gone when this is dropped.
struct Places {
    base: PathBuf,
    held: Vec<Mounted>,
}

impl Places {
    fn prepare(plan: &Plan, workload: &Workload, systems: &[&System], files: &Path) -> Result<Self> {
        let mut places = Self { base: files.join(workload.name), held: Vec::new() };
        let mut sizes: Vec<_> = systems.iter().map(|s| plan.size(workload, s)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for size in sizes {
            let place = places.of(size);
            fs::create_dir_all(&place)?;
            let held = (workload.prepare)(&place, size).with_context(|| format!("cannot prepare {}", workload.name))?;
            places.held.extend(held);
        }
        Ok(places)
    }

    fn of(&self, size: u64) -> PathBuf {
        self.base.join(size.to_string())
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        // unmounts
        self.held.clear();
        fs::remove_dir_all(&self.base).ok();
    }
}
