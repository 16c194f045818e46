//! Lines of events: perf trace's form for tracepoints, JSON, and the columns of the CSV listing.

use std::fmt::Write as _;

use serde_json::Map;

use super::describe::{Event, Value};
use crate::lines::tables::{CALLS, EVENTS};
use crate::lines::text::Look;
use crate::render::cell::Cell;
use crate::render::json;
use crate::render::row::{Row, ShownTimes};
use crate::render::stamp::Stamps;
use systape_events::values::num;
use systape_events::values::words::escaped;

/// `     0.006 (         ): trace/3319 sched:sched_waking(comm: "ls", pid: 3320 (ls), target_cpu: 1)`.
pub fn text(out: &mut Vec<u8>, event: &Event<'_>, look: Look, stamps: &Stamps) {
    stamps.listed(out, Some(event.ts));
    out.extend_from_slice(b" (         ): ");
    match event.task {
        Some(task) if look.no_comm => num::unsigned(out, u64::from(task.tid)),
        Some(task) => out.extend_from_slice(format!("{}/{}", escaped(&task.comm), task.tid).as_bytes()),
        None => out.push(b'?'),
    }
    out.extend_from_slice(format!(" {}({})\n", event.which.name(), arguments(event)).as_bytes());
}

/// `comm: "ls", pid: 3320 (ls)`.
fn arguments(event: &Event<'_>) -> String {
    let mut text = String::new();
    for (at, (name, value)) in event.fields.iter().enumerate() {
        // writing to a String cannot fail
        let _ = write!(text, "{}{name}: ", if at > 0 { ", " } else { "" });
        let _ = match value {
            Value::Number(number) => write!(text, "{number}"),
            Value::Wide(number) => write!(text, "{number}"),
            Value::Hex(number) => write!(text, "{number:#x}"),
            Value::Bytes(bytes) => write!(text, "\"{}\"", escaped(bytes)),
            Value::Word(word) => write!(text, "{word}"),
            Value::Thread(task) => write!(text, "{} ({})", task.tid, escaped(&task.comm)),
            Value::Unknown => write!(text, "?"),
        };
    }
    text
}

fn value(value: &Value<'_>) -> serde_json::Value {
    match value {
        Value::Number(number) => (*number).into(),
        Value::Wide(number) => number.to_string().into(),
        Value::Hex(number) => format!("{number:#x}").into(),
        Value::Bytes(bytes) => json::bytes(bytes),
        Value::Word(word) => word.as_str().into(),
        Value::Thread(task) => task.tid.into(),
        Value::Unknown => serde_json::Value::Null,
    }
}

/// Row of an event in JSON, with the field names of calls.
pub fn row<'a>(event: &Event<'a>, times: &ShownTimes<'a>) -> Row<'a> {
    let args: Map<String, serde_json::Value> =
        event.fields.iter().map(|(name, field)| ((*name).to_owned(), value(field))).collect();
    let mut row = Row::new(&EVENTS);
    row.set("event", event.which.name()).set("ts_ns", times.since(event.ts)).time("time", Some(event.ts), times);
    row.set("cpu", event.cpu).task("", event.task).set("cgroup", cgroup(event, times));
    row.set("host", host(times)).set("args", serde_json::Value::Object(args));
    row
}

/// Row of an event in CSV, in the columns of a call: `syscall` has the event's name, and columns that only calls have are empty.
pub(crate) fn call_row<'a>(event: &Event<'a>, times: &ShownTimes<'a>) -> Row<'a> {
    let mut row = Row::new(&CALLS);
    row.set("ts_ns", times.since(event.ts)).time("time", Some(event.ts), times).set("dur_ns", Cell::Null);
    row.set("cpu", event.cpu).task("", event.task).set("cgroup", cgroup(event, times)).set("abi", Cell::Null);
    row.set("host", host(times)).set("syscall", event.which.name());
    row.set("args", Cell::Spelled(serde_json::Value::Null, arguments(event)));
    for name in ["ret", "errno", "errno_code", "incomplete"] {
        row.set(name, Cell::Null);
    }
    row
}

fn cgroup<'a>(event: &Event<'a>, times: &ShownTimes<'a>) -> Option<&'a [u8]> {
    event.task.and_then(|task| times.session.cgroup_path(task.cgroup_id))
}
/// The machine's name; None: its block is lost.
fn host<'a>(times: &ShownTimes<'a>) -> Option<&'a [u8]> {
    Some(&*times.session.hostname).filter(|host| !host.is_empty())
}
