//! One I/O as a line: biosnoop's columns, or a record.

use systape_format::model::{BlockIo, BlockLayer, Session};

use super::flags::{self, Op};
use super::io::{Io, cause_name, layer_name};
use crate::devices::{Devices, numbers};
use crate::render::record::{Record, Times, millis, seconds};
use crate::words::escaped;

/// Names of the columns of the text form.
pub fn header() -> Vec<u8> {
    let columns = columns(["TIME(s)", "COMM", "PID", "DISK", "T", "SECTOR", "BYTES", "QUE(ms)", "LAT(ms)", "CAUSE"]);
    format!("{columns}\n").into_bytes()
}

fn columns([time, comm, pid, disk, op, sector, bytes, queue, latency, cause]: [&str; 10]) -> String {
    format!("{time:<11} {comm:<15} {pid:<7} {disk:<9} {op:<4} {sector:<10} {bytes:<7} {queue:>7} {latency:>7} {cause}")
}

/// Where on the disk; None: nowhere (the kernel's -1: a flush of the device's cache).
fn sector(io: &BlockIo) -> Option<u64> {
    (io.sector != u64::MAX).then_some(io.sector)
}

/// Appends the line of `io`; times count from `base`.
pub fn text(out: &mut Vec<u8>, io: &Io<'_>, session: &Session, devices: &Devices, base: u64) {
    let e = io.io;
    let (comm, pid) = match io.owner {
        Some(task) => (escaped(&task.comm), task.pid.to_string()),
        None => ("?".to_owned(), "?".to_owned()),
    };
    let line = columns([
        &seconds(e.complete, base),
        &comm,
        &pid,
        &devices.name(e.dev),
        &flags::letters(e.flags),
        &sector(e).map_or_else(|| "-".into(), |sector| sector.to_string()),
        &e.bytes.to_string(),
        &millis(io.queue()),
        &millis(io.latency()),
        &io.cause(session),
    ]);
    out.extend_from_slice(line.as_bytes());
    for mark in marks(io) {
        out.push(b' ');
        out.extend_from_slice(mark.as_bytes());
    }
    out.push(b'\n');
}

/// What is said only when it is so: merged bios, requeues, an error, a device without requests.
fn marks(io: &Io<'_>) -> Vec<String> {
    let e = io.io;
    let mut marks = Vec::new();
    if e.merged > 0 {
        marks.push(format!("+{} merged", e.merged));
    }
    if e.requeues > 0 {
        marks.push(format!("{} requeue{}", e.requeues, if e.requeues == 1 { "" } else { "s" }));
    }
    if e.errno != 0 {
        marks.push(systape_abi::errno_name(e.errno).map_or_else(|| format!("errno {}", e.errno), str::to_owned));
    }
    if e.layer == BlockLayer::Bio {
        marks.push("(bio)".to_owned());
    }
    marks
}

/// Names of the columns of the CSV form.
pub fn csv_header(times: &Times<'_>, devices: &Devices) -> Vec<u8> {
    let mut out = Vec::new();
    record(&Io { io: &BlockIo::default(), owner: None, origin: None }, times, devices).csv_header(&mut out);
    out
}

/// Everything about `io` by name.
pub fn record(io: &Io<'_>, times: &Times<'_>, devices: &Devices) -> Record {
    let e = io.io;
    let (major, minor) = numbers(e.dev);
    let mut record = Record::default();
    record
        .set("ts_ns", times.since(e.complete))
        .time("time", Some(e.complete), times)
        .set("queued_ns", times.since_known(e.queued))
        .set("issued_ns", times.since_known(e.issued))
        .set("dur_ns", io.latency())
        .set("queue_ns", io.queue())
        .set("disk", devices.name(e.dev))
        .set("partition", sector(e).and_then(|sector| devices.partition(e.dev, sector)))
        .set("major", major)
        .set("minor", minor)
        .set("op", Op::of_io(e).name())
        .group("flags", &["value", "text"], Some(vec![e.flags.into(), flags::text(e.flags).into()]))
        .set("sector", sector(e).map(|sector| sector.to_string()))
        .set("bytes", e.bytes)
        .set("errno", systape_abi::errno_name(e.errno).filter(|_| e.errno != 0))
        .set("errno_code", (e.errno != 0).then_some(e.errno))
        .set("requeues", e.requeues)
        .set("merged", e.merged)
        .set("layer", layer_name(e.layer))
        .set("cause", cause_name(e.cause))
        .task("owner", io.owner)
        .task("origin", io.origin)
        .text("cgroup", times.session.cgroup_path(e.cgroup_id))
        .set("inode", (e.inode != 0).then(|| e.inode.to_string()));
    record
}
