//! `analyze export firefox`: what the profile has beside what the reports say of the same tape. That the Firefox Profiler loads it, and
//! what it reads there, is tested by exports/check_firefox.py.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use crate::common::{self, Output, Place, Row};
use flate2::read::GzDecoder;
use serde_json::Value;
use systape_format::model::{Family, Gap, GapCause};

/// The profile of `words`, and what was said.
fn export(place: &Place, words: &str) -> (Value, Output) {
    fs::remove_file(place.path("out.json.gz")).ok();
    let said = place.analyze(&format!("export firefox -o out.json.gz {words}"));
    assert_eq!(said.status, 0, "{words}: {}", said.err);
    let bytes = fs::read(place.path("out.json.gz")).unwrap();
    let mut json = String::new();
    GzDecoder::new(&*bytes).read_to_string(&mut json).unwrap();
    (serde_json::from_str(&json).unwrap(), said)
}

fn list<'a>(value: &'a Value, column: &str) -> &'a Vec<Value> {
    value[column].as_array().unwrap_or_else(|| panic!("no list {column} in {value}"))
}

/// The threads with their names.
fn threads(profile: &Value) -> impl Iterator<Item = (&str, &Value)> {
    list(profile, "threads").iter().map(|thread| (thread["name"].as_str().unwrap(), thread))
}

/// The markers of a kind: name, start in ms, data.
fn markers(profile: &Value, kind: &str) -> Vec<(String, f64, Value)> {
    let strings = list(&profile["shared"], "stringArray");
    let mut found = Vec::new();
    for (_, thread) in threads(profile) {
        let markers = &thread["markers"];
        for (at, data) in list(markers, "data").iter().enumerate().filter(|(_, data)| data["type"] == kind) {
            let name = &strings[list(markers, "name")[at].as_u64().unwrap() as usize];
            let start = list(markers, "startTime")[at].as_f64().unwrap();
            found.push((name.as_str().unwrap().to_owned(), start, data.clone()));
        }
    }
    found
}

/// How often each name is there.
fn counts<'a>(names: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    names.fold(BTreeMap::new(), |mut counts, name| {
        *counts.entry(name).or_default() += 1;
        counts
    })
}

/// JSON to review: a list of plain values is a line, and so is what a marker has.
fn pretty(value: &Value, indent: usize, out: &mut String) {
    let plain = |value: &Value| !value.is_object() && !value.is_array();
    match value {
        Value::Object(members) if members.contains_key("type") => write!(out, "{value}").unwrap(),
        Value::Object(members) => {
            out.push_str("{\n");
            for (key, inner) in members {
                write!(out, "{:indent$}  \"{key}\": ", "").unwrap();
                pretty(inner, indent + 2, out);
                out.push_str(",\n");
            }
            write!(out, "{:indent$}}}", "").unwrap();
        }
        Value::Array(values) if !values.iter().all(plain) => {
            out.push_str("[\n");
            for inner in values {
                write!(out, "{:indent$}  ", "").unwrap();
                pretty(inner, indent + 2, out);
                out.push_str(",\n");
            }
            write!(out, "{:indent$}]", "").unwrap();
        }
        _ => write!(out, "{value}").unwrap(),
    }
}

/// All of a small profile, to be read: `UPDATE_GOLDEN=1` writes it anew.
#[test]
fn a_profile_of_a_tape_with_stacks() {
    let place = Place::with_tapes();
    let (profile, said) = export(&place, "stacks.tape");
    assert_eq!(said.err, "");
    let mut text = String::new();
    pretty(&profile, 0, &mut text);
    text.push('\n');
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/analyzer/export-firefox.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, &text).unwrap();
    }
    assert_eq!(fs::read_to_string(&golden).unwrap_or_default(), text, "{}", golden.display());
}

#[test]
fn every_listed_call_is_a_marker() {
    let place = Place::with_tapes();
    for tape in ["sample.tape", "stacks.tape", "events.tape", "life.tape", "tools.tape"] {
        for filter in ["", "-p 100", "-t 101", "-e read,openat", "--duration 0.003", "--failure", "--time ,215us"] {
            let listed = place.ask(&format!("--format json {tape} {filter}"));
            let listed = listed.json();
            let listed = listed.iter().filter_map(|row| row["syscall"].as_str());
            let (profile, _) = export(&place, &format!("{tape} {filter}"));
            let calls = markers(&profile, "syscall");
            let found = counts(calls.iter().map(|(name, ..)| name.as_str()));
            assert_eq!(found, counts(listed), "{tape} {filter}");
        }
    }
}

#[test]
fn a_marker_says_what_the_line_says() {
    let place = Place::with_sample();
    let lines = place.ask("trace sample.tape").out;
    let (profile, _) = export(&place, "sample.tape");
    let calls = markers(&profile, "syscall");
    assert!(calls.len() > 20, "{}", calls.len());
    for (name, _, data) in &calls {
        let text = |key: &str| data[key].as_str().unwrap_or_default();
        let begin = format!("{}({})", name.split('@').next().unwrap(), text("arguments"));
        let says = |line: &str| line.contains(&begin) && line.ends_with(&format!("= {}", text("result")));
        assert!(lines.lines().any(says), "{begin} = {} in:\n{lines}", text("result"));
        let failed = text("result").starts_with("-1 ");
        assert_eq!(failed, !text("error").is_empty() && !text("result").starts_with('?'), "{data}");
    }
    let incomplete = calls.iter().filter(|(_, _, data)| data["incomplete"].is_string()).count();
    assert!(incomplete > 0, "the tape has calls whose end is not known");
}

/// Weights of samples by thread are those that callgraph adds up.
#[test]
fn samples_weigh_what_callgraph_says() {
    let place = Place::with_tapes();
    for filter in ["", "-t 100", "-t 101,102", "--time 210us,", "--time 202us,232us", "--comm=oth*", "--duration 0.01"]
    {
        let sum = |of: &str, column: &str| -> u64 {
            let rows = place.ask(&format!("callgraph --of {of} --format json stacks.tape {filter}")).json();
            rows.iter().filter(|row| row["parent"].is_null()).map(|row| row[column].as_u64().unwrap()).sum()
        };
        let (profile, _) = export(&place, &format!("stacks.tape {filter}"));
        let ms: f64 = threads(&profile)
            .filter(|(name, _)| name.ends_with(" (off CPU)"))
            .flat_map(|(_, thread)| list(&thread["samples"], "weight"))
            .map(|weight| weight.as_f64().unwrap())
            .sum();
        assert_eq!((ms * 1e6).round() as u64, sum("offcpu", "time_ns"), "{filter}");
        if filter.starts_with("--duration") {
            // CPU samples have no duration to ask for
            continue;
        }
        let on_cpu = threads(&profile).filter(|(name, _)| !name.ends_with(" (off CPU)"));
        let samples: u64 = on_cpu.map(|(_, thread)| thread["samples"]["length"].as_u64().unwrap()).sum();
        assert_eq!(samples, sum("cpu", "count"), "{filter}");
    }
}

#[test]
fn of_too_many_calls_the_longest_are_kept_and_the_rest_is_said() {
    let place = Place::new();
    let row = |at: u64, dur| Row { tid: 100, name: "read", start: 10 * at, dur, ..Row::default() };
    let mut tape = common::Tape::create(&place.path("many.tape"));
    tape.segment(500, &(0..20).map(|at| row(at, 1 + at % 5)).collect::<Vec<_>>(), &[]);
    tape.segment(1_000, &(50..60).map(|at| row(at, 4)).collect::<Vec<_>>(), &[]);
    tape.finish();
    let (profile, said) = export(&place, "many.tape --max-events 6");
    // the four of 5 us, and the first two of 4 us
    let starts: Vec<f64> = markers(&profile, "syscall").iter().map(|(_, start, _)| *start).collect();
    assert_eq!(starts, [0.03, 0.04, 0.08, 0.09, 0.14, 0.19]);
    let sentence =
        "24 more calls are not in the profile, none longer than 4.0 us: --duration, --time, -p or -e make it fit";
    assert_eq!(said.err, format!("analyze: {sentence}\n"));
    let missing = list(&profile["meta"], "extra").iter().find(|section| section["label"] == "Missing").unwrap();
    assert_eq!(missing["entries"][0]["value"], sentence);
    let (all, said) = export(&place, "many.tape --max-events 30");
    assert_eq!((markers(&all, "syscall").len(), said.err.as_str()), (30, ""));
    let (none, said) = export(&place, "many.tape --max-events 0");
    assert!(markers(&none, "syscall").is_empty() && said.err.contains("30 more calls are not in the profile"));
}

#[test]
fn what_was_lost_has_a_marker_over_its_time() {
    let place = Place::new();
    let at = |us| common::OPEN + us * common::US;
    let lost = Gap {
        cause: GapCause::RingFull,
        family: Family::Syscall,
        cpu: 1,
        count: 47,
        first: at(20),
        last: at(60),
        pid: 0,
        ledger: false,
    };
    let mut tape = common::Tape::create(&place.path("lost.tape"));
    let row = |start| Row { tid: 100, name: "read", start, dur: 5, ..Row::default() };
    tape.segment(100, &[row(10), row(70)], &[lost]);
    tape.finish();
    let (profile, said) = export(&place, "lost.tape");
    assert_eq!(said.err, "analyze: LOST 47 syscall events on cpu 1, 0.000–0.000 s: ring buffer full\n");
    let marked = markers(&profile, "tape");
    let names: Vec<&str> = marked.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["recording", "LOST"]);
    let (_, start, data) = &marked[1];
    assert_eq!(*start, 0.02);
    assert_eq!(data["what"], "LOST 47 syscall events on cpu 1, 0.000–0.000 s: ring buffer full");
    assert_eq!(place.ask("export firefox -o again lost.tape --fail-on-loss").status, 3);
}

#[test]
fn the_same_tape_gives_the_same_bytes() {
    let place = Place::with_tapes();
    for tape in ["stacks.tape", "events.tape", "tools.tape"] {
        let bytes = |name: &str| {
            assert_eq!(place.analyze(&format!("export firefox -o {name} {tape}")).status, 0);
            fs::read(place.path(name)).unwrap()
        };
        assert_eq!(bytes("a"), bytes("b"), "{tape}");
    }
}

#[test]
fn a_profile_is_of_one_tape_and_needs_a_file() {
    let place = Place::with_tapes();
    let said = |words: &str| {
        let said = place.ask(words);
        assert_eq!(said.status, 2, "{words}");
        said.err
    };
    assert!(said("export firefox sample.tape").contains("-o FILE: name the file to write"));
    assert!(said("export firefox -o out sample.tape life.tape").contains("a profile is of one tape"));
    assert!(said("export firefox -o out --format json sample.tape").contains("an export is a form of its own"));
}

#[test]
fn signals_and_block_ios_are_markers_of_their_threads() {
    let place = Place::with_tapes();
    let (profile, _) = export(&place, "life.tape");
    let killed = place.ask("kills --format json life.tape");
    let kills = killed.json().iter().filter(|row| row["signal_name"].is_string()).count();
    let signals = markers(&profile, "signal");
    let (sent, came): (Vec<_>, Vec<_>) = signals.iter().partition(|(name, ..)| name.starts_with("sends "));
    assert!(kills > 2 && came.len() == kills && !sent.is_empty(), "{kills}, {signals:?}");
    for (name, _, data) in &came {
        assert!(name.starts_with("SIG") && data["target"].is_string(), "{name} {data}");
    }
    let (profile, _) = export(&place, "events.tape");
    let blocks = place.ask("block --format json events.tape").json();
    let bytes = |row: &Value| row["bytes"].as_u64().unwrap_or(0);
    let blocks: Vec<&Value> = blocks.iter().filter(|row| row["disk"].is_string()).collect();
    let found = markers(&profile, "block");
    assert!(!found.is_empty());
    assert_eq!(
        (found.len(), found.iter().map(|(_, _, data)| bytes(data)).sum::<u64>()),
        (blocks.len(), blocks.iter().map(|row| bytes(row)).sum::<u64>())
    );
}
