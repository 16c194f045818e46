//! The file of `record --metrics FILE`: numbers of the running recording in Prometheus' text format, as node_exporter's textfile collector
//! reads them.
//!
//! A thread of its own writes the file, so a file system that does not answer costs numbers, never events. The file is replaced as a whole:
//! a reader never sees half of one.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use systape_format::model::{Family, GapCause};

use crate::flight::status::Status;
use crate::own::clock;
use crate::own::cpu_time::counted;
use crate::own::memory::rss;
use crate::own::say::say;
use crate::pipeline::drain::DrainControl;
use crate::pipeline::progress::{LossCount, Progress};
use crate::rings::sizes::RingSizes;

/// How often the file is written: Prometheus asks every 15 s to a minute.
const EVERY: Duration = Duration::from_secs(10);
/// How long the end of a recording waits for the last numbers.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where the numbers come from.
pub(crate) struct MetricsSources {
    /// Counters of all stages.
    pub progress: Arc<Progress>,
    /// Counters of the drain.
    pub control: Arc<DrainControl>,
    /// Sizes of the rings.
    pub rings: RingSizes,
    /// The flight recorder's numbers; None = there is none.
    pub status: Option<Arc<Status>>,
}

/// The thread that writes the file.
pub(crate) struct MetricsWriter {
    stop: Sender<()>,
    done: Receiver<()>,
}

impl MetricsWriter {
    /// Writes `path` now and then, until [`Self::finish`].
    ///
    /// # Errors
    /// There are no threads.
    pub(crate) fn start(path: PathBuf, sources: MetricsSources) -> Result<Self> {
        let ((stop, stopped), (end, done)) = (bounded(1), bounded(1));
        let work = move || {
            write_often(&path, &sources, &stopped);
            end.send(()).ok();
        };
        thread::Builder::new()
            .name("metrics".into())
            .spawn(counted("metrics", work))
            .context("cannot start the metrics thread")?;
        Ok(Self { stop, done })
    }

    /// Writes the last numbers, if the file system takes them soon.
    pub(crate) fn finish(self) {
        self.stop.send(()).ok();
        self.done.recv_timeout(PATIENCE).ok();
    }
}

fn write_often(path: &Path, sources: &MetricsSources, stopped: &Receiver<()>) {
    let began = clock::sample().realtime;
    let mut told = false;
    let mut write = |runs| {
        let Err(error) = replace(path, &sources.text(runs, began)) else { return };
        // once: the disk may stay full for a year
        if !std::mem::replace(&mut told, true) {
            say(format_args!("--metrics {}: {error}; the recording goes on", path.display()));
        }
    };
    loop {
        write(true);
        match stopped.recv_timeout(EVERY) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return write(false),
        }
    }
}

/// Puts `text` in the place of `path`, readable for all: the collector is another user.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    // the collector passes over what does not end in .prom
    let new = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = create(&new).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.set_permissions(Permissions::from_mode(0o644))?;
        fs::rename(&new, path)
    });
    if written.is_err() {
        fs::remove_file(&new).ok();
    }
    written
}

/// A new file: nothing that is there already is opened, and no link followed.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o644);
    match options.open(path) {
        // of a recorder that had this number and was killed
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => fs::remove_file(path).and_then(|()| options.open(path)),
        opened => opened,
    }
}

/// Text in Prometheus' format.
#[derive(Default)]
struct Exposition(String);

impl Exposition {
    /// Begins a metric; its values follow.
    fn begin(&mut self, name: &str, kind: &str, help: &str) {
        // writing to a String cannot fail, here and below
        let _ = writeln!(self.0, "# HELP systape_{name} {help}\n# TYPE systape_{name} {kind}");
    }

    /// A value with its labels.
    fn value(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let labels: Vec<String> = labels.iter().map(|(key, text)| format!("{key}=\"{}\"", quoted(text))).collect();
        let braces = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "systape_{name}{braces} {value}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl std::fmt::Display) {
        self.begin(name, "gauge", help);
        self.value(name, &[], value);
    }

    fn counter(&mut self, name: &str, help: &str, value: impl std::fmt::Display) {
        self.begin(name, "counter", help);
        self.value(name, &[], value);
    }
}

/// A label's text.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl MetricsSources {
    /// All numbers; `runs` = the recording goes on. It `began` at this ns since 1970.
    fn text(&self, runs: bool, began: u64) -> String {
        let mut out = Exposition::default();
        out.begin("build_info", "gauge", "The recorder's version.");
        out.value("build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
        out.gauge("recording", "1 while events are recorded, 0 at the end.", u8::from(runs));
        out.gauge("start_time_seconds", "When the recording began, in seconds since 1970.", seconds(began));
        out.counter("cpu_seconds_total", "CPU time of the recorder's threads.", seconds(clock::self_cpu()));
        out.gauge("resident_memory_bytes", "Memory of the recorder.", rss());
        let events = self.progress.events.load(Ordering::Relaxed);
        out.counter("events_total", "Events that were stored.", events);
        self.losses(&mut out);
        out.counter("tape_bytes_total", "Bytes of the tape so far, including those that wait.", self.progress.bytes());
        out.gauge("waiting_bytes", "Data that waits for the disk.", self.progress.backlog.pieces());
        self.rings(&mut out);
        if let Some(status) = &self.status {
            flight(status, &mut out);
        }
        out.0
    }

    fn losses(&self, out: &mut Exposition) {
        let (lost, counted) =
            ("Events of which only the number is known.", "Calls that are in every sum and in no listing.");
        let mut all = self.progress.losses.all();
        let filtered = self.progress.filtered.load(Ordering::Relaxed);
        if filtered > 0 {
            all.push(LossCount { of: (GapCause::Filtered, Family::Syscall), lost: 0, counted: filtered });
        }
        for (name, help) in [("lost_events_total", lost), ("counted_calls_total", counted)] {
            out.begin(name, "counter", help);
            for LossCount { of: (cause, family), lost, counted } in &all {
                let number = if name == "lost_events_total" { lost } else { counted };
                out.value(name, &[("cause", cause.name()), ("family", family.name())], number);
            }
            if all.is_empty() {
                // a rate needs a value before the first loss
                out.value(name, &[("cause", "none"), ("family", "none")], 0);
            }
        }
    }

    /// The fullest ring of each kind: what matters is how near it ever came to losing something.
    fn rings(&self, out: &mut Exposition) {
        let (fills, sizes) = (&self.control.fills, &self.rings);
        let name = "ring_fill_ratio";
        out.begin(name, "gauge", "Most of a ring that was ever full, by kind of ring.");
        let mut fill = |kind: &str, most: &AtomicU64, size: u64| {
            if size > 0 {
                out.value(name, &[("ring", kind)], most.load(Ordering::Relaxed) as f64 / size as f64);
            }
        };
        fill("calls", &fills.calls, sizes.buffers.calls);
        fill("sched", &fills.sched, sizes.buffers.sched);
        fill("bulk", &fills.bulk, sizes.bulk);
        fill("state", &fills.state, sizes.state);
        fill("process", &fills.process, sizes.process);
        fill("stacks", &fills.stacks, sizes.stacks);
    }
}

/// The flight recorder's numbers.
fn flight(status: &Status, out: &mut Exposition) {
    let now = status.now();
    out.gauge("held_seconds", "Time that is in memory.", seconds(now.held.1.saturating_sub(now.held.0)));
    out.gauge("held_bytes", "Memory that it takes.", now.used);
    out.gauge("held_bytes_limit", "Memory that it may take (--ring).", now.ring_bytes);
    out.counter("tapes_written_total", "Tapes that triggers and requests wrote.", now.tapes);
    out.counter("tapes_failed_total", "Tapes that could not be written.", now.failed);
    let last = now.last.iter().find(|tape| tape.tape.is_ok()).map_or(0, |tape| tape.realtime);
    out.gauge("last_tape_time_seconds", "When the last tape was begun, in seconds since 1970; 0: none.", seconds(last));
    for (name, help) in [
        ("trigger_fired_total", "How often a trigger fired."),
        ("trigger_suppressed_total", "How often it did so during its cooldown."),
    ] {
        out.begin(name, "counter", help);
        for trigger in &now.triggers {
            let number = if name == "trigger_fired_total" { trigger.fired } else { trigger.suppressed };
            out.value(name, &[("on", &trigger.on)], number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::flight::status::Fires;
    use crate::rings::cpu_buffers::BufferBytes;

    fn sources() -> MetricsSources {
        let status = Status::default();
        status.now().triggers = vec![Fires { on: "exec:/opt/\"x\\\n*".into(), fired: 3, suppressed: 1 }];
        let sizes = RingSizes { buffers: BufferBytes { calls: 1000, sched: 0 }, ..RingSizes::default() };
        MetricsSources {
            progress: Arc::new(Progress::new(1 << 20, Arc::default())),
            control: Arc::default(),
            rings: sizes,
            status: Some(Arc::new(status)),
        }
    }

    /// Lines of values: name with labels, number.
    fn values(text: &str) -> Vec<(&str, f64)> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| line.rsplit_once(' ').map(|(name, value)| (name, value.parse().unwrap())).unwrap()).collect()
    }

    #[test]
    fn every_value_has_a_type_and_one_line() {
        let sources = sources();
        sources.progress.losses.add((GapCause::RingFull, Family::Syscall), 10, 4);
        sources.progress.losses.add((GapCause::RingFull, Family::Syscall), 1, 0);
        sources.progress.filtered.store(5, Ordering::Relaxed);
        sources.control.fills.calls.store(250, Ordering::Relaxed);
        let text = sources.text(true, 1_500_000_000);
        let values = values(&text);
        for (name, _) in &values {
            let family = name.split('{').next().unwrap();
            assert_eq!(text.matches(&format!("# TYPE {family} ")).count(), 1, "{name}");
        }
        let of = |name: &str| values.iter().find(|(n, _)| *n == name).unwrap_or_else(|| panic!("{name}: {text}")).1;
        assert_eq!(of("systape_lost_events_total{cause=\"ring-full\",family=\"syscall\"}"), 7.0);
        assert_eq!(of("systape_counted_calls_total{cause=\"ring-full\",family=\"syscall\"}"), 4.0);
        assert_eq!(of("systape_counted_calls_total{cause=\"filtered\",family=\"syscall\"}"), 5.0);
        assert_eq!(of("systape_ring_fill_ratio{ring=\"calls\"}"), 0.25);
        assert!(!text.contains("ring=\"sched\""), "there is no such ring");
        assert_eq!(of("systape_start_time_seconds"), 1.5);
        assert_eq!(of("systape_trigger_fired_total{on=\"exec:/opt/\\\"x\\\\\\n*\"}"), 3.0);
        assert_eq!(of("systape_recording"), 1.0);
    }

    /// What is shipped asks only for what there is.
    #[test]
    fn dashboard_and_alerts_have_no_other_names() {
        let text = sources().text(true, 0);
        let known: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
        let shipped = [
            include_str!("../../../packaging/metrics/systape-dashboard.json"),
            include_str!("../../../packaging/metrics/systape-alerts.yml"),
        ];
        for file in shipped {
            let used: Vec<&str> = file
                .match_indices("systape_")
                .map(|(at, _)| file[at..].split(|c: char| !c.is_ascii_lowercase() && c != '_').next().unwrap_or(""))
                .collect();
            let unknown: Vec<&&str> = used.iter().filter(|name| !known.contains(name)).collect();
            assert!(used.len() > 5 && unknown.is_empty(), "{unknown:?}");
        }
    }

    #[test]
    fn a_link_is_replaced_and_never_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("x.prom"), dir.path().join("other"));
        fs::write(&other, "kept").unwrap();
        symlink(&other, &path).unwrap();
        symlink(&other, dir.path().join(format!(".x.prom.{}", std::process::id()))).unwrap();
        replace(&path, "new\n").unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "kept");
        assert_eq!(fs::read_to_string(&path).unwrap(), "new\n");
        assert!(!fs::symlink_metadata(&path).unwrap().is_symlink());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
        assert!(replace(&dir.path().join("none/x.prom"), "new\n").is_err());
    }

    #[test]
    fn the_last_numbers_say_that_it_ended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.prom");
        let writer = MetricsWriter::start(path.clone(), sources()).unwrap();
        writer.finish();
        assert!(fs::read_to_string(&path).unwrap().contains("\nsystape_recording 0\n"));
    }
}
