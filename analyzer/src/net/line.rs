//! A connection, or a change of a socket's state, as a line.

use systape_format::model::{NetState, Task};

use super::connection::{Connection, Direction, Lasted, Outcome, Window};
use super::words::{address, endpoint, protocol_name, state_name};
use crate::render::record::{Record, Times, millis, seconds};
use crate::words::{NET_SOFTIRQ, VIA_SOFTIRQ, escaped};

/// Names of the columns of connections.
pub fn header() -> Vec<u8> {
    columns(["TIME(s)", "COMM", "PID", "PROTO", "DIR", "LADDR:LPORT", "RADDR:RPORT", "STATE", "MS"])
}

/// Names of the columns of changes.
pub fn changes_header() -> Vec<u8> {
    changes_columns(["TIME(s)", "COMM", "PID", "SOCKET", "PROTO", "LADDR:LPORT", "RADDR:RPORT", "OLDSTATE -> NEWSTATE"])
}

fn columns([time, comm, pid, protocol, direction, local, remote, state, ms]: [&str; 9]) -> Vec<u8> {
    format!(
        "{time:<11} {comm:<15} {pid:<7} {protocol:<5} {direction:<7} {local:<21} {remote:<21} {state:<14} {ms:>9}\n"
    )
    .into_bytes()
}

fn changes_columns([time, comm, pid, socket, protocol, local, remote, states]: [&str; 8]) -> Vec<u8> {
    format!("{time:<11} {comm:<15} {pid:<7} {socket:<6} {protocol:<5} {local:<21} {remote:<21} {states}\n").into_bytes()
}

fn who(task: Option<&Task>) -> (String, String) {
    task.map_or_else(|| ("?".to_owned(), "?".to_owned()), |task| (escaped(&task.comm), task.pid.to_string()))
}

/// Appends the line of a connection; times count from `base`.
pub fn text(out: &mut Vec<u8>, c: &Connection, window: Window, base: u64) {
    let (comm, pid) = who(c.task.as_ref());
    let state = match c.outcome {
        Outcome::Open(state) => state_name(state),
        outcome => outcome.name().to_owned(),
    };
    let lasted = match c.lasted(window) {
        Lasted::Exact(ns) => millis(Some(ns)),
        Lasted::AtLeast(ns) => format!("≥{}", millis(Some(ns))),
        Lasted::Unknown => "-".to_owned(),
    };
    out.extend(columns([
        &c.end.map_or_else(|| "-".to_owned(), |end| seconds(end, base)),
        &comm,
        &pid,
        &protocol_name(c.protocol),
        c.direction.name(),
        &endpoint(&c.laddr, c.lport),
        &if c.direction == Direction::Listen { "-".to_owned() } else { endpoint(&c.raddr, c.rport) },
        &state,
        &lasted,
    ]));
}

/// Names of the columns of the CSV form of connections.
pub fn csv_header(times: &Times<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let window = Window { open: 0, close: 0, complete: true };
    record(&Connection::default(), window, times).csv_header(&mut out);
    out
}

/// Everything about a connection by name.
pub fn record(c: &Connection, window: Window, times: &Times<'_>) -> Record {
    let (ns, exact) = match c.lasted(window) {
        Lasted::Exact(ns) => (Some(ns), true),
        Lasted::AtLeast(ns) => (Some(ns), false),
        Lasted::Unknown => (None, false),
    };
    let listens = c.direction == Direction::Listen;
    let optional = |ts: Option<u64>| ts.map_or(serde_json::Value::Null, |ts| times.since(ts));
    let mut record = Record::default();
    record
        .set("ts_ns", optional(c.end))
        .time("time", c.end, times)
        .set("start_ns", optional(c.start))
        .set("established_ns", optional(c.established))
        .set("dur_ns", ns)
        .set("dur_exact", exact)
        .set("protocol", protocol_name(c.protocol))
        .set("direction", Some(c.direction.name()).filter(|_| c.direction != Direction::Unknown))
        .set("outcome", c.outcome.name())
        .set("state", if let Outcome::Open(state) = c.outcome { Some(state_name(state)) } else { None })
        .set("laddr", address(&c.laddr))
        .set("lport", known(c.lport))
        .set("raddr", address(&c.raddr).filter(|_| !listens))
        .set("rport", known(c.rport).filter(|_| !listens))
        .wide("socket", c.socket)
        .task("owner", c.task.as_ref());
    record
}

/// A port; 0 is none: not known, taken out, or not chosen yet.
fn known(port: u16) -> Option<u16> {
    Some(port).filter(|port| *port != 0)
}

/// Appends the line of a change; `task`: who ran, or sent what brought it.
pub fn change(out: &mut Vec<u8>, e: &NetState, task: Option<&Task>, base: u64) {
    let (comm, pid) = who(task);
    let via = if e.sender.is_some() { VIA_SOFTIRQ } else { "" };
    out.extend(changes_columns([
        &seconds(e.ts, base),
        &comm,
        &pid,
        &e.socket.to_string(),
        &protocol_name(e.protocol),
        &endpoint(&e.saddr, e.sport),
        &endpoint(&e.daddr, e.dport),
        &format!("{} -> {}{via}", state_name(e.old_state), state_name(e.new_state)),
    ]));
}

/// Everything about a change by name.
pub fn change_record(e: &NetState, task: Option<&Task>, times: &Times<'_>) -> Record {
    let mut record = Record::default();
    record
        .set("ts_ns", times.since(e.ts))
        .time("time", Some(e.ts), times)
        .wide("socket", e.socket)
        .set("protocol", protocol_name(e.protocol))
        .set("old_state", state_name(e.old_state))
        .set("new_state", state_name(e.new_state))
        .set("laddr", address(&e.saddr))
        .set("lport", known(e.sport))
        .set("raddr", address(&e.daddr))
        .set("rport", known(e.dport))
        .set("via", e.sender.map(|_| NET_SOFTIRQ))
        .task("task", task);
    record
}
