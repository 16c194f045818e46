//! Lines of events: perf trace's form for tracepoints, JSON, and the columns of the CSV listing.

use crate::catalogue::Event;
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
    let mut fields = String::new();
    event.values.line(&mut fields);
    out.extend_from_slice(format!(" {}({fields})\n", event.shape.event).as_bytes());
}

/// The fields of an event as an object, in the order of their names.
fn args(event: &Event<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(32 * event.shape.fields.len());
    let mut next = b'{';
    for at in &event.shape.by_name {
        let field = &event.shape.fields[*at];
        out.push(next);
        json::string(&mut out, field.name.as_bytes());
        out.push(b':');
        event.values.cell(field.at).json(field.ty, &mut out);
        next = b',';
    }
    out.extend_from_slice(if next == b'{' { b"{}" } else { b"}" });
    out
}

/// Row of an event in JSON, with the field names of calls.
pub fn row<'a>(event: &Event<'a>, times: &ShownTimes<'a>) -> Row<'a> {
    let mut row = Row::new(&EVENTS);
    row.set("event", &*event.shape.event).set("ts_ns", event.since).time("time", Some(event.ts), times);
    row.set("cpu", event.cpu).task("", event.task).set("cgroup", cgroup(event, times));
    row.set("host", host(times)).set("args", Cell::Written(args(event)));
    row
}

/// Row of an event in CSV, in the columns of a call: `syscall` has the event's name, and columns that only calls have are empty.
pub fn call_row<'a>(event: &Event<'a>, times: &ShownTimes<'a>) -> Row<'a> {
    let mut row = Row::new(&CALLS);
    row.set("ts_ns", event.since).time("time", Some(event.ts), times).set("dur_ns", Cell::Null);
    row.set("cpu", event.cpu).task("", event.task).set("cgroup", cgroup(event, times)).set("abi", Cell::Null);
    row.set("host", host(times)).set("syscall", &*event.shape.event);
    let mut fields = String::new();
    event.values.named(&mut fields);
    row.set("args", Cell::Spelled(serde_json::Value::Null, fields));
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
