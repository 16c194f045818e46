//! With `--self-stats`: the cost of recording itself, by BPF program and by thread.
//!
//! Time in BPF programs belongs to the recorded tasks; the kernel measures it on request. Time of threads is the
//! recorder's own. [`crate::own::cpu_time`] adds it up.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::Ordering;

use indicatif::{HumanBytes, HumanCount};
use libbpf_rs::libbpf_sys::{BPF_STATS_RUN_TIME, bpf_enable_stats};

use crate::kernel::skips::program_info;
use crate::own::cpu_time::{MAIN, Sum, ThreadCpu, all_threads, usage};
use crate::own::say::say;
use crate::rings::sizes::{Fills, RingSizes};

/// Results of the recording.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecordedTotals {
    /// Events on the tape.
    pub events: u64,
    /// Bytes of the tape.
    pub bytes: u64,
    /// Peak memory of this process, bytes; 0 = not known.
    pub peak_rss: u64,
    /// No child of this process was waited for, except those that look up names.
    pub only_own_children: bool,
}

/// A measured recording.
#[derive(Debug)]
pub(crate) struct SelfStats {
    /// Makes the kernel measure programs while it is open, at most as long as this process lives; None = not allowed.
    held: Option<OwnedFd>,
    /// Names and descriptors.
    programs: Vec<(String, OwnedFd)>,
    rings: RingSizes,
    /// Time of the main thread until the recording began: mostly that of loading programs, which the kernel verifies.
    preparing: ThreadCpu,
}

impl SelfStats {
    /// Begins to measure. Without CAP_SYS_ADMIN programs are not measured, with a note.
    pub(crate) fn begin() -> Self {
        // SAFETY: no memory is touched.
        let fd = unsafe { bpf_enable_stats(BPF_STATS_RUN_TIME) };
        let held = if fd < 0 {
            let error = io::Error::last_os_error();
            let why = match error.raw_os_error() {
                Some(libc::EPERM) => "that takes CAP_SYS_ADMIN".to_owned(),
                Some(libc::EINVAL) => "this kernel cannot (5.8 can)".to_owned(),
                _ => error.to_string(),
            };
            say(format_args!("--self-stats: runs of BPF programs are not measured: {why}"));
            None
        } else {
            // SAFETY: the descriptor is new and nobody else's.
            Some(unsafe { OwnedFd::from_raw_fd(fd) })
        };
        Self { held, programs: Vec::new(), rings: RingSizes::default(), preparing: ThreadCpu::default() }
    }

    /// The objects to report: loaded programs with their names, and their rings.
    pub(crate) fn watch(&mut self, programs: Vec<(String, OwnedFd)>, rings: RingSizes) {
        (self.programs, self.rings) = (programs, rings);
    }

    /// The recording begins; to be called by the main thread.
    pub(crate) fn prepared(&mut self) {
        self.preparing = ThreadCpu::of_thread();
    }

    /// Prints everything to standard error; to be called by the main thread when the others have ended.
    pub(crate) fn print(self, recorded: RecordedTotals, fills: &Fills) {
        let mut text = String::new();
        let programs = self.held.is_some().then(|| self.programs(&mut text));
        let recording = self.threads(recorded.only_own_children, &mut text);
        self.fills(fills, &mut text);
        per_event(recorded, recording, programs, &mut text);
        // one that is closed or full is no reason to fail
        io::stderr().write_all(text.as_bytes()).ok();
    }

    /// A line per program that ran; returns the time of all, ns.
    fn programs(&self, text: &mut String) -> u64 {
        let infos = self.programs.iter().filter_map(|(name, fd)| Some((name.as_str(), program_info(fd.as_raw_fd())?)));
        let mut rows: Vec<(&str, u64, u64)> =
            infos.map(|(name, info)| (name, info.run_cnt, info.run_time_ns)).filter(|(_, runs, _)| *runs > 0).collect();
        rows.sort_by_key(|(_, _, ns)| std::cmp::Reverse(*ns));
        let all =
            rows.iter().fold((0_u64, 0_u64), |(runs, ns), row| (runs.saturating_add(row.1), ns.saturating_add(row.2)));
        rows.push(("all programs", all.0, all.1));
        row(text, ["BPF program", "runs", "ns/run", "total ms"]);
        for (name, runs, ns) in rows {
            let mean = if runs == 0 { "-".to_owned() } else { format!("{:.0}", ns as f64 / runs as f64) };
            row(text, [name, &HumanCount(runs).to_string(), &mean, &ms(ns)]);
        }
        all.1
    }

    /// A line per thread name; returns the time of all without the time before the recording, ns.
    fn threads(&self, only_own_children: bool, text: &mut String) -> u64 {
        let (mut sums, all) = all_threads();
        let named = sums.values().fold(0, |named, sum| named + sum.cpu.total());
        let rest = ThreadCpu::new(all.total().saturating_sub(named), 0);
        let main = sums.entry(MAIN.to_owned()).or_default();
        main.cpu = main.cpu.without(self.preparing);
        let mut rows: Vec<(String, ThreadCpu)> = vec![("main, before it recorded".to_owned(), self.preparing)];
        let named = |(name, sum): (String, Sum)| match sum.threads {
            0 | 1 => (name, sum.cpu),
            threads => (format!("{name} ({threads} threads)"), sum.cpu),
        };
        let mut threads: Vec<_> = sums.into_iter().map(named).collect();
        threads.sort_by_key(|(_, cpu)| std::cmp::Reverse(cpu.total()));
        rows.append(&mut threads);
        rows.push(("not known whose".to_owned(), rest));
        rows.push(("all threads".to_owned(), all));
        let children = usage(libc::RUSAGE_CHILDREN);
        if only_own_children && children.total() > 0 {
            rows.push(("processes for names".to_owned(), children));
        }
        row(text, ["thread", "user ms", "system ms", "total ms"]);
        for (name, cpu) in rows.iter().filter(|(name, cpu)| cpu.total() > 0 || name == "all threads") {
            row(text, [name, &ms(cpu.user), &ms(cpu.system), &ms(cpu.total())]);
        }
        all.total().saturating_sub(self.preparing.total())
    }

    /// A line per kind of ring: its highest fill.
    fn fills(&self, fills: &Fills, text: &mut String) {
        let kinds = [
            ("buffer of calls, each CPU", &fills.calls, self.rings.buffers.calls),
            ("buffers of sched, each CPU", &fills.sched, self.rings.buffers.sched),
            ("of each CPU", &fills.bulk, self.rings.bulk),
            ("of state", &fills.state, self.rings.state),
            ("of process life", &fills.process, self.rings.process),
            ("of stacks", &fills.stacks, self.rings.stacks),
        ];
        row(text, ["ring", "most read at once", "size", "%"]);
        for (name, most, size) in kinds.iter().filter(|(_, _, size)| *size > 0) {
            let most = most.load(Ordering::Relaxed);
            let percent = format!("{:.2}", most as f64 * 100.0 / *size as f64);
            row(text, [name, &HumanBytes(most).to_string(), &HumanBytes(*size).to_string(), &percent]);
        }
    }
}

/// Cost of an event; `programs` is None when they were not measured.
fn per_event(recorded: RecordedTotals, recording: u64, programs: Option<u64>, text: &mut String) {
    let RecordedTotals { events, bytes, peak_rss, .. } = recorded;
    let of_million = |ns: u64| match events {
        0 => "-".to_owned(),
        events => format!("{:.3} s", ns as f64 / 1e3 / events as f64),
    };
    let programs = programs.map_or_else(|| "not measured".to_owned(), of_million);
    let peak = if peak_rss == 0 { "not known".to_owned() } else { HumanBytes(peak_rss).to_string() };
    let size = if events == 0 { "-".to_owned() } else { format!("{:.2}", bytes as f64 / events as f64) };
    // writing to a String cannot fail
    let _ = writeln!(
        text,
        "  CPU per million events: threads {} (from the beginning of the recording on), programs {programs}",
        of_million(recording)
    );
    let _ = writeln!(
        text,
        "  {} events, {} bytes, {size} bytes per event; peak memory {peak}",
        HumanCount(events),
        HumanCount(bytes)
    );
}

fn ms(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e6)
}

/// A line of the tables.
fn row(text: &mut String, [name, first, second, third]: [&str; 4]) {
    // writing to a String cannot fail
    let _ = writeln!(text, "  {name:<28}{first:>18}{second:>14}{third:>14}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_the_terminal() {
        let mut text = String::new();
        row(&mut text, ["sched_process_exec_of_a_long_name", "18,446,744,073,709", "9999999", "999999999.999"]);
        let recorded = RecordedTotals {
            events: 12_345_678_901,
            bytes: 123_456_789_012,
            peak_rss: 1 << 34,
            ..RecordedTotals::default()
        };
        per_event(recorded, 4_000_000_000_000, Some(3_000_000_000_000), &mut text);
        per_event(RecordedTotals::default(), 0, None, &mut text);
        assert!(text.contains("threads 0.324 s (from the beginning of the recording on), programs 0.243 s"), "{text}");
        assert!(text.contains("0 events, 0 bytes, - bytes per event; peak memory not known"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    }
}
