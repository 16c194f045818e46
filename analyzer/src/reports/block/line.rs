//! One I/O as a line: biosnoop's columns, or a row.

use systape_format::model::{BlockLayer, Session};

use systape_answers::catalogue::block::sector;
use systape_answers::derive::block::flags;
use systape_answers::derive::block::io::Io;
use systape_answers::render::fields::{TextColumn, TextColumns};
use systape_answers::render::paint;
use systape_answers::render::stamp::{Column, Stamps};
use systape_answers::render::table::millis_if;
use systape_events::values::devices::Devices;
use systape_events::values::words::escaped;

/// Column of times.
const TIME: Column = Column { name: "time", width: 11, places: 6, right: false };

/// The columns behind the time.
const FIELDS: [TextColumn; 11] = [
    TextColumn::left("comm", 15).shortens(),
    TextColumn::left("pid", 7).leaves(3),
    TextColumn::left("disk", 9).leaves(7),
    TextColumn::left("type", 4).leaves(5),
    TextColumn::left("sector", 10).leaves(1),
    TextColumn::left("bytes", 7).leaves(6),
    TextColumn::right("queue ms", 8).leaves(4),
    TextColumn::right("took ms", 7),
    TextColumn::left("cause", 8).shortens().leaves(2),
    TextColumn::left("file", 0).shortens(),
    // rare facts
    TextColumn::left("", 0),
];

/// Names of the columns of the text form.
pub(crate) fn header(stamps: &Stamps) -> Vec<u8> {
    format!("{}\n", TextColumns::timed(stamps.heading(TIME), FIELDS).head()).into_bytes()
}

/// Appends the line of `io`.
pub(crate) fn text(out: &mut Vec<u8>, io: &Io<'_>, session: &Session, devices: &Devices, stamps: &Stamps) {
    let e = io.io;
    let (comm, pid) = match io.owner {
        Some(task) => (escaped(&task.comm), task.pid.to_string()),
        None => ("?".to_owned(), "?".to_owned()),
    };
    let line = TextColumns::timed(stamps.text(TIME, e.complete), FIELDS).line(&[
        &*comm,
        &pid,
        &devices.name(e.dev),
        &flags::letters(e.flags),
        &sector(e).map_or_else(|| "-".into(), |sector| sector.to_string()),
        &e.bytes.to_string(),
        &paint::time(&millis_if(io.queue()), 8, io.queue()),
        &paint::time(&millis_if(io.latency()), 7, io.latency()),
        &io.cause(session),
        &io.held().text(),
        &marks(io).join(" "),
    ]);
    out.extend_from_slice(line.as_bytes());
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
