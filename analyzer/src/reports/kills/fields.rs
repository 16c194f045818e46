//! The report as JSON and CSV; docs/json.md describes the fields.

use std::io::{self, Write};

use serde_json::{Map, Value, json};
use systape_format::model::{Session, SignalInfo};

use super::Story;
use super::party::{COLUMNS, Party};
use crate::clock::{self, Clock};
use crate::lines::LineFormat as _;
use crate::lines::json::Json;
use crate::output::line;
use crate::render::csv;
use crate::render::json::known;
use crate::signals::outcome::{blocked, result_name};
use crate::signals::via::{self, code_name, fault_address};
use crate::signals::{Cause, Disposition, Record, Via};

/// One object a line; losses first.
pub fn json(story: &Story<'_>, clock: Clock, out: &mut impl Write) -> io::Result<()> {
    let session = story.context.question.tape.session();
    let form = Json::new(session, Clock::default());
    for gap in &story.context.question.loss.gaps {
        out.write_all(&form.gap(gap))?;
    }
    for record in shown(story) {
        let mut object = common(story, record, &clock);
        let sender = Party::sender(record, story.processes);
        object.insert("sender".to_owned(), sender.map_or(Value::Null, |party| party.json(session)));
        let (stack, status) =
            story.stacks.as_ref().map_or((Value::Null, Value::Null), |stacks| stacks.borrow_mut().json(record));
        object.insert("sender_stack".to_owned(), stack);
        object.insert("sender_stack_status".to_owned(), status);
        object.insert("target".to_owned(), Party::target(record, story.processes).json(session));
        object.insert("outcome".to_owned(), outcome(story, record).into());
        line(out, &Value::Object(object).to_string())?;
    }
    Ok(())
}

/// The records that are printed.
fn shown<'a>(story: &'a Story<'_>) -> impl Iterator<Item = &'a Record> {
    story.records.iter().take(usize::try_from(story.context.config.max_events).unwrap_or(usize::MAX))
}

/// A number that may not fit 53 bits.
fn hex(value: u64) -> Value {
    format!("{value:#x}").into()
}

fn since(ts: u64, session: &Session) -> i64 {
    ts.wrapping_sub(session.window_open) as i64
}

/// What is no one's side.
fn common(story: &Story<'_>, record: &Record, clock: &Clock) -> Map<String, Value> {
    let session = story.context.question.tape.session();
    let (sent, event, seen) = (&record.sent, &record.sent.event, record.unseen.is_none());
    let coded = event.info == SignalInfo::Siginfo;
    let fault = matches!(record.via, Via::Fault | Via::Seccomp | Via::UserDispatch | Via::MemoryError) && coded;
    let call = sent.call.as_ref().filter(|_| sent.user().is_some());
    let fields = json!({
        "ts_ns": since(event.ts, session),
        "time": clock.real(event.ts).map(clock::rfc3339),
        "act": record.act,
        "signal": event.sig,
        "signal_name": via::name(event.sig),
        "info": match event.info {
            SignalInfo::Unknown => Value::Null,
            SignalInfo::Siginfo => "siginfo".into(),
            SignalInfo::NoInfo => "noinfo".into(),
            SignalInfo::Priv => "priv".into(),
        },
        "code": if coded { event.code.into() } else { Value::Null },
        "code_name": if coded { code_name(event.sig, event.code).into() } else { Value::Null },
        "result": if seen { result_name(event.result).into() } else { Value::Null },
        "via": record.via.name(),
        "disposition": if seen { Disposition::of(event).name().into() } else { Value::Null },
        "blocked": if seen { blocked(event).into() } else { Value::Null },
        "address": fault_address(event, record.via).map_or(Value::Null, hex),
        "ip": if fault { hex(event.ip) } else { Value::Null },
        "call": call.map(|call| call.name.as_str()),
        "call_args": call.map(|call| call.args.iter().zip(event.call_args).map(|(_, v)| hex(v)).collect::<Vec<_>>()),
        "call_path": known(&event.call_path),
        "oom": record.mark.as_ref().map(|mark| json!({
            "victim_pid": mark.victim.pid,
            "total_vm": mark.memory.total_vm.to_string(),
            "anon": mark.memory.anon.to_string(),
            "file": mark.memory.file.to_string(),
            "shmem": mark.memory.shmem.to_string(),
        })),
    });
    clock::with_uncertainty(fields, clock.real(event.ts))
}

/// What came of it: of a process that did not end, `exited` is false only if nothing is missing.
fn outcome(story: &Story<'_>, record: &Record) -> Map<String, Value> {
    let (outcome, ts) = (&record.outcome, record.sent.event.ts);
    let end = outcome.end;
    let taken = outcome.taken;
    let fields = json!({
        "exited": if end.is_some() { Some(true) } else { story.certain(record).then_some(false) },
        "exit_signal": end.and_then(|end| end.signal()),
        "exit_code": end.and_then(|end| end.status()),
        "latency_ns": end.filter(|_| record.unseen.is_none()).and_then(|end| end.ts.checked_sub(ts)),
        "core_dumped": end.map(|end| end.core_dumped()),
        "stopped": outcome.stopped,
        "cause": match outcome.cause {
            Cause::Yes => Value::Bool(true),
            Cause::No if record.unseen.is_none() => Value::Bool(false),
            _ => Value::Null,
        },
        "taken_ns": taken.map(|taken| taken.ts.saturating_sub(ts)),
        "handler": taken.filter(|taken| taken.handler > 1).map(|taken| hex(taken.handler)),
        "maybe_cause": record.unseen.is_none().then_some(matches!(outcome.cause, Cause::Maybe(_))),
    });
    match fields {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

const COMMON: [&str; 18] = [
    "ts_ns",
    "time",
    "act",
    "signal",
    "signal_name",
    "info",
    "code",
    "code_name",
    "result",
    "via",
    "disposition",
    "blocked",
    "address",
    "ip",
    "call",
    "call_path",
    "oom_anon",
    "oom_file",
];
const OUTCOME: [&str; 10] = [
    "exited",
    "exit_signal",
    "exit_code",
    "latency_ns",
    "core_dumped",
    "stopped",
    "cause",
    "taken_ns",
    "handler",
    "maybe_cause",
];

/// A header line, then one line a record.
pub fn csv(story: &Story<'_>, clock: Clock, out: &mut impl Write) -> io::Result<()> {
    let session = story.context.question.tape.session();
    let side = |prefix: &str| COLUMNS.iter().map(|name| format!("{prefix}_{name}")).collect::<Vec<_>>();
    let mut names: Vec<String> = COMMON.iter().map(|name| (*name).to_owned()).collect();
    names.extend(side("sender"));
    names.extend(side("target"));
    names.extend(OUTCOME.iter().map(|name| (*name).to_owned()));
    line(out, &names.join(","))?;
    for record in shown(story) {
        let common = common(story, record, &clock);
        let oom = |name: &str| common.get("oom").and_then(|oom| oom.get(name)).cloned();
        let mut cells: Vec<Value> = COMMON
            .iter()
            .map(|name| match name.strip_prefix("oom_") {
                Some(part) => oom(part).unwrap_or_default(),
                None => clean(common.get(*name).cloned().unwrap_or_default()),
            })
            .collect();
        match Party::sender(record, story.processes) {
            Some(party) => cells.extend(party.cells(session)),
            None => cells.extend(COLUMNS.map(|_| Value::Null)),
        }
        cells.extend(Party::target(record, story.processes).cells(session));
        let outcome = outcome(story, record);
        cells.extend(OUTCOME.iter().map(|name| outcome.get(*name).cloned().unwrap_or_default()));
        out.write_all(&csv::row(&cells))?;
    }
    Ok(())
}

/// A cell whose text is still as it was captured.
fn clean(cell: Value) -> Value {
    match cell {
        Value::String(_) | Value::Object(_) => csv::text(&cell).into(),
        other => other,
    }
}
