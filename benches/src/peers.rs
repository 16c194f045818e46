//! Runs a workload under every system, round after round, and puts what that cost into a table.
//!
//! Within a round each system runs once, and each round begins with the next one: drift of the machine meets all of them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::args::Plan;
use crate::inner::{self, Found};
use crate::outcome::{self, Outcome};
use crate::process::{self, Took};
use crate::section::Section;
use crate::stats::{Samples, duration, short, slowdown, times, two_places};
use crate::systems::{ALL, System};
use crate::table::Table;
use crate::tools::{Need, Tools};
use crate::workloads::{Cost, NOTHING, Workload};

/// The CPU of a workload that stays on one, and that of the system then.
const WORK: usize = 0;
/// See [`WORK`].
const TRACE: usize = 1;

/// All runs of one workload under one system.
#[derive(Clone, Debug)]
struct Cell {
    system: &'static System,
    rate: Samples,
    wall: Samples,
    /// CPU seconds of the system, all of it and from the beginning of the workload on.
    cpu: Samples,
    cpu_since: Samples,
    peak: Samples,
    calls: Samples,
    bytes: Samples,
    call_bytes: Samples,
    lost: Option<u64>,
    failed: Option<String>,
}

/// One workload under every system.
#[derive(Debug)]
pub struct Measured {
    /// Which.
    pub workload: &'static Workload,
    text: String,
    cells: Vec<Cell>,
    /// CPU seconds that a system takes to end, and for a workload that does nothing.
    starts: Vec<(&'static str, f64)>,
}

/// What it costs to start each system; also which of them there are.
#[derive(Debug)]
pub struct Starts {
    measured: Measured,
    missing: Vec<(&'static System, String)>,
}

/// Runs nothing under every system that is asked for by any workload.
pub fn starts(tools: &Tools, plan: &Plan, files: &Path) -> Result<Starts> {
    let wanted = |s: &&System| plan.workloads().any(|w| plan.systems(w).iter().any(|p| p.key == s.key));
    let (mut there, mut missing) = (Vec::new(), Vec::new());
    for system in ALL.iter().filter(wanted) {
        match system.missing() {
            None => there.push(system),
            Some(why) => missing.push((system, why)),
        }
    }
    let cells = rounds(tools, plan, &NOTHING, &there, files)?;
    let text = (NOTHING.text)(1);
    Ok(Starts { measured: Measured { workload: &NOTHING, text, cells, starts: Vec::new() }, missing })
}

/// Runs the workload; None, and a line that says why, when it cannot be run here.
pub fn run(
    tools: &Tools,
    plan: &Plan,
    starts: &Starts,
    workload: &'static Workload,
    files: &Path,
) -> Result<Option<Measured>> {
    if let Some(why) = workload.needs.iter().find_map(Need::missing) {
        println!("\n== {}: left out: {why}", workload.title);
        return Ok(None);
    }
    let there = |s: &&System| !starts.missing.iter().any(|(m, _)| m.key == s.key);
    let systems: Vec<_> = plan.systems(workload).into_iter().filter(there).collect();
    let cells = rounds(tools, plan, workload, &systems, files)?;
    let text = (workload.text)(plan.size(workload, &ALL[0]));
    let starts = starts.measured.cells.iter().map(|c| (c.system.key, c.cpu_since.median())).collect();
    let measured = Measured { workload, text, cells, starts };
    if measured.rate("bare").is_none() {
        let why = measured.cells[0].failed.clone().unwrap_or_default();
        println!("\n== {}: left out: {why}", workload.title);
        return Ok(None);
    }
    Ok(Some(measured))
}

/// What the systems left behind; a file of perf may be large.
pub fn remove_traces(tools: &Tools) {
    ALL.iter().for_each(|system| remove_trace(tools, system));
}

fn remove_trace(tools: &Tools, system: &System) {
    if let Some(trace) = system.trace(tools) {
        fs::remove_file(trace).ok();
    }
}

fn rounds(
    tools: &Tools,
    plan: &Plan,
    workload: &'static Workload,
    systems: &[&'static System],
    files: &Path,
) -> Result<Vec<Cell>> {
    let place = |size: u64| files.join(format!("{}-{size}", workload.name));
    let mut sizes: Vec<_> = systems.iter().map(|s| plan.size(workload, s)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut held = Vec::new();
    for size in &sizes {
        fs::create_dir_all(place(*size))?;
        let made = (workload.prepare)(&place(*size), *size);
        held.push(made.with_context(|| format!("cannot prepare {}", workload.name))?);
    }
    let mut cells: Vec<_> = systems.iter().map(|s| Cell::new(s)).collect();
    let n = cells.len();
    // one run that is not counted: caches
    once(tools, workload, systems[0], plan.size(workload, systems[0]), &place(plan.size(workload, systems[0])))?;
    for round in 0..plan.rounds() {
        for cell in (0..n).map(|i| (i + round) % n) {
            let cell = &mut cells[cell];
            if cell.failed.is_some() {
                continue;
            }
            process::go_on()?;
            eprintln!("bench: {}, round {}: {}", workload.name, round + 1, cell.system.name);
            let size = plan.size(workload, cell.system);
            let done = once(tools, workload, cell.system, size, &place(size));
            // a large file that is left is written to disk while others are measured
            if !(workload.read && round + 1 == plan.rounds()) {
                remove_trace(tools, cell.system);
            }
            match done {
                Ok((found, took, outcome)) => cell.push(found, took, outcome),
                Err(e) if process::interrupted() => return Err(e),
                Err(e) => {
                    eprintln!("bench: {}: {e:#}", cell.system.name);
                    cell.failed = Some(e.root_cause().to_string());
                }
            }
        }
    }
    drop(held);
    sizes.iter().for_each(|size| drop(fs::remove_dir_all(place(*size))));
    Ok(cells)
}

/// One run: what the workload measured, what the system took, and what it left.
pub fn once(
    tools: &Tools,
    workload: &Workload,
    system: &System,
    size: u64,
    dir: &Path,
) -> Result<(Found, Took, Outcome)> {
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

impl Cell {
    fn new(system: &'static System) -> Self {
        let none = Samples::default;
        Self {
            system,
            rate: none(),
            wall: none(),
            cpu: none(),
            cpu_since: none(),
            peak: none(),
            calls: none(),
            bytes: none(),
            call_bytes: none(),
            lost: None,
            failed: None,
        }
    }

    fn push(&mut self, found: Found, took: Took, outcome: Outcome) {
        self.rate.push(found.rate);
        self.wall.push(took.wall);
        if self.system.always() {
            return;
        }
        self.cpu.push(took.cpu);
        if found.parent == took.pid {
            self.cpu_since.push(took.cpu - found.before);
        }
        let push = |samples: &mut Samples, value: Option<f64>| value.into_iter().for_each(|v| samples.push(v));
        push(&mut self.peak, took.peak.map(|b| b as f64));
        let per_call = |bytes: Option<u64>| Some(bytes? as f64 / outcome.told? as f64);
        push(&mut self.calls, outcome.calls.map(|n| n as f64));
        push(&mut self.bytes, per_call(outcome.bytes));
        push(&mut self.call_bytes, per_call(outcome.call_bytes));
        self.lost = outcome.lost.map(|n| n + self.lost.unwrap_or(0));
    }
}

impl Measured {
    fn cell(&self, key: &str) -> Option<&Cell> {
        self.cells.iter().find(|c| c.system.key == key && c.failed.is_none())
    }

    fn rate(&self, key: &str) -> Option<f64> {
        self.cell(key)?.rate.known()
    }

    /// Seconds that a system adds to each unit.
    pub fn added(&self, key: &str) -> Option<f64> {
        Some(1.0 / self.rate(key)? - 1.0 / self.rate("bare")?)
    }

    /// The part of the throughput that is lost under a system.
    pub fn lost(&self, key: &str) -> Option<f64> {
        Some(1.0 - self.rate(key)? / self.rate("bare")?)
    }

    /// What a system costs, in floors. None: the floor costs nothing that can be seen.
    pub fn floors(&self, key: &str) -> Option<f64> {
        let cost = |key| match self.workload.cost {
            Cost::Added => self.added(key),
            Cost::Lost => self.lost(key),
        };
        let floor = cost("floor").filter(|f| *f > 0.0)?;
        Some(cost(key)? / floor)
    }

    /// CPU seconds of a system for a million calls, without what it takes to start and end it.
    pub fn cpu_per_million(&self, key: &str) -> Option<f64> {
        let cell = self.cell(key)?;
        let start = self.starts.iter().find(|(k, _)| *k == key)?.1;
        Some((cell.cpu_since.known()? - start) / cell.calls.known()? * 1e6)
    }

    /// Bytes of the file for each call.
    pub fn bytes(&self, key: &str) -> Option<f64> {
        self.cell(key)?.bytes.known()
    }

    /// Bytes of the blocks of syscalls in the tape for each call.
    pub fn call_bytes(&self, key: &str) -> Option<f64> {
        self.cell(key)?.call_bytes.known()
    }

    /// Events missing from the file, all rounds together.
    pub fn missing(&self, key: &str) -> Option<u64> {
        self.cell(key)?.lost
    }

    /// The table, and what is to be said of it.
    pub fn section(&self) -> Section {
        let per_second = format!("{}/s", self.workload.unit);
        let head = ["system", &per_second, "slowdown (range)", "x floor", "CPU s/M", "lost", "calls", "B/call", "MiB"];
        let mut table = Table::new(&head);
        let bare = self.rate("bare").unwrap_or(f64::NAN);
        for cell in self.cells.iter().filter(|c| c.failed.is_none()) {
            let key = cell.system.key;
            let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
            table.push(vec![
                cell.system.name.to_owned(),
                short(cell.rate.median()),
                slowdown(bare, &cell.rate),
                or_dash(self.floors(key).filter(|_| key != "bare").map(times)),
                or_dash(self.cpu_per_million(key).map(two_places)),
                or_dash(cell.lost.map(|n| if n < 100_000 { n.to_string() } else { short(n as f64) })),
                or_dash(cell.calls.known().map(short)),
                or_dash(cell.bytes.known().map(|b| format!("{b:.2}"))),
                or_dash(cell.peak.known().map(|b| format!("{:.0}", b / f64::from(1 << 20)))),
            ]);
        }
        let mut section = Section::new(self.workload.title).paragraph(format!("`{}`", self.text));
        if self.workload.pinned {
            section = section.paragraph("On one CPU, the system on another.");
        }
        let mut section = section.table(table).paragraph(self.floor());
        for cell in &self.cells {
            if let Some(why) = &cell.failed {
                section = section.paragraph(format!("{}: failed: {why}", cell.system.name));
            }
        }
        section
    }

    fn floor(&self) -> String {
        match self.workload.cost {
            Cost::Added => {
                let added = self.added("floor").map_or_else(|| "nothing known".into(), duration);
                format!("The floor adds {added} to each of the {}.", self.workload.unit)
            }
            Cost::Lost => {
                let lost = |c: &Cell| Some(format!("{} {:.1} %", c.system.name, self.lost(c.system.key)? * 100.0));
                let lost: Vec<_> = self.cells.iter().skip(1).filter_map(lost).collect();
                format!("Throughput lost: {}.", lost.join(", "))
            }
        }
    }
}

impl Starts {
    /// The table, and which systems are left out.
    pub fn section(&self) -> Section {
        let mut table = Table::new(&["system", "wall s", "CPU s", "MiB"]);
        for cell in self.measured.cells.iter().filter(|c| c.failed.is_none()) {
            table.push(vec![
                cell.system.name.to_owned(),
                format!("{:.2}", cell.wall),
                if cell.system.always() { "-".into() } else { format!("{:.2}", cell.cpu) },
                cell.peak.known().map_or_else(|| "-".into(), |b| format!("{:.0}", b / f64::from(1 << 20))),
            ]);
        }
        let mut section =
            Section::new("Starting and ending").paragraph("The whole command around `true`.").table(table);
        for (system, why) in &self.missing {
            section = section.paragraph(format!("{}: left out: {why}", system.name));
        }
        for cell in &self.measured.cells {
            if let Some(why) = &cell.failed {
                section = section.paragraph(format!("{}: failed: {why}", cell.system.name));
            }
        }
        section
    }
}

#[cfg(test)]
impl Measured {
    /// From (key, rate) alone.
    pub fn of_rates(workload: &'static Workload, rates: &[(&str, f64)]) -> Self {
        let cell = |(key, rate): &(&str, f64)| {
            let mut cell = Cell::new(ALL.iter().find(|s| s.key == *key).expect("a system"));
            cell.rate.push(*rate);
            cell
        };
        Self { workload, text: String::new(), cells: rates.iter().map(cell).collect(), starts: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads;

    fn measured(name: &str, rates: &[(&str, f64)]) -> Measured {
        Measured::of_rates(workloads::named(name).expect("a workload"), rates)
    }

    #[test]
    fn time_added_in_floors() {
        // a block takes 1 s, 2 s with the floor, 4 s recorded
        let dd = measured("dd", &[("bare", 1.0), ("floor", 0.5), ("record", 0.25)]);
        assert_eq!((dd.added("floor"), dd.added("record"), dd.floors("record")), (Some(1.0), Some(3.0), Some(3.0)));
        assert_eq!(dd.floors("strace"), None);
    }

    #[test]
    fn throughput_lost_in_floors() {
        let redis = measured("redis", &[("bare", 100.0), ("floor", 90.0), ("record", 75.0)]);
        assert!((redis.floors("record").expect("a ratio") - 2.5).abs() < 1e-9);
        let noise = measured("redis", &[("bare", 100.0), ("floor", 101.0), ("record", 75.0)]);
        assert_eq!(noise.floors("record"), None);
    }

    #[test]
    fn starting_is_taken_off_the_cpu_time() {
        let mut dd = measured("dd", &[("bare", 1.0), ("record", 0.5)]);
        let found = Found { rate: 0.5, parent: 7, before: 0.5 };
        let took = Took { pid: 7, wall: 1.0, cpu: 1.2, peak: Some(1 << 20) };
        let outcome = Outcome {
            calls: Some(2_000_000),
            told: Some(1_600_000),
            lost: Some(3),
            bytes: Some(4_000_000),
            call_bytes: None,
        };
        dd.cells[1].push(found, took, outcome);
        // a helper's time is not the system's
        dd.cells[1].push(Found { parent: 8, before: 0.0, ..found }, took, outcome);
        dd.starts = vec![("record", 0.3)];
        assert!((dd.cpu_per_million("record").expect("a number") - 0.2).abs() < 1e-9);
        assert_eq!((dd.bytes("record"), dd.call_bytes("record"), dd.missing("record")), (Some(2.5), None, Some(6)));
    }

    #[test]
    fn tables_fit_a_terminal() {
        for workload in workloads::ALL {
            let mut cells = measured(workload.name, &[("bare", 1e6), ("floor", 9e5), ("duration-10", 1234.5)]);
            let found = Found { rate: 2345.6, parent: 7, before: 0.0 };
            let took = Took { pid: 7, wall: 1.0, cpu: 100.0, peak: Some(300 << 20) };
            let outcome = Outcome {
                calls: Some(2_345_678),
                told: Some(2_345_678),
                lost: Some(99_999),
                bytes: Some(500_000_000),
                call_bytes: None,
            };
            cells.cells[2].push(found, took, outcome);
            let text = cells.section().plain();
            assert_eq!(text.lines().find(|line| line.chars().count() > 100), None);
        }
    }
}
