//! Stacks of every syscall, beside perf: what they cost the program, what they take in the file, how many are whole, and how
//! long the first report of them takes.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::stats::{Samples, table};
use crate::timed;
use crate::tools::{Tools, size};
use crate::workload::{run_quietly, sum, tape_info};

/// Nobody waits longer than this for a report, seconds.
const PATIENCE: &str = "300";
/// Reads small files; its own functions are deep, and need more stack than perf copies unless told.
const PYTHON: &str = "
import os, sys
for d, _, names in os.walk(sys.argv[1]):
    for name in names:
        with open(os.path.join(d, name)) as f:
            f.read()
";

/// What is recorded.
struct Load {
    text: &'static str,
    argv: Vec<OsString>,
}

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
    added: Samples,
    whole: Samples,
    lost: u64,
    /// The file's, and what of it are stacks and the names in them.
    bytes: u64,
    stack_bytes: u64,
}

impl Way {
    fn new(name: &'static str, tracer: Tracer) -> Self {
        Self {
            name,
            tracer,
            wall: Samples::default(),
            added: Samples::default(),
            whole: Samples::default(),
            lost: 0,
            bytes: 0,
            stack_bytes: 0,
        }
    }

    fn stacks(&self) -> bool {
        self.tracer != Tracer::Nothing && self.tracer != Tracer::Record(&[])
    }
}

/// Runs both loads every way, `rounds` times, and prints the tables.
pub fn run(tools: &Tools, dir: &Path, files: &Path, rounds: usize) -> Result<()> {
    for load in loads(dir, files)? {
        measure(tools, dir, &load, rounds)?;
    }
    Ok(())
}

fn loads(dir: &Path, files: &Path) -> Result<Vec<Load>> {
    let (source, chain, tree) = (dir.join("chain.c"), dir.join("chain"), files.join("read"));
    fs::write(&source, include_str!("c/chain.c"))?;
    run_quietly(Command::new("cc").args(["-O2", "-g"]).arg(&source).arg("-o").arg(&chain))?;
    for i in 0..2000 {
        let sub = tree.join(format!("directory-{}", i / 50));
        fs::create_dir_all(&sub)?;
        fs::write(sub.join(format!("file-{i}.txt")), "a line\n".repeat(i % 500))?;
    }
    let text = "a C program: 100,000 getppid calls, ten functions deep";
    let mut loads = vec![Load { text, argv: vec![chain.into(), "100000".into()] }];
    // not what a version manager calls python3: that is a script
    let python =
        Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).stderr(Stdio::null()).output();
    match python {
        Ok(out) if out.status.success() => {
            let python = String::from_utf8_lossy(&out.stdout).trim().to_owned();
            let argv = vec![python.into(), "-c".into(), PYTHON.into(), tree.into()];
            loads.push(Load { text: "python3 that reads 2,000 small files", argv });
        }
        _ => println!("\n## stacks: no python3, so only the C program"),
    }
    Ok(loads)
}

fn measure(tools: &Tools, dir: &Path, load: &Load, rounds: usize) -> Result<()> {
    let mut ways = vec![
        Way::new("bare", Tracer::Nothing),
        Way::new("record", Tracer::Record(&[])),
        Way::new("record -g", Tracer::Record(&["-g", "--stacks-on", "syscall"])),
        Way::new("record --call-graph dwarf", Tracer::Record(&["--call-graph", "dwarf", "--stacks-on", "syscall"])),
    ];
    if tools.perf {
        ways.push(Way::new("perf record --call-graph dwarf", Tracer::Perf("dwarf")));
        ways.push(Way::new("perf record --call-graph dwarf,65528", Tracer::Perf("dwarf,65528")));
    }
    once(tools, dir, load, &ways[0])?;
    let mut calls = 0;
    for _ in 0..rounds {
        let mut bare = 0.0;
        for way in &mut ways {
            let (wall, whole) = once(tools, dir, load, way)?;
            bare = if way.tracer == Tracer::Nothing { wall } else { bare };
            let file = file(dir, way);
            way.bytes = size(&file);
            // perf's file is nothing but stacks, nearly
            way.stack_bytes = way.bytes;
            if let Tracer::Record(_) = way.tracer {
                let info = tape_info(tools, &file)?;
                calls = info["events"]["syscall"].as_u64().context("info: events.syscall")?;
                let of = |kind: &str| info["bytes"][kind].as_u64().unwrap_or(0);
                way.stack_bytes = of("stacks") + of("symbols");
            }
            way.wall.push(wall);
            way.whole.push(whole);
            way.added.push((wall - bare) * 1e6);
            way.lost += match way.tracer {
                Tracer::Nothing => 0,
                Tracer::Record(_) => sum(&tape_info(tools, &file)?["lost"]),
                Tracer::Perf(_) => lost_samples(&file)?,
            };
        }
    }
    println!(
        "\n## stacks of every syscall: {}\n\n{calls} syscalls; perf's event is raw_syscalls:sys_exit\n",
        load.text
    );
    let rows = ways.iter().enumerate().map(|(i, way)| {
        let or_dash = |there: bool, text: String| if there { text } else { "-".into() };
        let taken = (calls * rounds as u64).saturating_sub(way.lost) as f64 / rounds as f64;
        vec![
            way.name.to_owned(),
            format!("{:.3}", way.wall),
            format!("{:.2}x", way.wall.median() / ways[0].wall.median()),
            or_dash(i > 0, format!("{:.2}", way.added.median() / calls as f64)),
            format!("{:.2}", way.whole),
            or_dash(i > 0, (way.lost / rounds as u64).to_string()),
            or_dash(i > 0, format!("{:.2}", way.bytes as f64 / 1e6)),
            or_dash(way.stacks(), format!("{:.2}", way.stack_bytes as f64 / taken)),
        ]
    });
    let head = ["", "wall s", "/bare", "added us/call", "until it ends s", "lost a run", "file MB", "bytes/stack"];
    table(&head, &rows.collect::<Vec<_>>());
    report(tools, dir, &ways)
}

fn file(dir: &Path, way: &Way) -> PathBuf {
    dir.join(format!("stacks-{}", way.name.replace([' ', ','], "-")))
}

/// Seconds of the program, and of the whole command with what it does once the program has ended.
fn once(tools: &Tools, dir: &Path, load: &Load, way: &Way) -> Result<(f64, f64)> {
    let (file, times) = (file(dir, way), dir.join("times"));
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
    command.arg(&tools.bench).arg(timed::COMMAND).arg(&times).args(&load.argv);
    let started = Instant::now();
    run_quietly(&mut command)?;
    Ok((timed::read(&times)?.wall, started.elapsed().as_secs_f64()))
}

/// Samples that perf lost. Not the number of records that say so, which stands in the same list.
fn lost_samples(data: &Path) -> Result<u64> {
    let out = Command::new("perf").args(["report", "--stats", "-i"]).arg(data).stderr(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let of_event = text.split("sys_exit stats:").nth(1).context("perf report --stats")?;
    let line = of_event.lines().find_map(|line| line.trim().strip_prefix("LOST_SAMPLES events:"));
    Ok(line.and_then(|n| n.split_whitespace().next()?.parse().ok()).unwrap_or(0))
}

/// How long the first report of each takes, and how many stacks of it reach the outermost function.
fn report(tools: &Tools, dir: &Path, ways: &[Way]) -> Result<()> {
    let analyze = tools.analyze.to_string_lossy();
    let mut rows = Vec::new();
    for way in ways.iter().filter(|way| way.stacks()) {
        let file = file(dir, way);
        let (file, out) = (file.to_string_lossy(), dir.join("report"));
        let commands = match way.tracer {
            Tracer::Perf(_) => vec![
                vec!["perf", "script", "--max-stack", "1024", "-i", &file],
                vec!["perf", "report", "--stdio", "-i", &file],
            ],
            _ => vec![
                vec![&*analyze, "--call-graph", "-i", &file],
                vec![&*analyze, "callgraph", "--of", "syscall", "-i", &file],
            ],
        };
        for command in commands {
            let (seconds, ended) = first_report(&command, &out)?;
            let name: Vec<_> = command.iter().take_while(|word| **word != "-i").copied().collect();
            let name = name.join(" ").replace(&*analyze, "analyze").replace("--max-stack 1024 ", "");
            let time = if ended { format!("{seconds:.2}") } else { format!("stopped after {PATIENCE}") };
            let listing = command.contains(&"script") || command.contains(&"--call-graph");
            let whole = if listing && ended { outermost(&out)? } else { "-".into() };
            rows.push(vec![way.name.to_owned(), name, time, whole]);
        }
    }
    println!("\nThe first report of it, names, inlined functions and lines as each does by default (one run).");
    println!("A perf that loses samples may lose the mappings of the program too, and then knows no function of it.\n");
    table(&["recorded by", "report", "wall s", "stacks that reach the outermost function"], &rows);
    Ok(())
}

fn first_report(command: &[&str], out: &Path) -> Result<(f64, bool)> {
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
    let (mut stacks, mut whole, mut frames) = (0_u64, 0_u64, Vec::new());
    for line in text.lines().chain([""]) {
        if line.starts_with('\t') || line.starts_with(&" ".repeat(32)) {
            frames.push(line);
        } else if !frames.is_empty() {
            let ends = |name: &str| frames.iter().rev().take(2).any(|line| line.contains(name));
            whole += u64::from(["_start", "clone3", "start_thread"].into_iter().any(ends));
            stacks += 1;
            frames.clear();
        }
    }
    Ok(format!("{whole} of {stacks}"))
}
