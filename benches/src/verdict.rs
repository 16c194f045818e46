//! The goals, and whether what was measured reaches them.

use crate::peers::Measured;
use crate::section::Section;
use crate::stats::times;
use crate::table::Table;

/// One goal beside one figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Goal {
    what: String,
    wanted: String,
    figure: String,
    met: bool,
}

impl Goal {
    /// At most so many times something.
    pub(crate) fn at_most(what: impl Into<String>, limit: f64, figure: f64) -> Self {
        Self::new(what, format!("<= {limit}x"), times(figure), figure <= limit)
    }

    /// At least so many times something.
    pub(crate) fn at_least(what: impl Into<String>, limit: f64, figure: f64) -> Self {
        Self::new(what, format!(">= {limit}x"), times(figure), figure >= limit)
    }

    /// Whether it is reached.
    pub(crate) fn is_met(&self) -> bool {
        self.met
    }

    /// The goal in a few words, what is measured and what is wanted.
    pub(crate) fn short(&self) -> String {
        format!("{} ({}, wanted {})", self.what, self.figure, self.wanted)
    }

    fn new(what: impl Into<String>, wanted: String, figure: String, met: bool) -> Self {
        Self { what: what.into(), wanted, figure, met }
    }
}

/// What `record -- true` takes, seconds of wall time and of CPU time.
pub(crate) fn start(wall: f64, cpu: f64) -> [Goal; 2] {
    let at_most =
        |what: &str, limit: f64, s: f64| Goal::new(what, format!("<= {limit} s"), format!("{s:.2} s"), s <= limit);
    [at_most("record -- true: wall time", 0.20, wall), at_most("record -- true: CPU time", 0.15, cpu)]
}

/// What can be judged of what was measured.
pub(crate) fn all(measured: &[Measured]) -> Vec<Goal> {
    let mut goals = Vec::new();
    for m in measured {
        match m.workload.name {
            "dd" => {
                let limits = [
                    ("syscalls", "record, syscalls", 1.10),
                    ("record", "record", 1.15),
                    ("duration-10", "--duration 10", 1.10),
                    ("duration-1", "--duration 1", 1.10),
                ];
                for (key, name, limit) in limits {
                    let what = format!("dd, {name}: time added / that of reading the clock");
                    goals.extend(m.clocks(key).map(|clocks| Goal::at_most(what, limit, clocks)));
                }
                goals.extend(bytes(m, 1.3));
                goals.extend(smaller(m));
            }
            "files" => goals.extend(bytes(m, 3.0)),
            "redis" => goals.extend(bytes(m, 2.8)),
            _ => {}
        }
        goals.extend(cpu(m));
        goals.extend(m.missing("record").map(|n| {
            Goal::new(format!("{}, record: events not stored", m.workload.name), "0".into(), n.to_string(), n == 0)
        }));
    }
    goals
}

/// CPU time beside that of `perf record -z` in the same run.
fn cpu(m: &Measured) -> Vec<Goal> {
    let workload = m.workload.name;
    let ratio = |of: fn(&Measured, &str) -> Option<f64>| Some(of(m, "record")? / of(m, "perf-record-z")?);
    let own = ratio(Measured::cpu_per_million)
        .map(|r| Goal::at_most(format!("{workload}, record: own CPU / perf record -z's"), 1.0, r));
    let all = ratio(Measured::cpu_added_per_million)
        .map(|r| Goal::at_most(format!("{workload}, record: CPU added / perf record -z's"), 0.5, r));
    own.into_iter().chain(all).collect()
}

/// Of the tape, all families of events together.
fn bytes(m: &Measured, limit: f64) -> Option<Goal> {
    let (what, bytes) = (format!("{}, record: bytes of the tape per call", m.workload.name), m.bytes("record")?);
    Some(Goal::new(what, format!("<= {limit} B"), format!("{bytes:.2} B"), bytes <= limit))
}

/// Whole files, although the tape has more in it.
fn smaller(m: &Measured) -> Option<Goal> {
    let ratio = m.bytes("perf-record-z")? / m.bytes("record")?;
    Some(Goal::at_least(format!("{}: file of perf record -z / tape", m.workload.name), 8.0, ratio))
}

/// The table.
pub(crate) fn section(goals: &[Goal]) -> Section {
    let mut table = Table::new(&["goal", "wanted", "measured", "verdict"]);
    for goal in goals {
        let verdict = if goal.met { "met" } else { "NOT MET" };
        table.push(vec![goal.what.clone(), goal.wanted.clone(), goal.figure.clone(), verdict.into()]);
    }
    Section::new("Against the goals").table(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads;

    fn goals(name: &str, rates: &[(&str, f64)]) -> Vec<(String, bool)> {
        let measured = Measured::of_rates(workloads::named(name).expect("a workload"), rates);
        all(&[measured]).into_iter().map(|g| (format!("{} {}", g.wanted, g.figure), g.met)).collect()
    }

    #[test]
    fn dd_is_judged_by_the_time_added() {
        let found = goals("dd", &[("bare", 1.0), ("clock", 0.5), ("record", 0.48), ("duration-10", 0.4)]);
        assert_eq!(found, [("<= 1.15x 1.08x".to_owned(), true), ("<= 1.1x 1.50x".to_owned(), false)]);
    }

    #[test]
    fn what_was_not_measured_is_not_judged() {
        assert_eq!(goals("dd", &[("bare", 1.0), ("record", 0.5)]), []);
    }
}
