//! Tables for queries: rows of reports are those that the report prints as JSON, value by value, and so are their bounds; rows of events
//! are those that the listing has.

use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use crate::common::{self, OPEN, Place, Tape, US, task};
use serde_json::{Map, Value};
use systape_analyzer::frames::{self, Batch, Bounds, Values};
use systape_answers::catalogue::{TABLES, kinds};
use systape_format::model::{Came, NetState, ProcessEvent, ProcessKind, Switch, Task, UID_UNKNOWN, Wakeup};
use systape_format::table::Type;

fn place() -> (Place, Vec<String>) {
    let place = Place::with_sample();
    common::events::write(&place.path("events.tape"), true);
    common::life::write(&place.path("life.tape"), &[common::gap()]);
    common::hostile::write(&place.path("hostile.tape"));
    common::ledger::write(&place.path("ledger.tape"), &[]);
    common::udp::write(&place.path("udp.tape"), &[common::gap()]);
    common::locks::write(&place.path("locks.tape"), &[]);
    common::stacks::write(&place.path("stacks.tape"), 1);
    rare(&place.path("rare.tape"));
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes");
    for name in ["mix-1.5.tape", "kernel-6.12-sh.tape"] {
        fs::copy(recorded.join(name), place.path(name)).unwrap();
    }
    let names = fs::read_dir(place.path("")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let tapes = names.filter(|name| name.ends_with(".tape")).collect();
    (place, tapes)
}

/// Writes a tape of events that other tests do not need: rare kinds, and rare fields of others.
fn rare(path: &Path) {
    let at = |us: u64| OPEN + us * US;
    let mut tape = Tape::create_with(path, &common::events::of_tape());
    tape.segment_with(1_000, &[], &[], |builder| {
        let [one, other] = [100, 102].map(|tid| builder.intern_task(&task(tid)));
        let nobody = builder.intern_task(&Task { comm: b"\xff \"".to_vec(), uid: UID_UNKNOWN, ..Task::default() });
        for (ts, kind, task) in [
            (10, ProcessKind::Cred, one),
            (11, ProcessKind::Cred, nobody),
            (12, ProcessKind::Cgroup, one),
            (13, ProcessKind::Cgroup, other),
            (14, ProcessKind::Target, one),
            (15, ProcessKind::Target, nobody),
        ] {
            builder.push_process(ProcessEvent::new(at(ts), kind, task));
        }
        let exec = ProcessEvent::new(at(16), ProcessKind::Exec, one);
        builder.push_process(ProcessEvent { path: b"/bin/x".to_vec(), old_tid: 101, ..exec });
        let switch = Switch { ts: at(20), cpu: 1, prev: one, next: nobody, prev_state: 0x8002, ..Switch::default() };
        builder.push_switch(switch);
        let came = [Some(Came { ns: 700, at_most: true }), Some(Came { ns: 1 << 40, at_most: false })];
        for (number, came) in came.into_iter().enumerate() {
            builder.push_switch(Switch { ts: at(21 + number as u64), cpu: 0, came, prev_state: 2, ..switch });
        }
        let wakeup = Wakeup { ts: at(30), waker: Some(one), wakee: other, softirq: true, ..Wakeup::default() };
        builder.push_wakeup(wakeup);
        builder.push_net(NetState {
            ts: at(40),
            sender: Some(one),
            socket: u64::MAX,
            protocol: 132,
            old_state: 1,
            new_state: 99,
            ..NetState::default()
        });
    });
    tape.finish();
}

/// The columns of a line by their full names.
fn flat(line: &Value) -> Map<String, Value> {
    let mut all = Map::new();
    for (name, value) in line.as_object().unwrap() {
        all.insert(name.clone(), value.clone());
        for (inner, value) in value.as_object().into_iter().flatten() {
            all.insert(format!("{name}_{inner}"), value.clone());
        }
    }
    all
}

/// The bytes of a name in JSON.
fn bytes(name: &Value) -> Option<Vec<u8>> {
    let hex =
        |hex: &str| (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
    name.as_str().map(|text| text.as_bytes().to_vec()).or_else(|| name.get("hex")?.as_str().map(hex))
}

/// Whether the value of `row` is that of JSON, of which an absent one is null.
fn same(values: &Values, row: usize, json: Option<&Value>) -> bool {
    let json = json.unwrap_or(&Value::Null);
    match values {
        Values::Int(all) => all.get(row) == json.as_i64(),
        Values::Wide(all) => all.get(row) == json.as_str().map(|text| text.parse().unwrap()),
        // a number that was read from text may differ in its last digit
        Values::Real(all) => match (all.get(row), json.as_f64()) {
            (Some(value), Some(read)) => (value - read).abs() <= 1e-12 * read.abs(),
            (value, read) => value == read,
        },
        Values::Flag(all) => all.get(row) == json.as_bool(),
        Values::Text(all, names) => match names.get(all[row] as usize) {
            Some(text) => {
                bytes(json).as_ref() == Some(text) || serde_json::from_slice::<Value>(text).ok().as_ref() == Some(json)
            }
            None => json.is_null(),
        },
        Values::Map(_) => false,
    }
}

#[test]
fn reports_have_the_same_rows_as_values_and_as_json() {
    let (place, tapes) = place();
    let (mut compared, mut short) = (0, 0);
    for tape in &tapes {
        let source = frames::source(&place.path(tape)).unwrap();
        for table in source.tables().iter().filter(|table| table.is_report()) {
            let (_, words) = table.doc.split_once("The rows of 'analyze ").unwrap();
            let words = words.trim_end_matches("'.");
            let printed = place.analyze(&format!("{words} {tape} --format json"));
            let fields: Vec<&frames::FrameField> = table.fields.iter().collect();
            let named = |name: &str| fields.iter().position(|field| field.name == name);
            // a point in time is told since the tape's start under another name
            let place_of = |name: &str| match name {
                "ts_ns" => named("rel_ns"),
                _ => named(&format!("{}_rel_ns", name.trim_end_matches("_ns"))).or_else(|| named(name)),
            };
            let of_values = |name: &str| {
                ["rel_ns", "ts", "ts_ns", "ts_uncertain_ns", "host", "date", "tape", "raw"].contains(&name)
            };
            let mut lines = printed.out.lines().map(|line| flat(&serde_json::from_str(line).unwrap())).filter(|line| {
                let of_time = |name: &str| {
                    name.strip_suffix("_rel_ns").is_some_and(|stem| line.contains_key(&format!("{stem}_ns")))
                };
                let group =
                    |name: &str| line.iter().any(|(of, value)| value.is_null() && name.starts_with(&format!("{of}_")));
                fields.iter().all(|field| {
                    of_values(&field.name)
                        || line.contains_key(&field.name)
                        || of_time(&field.name)
                        || group(&field.name)
                })
            });
            let mut take = |batch: Batch| {
                for row in 0..batch.rows {
                    let line = lines.next().unwrap_or_else(|| panic!("{} of {tape}: too many rows", table.name));
                    for (name, value) in &line {
                        let Some(at) = place_of(name) else { continue };
                        assert!(same(&batch.columns[at], row, Some(value)), "{}.{name} of {tape}: {value}", table.name);
                        short += u64::from(name.ends_with("_at_least") && value == &Value::Bool(true));
                        compared += 1;
                    }
                }
                ControlFlow::Continue(())
            };
            let read: Result<(), _> = source
                .parts(table, &Bounds::default())
                .into_iter()
                .try_for_each(|part| source.read(table, part, &fields, &mut take));
            assert_eq!(read.is_err(), printed.status == 1, "{} of {tape}: {read:?} {}", table.name, printed.err);
            assert!(lines.next().is_none(), "{} of {tape}: rows are missing", table.name);
        }
    }
    assert!(compared > 10_000 && short > 100, "{compared} values, {short} of them bounds");
}

/// All rows of a table, by the names of its columns: for each row whether a value is that of JSON.
fn each_row(
    source: &frames::Source,
    table: &frames::Table,
    mut row: impl FnMut(&[&frames::FrameField], &Batch, usize) + Send,
) -> anyhow::Result<()> {
    let fields: Vec<&frames::FrameField> = table.fields.iter().collect();
    for part in source.parts(table, &Bounds::default()) {
        let mut take = |batch: Batch| {
            (0..batch.rows).for_each(|at| row(&fields, &batch, at));
            ControlFlow::Continue(())
        };
        source.read(table, part, &fields, &mut take)?;
    }
    Ok(())
}

/// Fields of an event in the listing's JSON, by the names of SQL's columns.
fn fields_of(line: &Value) -> Map<String, Value> {
    let mut fields = line["args"].as_object().unwrap().clone();
    for name in ["event", "cpu", "pid", "tid", "upid", "utid", "comm", "uid"] {
        fields.entry(name).or_insert(line[name].clone());
    }
    fields.insert("rel_ns".to_owned(), line["ts_ns"].clone());
    fields
}

#[test]
fn events_have_the_same_fields_in_the_listing_and_as_values() {
    let (place, tapes) = place();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for tape in &tapes {
        let source = frames::source(&place.path(tape)).unwrap();
        let printed = place.analyze(&format!("-e *:* --format json {tape}"));
        let lines: Vec<Value> = printed.json().into_iter().filter(|line| line.get("event").is_some()).collect();
        for (def, kinds) in TABLES.iter().map(|table| (table.about().def, table.kinds())) {
            let of_kinds = |line: &&Value| kinds.iter().any(|kind| line["event"] == kind.name);
            let mut lines: Vec<&Value> = lines.iter().filter(of_kinds).collect();
            seen.extend(
                kinds.iter().map(|kind| kind.name).filter(|name| lines.iter().any(|line| line["event"] == *name)),
            );
            let table = source.tables().iter().find(|table| table.name == *def.name).unwrap();
            let read = each_row(&source, table, |fields, batch, at| {
                let is = |line: &&Value| {
                    let told = fields_of(line);
                    let of_kind = kinds.iter().find(|kind| line["event"] == kind.name).unwrap();
                    fields.iter().zip(&batch.columns).all(|(field, values)| {
                        let name = match &*field.name {
                            // the same point in time
                            "ts" | "ts_ns" | "ts_uncertain_ns" | "host" | "date" | "tape" | "raw" | "stack" => {
                                return true;
                            }
                            name => name.strip_suffix("_rel_ns").map_or(name.to_owned(), |stem| format!("{stem}_ns")),
                        };
                        // a point in time since 1970
                        if field.name.ends_with("_ns")
                            && fields.iter().any(|other| other.name == field.name.replace("_ns", "_rel_ns"))
                        {
                            return true;
                        }
                        let has = told.contains_key(&name) || of_kind.shape.field(&name).is_none();
                        assert!(has, "{}: no {name}: {line}", of_kind.name);
                        same(values, at, told.get(&name))
                    })
                };
                let found = lines.iter().position(is);
                let found =
                    found.unwrap_or_else(|| panic!("{tape}: row {at} of {} is in no line: {batch:?}", table.name));
                lines.remove(found);
            });
            // a report has no answer without its family
            assert!(read.is_ok() || table.is_report(), "{tape}: {}: {read:?}", table.name);
            assert!(lines.is_empty(), "{tape}: {} lacks {lines:?}", table.name);
        }
    }
    let all: BTreeSet<&str> = kinds().map(|kind| kind.name).collect();
    assert_eq!(seen, all, "kinds that no tape has prove nothing");
}

/// A value as a filter writes it; None: it cannot, of texts that are not UTF-8, have both quotes, or line ends as the test's questions.
fn operand(value: &Value) -> Option<String> {
    let quoted = |quote: char, text: &str| (!text.contains(quote)).then(|| format!("{quote}{text}{quote}"));
    match value {
        Value::String(text) if text.contains('\n') => None,
        Value::String(text) => quoted('"', text).or_else(|| quoted('\'', text)),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

#[test]
fn filters_select_the_rows_that_json_has() {
    let (place, mut tapes) = place();
    common::tables::write(&place.path("tables.tape"));
    tapes.push("tables.tape".to_owned());
    let (mut asked, mut met) = (0, BTreeSet::new());
    for tape in &tapes {
        let events = |term: &str| -> Vec<Value> {
            let words = ["--format", "json", tape, "-e", term];
            let run = place.ask_words(words);
            assert!(run.status == 0, "{term} of {tape}: {run:?}");
            run.json().into_iter().filter(|line| line.get("event").is_some()).collect()
        };
        let all = events("*:*");
        let mut names: BTreeSet<&str> = all.iter().map(|line| line["event"].as_str().unwrap()).collect();
        names.retain(|name| !name.contains(['*', '?', '[', ',']));
        for name in names {
            met.insert(name.to_owned());
            let lines: Vec<&Value> = all.iter().filter(|line| line["event"] == name).collect();
            let own = lines[0]["args"].as_object().unwrap().keys().map(String::as_str);
            let of_line = ["ts_ns", "cpu", "pid", "tid", "upid", "utid", "comm", "uid"].into_iter();
            for field in own.clone().chain(of_line.filter(|name| !own.clone().any(|own| own == *name))) {
                let value = |line: &Value| line["args"].get(field).unwrap_or(&line[field]).clone();
                // one that some have and others have not
                let known = lines.iter().map(|line| value(line)).filter(|value| operand(value).is_some());
                let Some(wanted) = known.max_by_key(Value::to_string) else { continue };
                // numbers of 64 bits are strings in JSON
                let number = kinds().find(|kind| kind.name == name).is_none_or(|kind| {
                    kind.shape.field(field).is_none_or(|field| matches!(field.ty, Type::Wide | Type::Hex))
                });
                let digits = wanted.as_str().filter(|text| number && is_number(text)).map(str::to_owned);
                let operand = digits.or_else(|| operand(&wanted)).unwrap();
                for (operator, equal) in [("==", true), ("!=", false)] {
                    let term = format!("{name}/{field}{operator}{operand}/");
                    let expected = lines.iter().filter(|line| {
                        let value = value(line);
                        !value.is_null() && (value == wanted) == equal
                    });
                    let found = events(&term);
                    assert!(found.iter().eq(expected.copied()), "{tape}: {term}: {} of {}", found.len(), lines.len());
                    asked += 1;
                }
            }
        }
    }
    let all = kinds().filter(|kind| !met.contains(kind.name)).map(|kind| kind.name);
    assert_eq!(all.collect::<Vec<_>>(), [""; 0], "kinds that no tape has prove nothing");
    assert!(met.len() > 20 && asked > 500, "{asked} filters of {met:?}");
}

/// Whether a string of JSON is a number that has no room in one of JSON's.
fn is_number(text: &str) -> bool {
    text.parse::<i128>().is_ok() || text.strip_prefix("0x").is_some_and(|hex| u64::from_str_radix(hex, 16).is_ok())
}
