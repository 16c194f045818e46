//! What is run under each tracer, and the table of what that cost.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::stats::{Samples, table};
use crate::timed::{self, Took};
use crate::tools::{Tools, size};

/// A command whose syscalls are the same in every run.
#[derive(Debug)]
pub struct Load {
    /// For headings.
    pub name: &'static str,
    /// As one would type it.
    pub text: String,
    argv: Vec<OsString>,
}

/// What was left behind for the offline part.
#[derive(Debug)]
pub struct Traces {
    /// Of the last round.
    pub tape: PathBuf,
    /// Of the last round; None without perf.
    pub perf: Option<PathBuf>,
    /// Syscalls in the tape.
    pub calls: u64,
}

/// One way of running it.
#[derive(Debug)]
struct Way {
    name: &'static str,
    wall: Samples,
    cpu: Samples,
    added: Samples,
    added_cpu: Samples,
    lost: Option<u64>,
    bytes: Option<u64>,
}

/// Everything that is measured, made ready in `dir`.
pub fn all(dir: &Path) -> Result<Vec<Load>> {
    let dd = "dd if=/dev/zero of=/dev/null bs=1 count=500k";
    let tree = dir.join("tree");
    let mixed = format!(
        "cd {}; tar -cf - tree | cat; find tree -type f -size +3k; cp -r tree copy; grep -rl needle copy; rm -r copy",
        dir.display()
    );
    make_tree(&tree).context("cannot make the files to work on")?;
    Ok(vec![
        Load { name: "dd", text: dd.into(), argv: dd.split(' ').map(OsString::from).collect() },
        Load {
            name: "mixed: 8,000 small files through tar, cat, find, cp, grep and rm",
            text: mixed.replace(&*dir.to_string_lossy(), "DIR"),
            argv: vec!["sh".into(), "-c".into(), mixed.into()],
        },
    ])
}

/// 80 directories of 100 files of 1 to 4 KiB.
fn make_tree(tree: &Path) -> std::io::Result<()> {
    for d in 0..80 {
        let sub = tree.join(format!("directory-{d}"));
        fs::create_dir_all(&sub)?;
        for f in 0..100 {
            let word = if (d + f) % 50 == 0 { "needle" } else { "straws" };
            fs::write(sub.join(format!("file-{f}.txt")), format!("{word}\n").repeat(150 + 4 * f))?;
        }
    }
    Ok(())
}

/// Runs `load` every way, `rounds` times, and prints what it cost.
pub fn run(tools: &Tools, load: &Load, dir: &Path, rounds: usize) -> Result<Traces> {
    let (tape, perf_data) = (dir.join("bench.tape"), dir.join("perf.data"));
    let mut ways: Vec<Way> =
        ["bare", "two empty programs (floor)", "record", "record --families syscall", "perf trace record"]
            .into_iter()
            .filter(|name| tools.perf || !name.starts_with("perf"))
            .map(Way::new)
            .collect();
    let (mut cpu, mut idle_cpu, mut calls, mut info) = (Samples::default(), Samples::default(), 0, Value::Null);
    // one run that is not counted: caches
    way(tools, load, dir, "bare", &tape, &perf_data)?;
    for _ in 0..rounds {
        let idle = tape_info(tools, &record_nothing(tools, dir)?)?;
        idle_cpu.push(seconds(&idle["recorder_cpu_ns"]));
        let mut all: Vec<Took> = Vec::new();
        for w in &mut ways {
            let took = way(tools, load, dir, w.name, &tape, &perf_data)?;
            w.wall.push(took.wall);
            w.cpu.push(took.cpu);
            all.push(took);
        }
        info = tape_info(tools, &tape)?;
        calls = info["events"]["syscall"].as_u64().context("info: events.syscall")?;
        cpu.push(seconds(&info["recorder_cpu_ns"]));
        // paired: each against the bare run of its own round
        for (w, took) in ways.iter_mut().zip(&all) {
            w.added.push((took.wall - all[0].wall) / calls as f64 * 1e9);
            w.added_cpu.push((took.cpu - all[0].cpu) / calls as f64 * 1e9);
        }
        if let Some(w) = ways.iter_mut().find(|w| w.name == "record") {
            w.lost = Some(w.lost.unwrap_or(0) + sum(&info["lost"]));
            w.bytes = Some(size(&tape));
        }
        if let Some(w) = ways.iter_mut().find(|w| w.name.starts_with("perf")) {
            w.lost = Some(w.lost.unwrap_or(0) + perf_lost(&perf_data));
            w.bytes = Some(size(&perf_data));
        }
    }
    print(load, &ways, calls);
    print_tape(&info, calls, &cpu, &idle_cpu);
    Ok(Traces { tape, perf: tools.perf.then_some(perf_data), calls })
}

fn way(tools: &Tools, load: &Load, dir: &Path, name: &str, tape: &Path, perf_data: &Path) -> Result<Took> {
    let times = dir.join("times");
    let timed = [tools.bench.clone().into_os_string(), timed::COMMAND.into(), times.clone().into()];
    let inner = timed.iter().chain(&load.argv);
    let mut command = match name {
        "bare" => Command::new(&tools.bench),
        "record" => with(&tools.record, &["-o".as_ref(), tape.as_ref(), "--".as_ref()]),
        "record --families syscall" => {
            let other = dir.join("calls.tape");
            with(
                &tools.record,
                &["--families".as_ref(), "syscall".as_ref(), "-o".as_ref(), other.as_ref(), "--".as_ref()],
            )
        }
        "perf trace record" => with("perf".as_ref(), &["trace", "record", "-o"].map(AsRef::as_ref)),
        _ => with(&tools.bench, &["floor", "--"].map(AsRef::as_ref)),
    };
    match name {
        "bare" => command.args(inner.skip(1)),
        "perf trace record" => command.arg(perf_data).arg("--").args(inner),
        _ => command.args(inner),
    };
    fs::remove_file(perf_data).ok();
    run_quietly(&mut command)?;
    timed::read(&times)
}

/// A command with arguments.
pub fn with(program: &Path, args: &[&std::ffi::OsStr]) -> Command {
    let mut command = Command::new(program);
    command.args(args);
    command
}

/// Runs it with its output thrown away.
pub fn run_quietly(command: &mut Command) -> Result<()> {
    let out = command.stdin(Stdio::null()).stdout(Stdio::null()).output().with_context(|| format!("{command:?}"))?;
    if !out.status.success() {
        bail!("{command:?}: {}: {}", out.status, String::from_utf8_lossy(&out.stderr).trim());
    }
    Ok(())
}

/// A recording of nothing: what loading the programs costs.
fn record_nothing(tools: &Tools, dir: &Path) -> Result<PathBuf> {
    let tape = dir.join("nothing.tape");
    run_quietly(Command::new(&tools.record).arg("-o").arg(&tape).args(["--", "true"]))?;
    Ok(tape)
}

/// `analyze info` of a tape.
pub fn tape_info(tools: &Tools, tape: &Path) -> Result<Value> {
    let out = Command::new(&tools.analyze).arg("info").arg(tape).args(["--format", "json"]).output()?;
    serde_json::from_slice(&out.stdout).context("analyze info --format json")
}

/// Seconds of a number of ns.
pub fn seconds(ns: &Value) -> f64 {
    ns.as_f64().unwrap_or(f64::NAN) / 1e9
}

/// The sum of an object's numbers.
pub fn sum(object: &Value) -> u64 {
    object.as_object().map_or(0, |o| o.values().filter_map(Value::as_u64).sum())
}

/// Events perf says it lost.
pub fn perf_lost(data: &Path) -> u64 {
    let out = Command::new("perf").args(["report", "--stats", "-i"]).arg(data).stderr(Stdio::null()).output();
    let text = out.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    let lost = text.lines().filter_map(|l| l.trim().strip_prefix("LOST")).filter_map(|l| l.split(':').nth(1));
    lost.filter_map(|n| n.split_whitespace().next()?.parse::<u64>().ok()).sum()
}

impl Way {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            wall: Samples::default(),
            cpu: Samples::default(),
            added: Samples::default(),
            added_cpu: Samples::default(),
            lost: None,
            bytes: None,
        }
    }
}

fn print(load: &Load, ways: &[Way], calls: u64) {
    println!("\n## {}\n\n`{}`, {calls} syscalls\n", load.name, load.text);
    let bare = ways[0].wall.median();
    let (floor, floor_cpu) = (ways[1].added.median(), ways[1].added_cpu.median());
    let rows = ways.iter().enumerate().map(|(i, w)| {
        let added = |text: String| if i == 0 { "-".to_owned() } else { text };
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        vec![
            w.name.to_owned(),
            format!("{:.3}", w.wall),
            format!("{:.2}x", w.wall.median() / bare),
            added(format!("{:.0}", w.added)),
            added(format!("{:.2}x", w.added.median() / floor)),
            format!("{:.3}", w.cpu),
            added(format!("{:.0}", w.added_cpu)),
            added(format!("{:.2}x", w.added_cpu.median() / floor_cpu)),
            or_dash(w.lost.map(|n| n.to_string())),
            or_dash(w.bytes.map(|b| format!("{:.2}", b as f64 / calls as f64))),
        ]
    });
    let head =
        ["", "wall s", "/bare", "added ns/call", "/floor", "CPU s", "added ns/call", "/floor", "lost", "bytes/call"];
    table(&head, &rows.collect::<Vec<_>>());
}

fn print_tape(info: &Value, calls: u64, cpu: &Samples, idle: &Samples) {
    let groups: u64 = info["bytes"].as_object().map_or(0, |bytes| {
        bytes.iter().filter(|(k, _)| k.starts_with("syscalls.")).filter_map(|(_, v)| v.as_u64()).sum()
    });
    let per_million = (cpu.median() - idle.median()) / calls as f64 * 1e6;
    println!("\nTape: {:.2} bytes per syscall in the blocks of syscalls.", groups as f64 / calls as f64);
    println!(
        "Recorder CPU: {cpu:.2} s, of it {idle:.2} s also for recording `true` (loading); {per_million:.2} s per million syscalls."
    );
}
