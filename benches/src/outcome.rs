//! What a system left behind: how many calls it saw, what it lost, how large its file is. Each by its own account.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::systems::{Kind, System};
use crate::tools::{Tools, size};

/// Of one run. None: the system does not tell, or it has no meaning there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunOutcome {
    /// Syscalls that it saw, those that it lost or only counted included.
    pub calls: Option<u64>,
    /// Of them those that `bytes` are spent on; of a tape all: it knows what it does not store.
    pub told: Option<u64>,
    /// Events that are missing from its file although they should be there.
    pub lost: Option<u64>,
    /// Of its file.
    pub bytes: Option<u64>,
}

/// Looks at the file.
pub(crate) fn look(tools: &Tools, system: &System, trace: Option<&Path>) -> Result<RunOutcome> {
    let Some(trace) = trace else { return Ok(RunOutcome::default()) };
    let bytes = Some(size(trace));
    Ok(match system.kind {
        Kind::Bare | Kind::Floor(_) => RunOutcome::default(),
        Kind::Record(_) => {
            let of_tape = tape(&tape_info(tools, trace)?);
            let calls = Some(calls_of_tape(tools, trace)?);
            RunOutcome { calls, told: calls, bytes, ..of_tape }
        }
        Kind::RecordOther(_) => RunOutcome { bytes, ..tape(&tape_info(tools, trace)?) },
        Kind::Perf(_) => {
            let stats = PerfStats::of(trace)?;
            // an event at the enter and one at the exit
            let (calls, told) = (Some((stats.samples + stats.lost) / 2), Some(stats.samples / 2));
            RunOutcome { calls, told, lost: Some(stats.lost), bytes }
        }
        Kind::PerfOther(_) => RunOutcome { lost: Some(PerfStats::of(trace)?.lost), bytes, ..RunOutcome::default() },
        Kind::Strace => {
            let calls = Some(strace_calls(trace)?);
            RunOutcome { calls, told: calls, bytes, ..RunOutcome::default() }
        }
        Kind::Bpftrace => RunOutcome { calls: Some(counted(&fs::read_to_string(trace)?)?), ..RunOutcome::default() },
    })
}

/// `analyze info` of a tape.
pub(crate) fn tape_info(tools: &Tools, tape: &Path) -> Result<Value> {
    json(tools, tape, &["info", "--format", "json"])
}

/// The calls of the summary: with filters the tape also holds calls for the paths of others, which are counted as well.
fn calls_of_tape(tools: &Tools, tape: &Path) -> Result<u64> {
    let rows = json_lines(&analyze(tools, tape, &["--summary", "--summary-mode", "total", "--format", "json"])?)?;
    Ok(rows.iter().filter_map(|row| row["calls"].as_u64()).sum())
}

fn tape(info: &Value) -> RunOutcome {
    let ledger = |key: &str| info["ledger"][key].as_u64().unwrap_or(0);
    RunOutcome {
        lost: Some(sum(&info["lost"]) + ledger("lost_calls") + ledger("over_share_calls")),
        ..RunOutcome::default()
    }
}

/// The sum of an object's numbers.
pub(crate) fn sum(object: &Value) -> u64 {
    object.as_object().map_or(0, |o| o.values().filter_map(Value::as_u64).sum())
}

fn json(tools: &Tools, tape: &Path, args: &[&str]) -> Result<Value> {
    serde_json::from_str(&analyze(tools, tape, args)?).with_context(|| format!("analyze {}", args.join(" ")))
}

fn json_lines(text: &str) -> Result<Vec<Value>> {
    text.lines().map(|line| serde_json::from_str(line).with_context(|| line.to_owned())).collect()
}

fn analyze(tools: &Tools, tape: &Path, args: &[&str]) -> Result<String> {
    let out = Command::new(&tools.analyze).args(args).arg("-i").arg(tape).output().context("analyze")?;
    if !out.status.success() {
        bail!("analyze {}: {}", args.join(" "), String::from_utf8_lossy(&out.stderr).trim());
    }
    Ok(String::from_utf8(out.stdout)?)
}

/// What `perf report --stats` says of each event, added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PerfStats {
    /// Events in the file.
    pub samples: u64,
    /// Events that found no room (kernel 6.0 and perf 6.1 or later count them).
    pub lost: u64,
}

impl PerfStats {
    /// Of a file.
    pub(crate) fn of(data: &Path) -> Result<Self> {
        let out = Command::new("perf").args(["report", "--stats", "-i"]).arg(data).stderr(Stdio::null()).output()?;
        Self::parse(&String::from_utf8_lossy(&out.stdout)).context("perf report --stats says nothing of any event")
    }

    /// The first part counts *records*, where one says that many events were lost; those of single events count events.
    fn parse(text: &str) -> Option<Self> {
        let mut events = text.lines().skip_while(|l| l.starts_with(' ') || !is_event(l)).peekable();
        events.peek()?;
        let (mut samples, mut lost) = (0, 0);
        for line in events {
            let Some((name, n)) = line.split_once("events:") else { continue };
            let Some(n) = n.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()) else { continue };
            match name.trim() {
                "SAMPLE" => samples += n,
                "LOST_SAMPLES" => lost += n,
                _ => {}
            }
        }
        Some(Self { samples, lost })
    }
}

fn is_event(line: &str) -> bool {
    line.ends_with(" stats:") && line != "Aggregated stats:"
}

fn strace_calls(file: &Path) -> Result<u64> {
    Ok(fs::read(file)?.split(|b| *b == b'\n').filter(|line| is_call(line)).count() as u64)
}

/// Lines that end a call, also one begun on an earlier line; neither signals nor ends of processes.
fn is_call(line: &[u8]) -> bool {
    // `1234  close(3) = 0`, `1234  exit_group(0) = ?`
    let rest = line.iter().position(|b| *b == b' ').map_or(&[][..], |at| &line[at..]).trim_ascii_start();
    let unfinished = rest.ends_with(b"<unfinished ...>");
    !rest.is_empty() && !unfinished && !rest.starts_with(b"+++") && !rest.starts_with(b"---")
}

/// `@: 1234` of bpftrace.
fn counted(text: &str) -> Result<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix("@:")).context("bpftrace counted nothing")?;
    line.trim().parse().with_context(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perf_counts_events_and_not_records() {
        let text = "
Aggregated stats:
           TOTAL events:     351706
            LOST events:         12  ( 0.0%)
          SAMPLE events:     347106  (98.7%)
    LOST_SAMPLES events:          2  ( 0.0%)
raw_syscalls:sys_enter stats:
          SAMPLE events:     173556
    LOST_SAMPLES events:      31369
raw_syscalls:sys_exit stats:
          SAMPLE events:     173550
    LOST_SAMPLES events:      31375
";
        assert_eq!(PerfStats::parse(text), Some(PerfStats { samples: 347_106, lost: 62_744 }));
        assert_eq!(PerfStats::parse("Aggregated stats:\n   TOTAL events:  0\n"), None);
        assert_eq!(PerfStats::parse(""), None);
    }

    #[test]
    fn calls_in_a_file_of_strace() {
        let text = b"\
10 execve(\"./a\", [\"./a\"], 0x7ffc /* 9 vars */) = 0
10 vfork( <unfinished ...>
11 close(3)                          = 0
10 <... vfork resumed>)              = 11
10 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED} ---
10 exit_group(0)                     = ?
10 +++ exited with 0 +++
";
        assert_eq!(text.split(|b| *b == b'\n').filter(|l| is_call(l)).count(), 4);
    }

    #[test]
    fn what_bpftrace_prints() {
        assert_eq!(counted("Attaching 1 probe...\n\n@: 1234\n").ok(), Some(1234));
        assert!(counted("Attaching 1 probe...\n").is_err());
    }

    #[test]
    fn a_tape_loses_what_it_does_not_hold() {
        let info = serde_json::json!({
            "lost": {"sched": 2},
            "ledger": {"calls": 1000, "filtered_calls": 993, "lost_calls": 3, "over_share_calls": 4},
        });
        assert_eq!(tape(&info).lost, Some(9));
    }
}
