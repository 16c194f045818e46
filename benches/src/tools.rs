//! The programs that are compared, and the machine they run on.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Where everything is.
#[derive(Debug)]
pub struct Tools {
    /// This program.
    pub bench: PathBuf,
    /// systape's recorder.
    pub record: PathBuf,
    /// systape's analyzer.
    pub analyze: PathBuf,
    /// Whether perf is installed and its `trace` works here.
    pub perf: bool,
}

impl Tools {
    /// `record` and `analyze` stand beside this program.
    pub fn find() -> Result<Self> {
        let bench = std::env::current_exe().context("cannot tell where this program is")?;
        let beside = |name: &str| {
            let path = bench.with_file_name(name);
            if path.exists() { Ok(path) } else { bail!("{} is missing: cargo build --release", path.display()) }
        };
        let perf = Command::new("perf").args(["trace", "record", "-o", "/dev/null", "--", "true"]).output();
        let perf = perf.is_ok_and(|out| out.status.success());
        if !perf {
            println!("perf trace: not installed or not working here; its rows are left out\n");
        }
        Ok(Self { record: beside("record")?, analyze: beside("analyze")?, bench, perf })
    }

    /// What a number means nothing without.
    pub fn machine(&self, rounds: usize) -> String {
        let line = |cmd: &str, args: &[&str]| {
            let out = Command::new(cmd).args(args).output();
            out.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default()
        };
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or_default();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        format!(
            "{} UTC · {} CPUs ({}) · kernel {} · {} · {} · {rounds} rounds · load {}\nmedian (lowest-highest)",
            line("date", &["-u", "+%Y-%m-%d %H:%M"]),
            std::thread::available_parallelism().map_or(0, usize::from),
            model.trim_start_matches([' ', '\t', ':']),
            kernel.split('-').next().unwrap_or_default().trim(),
            line(&self.record.to_string_lossy(), &["--version"]),
            if self.perf { line("perf", &["--version"]) } else { "no perf".into() },
            load.split(' ').next().unwrap_or_default(),
        )
    }
}

/// Bytes of a file; 0 when it is not there.
pub fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |m| m.len())
}
