//! What each system costs a workload: the figures of all rounds, and the table they are printed in.

use std::path::Path;

use anyhow::Result;

use crate::args::Plan;
use crate::process;
use crate::rounds::{WorkloadRuns, rounds};
use crate::section::Section;
use crate::stats::{Samples, duration, short, slowdown, times, two_places};
use crate::systems::{ALL, System};
use crate::table::Table;
use crate::tools::{Need, Tools};
use crate::workloads::{CostRelation, NOTHING, Workload};

/// One workload under every system.
#[derive(Debug)]
pub(crate) struct Measured {
    /// Which.
    pub workload: &'static Workload,
    text: String,
    cells: Vec<WorkloadRuns>,
    /// CPU seconds that a system takes to end, and for a workload that does nothing.
    starts: Vec<StartCost>,
}

/// What it costs to start each system; also which of them there are.
#[derive(Debug)]
pub(crate) struct Starts {
    measured: Measured,
    missing: Vec<(&'static System, String)>,
}

/// CPU seconds that it takes to trace `true`.
#[derive(Clone, Copy, Debug)]
struct StartCost {
    key: &'static str,
    /// The system's own, from the beginning of the workload on.
    own: Option<f64>,
    /// Those of system and workload.
    all: Option<f64>,
}

/// Runs nothing under every system that is asked for by any workload.
pub(crate) fn starts(tools: &Tools, plan: &Plan, files: &Path) -> Result<Starts> {
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

/// Runs the workload. Without figures the section says why it cannot be run here.
pub(crate) fn run(
    tools: &Tools,
    plan: &Plan,
    starts: &Starts,
    workload: &'static Workload,
    files: &Path,
) -> Result<(Section, Option<Measured>)> {
    let left_out = |why: &str| Ok((Section::new(workload.title).paragraph(format!("Left out: {why}.")), None));
    if let Some(why) = workload.needs.iter().find_map(Need::missing) {
        return left_out(&why);
    }
    let there = |s: &&System| !starts.missing.iter().any(|(m, _)| m.key == s.key);
    let systems: Vec<_> = plan.systems(workload).into_iter().filter(there).collect();
    let cells = match rounds(tools, plan, workload, &systems, files) {
        Err(e) if !process::interrupted() => {
            eprintln!("bench: {e:#}");
            return left_out("it fails");
        }
        done => done?,
    };
    let text = (workload.text)(plan.size(workload, &ALL[0]));
    let start = |c: &WorkloadRuns| StartCost { key: c.system.key, own: c.cpu_since.known(), all: c.all.known() };
    let starts = starts.measured.cells.iter().map(start).collect();
    let measured = Measured { workload, text, cells, starts };
    if measured.rate("bare").is_none() {
        return left_out("it fails");
    }
    Ok((measured.section(), Some(measured)))
}

impl Measured {
    fn cell(&self, key: &str) -> Option<&WorkloadRuns> {
        self.cells.iter().find(|c| c.system.key == key && !c.failed)
    }

    fn rate(&self, key: &str) -> Option<f64> {
        self.cell(key)?.rate.known()
    }

    /// What the system is called; None: it is not among those that ran.
    pub(crate) fn name(&self, key: &str) -> Option<&'static str> {
        Some(self.cell(key)?.system.name)
    }

    /// Time for the same work, by that of the bare workload: medians.
    pub(crate) fn slowdown(&self, key: &str) -> Option<f64> {
        Some(self.rate("bare")? / self.rate(key)?)
    }

    /// Seconds that a system adds to each unit: medians.
    fn added(&self, key: &str) -> Option<f64> {
        self.added_by(key, Samples::median)
    }

    /// Seconds that a system adds to each unit, by this rate of all rounds.
    fn added_by(&self, key: &str, rate: fn(&Samples) -> f64) -> Option<f64> {
        Some(1.0 / rate(&self.cell(key)?.rate) - 1.0 / rate(&self.cell("bare")?.rate))
    }

    /// The part of the throughput that is lost under a system.
    fn lost(&self, key: &str) -> Option<f64> {
        Some(1.0 - self.rate(key)? / self.rate("bare")?)
    }

    /// What a system costs by what reading the clock costs: of time added the mean of that by the medians and that by the fastest
    /// rounds, since what disturbs a round only ever adds. None: the clock costs nothing that can be seen.
    pub(crate) fn clocks(&self, key: &str) -> Option<f64> {
        let ratio = |cost: &dyn Fn(&str) -> Option<f64>| Some(cost(key)? / cost("clock").filter(|c| *c > 0.0)?);
        match self.workload.cost {
            CostRelation::Added => {
                let by = |rate| ratio(&|key| self.added_by(key, rate));
                Some((by(Samples::median)? + by(Samples::highest)?) / 2.0)
            }
            CostRelation::Lost => ratio(&|key| self.lost(key)),
        }
    }

    /// CPU seconds that a system adds for a million calls: its own, without starting and ending, and what the workload takes
    /// longer under it. None: not known, or it has less work than the bare workload.
    pub(crate) fn cpu_added_per_million(&self, key: &str) -> Option<f64> {
        let cell = self.cell(key).filter(|cell| !cell.system.slow)?;
        let started = |key: &str| self.starts.iter().find(|start| start.key == key)?.all;
        let start = started(key)? - started("bare")?;
        Some((cell.all.known()? - self.cell("bare")?.all.known()? - start) / cell.calls.known()? * 1e6)
    }

    /// CPU seconds of a system for a million calls, without what it takes to start and end it.
    pub(crate) fn cpu_per_million(&self, key: &str) -> Option<f64> {
        let cell = self.cell(key)?;
        let start = self.starts.iter().find(|start| start.key == key)?.own?;
        Some((cell.cpu_since.known()? - start) / cell.calls.known()? * 1e6)
    }

    /// Bytes of the file for each call.
    pub(crate) fn bytes(&self, key: &str) -> Option<f64> {
        self.cell(key)?.bytes.known()
    }

    /// Events missing from the file, all rounds together.
    pub(crate) fn missing(&self, key: &str) -> Option<u64> {
        self.cell(key)?.lost
    }

    /// The table, and what is to be said of it.
    pub(crate) fn section(&self) -> Section {
        let per_second = format!("{}/s", self.workload.unit);
        let head =
            ["system", &per_second, "slowdown (range)", "x clock", "own s/M", "all s/M", "lost", "B/call", "MiB"];
        let mut table = Table::new(&head);
        let bare = self.rate("bare").unwrap_or(f64::NAN);
        for cell in self.cells.iter().filter(|c| !c.failed) {
            let key = cell.system.key;
            let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
            table.push(vec![
                cell.system.name.to_owned(),
                short(cell.rate.median()),
                slowdown(bare, &cell.rate),
                or_dash(self.clocks(key).filter(|_| !["bare", "floor"].contains(&key)).map(times)),
                or_dash(self.cpu_per_million(key).map(two_places)),
                or_dash(self.cpu_added_per_million(key).map(two_places)),
                or_dash(cell.lost.map(|n| if n < 100_000 { n.to_string() } else { short(n as f64) })),
                or_dash(cell.bytes.known().map(|b| format!("{b:.2}"))),
                or_dash(cell.peak.known().map(|b| format!("{:.0}", b / f64::from(1 << 20)))),
            ]);
        }
        let mut section = Section::new(self.workload.title).paragraph(format!("`{}`", self.text));
        if let Some(calls) = self.cell("record").and_then(|cell| cell.calls.known()) {
            section = section.paragraph(format!("{} calls a run.", short(calls)));
        }
        if self.workload.pinned {
            section = section.paragraph("On one CPU, the system on another.");
        }
        let mut section = section.table(table).paragraph(self.floor());
        for cell in self.cells.iter().filter(|c| c.failed) {
            section = section.paragraph(format!("{}: failed.", cell.system.name));
        }
        section
    }

    fn floor(&self) -> String {
        match self.workload.cost {
            CostRelation::Added => {
                let added = |key| self.added(key).map_or_else(|| "nothing known".into(), duration);
                let (floor, clock) = (added("floor"), added("clock"));
                format!("The floor adds {floor} to each of the {}, reading the clock {clock}.", self.workload.unit)
            }
            CostRelation::Lost => {
                let lost =
                    |c: &WorkloadRuns| Some(format!("{} {:.1} %", c.system.name, self.lost(c.system.key)? * 100.0));
                let lost: Vec<_> = self.cells.iter().skip(1).filter_map(lost).collect();
                format!("Throughput lost: {}.", lost.join(", "))
            }
        }
    }
}

impl Starts {
    /// Seconds of wall and of CPU time that `record -- true` takes, medians.
    pub(crate) fn record(&self) -> Option<(f64, f64)> {
        let cell = self.measured.cell("record")?;
        Some((cell.wall.known()?, cell.cpu.known()?))
    }

    /// The table, and which systems are left out.
    pub(crate) fn section(&self) -> Section {
        let mut table = Table::new(&["system", "wall s", "CPU s", "MiB"]);
        for cell in self.measured.cells.iter().filter(|c| !c.failed) {
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
            section = section.paragraph(format!("{}: left out: {why}.", system.name));
        }
        for cell in self.measured.cells.iter().filter(|c| c.failed) {
            section = section.paragraph(format!("{}: failed.", cell.system.name));
        }
        section
    }
}

#[cfg(test)]
impl Measured {
    /// From (key, rate) alone.
    pub(crate) fn of_rates(workload: &'static Workload, rates: &[(&str, f64)]) -> Self {
        let cell = |(key, rate): &(&str, f64)| {
            let mut cell = WorkloadRuns::new(ALL.iter().find(|s| s.key == *key).expect("a system"));
            cell.rate.push(*rate);
            cell
        };
        Self { workload, text: String::new(), cells: rates.iter().map(cell).collect(), starts: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inner::Found;
    use crate::outcome::RunOutcome;
    use crate::process::ProcessCost;
    use crate::workloads;

    fn measured(name: &str, rates: &[(&str, f64)]) -> Measured {
        Measured::of_rates(workloads::named(name).expect("a workload"), rates)
    }

    #[test]
    fn time_added_in_clocks() {
        // a block takes 1 s, 2 s with the clock, 4 s recorded
        let dd = measured("dd", &[("bare", 1.0), ("clock", 0.5), ("record", 0.25)]);
        assert_eq!((dd.added("clock"), dd.added("record"), dd.clocks("record")), (Some(1.0), Some(3.0), Some(3.0)));
        assert_eq!(dd.clocks("strace"), None);
    }

    #[test]
    fn the_fastest_round_counts_as_much_as_the_median() {
        // by the medians it adds 3 s where the clock adds 1, by the fastest rounds 1.5
        let mut dd = measured("dd", &[("bare", 1.0), ("clock", 0.5), ("record", 0.25)]);
        for rate in [0.2, 0.4] {
            dd.cells[2].rate.push(rate);
        }
        assert!((dd.clocks("record").expect("a ratio") - (3.0 + 1.5) / 2.0).abs() < 1e-9);
    }

    #[test]
    fn throughput_lost_in_clocks() {
        let redis = measured("redis", &[("bare", 100.0), ("clock", 90.0), ("record", 75.0)]);
        assert!((redis.clocks("record").expect("a ratio") - 2.5).abs() < 1e-9);
        let noise = measured("redis", &[("bare", 100.0), ("clock", 101.0), ("record", 75.0)]);
        assert_eq!(noise.clocks("record"), None);
    }

    #[test]
    fn starting_is_taken_off_the_cpu_time() {
        let mut dd = measured("dd", &[("bare", 1.0), ("record", 0.5)]);
        let found = Found { rate: 0.5, parent: 7, before: 0.5 };
        let took = ProcessCost { pid: 7, wall: 1.0, cpu: 1.2, all: 2.0, peak: Some(1 << 20) };
        let outcome =
            RunOutcome { calls: Some(2_000_000), told: Some(1_600_000), lost: Some(3), bytes: Some(4_000_000) };
        dd.cells[1].push(found, took, outcome);
        // a helper's time is not the system's
        dd.cells[1].push(Found { parent: 8, before: 0.0, ..found }, took, outcome);
        dd.starts = vec![StartCost { key: "record", own: Some(0.3), all: None }];
        assert!((dd.cpu_per_million("record").expect("a number") - 0.2).abs() < 1e-9);
        assert_eq!((dd.bytes("record"), dd.missing("record")), (Some(2.5), Some(6)));
    }

    #[test]
    fn tables_fit_a_terminal() {
        for workload in workloads::ALL {
            let mut cells = measured(workload.name, &[("bare", 1e6), ("floor", 9e5), ("duration-10", 1234.5)]);
            let found = Found { rate: 2345.6, parent: 7, before: 0.0 };
            let took = ProcessCost { pid: 7, wall: 1.0, cpu: 100.0, all: 120.0, peak: Some(300 << 20) };
            let outcome = RunOutcome {
                calls: Some(2_345_678),
                told: Some(2_345_678),
                lost: Some(99_999),
                bytes: Some(500_000_000),
            };
            cells.cells[2].push(found, took, outcome);
            let text = cells.section().plain();
            assert_eq!(text.lines().find(|line| line.chars().count() > 100), None);
        }
    }
}
