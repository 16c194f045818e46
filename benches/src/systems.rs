//! The systems that are compared: how each is started around a workload.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::floor::FloorWork;
use crate::tools::{Need, Tools, output};

const PERF: &[Need] = &[Need::new(&["perf"], "linux-perf")];
/// A call's enter and exit, as in `perf trace record`, with the same buffers: 4 MiB a CPU.
const PERF_RECORD_Z: &[&str] = &["record", "-z", "-R", "-c", "1", "-m", "1024", "-e", "raw_syscalls:*"];
const COUNT: &str = "tracepoint:raw_syscalls:sys_exit { @ = count(); }";

/// What a system is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing.
    Bare,
    /// Two programs that do next to nothing.
    Floor(FloorWork),
    /// systape, with options.
    Record(&'static [&'static str]),
    /// systape, with options that leave syscalls out.
    RecordOther(&'static [&'static str]),
    /// perf, with the words before `-o`; the trace holds an event at a call's enter and one at its exit.
    Perf(&'static [&'static str]),
    /// perf, with events that are no syscalls.
    PerfOther(&'static [&'static str]),
    /// strace -f -o.
    Strace,
    /// bpftrace that counts.
    Bpftrace,
}

/// One row of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct System {
    /// For `--systems` and for the name of its file.
    pub key: &'static str,
    /// In tables.
    pub name: &'static str,
    /// How it is started.
    pub kind: Kind,
    /// Gets the shortened workload: it takes a hundred times as long.
    pub slow: bool,
    /// The one workload it makes sense with.
    pub only: Option<&'static str>,
    needs: &'static [Need],
}

const fn system(key: &'static str, name: &'static str, kind: Kind, needs: &'static [Need]) -> System {
    System { key, name, kind, slow: matches!(kind, Kind::Strace), only: None, needs }
}

/// In the order of the tables.
pub(crate) const ALL: &[System] = &[
    system("bare", "bare", Kind::Bare, &[]),
    system("floor", "floor", Kind::Floor(FloorWork::Empty), &[]),
    system("clock", "clock", Kind::Floor(FloorWork::Clock), &[]),
    system("record", "record", Kind::Record(&[]), &[]),
    System {
        only: Some("dd"),
        ..system("syscalls", "record, syscalls", Kind::Record(&["--families", "syscall"]), &[])
    },
    system("duration-10", "record --duration 10", Kind::Record(&["--duration", "10"]), &[]),
    system("duration-1", "record --duration 1", Kind::Record(&["--duration", "1"]), &[]),
    System {
        only: Some("pipe"),
        ..system("sched", "record, sched only", Kind::RecordOther(&["-a", "--families", "sched"]), &[])
    },
    system("perf-trace", "perf trace record", Kind::Perf(&["trace", "record"]), PERF),
    system("perf-record-z", "perf record -z", Kind::Perf(PERF_RECORD_Z), PERF),
    System {
        only: Some("pipe"),
        ..system("perf-sched", "perf sched record", Kind::PerfOther(&["sched", "record"]), PERF)
    },
    system("bpftrace", "bpftrace, count", Kind::Bpftrace, &[Need::new(&["bpftrace"], "bpftrace")]),
    system("strace", "strace -f -o", Kind::Strace, &[Need::new(&["strace"], "strace")]),
];

/// All keys.
pub(crate) fn keys() -> Vec<&'static str> {
    ALL.iter().map(|s| s.key).collect()
}

impl System {
    /// Whether everything else is compared with it.
    pub(crate) const fn always(&self) -> bool {
        matches!(self.kind, Kind::Bare | Kind::Floor(_))
    }

    /// Why it cannot be run here.
    pub(crate) fn missing(&self) -> Option<String> {
        if let Some(text) = self.needs.iter().find_map(Need::missing) {
            return Some(text);
        }
        match self.kind {
            Kind::Perf(["trace", ..]) if !perf_trace_works() => Some("this perf has no working `perf trace`".into()),
            Kind::Perf(words)
                if words.contains(&"-z") && !has_zstd(&output("perf", &["version", "--build-options"])) =>
            {
                Some("this perf was built without zstd".into())
            }
            _ => None,
        }
    }

    /// The file it leaves behind, None for those that leave none.
    pub(crate) fn trace(&self, tools: &Tools) -> Option<std::path::PathBuf> {
        (!self.always()).then(|| tools.file(&format!("trace.{}", self.key)))
    }

    /// The system around `inner`, words without spaces, to be run in the directory of the traces. With `cpu` it stays
    /// there, whatever the workload does.
    pub(crate) fn command(
        &self,
        tools: &Tools,
        trace: Option<&Path>,
        inner: &[OsString],
        cpu: Option<usize>,
    ) -> Command {
        let trace = trace.map_or_else(OsString::new, OsString::from);
        let words = |list: &[&str]| list.iter().map(OsString::from).collect::<Vec<_>>();
        let mut argv = cpu.map_or_else(Vec::new, |cpu| words(&["taskset", "-c", &cpu.to_string()]));
        match self.kind {
            Kind::Bare => {}
            Kind::Floor(floor) => argv.extend(words(&["./bench", "floor", floor.word(), "--"])),
            Kind::Record(options) | Kind::RecordOther(options) => {
                argv.push(tools.record.clone().into());
                argv.extend(words(options));
                argv.extend([OsString::from("-o"), trace, "--".into()]);
            }
            Kind::Perf(options) | Kind::PerfOther(options) => {
                argv.push("perf".into());
                argv.extend(words(options));
                argv.extend([OsString::from("-o"), trace, "--".into()]);
            }
            Kind::Strace => argv.extend([OsString::from("strace"), "-f".into(), "-o".into(), trace, "--".into()]),
            Kind::Bpftrace => {
                // one word, which bpftrace splits
                let line = inner.join(" ".as_ref());
                argv.extend([OsString::from("bpftrace"), "-o".into(), trace]);
                argv.extend([OsString::from("-e"), COUNT.into(), "-c".into(), line]);
            }
        }
        if self.kind != Kind::Bpftrace {
            argv.extend_from_slice(inner);
        }
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).current_dir(tools.dir.path());
        command
    }
}

fn perf_trace_works() -> bool {
    let out = Command::new("perf").args(["trace", "record", "-o", "/dev/null", "--", "true"]).output();
    out.is_ok_and(|out| out.status.success())
}

/// From `perf version --build-options`: `zstd: [ on  ]  # HAVE_ZSTD_SUPPORT`.
fn has_zstd(options: &str) -> bool {
    options.lines().any(|l| l.split_once(':').is_some_and(|(name, on)| name.trim() == "zstd" && on.contains("[ on")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_file_names_and_differ() {
        let mut keys = keys();
        assert!(keys.iter().all(|k| k.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')));
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), ALL.len());
    }

    #[test]
    fn zstd_in_build_options() {
        assert!(has_zstd("    lzma: [ on  ]  # HAVE_LZMA_SUPPORT\n    zstd: [ on  ]  # HAVE_ZSTD_SUPPORT\n"));
        assert!(!has_zstd("    lzma: [ on  ]  # HAVE_LZMA_SUPPORT\n    zstd: [ OFF ]  # HAVE_ZSTD_SUPPORT\n"));
    }
}
