//! The command line, and what it asks for.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand};

use crate::floor::FloorWork;
use crate::inner;
use crate::pair;
use crate::scale;
use crate::systems::{self, System};
use crate::why;
use crate::workloads::{self, Workload};

/// The word in `--workloads` for the part about stacks, which has systems of its own.
const STACKS: &str = "stacks";

/// What recording costs and how fast a tape is read, beside other tracers. Needs root, a quiet machine and some time.
#[derive(Debug, Parser)]
#[command(name = "bench", args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    /// What the program does inside a tracer.
    #[command(subcommand)]
    pub inside: Option<InnerRole>,
    /// What it measures.
    #[command(flatten)]
    pub plan: Plan,
}

/// The program's other roles.
#[derive(Debug, Subcommand)]
pub(crate) enum InnerRole {
    /// Runs one workload and writes down how fast it was (this program does that inside a tracer)
    #[command(hide = true)]
    Inner(inner::InnerRun),
    /// Runs a command while two programs are attached to sys_enter and sys_exit
    Floor {
        /// What they do
        floor: FloorWork,
        /// The command and its arguments
        #[arg(required = true, last = true)]
        command: Vec<OsString>,
    },
    /// Writes a made-up tape of any size
    Tape(scale::PlannedTape),
    /// Asks made-up tapes of growing size the same questions: time is to grow with the events, memory is not
    Scale(scale::Plan),
    /// Two builds of analyze asked the same, by turns: BEFORE AFTER TAPE...
    Pair(pair::Plan),
    /// Planted incidents and healthy programs: does `analyze why` name the cause, and what it costs?
    Why(why::Plan),
}

/// Which parts, how often.
#[derive(Debug, clap::Args)]
pub(crate) struct Plan {
    /// Runs of each workload under each system (9; 15 of dd); median, lowest and highest are printed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,
    /// Small workloads, two rounds: to see that everything runs; its numbers mean little
    #[arg(long)]
    pub quick: bool,
    /// Also reads a tape of 10 million calls (needs 4 GB of disk for perf's file)
    #[arg(long)]
    pub large: bool,
    /// Only these workloads
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = PossibleValuesParser::new(workload_names()))]
    workloads: Vec<String>,
    /// Only these systems; bare and the floors always run
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = PossibleValuesParser::new(systems::keys()))]
    systems: Vec<String>,
    /// Puts the tables into this Markdown file, between its two marks
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

fn workload_names() -> Vec<&'static str> {
    workloads::ALL.iter().map(|w| w.name).chain([STACKS]).collect()
}

impl Plan {
    /// Runs under each system, unless a workload needs more.
    pub(crate) fn rounds(&self) -> usize {
        self.rounds.map_or(if self.quick { 2 } else { 9 }, usize::from)
    }

    /// Runs of the workload under each system.
    pub(crate) fn rounds_of(&self, workload: &Workload) -> usize {
        if self.quick || self.rounds.is_some() { self.rounds() } else { self.rounds().max(workload.least_rounds) }
    }

    fn wants(&self, name: &str) -> bool {
        self.workloads.is_empty() || self.workloads.iter().any(|w| w == name)
    }

    /// The workloads that are asked for.
    pub(crate) fn workloads(&self) -> impl Iterator<Item = &'static Workload> {
        workloads::ALL.iter().filter(|w| self.wants(w.name))
    }

    /// Whether the part about stacks is asked for.
    pub(crate) fn stacks(&self) -> bool {
        self.wants(STACKS)
    }

    /// The systems that are asked for and make sense with the workload, in the order of the table.
    pub(crate) fn systems(&self, workload: &Workload) -> Vec<&'static System> {
        let asked = |s: &&System| s.always() || self.systems.is_empty() || self.systems.iter().any(|k| k == s.key);
        systems::ALL.iter().filter(asked).filter(|s| s.only.is_none_or(|name| name == workload.name)).collect()
    }

    /// How much work a run of the workload under the system is.
    pub(crate) fn size(&self, workload: &Workload, system: &System) -> u64 {
        match () {
            () if system.slow => workload.short,
            () if self.quick => workload.quick,
            () => workload.full,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn plan(args: &[&str]) -> Plan {
        Args::try_parse_from(["bench"].iter().chain(args)).expect("a command line").plan
    }

    #[test]
    fn the_definition_holds() {
        Args::command().debug_assert();
    }

    #[test]
    fn everything_unless_named() {
        let all = plan(&[]);
        assert_eq!((all.rounds(), all.stacks()), (9, true));
        let rounds = |plan: &Plan| ["dd", "redis"].map(|w| plan.rounds_of(workloads::named(w).expect("a workload")));
        assert_eq!(
            (rounds(&all), rounds(&plan(&["--rounds", "3"])), rounds(&plan(&["--quick"]))),
            ([15, 9], [3, 3], [2, 2])
        );
        assert_eq!(all.workloads().count(), workloads::ALL.len());
        let some = plan(&["--quick", "--workloads", "dd,redis", "--systems", "record"]);
        assert_eq!((some.rounds(), some.stacks()), (2, false));
        let names: Vec<_> = some.workloads().map(|w| w.name).collect();
        assert_eq!(names, ["dd", "redis"]);
        let dd = some.workloads().next().expect("dd");
        let keys: Vec<_> = some.systems(dd).iter().map(|s| s.key).collect();
        assert_eq!(keys, ["bare", "floor", "clock", "record"]);
        assert!(Args::try_parse_from(["bench", "--workloads", "ddd"]).is_err());
    }

    #[test]
    fn slow_systems_get_less_work() {
        let plan = plan(&[]);
        let dd = plan.workloads().next().expect("dd");
        let size = |key: &str| plan.size(dd, systems::ALL.iter().find(|s| s.key == key).expect("a system"));
        assert_eq!((size("record"), size("strace")), (dd.full, dd.short));
    }
}
