//! Two builds of `analyze` beside each other: the same questions of the same tapes, by turns. The first build runs twice a round:
//! what it differs from itself by is noise.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use crate::measure::{Took, measure};
use crate::stats::{Samples, two_places};
use crate::table::Table;

/// What is compared.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Plan {
    /// The `analyze` of before
    before: PathBuf,
    /// The `analyze` of now
    after: PathBuf,
    /// Tapes to ask; several may be named
    #[arg(required = true)]
    tapes: Vec<PathBuf>,
    /// Runs of each build for each question
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Only questions whose name contains this
    #[arg(long, value_name = "WORD")]
    only: Option<String>,
}

/// A question, and whether only its first line is waited for.
const QUESTIONS: [(&str, &[&str], bool); 11] = [
    ("--summary", &["--summary"], false),
    ("listing", &[], false),
    ("first line", &[], true),
    ("--duration 10", &["--duration", "10"], false),
    ("kills", &["kills"], false),
    ("states", &["states"], false),
    ("callgraph", &["callgraph"], false),
    ("listing, JSON", &["--format", "json"], false),
    ("listing, CSV", &["--format", "csv"], false),
    ("block, JSON", &["block", "--format", "json"], false),
    ("timehist, JSON", &["sched", "timehist", "--format", "json"], false),
];

/// Runs of one build.
#[derive(Debug, Default)]
struct BuildRuns {
    wall: Samples,
    cpu: Samples,
    peak: Samples,
    lines: u64,
}

impl BuildRuns {
    fn add(&mut self, took: Took) {
        self.wall.push(took.wall);
        self.cpu.push(took.cpu);
        self.peak.push(took.peak);
        self.lines = took.lines;
    }
}

/// Asks, and prints a table a tape.
///
/// # Errors
/// A build cannot be started, or fails where the other does not.
pub(crate) fn run(plan: &Plan) -> Result<()> {
    for tape in &plan.tapes {
        let mut table = Table::new(&[
            "question",
            "wall before, s",
            "wall after, s",
            "ratio",
            "noise",
            "CPU ratio",
            "CPU noise",
            "peak MiB",
            "after",
        ]);
        for (name, words, first_line) in QUESTIONS {
            if plan.only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
                continue;
            }
            let builds = [&plan.before, &plan.after, &plan.before];
            let mut runs: [BuildRuns; 3] = Default::default();
            let mut refused = [false; 3];
            for round in 0..usize::from(plan.rounds) {
                // each round begins with the next build: drift of the machine meets all of them
                for at in (0..builds.len()).map(|at| (at + round) % builds.len()) {
                    let mut command = Command::new(builds[at]);
                    command.args(words).arg("-i").arg(tape).stderr(std::process::Stdio::null());
                    match measure(&mut command, first_line) {
                        Ok(took) => runs[at].add(took),
                        Err(_) => refused[at] = true,
                    }
                }
            }
            match refused {
                // a tape without stacks has no call graph
                [true, true, true] => continue,
                [false, false, false] => table.push(row(name, &runs)),
                _ => bail!("{name} of {}: one build answers, the other fails", tape.display()),
            }
        }
        println!("{}, {} rounds\n{}", tape.display(), plan.rounds, table.text());
    }
    Ok(())
}

fn row(name: &str, [before, after, again]: &[BuildRuns; 3]) -> Vec<String> {
    let ratio = |f: fn(&BuildRuns) -> &Samples, of: &BuildRuns| two_places(f(of).median() / f(before).median());
    let mib = |runs: &BuildRuns| format!("{:.1}", runs.peak.median() / (1024.0 * 1024.0));
    let lines = if before.lines == after.lines { String::new() } else { " (other lines)".to_owned() };
    vec![
        format!("{name}{lines}"),
        before.wall.to_string(),
        after.wall.to_string(),
        ratio(|runs| &runs.wall, after),
        ratio(|runs| &runs.wall, again),
        ratio(|runs| &runs.cpu, after),
        ratio(|runs| &runs.cpu, again),
        mib(before),
        mib(after),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_build_is_its_own_noise() {
        let runs = |wall: f64, lines| {
            let mut runs = BuildRuns::default();
            runs.add(Took { wall, cpu: wall, peak: 1048576.0, lines });
            runs
        };
        let row = row("x", &[runs(2.0, 5), runs(3.0, 5), runs(2.2, 5)]);
        assert_eq!(row[3..7], ["1.50", "1.10", "1.50", "1.10"]);
        assert_eq!(super::row("x", &[runs(1.0, 5), runs(1.0, 6), runs(1.0, 5)])[0], "x (other lines)");
    }
}
