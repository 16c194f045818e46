//! Stacks of every syscall, beside perf: what they cost the program, what they take in the file, how many are whole, and how
//! long the first report of them takes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::args::Plan;
use crate::inner;
use crate::outcome::{PerfStats, sum, tape_info};
use crate::process;
use crate::section::Section;
use crate::stats::{Samples, times};
use crate::table::Table;
use crate::tools::{Need, Tools, in_path, size};
use crate::workloads::{CHAIN, PYTHON, Workload};

/// Nobody waits longer than this for a report, seconds.
const PATIENCE: &str = "300";

/// How it is recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tracer {
    Nothing,
    Record(&'static [&'static str]),
    Perf(&'static str),
}

struct Way {
    name: &'static str,
    tracer: Tracer,
    wall: Samples,
    whole: Samples,
    lost: u64,
    /// The file's, and what of it are stacks and the names in them.
    bytes: u64,
    stack_bytes: u64,
}

impl Way {
    fn new(name: &'static str, tracer: Tracer) -> Self {
        let (wall, whole) = Default::default();
        Self { name, tracer, wall, whole, lost: 0, bytes: 0, stack_bytes: 0 }
    }

    fn stacks(&self) -> bool {
        self.tracer != Tracer::Nothing && self.tracer != Tracer::Record(&[])
    }

    fn file(&self, tools: &Tools) -> PathBuf {
        tools.file(&format!("stacks-{}", self.name.replace([' ', ','], "-")))
    }
}

/// Runs both programs every way, `rounds` times.
pub(crate) fn run(tools: &Tools, files: &Path, plan: &Plan) -> Result<Vec<Section>> {
    let mut sections = Vec::new();
    for workload in [&CHAIN, &PYTHON] {
        if let Some(why) = workload.needs.iter().find_map(Need::missing) {
            sections.push(Section::new(workload.title).paragraph(format!("Left out: {why}.")));
            continue;
        }
        let dir = files.join(workload.name);
        fs::create_dir_all(&dir)?;
        let n = if plan.quick { workload.quick } else { workload.full };
        (workload.prepare)(&dir, n)?;
        sections.push(measure(tools, workload, n, &dir, plan.rounds())?);
    }
    Ok(sections)
}

fn ways() -> Vec<Way> {
    let mut ways = vec![
        Way::new("bare", Tracer::Nothing),
        Way::new("record", Tracer::Record(&[])),
        Way::new("record -g", Tracer::Record(&["-g", "--stacks-on", "syscall"])),
        Way::new("record dwarf", Tracer::Record(&["--call-graph", "dwarf", "--stacks-on", "syscall"])),
    ];
    if in_path("perf").is_some() {
        ways.push(Way::new("perf record dwarf", Tracer::Perf("dwarf")));
        ways.push(Way::new("perf record dwarf,65528", Tracer::Perf("dwarf,65528")));
    }
    ways
}

fn measure(tools: &Tools, workload: &Workload, n: u64, dir: &Path, rounds: usize) -> Result<Section> {
    let mut ways = ways();
    once(tools, workload, n, dir, &ways[0])?;
    let mut calls = 0;
    let count = ways.len();
    for round in 0..rounds {
        for way in (0..count).map(|i| (i + round) % count) {
            let way = &mut ways[way];
            eprintln!("bench: {}, round {}: {}", workload.name, round + 1, way.name);
            let (wall, whole) = once(tools, workload, n, dir, way)?;
            let file = way.file(tools);
            way.bytes = size(&file);
            way.wall.push(wall);
            way.whole.push(whole);
            // perf's file is nothing but stacks, nearly
            way.stack_bytes = way.bytes;
            match way.tracer {
                Tracer::Nothing => {}
                Tracer::Perf(_) => way.lost += PerfStats::of(&file)?.lost,
                Tracer::Record(_) => {
                    let info = tape_info(tools, &file)?;
                    calls = info["events"]["syscall"].as_u64().context("info: events.syscall")?;
                    way.stack_bytes =
                        ["stacks", "symbols"].iter().map(|kind| info["bytes"][kind].as_u64().unwrap_or(0)).sum();
                    way.lost += sum(&info["lost"]);
                }
            }
        }
    }
    let head = ["", "wall s", "/bare", "us/call", "ends s", "lost/run", "file MB", "B/stack"];
    let mut table = Table::new(&head);
    let bare = ways[0].wall.median();
    for (i, way) in ways.iter().enumerate() {
        let or_dash = |there: bool, text: String| if there { text } else { "-".into() };
        let taken = (calls * rounds as u64).saturating_sub(way.lost) as f64 / rounds as f64;
        table.push(vec![
            way.name.to_owned(),
            format!("{:.3}", way.wall),
            times(way.wall.median() / bare),
            or_dash(i > 0, format!("{:.2}", (way.wall.median() - bare) * 1e6 / calls as f64)),
            format!("{:.2}", way.whole.median()),
            or_dash(i > 0, (way.lost / rounds as u64).to_string()),
            or_dash(i > 0, format!("{:.2}", way.bytes as f64 / 1e6)),
            or_dash(way.stacks(), format!("{:.2}", way.stack_bytes as f64 / taken)),
        ]);
    }
    let text = format!(
        "{}: {calls} syscalls. perf's event is raw_syscalls:sys_exit, its buffers its defaults; *dwarf* stands for \
         --call-graph dwarf. *us/call* is what is added to a call, *ends* the whole command, names of `record` \
         included. Bytes per stack are what the file has more than without stacks.",
        (workload.text)(n)
    );
    let section = Section::new(workload.title).paragraph(text).table(table);
    let reports = reports(tools, &ways)?;
    ways.iter().for_each(|way| drop(fs::remove_file(way.file(tools))));
    Ok(section.paragraph("The first report of it, with names, inlined functions and lines, one run:").table(reports))
}

/// Seconds of the program, and of the whole command with what it does once the program has ended.
fn once(tools: &Tools, workload: &Workload, n: u64, dir: &Path, way: &Way) -> Result<(f64, f64)> {
    let file = way.file(tools);
    fs::remove_file(&file).ok();
    let mut command = match way.tracer {
        Tracer::Nothing => Command::new("env"),
        Tracer::Record(options) => {
            let mut command = Command::new(&tools.record);
            command.args(options).arg("-o").arg(&file).arg("--");
            command
        }
        Tracer::Perf(call_graph) => {
            let mut command = Command::new("perf");
            command.args(["record", "-q", "-e", "raw_syscalls:sys_exit", "--call-graph", call_graph, "-o"]);
            command.arg(&file).arg("--");
            command
        }
    };
    command.args(["./bench", "inner", workload.name, &n.to_string()]).arg(dir).arg("result");
    let took = process::run(command.current_dir(tools.dir.path()), &tools.file("errors"))?;
    let rate = inner::found(&tools.file("result"))?.rate;
    Ok((n as f64 / rate, took.wall))
}

/// How long the first report of each takes, and how many stacks of it reach the outermost function.
fn reports(tools: &Tools, ways: &[Way]) -> Result<Table> {
    let analyze = tools.analyze.to_string_lossy();
    let mut table = Table::new(&["recorded by", "report", "wall s", "whole stacks"]).words(2);
    for way in ways.iter().filter(|way| way.stacks()) {
        let (file, out) = (way.file(tools), tools.file("report"));
        let file = file.to_string_lossy();
        let commands = match way.tracer {
            Tracer::Perf(_) => [
                ("perf script", vec!["perf", "script", "--max-stack", "1024", "-i", &file]),
                ("perf report --stdio", vec!["perf", "report", "--stdio", "-i", &file]),
            ],
            _ => [
                ("analyze --call-graph", vec![&*analyze, "--call-graph", "-i", &file]),
                ("analyze callgraph", vec![&*analyze, "callgraph", "--of", "syscall", "-i", &file]),
            ],
        };
        for (i, (name, command)) in commands.iter().enumerate() {
            let (seconds, ended) = first_report(command, &out)?;
            let time = if ended { format!("{seconds:.2}") } else { format!("stopped after {PATIENCE}") };
            // the first is a listing of all of them
            let whole = if i == 0 && ended { outermost(&out)? } else { "-".into() };
            table.push(vec![way.name.to_owned(), (*name).to_owned(), time, whole]);
        }
    }
    Ok(table)
}

fn first_report(command: &[&str], out: &Path) -> Result<(f64, bool)> {
    process::go_on()?;
    let started = Instant::now();
    let status = Command::new("timeout")
        .arg(PATIENCE)
        .args(command)
        .stdin(Stdio::null())
        .stdout(fs::File::create(out)?)
        .stderr(Stdio::null())
        .status()?;
    // as timeout has it
    let stopped = status.code() == Some(124);
    if !status.success() && !stopped {
        bail!("{command:?}: {status}");
    }
    Ok((started.elapsed().as_secs_f64(), !stopped))
}

/// How many stacks of a listing there are, and reach the outermost function. Frames stand below their event, perf's behind a
/// tab, ours as far in as perf trace's.
fn outermost(listing: &Path) -> Result<String> {
    let text = String::from_utf8_lossy(&fs::read(listing)?).into_owned();
    let (stacks, whole) = count(&text);
    Ok(format!("{whole} of {stacks}"))
}

fn count(listing: &str) -> (u64, u64) {
    let (mut stacks, mut whole, mut frames) = (0, 0, Vec::new());
    for line in listing.lines().chain([""]) {
        if line.starts_with('\t') || line.starts_with(&" ".repeat(32)) {
            frames.push(line);
        } else if !frames.is_empty() {
            let ends = |name: &str| frames.iter().rev().take(2).any(|line| line.contains(name));
            whole += u64::from(["_start", "clone3", "start_thread"].into_iter().any(ends));
            stacks += 1;
            frames.clear();
        }
    }
    (stacks, whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_stacks_are_counted_in_both_forms() {
        let perf =
            "a 1 [0] 1.0: sys_exit\n\t7f00 read (libc)\n\t55 _start (a)\n\na 1 [0] 1.1: sys_exit\n\t7f00 read (libc)\n";
        assert_eq!(count(perf), (2, 1));
        let deep = " ".repeat(40);
        assert_eq!(count(&format!("0.1 (0.0 ms): a/1 read() = 1\n{deep}read\n{deep}_start\n")), (1, 1));
        assert_eq!(count(""), (0, 0));
    }
}
