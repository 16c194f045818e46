//! One I/O as a line: biosnoop's columns, or a row.

use systape_format::model::{BlockLayer, Session};

use systape_answers::catalogue::block::sector;
use systape_answers::derive::block::flags;
use systape_answers::derive::block::io::Io;
use systape_answers::render::paint;
use systape_answers::render::stamp::{Column, Stamps};
use systape_answers::render::table::millis_if;
use systape_events::values::devices::Devices;
use systape_events::values::words::escaped;

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
