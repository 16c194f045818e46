//! Starts of programs, one a line, with execsnoop's columns and what became of them.

use std::io::{self, Write};

use serde_json::{Map, Value, json};
use systape_format::model::UID_UNKNOWN;

use super::Story;
use super::rows::{After, Row};
use crate::clock;
use crate::output::line;
use crate::render::csv;
use crate::render::form::Format;
use crate::render::json::{bytes, known};
use crate::words::{command, escaped, span};

/// Prints `rows`.
pub fn print(story: &Story<'_>, rows: &[Row], out: &mut impl Write) -> io::Result<()> {
    let limit = usize::try_from(story.context.config.max_events).unwrap_or(usize::MAX);
    let shown = rows.iter().take(limit);
    match story.context.config.format {
        Format::Text => {
            let head = columns(["TIME(s)", "UID", "PCOMM", "PID", "PPID", "RET", "EXIT", "LIVED"], "ARGS");
            line(out, &head)?;
            shown.into_iter().try_for_each(|row| line(out, &text(story, row)))?;
            if limit < rows.len() {
                return Ok(());
            }
            let failed = rows.iter().filter(|row| row.errno != 0).count();
            let at_least = if story.whole { "" } else { "at least " };
            let started = rows.len() - failed;
            line(out, &format!("{at_least}{started} started, {at_least}{failed} failed to start"))
        }
        Format::Json => shown.into_iter().try_for_each(|row| line(out, &Value::Object(object(story, row)).to_string())),
        Format::Csv => {
            line(out, &FIELDS.join(","))?;
            for row in shown {
                out.write_all(&cells(story, row))?;
            }
            Ok(())
        }
    }
}

fn columns(cells: [&str; 8], last: &str) -> String {
    let [time, uid, comm, pid, ppid, ret, exit, lived] = cells;
    format!("{time:<9} {uid:>5} {comm:<15} {pid:<7} {ppid:<7} {ret:>3} {exit:<12} {lived:>9}  {last}")
}

fn number(number: u32) -> String {
    if number == 0 { "?".to_owned() } else { number.to_string() }
}

fn text(story: &Story<'_>, row: &Row) -> String {
    let session = story.context.question.tape.session();
    let base = if story.context.config.look.absolute { 0 } else { session.window_open };
    let ns = i128::from(row.ts) - i128::from(base);
    let uid = if row.task.uid == UID_UNKNOWN { "?".to_owned() } else { row.task.uid.to_string() };
    let exit = match row.after {
        _ if row.errno != 0 => String::new(),
        After::End(end) => story.exit_text(Some(&end), true),
        After::Exec(_) => "exec".to_owned(),
        After::Open => story.exit_text(None, true),
        After::Lost => "?".to_owned(),
    };
    let lived = match row.after {
        _ if row.errno != 0 => String::new(),
        After::End(end) => span(end.ts.saturating_sub(row.ts)),
        After::Exec(ts) => span(ts.saturating_sub(row.ts)),
        After::Open => format!("≥{}", span(story.until.saturating_sub(row.ts))),
        After::Lost => "?".to_owned(),
    };
    let ret = if row.errno == 0 { "0".to_owned() } else { format!("-{}", row.errno) };
    let mut args = words(row).unwrap_or_else(|| "?".to_owned());
    if row.errno != 0 {
        let name = systape_abi::errno_name(row.errno).map_or_else(|| row.errno.to_string(), str::to_owned);
        let path = if row.path.is_empty() { String::new() } else { format!("{}: ", escaped(&row.path)) };
        args.push_str(&format!(" ({path}{name})"));
    }
    columns(
        [
            &format!("{:.3}", ns as f64 / 1e9),
            &uid,
            &escaped(&row.task.comm),
            &row.task.pid.to_string(),
            &number(row.ppid),
            &ret,
            &exit,
            &lived,
        ],
        &args,
    )
}

/// The arguments as typed, or the path alone.
fn words(row: &Row) -> Option<String> {
    if !row.command.argv.is_empty() {
        return Some(command(&row.command.argv, row.command.whole));
    }
    (!row.path.is_empty()).then(|| escaped(&row.path))
}

const FIELDS: [&str; 22] = [
    "ts_ns",
    "time",
    "pid",
    "tid",
    "ns_pid",
    "ppid",
    "upid",
    "comm",
    "uid",
    "cgroup",
    "ret",
    "errno",
    "errno_code",
    "path",
    "args",
    "args_whole",
    "ended",
    "exit_code",
    "exit_signal",
    "core_dumped",
    "dur_ns",
    "dur_is",
];

fn object(story: &Story<'_>, row: &Row) -> Map<String, Value> {
    let session = story.context.question.tape.session();
    let task = &row.task;
    let some = |number: u32| if number == 0 { Value::Null } else { number.into() };
    let end = match row.after {
        After::End(end) => Some(end),
        _ => None,
    };
    let dur = match row.after {
        _ if row.errno != 0 => None,
        After::End(end) => Some(end.ts),
        After::Exec(ts) => Some(ts),
        After::Open => Some(story.until),
        After::Lost => None,
    };
    let ended = match row.after {
        _ if row.errno != 0 => None,
        After::End(_) => Some("exit"),
        After::Exec(_) => Some("exec"),
        After::Open => story.ends.then_some("no"),
        After::Lost => None,
    };
    let argv = &row.command.argv;
    let words: Vec<Value> = argv.split(|b| *b == 0).map(bytes).collect();
    let fields = json!({
        "ts_ns": row.ts.wrapping_sub(session.window_open) as i64,
        "time": story.clock.real(row.ts).map(clock::rfc3339),
        "pid": task.pid,
        "tid": task.tid,
        "ns_pid": some(task.ns_pid),
        "ppid": some(row.ppid),
        "upid": some(task.upid),
        "comm": bytes(&task.comm),
        "uid": if task.uid == UID_UNKNOWN { Value::Null } else { task.uid.into() },
        "cgroup": session.cgroup_path(task.cgroup_id).map_or(Value::Null, known),
        "ret": if row.errno == 0 { 0 } else { -1 },
        "errno": if row.errno == 0 { None } else { systape_abi::errno_name(row.errno) },
        "errno_code": some(row.errno.into()),
        "path": known(&row.path),
        "args": if argv.is_empty() { Value::Null } else { words.into() },
        "args_whole": if argv.is_empty() { None } else { Some(row.command.whole) },
        "ended": ended,
        "exit_code": end.and_then(|end| end.status()),
        "exit_signal": end.and_then(|end| end.signal()),
        "core_dumped": end.map(|end| end.core_dumped()),
        "dur_ns": dur.map(|until| until.saturating_sub(row.ts)),
        "dur_is": dur.map(|_| if row.after == After::Open { "at-least" } else { "exact" }),
    });
    clock::with_uncertainty(fields, story.clock.real(row.ts))
}

fn cells(story: &Story<'_>, row: &Row) -> Vec<u8> {
    let object = object(story, row);
    let cell = |name: &&str| match (*name, object.get(*name)) {
        ("args", _) if row.command.argv.is_empty() => Value::Null,
        ("args", _) => command(&row.command.argv, row.command.whole).into(),
        (_, Some(value @ (Value::String(_) | Value::Object(_)))) => csv::text(value).into(),
        (_, value) => value.cloned().unwrap_or_default(),
    };
    csv::row(&FIELDS.iter().map(cell).collect::<Vec<_>>())
}
