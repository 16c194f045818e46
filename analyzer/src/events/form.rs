//! Lines of events: perf trace's form for tracepoints, JSON, and the columns of the CSV listing.

use std::fmt::Write as _;

use serde_json::Map;
use systape_format::model::UID_UNKNOWN;

use super::describe::{Event, Value};
use crate::lines::text::Look;
use crate::num;
use crate::render::csv;
use crate::render::json;
use crate::render::record::{Record, Times};
use crate::words::escaped;

/// `     0.006 (         ): trace/3319 sched:sched_waking(comm: "ls", pid: 3320 (ls), target_cpu: 1)`.
pub fn text(out: &mut Vec<u8>, event: &Event<'_>, look: Look, window_open: u64) {
    let base = if look.absolute { 0 } else { window_open };
    match event.ts.checked_sub(base) {
        Some(ns) => num::millis(out, ns, 10, ""),
        None => num::millis(out, base - event.ts, 10, "-"),
    }
    out.extend_from_slice(b" (         ): ");
    match event.task {
        Some(task) if look.no_comm => num::unsigned(out, u64::from(task.tid)),
        Some(task) => out.extend_from_slice(format!("{}/{}", escaped(&task.comm), task.tid).as_bytes()),
        None => out.push(b'?'),
    }
    out.extend_from_slice(format!(" {}({})\n", event.kind.name(), arguments(event)).as_bytes());
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

/// `{"event": "sched:sched_waking", …, "args": {…}}`, fields named as in lines of calls.
pub fn json(out: &mut Vec<u8>, event: &Event<'_>, times: &Times<'_>) {
    let args: Map<String, serde_json::Value> =
        event.fields.iter().map(|(name, field)| ((*name).to_owned(), value(field))).collect();
    let cgroup = event.task.and_then(|task| times.session.cgroup_path(task.cgroup_id));
    let mut record = Record::default();
    record
        .set("event", event.kind.name())
        .set("ts_ns", times.since(event.ts))
        .time("time", Some(event.ts), times)
        .set("cpu", event.cpu)
        .task_fields(event.task)
        .text("cgroup", cgroup)
        .text("host", Some(&times.session.hostname))
        .set("args", serde_json::Value::Object(args))
        .json(out);
}

/// The columns of the listing's CSV: the event's name is in `syscall`, what calls alone have stays empty.
pub fn comma(out: &mut Vec<u8>, event: &Event<'_>, times: &Times<'_>) {
    let task = |f: &dyn Fn(&systape_format::model::Task) -> String| event.task.map(f).unwrap_or_default();
    let cgroup = event.task.and_then(|task| times.session.cgroup_path(task.cgroup_id));
    let columns = [
        (event.ts.wrapping_sub(times.session.window_open) as i64).to_string(),
        times.real(event.ts).as_str().unwrap_or_default().to_owned(),
        String::new(),
        event.cpu.map(|cpu| cpu.to_string()).unwrap_or_default(),
        task(&|task| task.pid.to_string()),
        task(&|task| task.tid.to_string()),
        task(&|task| task.upid.to_string()),
        task(&|task| task.utid.to_string()),
        task(&|task| escaped(&task.comm)),
        task(&|task| if task.uid == UID_UNKNOWN { String::new() } else { task.uid.to_string() }),
        cgroup.map(escaped).unwrap_or_default(),
        String::new(),
        escaped(&times.session.hostname),
        event.kind.name().to_owned(),
        arguments(event),
    ];
    for (at, column) in columns.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        csv::field(out, column.as_bytes());
    }
    // ret, errno, errno_code, incomplete
    out.extend_from_slice(b",,,,\n");
}
