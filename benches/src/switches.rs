//! Context switches: two processes that do nothing but wake each other through pipes, on one CPU, the recorder on another.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::stats::{Samples, table};
use crate::timed;
use crate::tools::{Tools, size};
use crate::workload::{perf_lost, run_quietly, seconds, sum, tape_info, with};

/// Round trips; each is two switches at least.
const TRIPS: &str = "200000";
/// The CPU of the two processes, and that of whoever records them.
const WORK: &str = "0";
/// See [`WORK`].
const RECORD: &str = "1";

#[derive(Debug)]
struct Way {
    name: &'static str,
    families: &'static str,
    wall: Samples,
    added: Samples,
    cpu: Samples,
    switches: u64,
    lost: u64,
    bytes: u64,
}

/// Runs it every way, `rounds` times, and prints the table.
pub fn run(tools: &Tools, dir: &Path, rounds: usize) -> Result<()> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if !tools.perf || cpus < 2 {
        println!("\n## switches: left out (perf bench and a second CPU are needed)");
        return Ok(());
    }
    let new = |name, families| Way {
        name,
        families,
        wall: Samples::default(),
        added: Samples::default(),
        cpu: Samples::default(),
        switches: 0,
        lost: 0,
        bytes: 0,
    };
    let mut ways = [
        new("bare", ""),
        new("record -a --families syscall", "syscall"),
        new("record -a --families sched", "sched"),
        new("record -a (all families)", "all"),
        new("perf sched record", ""),
    ];
    once(tools, dir, &ways[0])?;
    for _ in 0..rounds {
        let mut bare = 0.0;
        for way in &mut ways {
            let wall = once(tools, dir, way)?;
            bare = if way.name == "bare" { wall } else { bare };
            way.wall.push(wall);
            way.added.push((wall - bare) * 1e9 / (2.0 * TRIPS.parse::<f64>()?));
            look(tools, dir, way)?;
        }
    }
    println!("\n## switches: `perf bench sched pipe -l {TRIPS}` on one CPU, the recorder on another\n");
    let bare = ways[0].wall.median();
    let rows = ways.iter().map(|way| {
        let or_dash = |there: bool, text: String| if there { text } else { "-".into() };
        vec![
            way.name.to_owned(),
            format!("{:.3}", way.wall),
            format!("{:.2}x", way.wall.median() / bare),
            or_dash(way.name != "bare", format!("{:.0}", way.added)),
            or_dash(!way.families.is_empty(), format!("{:.2}", way.cpu)),
            or_dash(way.switches > 0, way.switches.to_string()),
            or_dash(way.name != "bare", way.lost.to_string()),
            or_dash(way.name != "bare", format!("{:.2}", way.bytes as f64 / 1e6)),
        ]
    });
    let head = ["", "wall s", "/bare", "added ns/switch", "recorder CPU s", "sched events", "lost", "file MB"];
    table(&head, &rows.collect::<Vec<_>>());
    Ok(())
}

/// Seconds of one run.
fn once(tools: &Tools, dir: &Path, way: &Way) -> Result<f64> {
    let (tape, data, times) = (dir.join("switches.tape"), dir.join("sched.data"), dir.join("times"));
    let mut command = match way.families {
        "" if way.name == "bare" => Command::new("env"),
        "" => {
            let mut command =
                with("taskset".as_ref(), &["-c", RECORD, "perf", "sched", "record", "-o"].map(OsStr::new));
            command.arg(&data);
            command
        }
        families => {
            let mut command = with("taskset".as_ref(), &["-c", RECORD].map(OsStr::new));
            command.arg(&tools.record).args(["-a", "--families", families, "-o"]).arg(&tape).arg("--");
            command
        }
    };
    command.args(["taskset", "-c", WORK]).arg(&tools.bench).arg(timed::COMMAND).arg(&times);
    command.args(["perf", "bench", "sched", "pipe", "-l", TRIPS]);
    fs::remove_file(&data).ok();
    run_quietly(&mut command)?;
    Ok(timed::read(&times)?.wall)
}

/// What the run left behind.
fn look(tools: &Tools, dir: &Path, way: &mut Way) -> Result<()> {
    let (tape, data) = (dir.join("switches.tape"), dir.join("sched.data"));
    if !way.families.is_empty() {
        let info = tape_info(tools, &tape)?;
        way.cpu.push(seconds(&info["recorder_cpu_ns"]));
        way.switches = info["events"]["sched"].as_u64().unwrap_or(0);
        way.lost += sum(&info["lost"]);
        way.bytes = size(&tape);
    } else if way.name != "bare" {
        way.lost += perf_lost(&data);
        way.bytes = size(&data);
    }
    Ok(())
}
