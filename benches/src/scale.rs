//! What becomes of reports when tapes grow: made-up tapes of growing size, the same questions to each. Time is to grow as the
//! events do, memory is not to grow.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use systape_benches::synth::{self, SynthWorld, tape};

use crate::measure::{Took, measure};
use crate::section::Section;
use crate::stats::{short, times, two_places};
use crate::table::Table;
use crate::tools::{output, size};

/// CPU time may grow by so much more than the events do, memory by so many bytes, before it is said.
const SLACK: (f64, f64) = (1.25, 64.0 * 1024.0 * 1024.0);
/// Less CPU time than this is starting the program, and no base to compare with.
const BASE: f64 = 0.1;

/// A tape to be made.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PlannedTape {
    /// Syscalls in it, e.g. 1e9
    #[arg(long, value_parser = number)]
    calls: u64,
    /// Processes; half are there from the start, half are born
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    processes: u32,
    /// Number of the machine: tapes of several have other names, processes and calls
    #[arg(long, value_name = "N", default_value_t = 0)]
    host: u32,
    /// File to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Which sizes.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Plan {
    /// Syscalls in each tape; 1e9 takes 10 GB of disk and some minutes
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = [10_000_000, 100_000_000], value_parser = number)]
    calls: Vec<u64>,
    /// Processes in each tape
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    processes: u32,
    /// Where the tapes are made, one at a time; they are removed
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Prints Markdown, for docs/performance.md
    #[arg(long)]
    markdown: bool,
}

/// `1000000` or `1e6`.
fn number(text: &str) -> Result<u64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (1.0..=1e15).contains(&number) && number.fract() == 0.0 { Ok(number as u64) } else { Err("not a count".into()) }
}

/// Writes a tape.
pub(crate) fn make(made: &PlannedTape) -> Result<()> {
    let world = SynthWorld::new(synth::Plan { calls: made.calls, processes: made.processes, host: made.host })?;
    let (started, total) = (Instant::now(), world.windows());
    let mut told = 0;
    let tell = |done: u64| {
        if done * 4 / total > told {
            told = done * 4 / total;
            eprintln!("bench: {} % of {} calls, {:.0} s", told * 25, short(made.calls as f64), seconds(started));
        }
    };
    let bytes = tape::write(&world, &made.output, tell)?;
    let (calls, mb) = (short(made.calls as f64), bytes as f64 / 1e6);
    println!("{calls} calls, {mb:.1} MB, {:.2} bytes a call, {:.1} s", per(bytes, made.calls), seconds(started));
    Ok(())
}

fn seconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64()
}

fn per(bytes: u64, calls: u64) -> f64 {
    bytes as f64 / calls as f64
}

/// A question and its words.
struct ScaleQuestion {
    name: &'static str,
    words: &'static [&'static str],
    /// Only the first line is waited for.
    first_line: bool,
    /// The answer's size does not depend on that of the tape: neither is its time to.
    constant: bool,
}

const QUESTIONS: &[ScaleQuestion] = &[
    ScaleQuestion { name: "--summary", words: &["--summary"], first_line: false, constant: false },
    ScaleQuestion { name: "top --by file", words: &["top", "--by", "file"], first_line: false, constant: false },
    ScaleQuestion { name: "why", words: &["why"], first_line: false, constant: false },
    ScaleQuestion { name: "--duration 10", words: &["--duration", "10"], first_line: false, constant: false },
    ScaleQuestion { name: "kills", words: &["kills"], first_line: false, constant: false },
    ScaleQuestion { name: "--time, 1 s", words: &[], first_line: false, constant: true },
    ScaleQuestion { name: "first line", words: &[], first_line: true, constant: true },
];

/// One tape's answers.
struct Answers {
    calls: u64,
    bytes: u64,
    made: Took,
    took: Vec<Took>,
}

/// Makes the tapes, asks, prints tables.
pub(crate) fn run(plan: &Plan) -> Result<()> {
    let bench = std::env::current_exe().context("cannot tell where this program is")?;
    let analyze = bench.with_file_name("analyze");
    if !analyze.exists() {
        bail!("{} is missing: cargo build --release", analyze.display());
    }
    let dir = tempfile::tempdir_in(&plan.dir).with_context(|| plan.dir.display().to_string())?;
    let mut all = Vec::new();
    for calls in &plan.calls {
        all.push(ask(plan, *calls, &bench, &analyze, &dir.path().join("trace.tape"))?);
    }
    let section = section(plan, &all);
    println!("{}", if plan.markdown { section.markdown() } else { section.plain() });
    Ok(())
}

fn ask(plan: &Plan, calls: u64, bench: &Path, analyze: &Path, file: &Path) -> Result<Answers> {
    // in a process of its own: what it takes would count as that of the programs started afterwards
    let mut make = Command::new(bench);
    make.args(["tape", "--calls", &calls.to_string(), "--processes", &plan.processes.to_string(), "-o"]).arg(file);
    let made = measure(&mut make, false)?;
    let mut took = Vec::new();
    for question in QUESTIONS {
        let mut command = Command::new(analyze);
        command.args(question.words).arg("-i").arg(file);
        if question.words.is_empty() && !question.first_line {
            let middle = SynthWorld::new(synth::Plan { calls, processes: plan.processes, host: 0 })?.middle();
            command.args(["--time", &format!("{middle},{}", middle + 1)]);
        }
        eprintln!("bench: {} calls: {}", short(calls as f64), question.name);
        // the file is read once before, as whoever asks twice has it
        took.push(measure(&mut command, question.first_line)?);
    }
    let answers = Answers { calls, bytes: size(file), made, took };
    fs::remove_file(file).with_context(|| file.display().to_string())?;
    Ok(answers)
}

fn section(plan: &Plan, all: &[Answers]) -> Section {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let text = format!(
        "{} UTC, {} CPUs, kernel {}, load at the end {}. {} processes. *making* is `bench tape`; the tape is in the page cache when it is \
         asked. *first line* is the time to the first line of the listing, after which the pipe is closed.",
        output("date", &["-u", "+%Y-%m-%d %H:%M"]),
        std::thread::available_parallelism().map_or(0, usize::from),
        kernel.split('-').next().unwrap_or_default().trim(),
        load.split(' ').next().unwrap_or_default(),
        plan.processes,
    );
    let mut section = Section::new("Scale").paragraph(text).table(times_table(all));
    if all.len() > 1 {
        section = section.paragraph(
            "From each size to the next: how much more events, CPU time and memory. *linear*: time grows by no more than 1.25 times what the \
             events grow by; *flat*: memory by no more than 64 MiB.",
        );
        section = section.table(growth_table(all));
    }
    let last = all.last().map(paper_table);
    match last {
        Some(table) => section
            .paragraph("On paper, from the largest tape's bytes and CPU time of the summary per call, on these CPUs:")
            .table(table),
        None => section,
    }
}

fn times_table(all: &[Answers]) -> Table {
    let mut table = Table::new(&["report", "calls", "wall s", "CPU s", "ns of CPU/call", "peak MiB", "lines"]);
    for answers in all {
        let mut row = |name: &str, took: &Took, lines: String| {
            table.push(vec![
                name.to_owned(),
                short(answers.calls as f64),
                format!("{:.3}", took.wall),
                format!("{:.3}", took.cpu),
                two_places(took.cpu * 1e9 / answers.calls as f64),
                mib(took.peak),
                lines,
            ]);
        };
        let what = format!("making, {:.2} B/call", per(answers.bytes, answers.calls));
        row(&what, &answers.made, "-".into());
        for (question, took) in QUESTIONS.iter().zip(&answers.took) {
            row(question.name, took, took.lines.to_string());
        }
    }
    table
}

fn mib(bytes: f64) -> String {
    format!("{:.0}", bytes / (1024.0 * 1024.0))
}

fn growth_table(all: &[Answers]) -> Table {
    let mut table = Table::new(&["report", "from", "to", "events", "CPU time", "peak MiB", "verdict"]);
    for pair in all.windows(2) {
        let [small, large] = pair else { continue };
        let events = large.calls as f64 / small.calls as f64;
        for (question, (before, after)) in QUESTIONS.iter().zip(small.took.iter().zip(&large.took)) {
            let grown = after.cpu / before.cpu;
            let more = after.peak - before.peak;
            table.push(vec![
                question.name.to_owned(),
                short(small.calls as f64),
                short(large.calls as f64),
                times(events),
                times(grown),
                format!("{}{}", if more < 0.0 { "" } else { "+" }, mib(more)),
                verdict(question, events, (before.cpu, after.cpu), more),
            ]);
        }
    }
    table
}

/// Whether time grew as it may, and memory did not grow.
fn verdict(question: &ScaleQuestion, events: f64, (before, after): (f64, f64), more: f64) -> String {
    let linear = after <= before.max(BASE) * events * SLACK.0;
    let time = match (question.constant, linear) {
        (true, _) if after <= before.max(BASE) * 2.0 => "constant",
        (_, true) => "linear",
        (_, false) => "NOT LINEAR",
    };
    format!("{time}, {}", if more <= SLACK.1 { "flat" } else { "NOT FLAT" })
}

/// Bytes and the time of a summary when a host, or a thousand, are recorded for a day.
fn paper_table(largest: &Answers) -> Table {
    let bytes = per(largest.bytes, largest.calls);
    let ns = largest.took[0].cpu * 1e9 / largest.calls as f64;
    let cpus = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
    let mut table = Table::new(&["24 h of", "calls/s each", "calls", "tapes", "summary, CPU time", "on these CPUs"]);
    for (name, hosts) in [("1 host", 1.0), ("1,000 hosts", 1000.0)] {
        for rate in [1e3, 1e4, 1e5] {
            let calls = hosts * rate * 86_400.0;
            let cpu = calls * ns / 1e9;
            table.push(vec![
                name.to_owned(),
                short(rate),
                large(calls),
                bytes_text(calls * bytes),
                span(cpu),
                span(cpu / cpus),
            ]);
        }
    }
    table
}

/// `86.4 G`
fn large(count: f64) -> String {
    match count {
        n if n >= 1e12 => format!("{:.2} T", n / 1e12),
        n if n >= 1e9 => format!("{:.2} G", n / 1e9),
        n => format!("{:.1} M", n / 1e6),
    }
}

fn bytes_text(bytes: f64) -> String {
    match bytes {
        b if b >= 1e12 => format!("{:.1} TB", b / 1e12),
        b if b >= 1e9 => format!("{:.1} GB", b / 1e9),
        b => format!("{:.0} MB", b / 1e6),
    }
}

fn span(seconds: f64) -> String {
    match seconds {
        s if s >= 7200.0 => format!("{:.1} h", s / 3600.0),
        s if s >= 120.0 => format!("{:.1} min", s / 60.0),
        s => format!("{s:.1} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_may_have_exponents() {
        assert_eq!((number("1e9"), number("1000001")), (Ok(1_000_000_000), Ok(1_000_001)));
        assert!(["1.5", "0", "-1", "1e99", "many"].iter().all(|text| number(text).is_err()));
    }

    #[test]
    fn growth_is_judged() {
        let [summary, .., line] = QUESTIONS else { panic!("two questions") };
        assert_eq!(verdict(summary, 10.0, (1.0, 11.0), 0.0), "linear, flat");
        assert_eq!(verdict(summary, 10.0, (1.0, 13.0), 65e6), "NOT LINEAR, flat");
        assert_eq!(verdict(line, 10.0, (0.02, 0.19), 70e6), "constant, NOT FLAT");
        assert_eq!(verdict(line, 10.0, (0.02, 0.3), 0.0), "linear, flat");
    }
}
