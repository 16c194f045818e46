//! How fast what was recorded is read: analyze on the tape beside perf trace on its file, of the same workload.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::args::Plan;
use crate::outcome::tape_info;
use crate::process::{self, run_quietly};
use crate::rounds;
use crate::section::Section;
use crate::stats::{Samples, short, times};
use crate::systems::{self, System};
use crate::table::Table;
use crate::tools::Tools;
use crate::verdict::Goal;
use crate::workloads::{self, Workload};

/// Blocks of dd that make 10 million calls.
const LARGE: u64 = 5_120_000;
/// A tape of fewer calls is not judged: starting the program would be.
const JUDGED: u64 = 900_000;

/// A question, the two commands that answer it, and how much faster ours wants to be at 1 and at 10 million calls.
struct ReadingQuestion {
    name: &'static str,
    ours: &'static [&'static str],
    perfs: &'static [&'static str],
    goals: [f64; 2],
}

const SUMMARY: ReadingQuestion = ReadingQuestion {
    name: "summary",
    ours: &["--summary", "-i"],
    perfs: &["trace", "-s", "-i"],
    goals: [60.0, 150.0],
};
const LISTING: ReadingQuestion =
    ReadingQuestion { name: "listing", ours: &["-i"], perfs: &["trace", "-i"], goals: [40.0, 40.0] };

/// Reads the last traces of the workload.
pub(crate) fn run(tools: &Tools, workload: &Workload, rounds: usize) -> Result<(Section, Vec<Goal>)> {
    read(tools, workload.name, &[SUMMARY, LISTING], rounds)
}

/// Records 10 million calls of dd and reads them; the summary alone, perf's listing takes minutes.
pub(crate) fn large(tools: &Tools, plan: &Plan, files: &Path) -> Result<(Section, Vec<Goal>)> {
    let dd = workloads::named("dd").context("dd")?;
    for key in ["record", "perf-trace"] {
        let system = system(key)?;
        if system.missing().is_none() {
            eprintln!("bench: dd of {LARGE} blocks: {}", system.name);
            rounds::once(tools, dd, system, LARGE, files)?;
        }
    }
    read(tools, "dd, 10 million calls", &[SUMMARY], plan.rounds())
}

fn system(key: &str) -> Result<&'static System> {
    systems::ALL.iter().find(|s| s.key == key).with_context(|| format!("no system {key}"))
}

fn read(tools: &Tools, name: &str, questions: &[ReadingQuestion], rounds: usize) -> Result<(Section, Vec<Goal>)> {
    let file = |key: &str| Ok::<_, anyhow::Error>(system(key)?.trace(tools).filter(|file| file.exists()));
    let (tape, data) = (file("record")?, file("perf-trace")?);
    let title = format!("Reading what was recorded: {name}");
    let Some(tape) = tape else { return Ok((Section::new(title).paragraph("Nothing was recorded."), Vec::new())) };
    let calls = tape_info(tools, &tape)?["events"]["syscall"].as_u64().context("info: events.syscall")?;
    let mut samples = vec![(Samples::default(), Samples::default()); questions.len()];
    for _ in 0..rounds {
        for (question, (ours, perfs)) in questions.iter().zip(&mut samples) {
            ours.push(time(Command::new(&tools.analyze).args(question.ours).arg(&tape))?);
            if let Some(data) = &data {
                perfs.push(time(Command::new("perf").args(question.perfs).arg(data))?);
            }
        }
    }
    let mut table = Table::new(&["report", "analyze, s", "perf trace, s", "perf's time / ours", "M calls/s"]);
    let mut goals = Vec::new();
    for (question, (ours, perfs)) in questions.iter().zip(&samples) {
        let ratio = perfs.known().map(|p| p / ours.median());
        table.push(vec![
            question.name.to_owned(),
            format!("{ours:.3}"),
            format!("{perfs:.2}"),
            ratio.map_or_else(|| "-".into(), times),
            format!("{:.1}", calls as f64 / ours.median() / 1e6),
        ]);
        let goal = question.goals[usize::from(calls >= 9 * JUDGED)];
        if let Some(ratio) = ratio.filter(|_| calls >= JUDGED) {
            let what = format!("{} of {} calls: perf trace's time / ours", question.name, short(calls as f64));
            goals.push(Goal::at_least(what, goal, ratio));
        }
    }
    let text = format!(
        "{} calls in the tape. `analyze --summary` and `perf trace -s -i`; `analyze` and `perf trace -i`. Output to \
         /dev/null, starting the program included.",
        short(calls as f64)
    );
    Ok((Section::new(title).paragraph(text).table(table), goals))
}

fn time(command: &mut Command) -> Result<f64> {
    process::go_on()?;
    let started = Instant::now();
    run_quietly(command)?;
    Ok(started.elapsed().as_secs_f64())
}
