//! Tables of reports for queries: their rows are those that the report prints as JSON, value by value, and so are their bounds.

mod common;

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use common::Place;
use serde_json::{Map, Value};
use systape_analyzer::frames::{self, Batch, Bounds, Values};

fn place() -> (Place, Vec<String>) {
    let place = Place::with_sample();
    common::events::write(&place.path("events.tape"), true);
    common::life::write(&place.path("life.tape"), &[common::gap()]);
    common::hostile::write(&place.path("hostile.tape"));
    common::ledger::write(&place.path("ledger.tape"), &[]);
    common::udp::write(&place.path("udp.tape"), &[common::gap()]);
    common::locks::write(&place.path("locks.tape"), &[]);
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes");
    for name in ["mix-1.5.tape", "kernel-6.12-sh.tape"] {
        fs::copy(recorded.join(name), place.path(name)).unwrap();
    }
    let names = fs::read_dir(place.path("")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let tapes = names.filter(|name| name.ends_with(".tape")).collect();
    (place, tapes)
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
        Values::Int(all) => all[row] == json.as_i64(),
        Values::Wide(all) => all[row] == json.as_str().map(|text| text.parse().unwrap()),
        // a number that was read from text may differ in its last digit
        Values::Real(all) => match (all[row], json.as_f64()) {
            (Some(value), Some(read)) => (value - read).abs() <= 1e-12 * read.abs(),
            (value, read) => value == read,
        },
        Values::Flag(all) => all[row] == json.as_bool(),
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
