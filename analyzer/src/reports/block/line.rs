//! One I/O as a line: biosnoop's columns, or a row.

use systape_format::model::{BlockIo, BlockLayer, Session};

use systape_answers::derive::block::files::holds_name;
use systape_answers::derive::block::flags::{self, Op};
use systape_answers::derive::block::io::{Io, cause_name, layer_name};
use systape_answers::render::paint;
use systape_answers::render::row::{Row, ShownTimes};
use systape_answers::render::stamp::{Column, Stamps};
use systape_answers::render::table::millis_if;
use systape_events::values::devices::{Devices, numbers};
use systape_events::values::words::escaped;

systape_format::tables! {
    /// One row an I/O, in order of completion.
    pub BLOCK = "block" {
        ts_ns: Time key "when it completed"
        time: Word "the same as RFC 3339, UTC; null: the tape has no clock sample"
        time_uncertain_ns: Duration "how far apart the two times are that `time` may be; null: it is known"
        queued_ns: Time "when it entered the block layer; null: not known"
        issued_ns: Time "when it last went to the device; null: not known"
        dur_ns: Duration "how long the device took; null: not known"
        queue_ns: Duration "how long it waited before; null: not known"
        disk: Word key "the whole disk"
        partition: Word "the last partition that begins at or before `sector`; null: none"
        major: Int "the disk's number, first part"
        minor: Int "second part"
        op: Word key "`read write flush discard secure_erase write_zeroes drv_in drv_out`, or `op17` for what has no stable number"
        flags.value: Int "flags of the kernel"
        flags.text: Word "the same in words: `WRITE|SYNC`; bits without a stable name are a number"
        sector: Wide key "first sector of 512 bytes on the disk; null: none (a flush of the cache)"
        bytes: Bytes "size; 0 for a flush"
        errno: Word "name of the error; null: none"
        errno_code: Int "its number; null: none"
        requeues: Count "how often it went back to the queue"
        merged: Count "further bios that were merged into it"
        layer: Word "`request`, or `bio`: the device has no requests"
        cause: Word "how it is known whom to blame: `direct dirtier cgroup kthread flush unknown`"
        owner.pid: Int "whom it is blamed on: process; `owner` null: nobody known"
        owner.tid: Int "thread"
        owner.upid: Int "the process, unique in the tape"
        owner.utid: Int "the thread, unique in the tape"
        owner.comm: Str [Comm] "name of the thread"
        owner.uid: Int "real user; null: not known"
        origin.pid: Int "who ran when it entered the block layer: process; `origin` null: not known, or an interrupt"
        origin.tid: Int "thread"
        origin.upid: Int "the process, unique in the tape"
        origin.utid: Int "the thread, unique in the tape"
        origin.comm: Str [Comm] "name of the thread"
        origin.uid: Int "real user; null: not known"
        cgroup: Str [Path] "path of the cgroup it is charged to; null: not known"
        holds: Word "what it reads or writes: `file metadata journal device swap several unknown`; `several`: I/Os of more than one were merged"
        file: Str [Path] "path of the file; null: none, or not known"
        links: Count "names that the file has: with more than one, a program may have used another; null: not known"
        inode: Wide "inode of the file; null: not known"
        file_system.major: Int "the number of its file system, first part; null: not known"
        file_system.minor: Int "second part"
    }
}

/// Column of times.
const TIME: Column = Column { name: "TIME", width: 11, places: 6, right: false };

/// Names of the columns of the text form.
pub(crate) fn header(stamps: &Stamps) -> Vec<u8> {
    let time = stamps.heading(TIME);
    let names = [&time, "COMM", "PID", "DISK", "T", "SECTOR", "BYTES", "QUE(ms)", "LAT(ms)", "CAUSE", "FILE"];
    format!("{}\n", columns(names)).into_bytes()
}

fn columns([time, comm, pid, disk, op, sector, bytes, queue, latency, cause, file]: [&str; 11]) -> String {
    let start = format!("{time} {comm:<15} {pid:<7} {disk:<9} {op:<4} {sector:<10} {bytes:<7}");
    format!("{start} {queue:>7} {latency:>7} {cause:<8} {file}")
}

/// The sector; None: none (the kernel's -1: a flush of the device's cache).
fn sector(io: &BlockIo) -> Option<u64> {
    (io.sector != u64::MAX).then_some(io.sector)
}

/// Appends the line of `io`.
pub(crate) fn text(out: &mut Vec<u8>, io: &Io<'_>, session: &Session, devices: &Devices, stamps: &Stamps) {
    let e = io.io;
    let (comm, pid) = match io.owner {
        Some(task) => (escaped(&task.comm), task.pid.to_string()),
        None => ("?".to_owned(), "?".to_owned()),
    };
    let line = columns([
        &stamps.text(TIME, e.complete),
        &comm,
        &pid,
        &devices.name(e.dev),
        &flags::letters(e.flags),
        &sector(e).map_or_else(|| "-".into(), |sector| sector.to_string()),
        &e.bytes.to_string(),
        &paint::time(&millis_if(io.queue()), 7, io.queue()),
        &paint::time(&millis_if(io.latency()), 7, io.latency()),
        &io.cause(session),
        &io.held().text(),
    ]);
    out.extend_from_slice(line.as_bytes());
    for mark in marks(io) {
        out.push(b' ');
        out.extend_from_slice(mark.as_bytes());
    }
    out.push(b'\n');
}

/// The rare facts: merged bios, requeues, an error, a device without requests.
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
        let name = systape_abi::errno_name(e.errno).map_or_else(|| format!("errno {}", e.errno), str::to_owned);
        marks.push(paint::error(name));
    }
    if e.layer == BlockLayer::Bio {
        marks.push("(bio)".to_owned());
    }
    marks
}

/// All columns of `io`.
pub(crate) fn row<'a>(io: &Io<'a>, times: &ShownTimes<'a>, devices: &Devices) -> Row<'a> {
    let e = io.io;
    let (major, minor) = numbers(e.dev);
    let mut row = Row::new(&BLOCK);
    row.set("ts_ns", times.since(e.complete)).time("time", Some(e.complete), times);
    row.set("queued_ns", times.since_known(e.queued)).set("issued_ns", times.since_known(e.issued));
    row.set("dur_ns", io.latency()).set("queue_ns", io.queue());
    row.set("disk", devices.name(e.dev));
    row.set("partition", sector(e).and_then(|sector| devices.partition(e.dev, sector)));
    row.set("major", major).set("minor", minor);
    row.set("op", Op::of_io(e).name()).set("flags_value", e.flags).set("flags_text", flags::text(e.flags));
    row.set("sector", sector(e)).set("bytes", e.bytes);
    row.set("errno", systape_abi::errno_name(e.errno).filter(|_| e.errno != 0));
    row.set("errno_code", (e.errno != 0).then_some(e.errno));
    row.set("requeues", e.requeues).set("merged", e.merged);
    row.set("layer", layer_name(e.layer)).set("cause", cause_name(e.cause));
    row.task("owner", io.owner).task("origin", io.origin);
    row.set("cgroup", times.session.cgroup_path(e.cgroup_id)).set("holds", holds_name(e.holds));
    row.set("file", io.file.and_then(|file| file.path.as_deref()));
    row.set("links", io.file.map(|file| file.links).filter(|links| *links > 0));
    row.set("inode", (e.inode != 0).then_some(e.inode));
    let system = io.file.map(|file| numbers(file.dev));
    row.set("file_system_major", system.map(|(major, _)| major));
    row.set("file_system_minor", system.map(|(_, minor)| minor));
    row
}
