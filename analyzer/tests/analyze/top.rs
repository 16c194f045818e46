//! `top` beside the listing: for questions drawn at random, each row's calls, errors and times are those of the listed calls with its
//! keys. The reference below adds up what `--format json` lists, and shares no code with the program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::common::stored::{rows, tapes};
use crate::common::{self, Place, Row, Tape};
use serde_json::Value;
use systape_format::model::{ByteStatus, CallState};

/// Keys, and where a listed call has them.
const KEYS: [(&str, &str); 8] = [
    ("comm", "comm"),
    ("pid", "pid"),
    ("tid", "tid"),
    ("syscall", "syscall"),
    ("errno", "errno"),
    ("cpu", "cpu"),
    ("second", "second"),
    ("minute", "minute"),
];

const FILTERS: [&str; 7] =
    ["", "-e read,write,openat", "-e !futex", "--failure", "--duration 0.02", "--comm=sh", "--time 10%,70%"];

/// Whether a call failed: one that the kernel starts again did not, for the program. Rows of sums have no number.
fn failed(row: &Value) -> bool {
    match row.get("errno_code") {
        Some(code) => code.as_u64().is_some_and(|code| !(512..=516).contains(&code)),
        None => row["errno"] != "0",
    }
}

/// Whether a listed call began in the recording, at the time that its line has.
fn began_within(row: &Value, ts: u64) -> bool {
    match row["incomplete"].as_str() {
        Some("began-before" | "lost-enter" | "clone-child") => false,
        Some("in-flight") => ts > 0,
        _ => true,
    }
}

/// The value of a key as text: what has no error has the one 0.
fn key(row: &Value, name: &str) -> String {
    let unit = match name {
        "second" => 1_000_000_000,
        _ => 60_000_000_000,
    };
    // what did not return might have returned anything
    let ended = !matches!(row["incomplete"].as_str(), Some("in-flight" | "killed" | "no-return"));
    match &row[name] {
        _ if name == "errno" && !ended => "null".to_owned(),
        _ if name == "errno" && !failed(row) => "0".to_owned(),
        // a listed call has its time instead
        Value::Null if matches!(name, "second" | "minute") => match row.get("ts_ns").and_then(Value::as_u64) {
            Some(ts) if began_within(row, ts) => (ts / unit).to_string(),
            _ => "null".to_owned(),
        },
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

#[derive(Debug, Default, PartialEq)]
struct Sum {
    calls: u64,
    errors: u64,
    /// ns; 0: of some only a part is known.
    total: u64,
    /// Of all calls, as far as known.
    longest: u64,
}

/// A number below `n`, always the same ones.
fn draw(state: &mut u64, n: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % n
}

#[test]
fn rows_are_sums_of_listed_calls() {
    let (tapes, mut state, mut compared) = (tapes(), 7, 0);
    for _ in 0..200 {
        let tape = &tapes[draw(&mut state, tapes.len())];
        let filter = FILTERS[draw(&mut state, FILTERS.len())];
        let mut by: Vec<(&str, &str)> = (0..=draw(&mut state, 3)).map(|_| KEYS[draw(&mut state, KEYS.len())]).collect();
        by.sort_unstable();
        by.dedup();
        let metric = ["total", "count", "errors", "max", "p99"][draw(&mut state, 5)];
        let mut expected: BTreeMap<Vec<String>, Sum> = BTreeMap::new();
        for call in rows(filter, tape).iter().filter(|row| row.get("syscall").is_some() && row.get("lost").is_none()) {
            let sum = expected.entry(by.iter().map(|(_, name)| key(call, name)).collect()).or_default();
            sum.calls += 1;
            sum.errors += u64::from(failed(call));
            sum.longest = sum.longest.max(call["dur_ns"].as_u64().unwrap_or(0));
            if call["incomplete"].is_null() && call["dur_ns_at_least"] == false {
                sum.total += call["dur_ns"].as_u64().unwrap_or(0);
            } else {
                sum.total = u64::MAX / 2;
            }
        }
        expected.values_mut().filter(|sum| sum.total >= u64::MAX / 2).for_each(|sum| sum.total = 0);
        let open: BTreeSet<_> =
            expected.iter().filter(|(_, sum)| sum.total == 0).map(|(keys, _)| keys.clone()).collect();
        let names: Vec<&str> = by.iter().map(|(name, _)| *name).collect();
        let words = format!("top --by {} --metric {metric} {filter}", names.join(","));
        let mut seen = BTreeMap::new();
        for row in rows(&words, tape) {
            let keys: Vec<_> = names.iter().map(|name| key(&row, name)).collect();
            let stored = row["calls"].as_u64().unwrap() - row["ledger_calls"].as_u64().unwrap();
            let of = Sum {
                calls: stored,
                errors: row["errors"].as_u64().unwrap(),
                total: if open.contains(&keys) { 0 } else { row["total_ns"].as_u64().unwrap() },
                longest: row["max_ns"].as_u64().unwrap_or(0),
            };
            // what was counted is in no listing
            if row["ledger_calls"] == 0 {
                seen.insert(keys, of);
            } else {
                assert_eq!(stored, expected.remove(&keys).map_or(0, |sum| sum.calls), "{words} {tape:?} {row}");
            }
        }
        assert_eq!(seen, expected, "{words} {tape:?}");
        compared += seen.len();
    }
    assert!(compared > 1000, "{compared} rows");
}

#[test]
fn directories_and_extensions_are_those_of_files() {
    for tape in tapes() {
        let mut expected: BTreeMap<(String, String), u64> = BTreeMap::new();
        for row in rows("top --by file", &tape) {
            let calls = row["calls"].as_u64().unwrap();
            let (dir, ext) = match row["file"].as_str() {
                None => ("null".to_owned(), "null".to_owned()),
                Some(name) if name.is_empty() || name.contains(":[") => (String::new(), String::new()),
                Some(name) => {
                    let path = Path::new(name);
                    let parent = path.parent().map_or("/", |parent| parent.to_str().unwrap());
                    let parent = if parent.is_empty() { "." } else { parent };
                    (parent.to_owned(), path.extension().map_or("", |ext| ext.to_str().unwrap()).to_owned())
                }
            };
            *expected.entry((dir, ext)).or_default() += calls;
        }
        let got = rows("top --by dir,ext", &tape);
        let got = got.iter().map(|row| ((key(row, "dir"), key(row, "ext")), row["calls"].as_u64().unwrap()));
        assert_eq!(got.collect::<BTreeMap<_, _>>(), expected, "{tape:?}");
    }
}

#[test]
fn shares_add_up_and_the_first_row_has_most() {
    for tape in tapes() {
        for metric in ["calls", "total"] {
            let rows = rows(&format!("top --by syscall --metric {metric}"), &tape);
            let sum: f64 = rows.iter().filter_map(|row| row["share_percent"].as_f64()).sum();
            assert!((sum - 100.0).abs() < 1e-6, "{tape:?}: {sum}");
            let shares: Vec<f64> = rows.iter().filter_map(|row| row["share_percent"].as_f64()).collect();
            assert!(shares.is_sorted_by(|a, b| a >= b), "{shares:?}");
        }
    }
}

#[test]
fn a_histogram_has_each_call_of_a_known_duration_once() {
    for tape in tapes() {
        for row in rows("top --by comm,syscall --hist", &tape) {
            let buckets = row["durations"].as_array().unwrap();
            let held: u64 = buckets.iter().map(|bucket| bucket["count"].as_u64().unwrap()).sum();
            let incomplete = row["incomplete_calls"].as_u64().unwrap();
            let calls = row["calls"].as_u64().unwrap();
            // a failed exit, and a call that was killed before it began, have no duration either
            assert!(held <= calls - incomplete, "{row}");
            // the longest one may be one that did not end
            if row["durations_at_least"] == false && row["max_ns_at_least"] == false {
                let last = buckets.last().unwrap();
                let max = row["max_ns"].as_u64().unwrap();
                assert!((last["from"].as_u64().unwrap()..=last["to"].as_u64().unwrap()).contains(&max), "{row}");
            }
        }
    }
}

/// A field of a listed event as text: JSON has large numbers as text.
fn field(row: &Value, of: &str, name: &str) -> String {
    match if of.is_empty() { &row[name] } else { &row[of][name] } {
        Value::Null if of == "args" && row["args"].get(name).is_none() => String::new(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Questions about other events, at random, beside the listing: number of events and sums of fields.
#[test]
fn rows_are_sums_of_listed_events() {
    const EVENTS: &str = "sched:*,signal:*,block:*,sock:*,process:*,task:*,exceptions:*,sample:*";
    let (tapes, mut state, mut compared) = (tapes(), 11, 0);
    let listed: Vec<Vec<Value>> = tapes.iter().map(|tape| rows(&format!("-e {EVENTS}"), tape)).collect();
    for _ in 0..200 {
        let at = draw(&mut state, tapes.len());
        let events: Vec<&Value> = listed[at].iter().filter(|row| row.get("args").is_some()).collect();
        if events.is_empty() {
            continue;
        }
        // fields of an event that is there
        let some = events[draw(&mut state, events.len())]["args"].as_object().unwrap();
        let names: Vec<&String> = some.keys().collect();
        let fields: BTreeSet<&str> = (0..draw(&mut state, 3))
            .filter_map(|_| names.get(draw(&mut state, names.len().max(1))))
            .map(|name| name.as_str())
            .collect();
        let by: BTreeSet<&str> =
            (0..draw(&mut state, 3)).map(|_| ["comm", "pid", "tid", "cpu"][draw(&mut state, 4)]).collect();
        // a task is no number to be added up
        let numbers: Vec<&&String> =
            names.iter().filter(|name| some[**name].is_u64() && !name.ends_with("pid")).collect();
        let value = numbers.get(draw(&mut state, numbers.len() + 1)).map(|name| name.as_str());
        let keys_of = |row: &Value, of: &str| {
            let mut keys: Vec<String> = by.iter().map(|name| key(row, name)).collect();
            keys.extend(fields.iter().map(|name| field(row, of, name)));
            keys.push(row["event"].as_str().unwrap().to_owned());
            keys
        };
        let mut expected: BTreeMap<Vec<String>, (u64, u64, u64)> = BTreeMap::new();
        for event in &events {
            let sum = expected.entry(keys_of(event, "args")).or_default();
            sum.0 += 1;
            let number = value.and_then(|name| match &event["args"][name] {
                Value::String(text) => text.parse().ok(),
                value => value.as_u64(),
            });
            if let Some(number) = number {
                (sum.1, sum.2) = (sum.1 + number, sum.2.max(number));
            }
        }
        let words: Vec<String> =
            by.iter().map(|name| (*name).to_owned()).chain(fields.iter().map(|name| format!("args.{name}"))).collect();
        let by_words = if words.is_empty() { String::new() } else { format!("--by {}", words.join(",")) };
        let value_words = value.map_or_else(String::new, |name| format!("--value {name}"));
        let asked = format!("top -e {EVENTS} {by_words} {value_words}");
        // without keys it is by comm
        if words.is_empty() {
            continue;
        }
        let got: BTreeMap<Vec<String>, (u64, u64, u64)> = rows(&asked, &tapes[at])
            .iter()
            .map(|row| {
                let number = |name: &str| row[name].as_u64().unwrap_or(0);
                (
                    keys_of(row, "fields"),
                    (
                        number("count"),
                        if value.is_some() { number("total") } else { 0 },
                        if value.is_some() { number("max") } else { 0 },
                    ),
                )
            })
            .collect();
        assert_eq!(got, expected, "{asked} {:?}", tapes[at]);
        compared += got.len();
    }
    assert!(compared > 1000, "{compared} rows");
}

/// An argument in the listing as one text: the number of a descriptor, the names of flags.
fn argument(call: &Value, name: &str) -> String {
    let failed = || call["errno"].as_str().map(|errno| format!("-{errno}"));
    match name {
        // in flight, and never returned
        "ret" if call["ret"].is_null() && call["errno"].is_null() => String::new(),
        "ret" => failed().unwrap_or_else(|| field(call, "", "ret")),
        _ => match &call["args"][name] {
            // no pointer
            Value::Null if name == "filename" => "0".to_owned(),
            Value::Null if call["args"].get(name).is_none() => String::new(),
            Value::Object(parts) => match (parts.get("text"), parts.get("fd")) {
                (Some(Value::String(text)), _) => text.clone(),
                (_, Some(fd)) => fd.to_string(),
                _ => panic!("{name}: {call}"),
            },
            Value::String(text) => text.clone(),
            value => value.to_string(),
        },
    }
}

/// Questions about arguments of calls beside the listing: number of calls, and sums of what they returned.
#[test]
fn rows_by_arguments_are_sums_of_listed_calls() {
    const ARGUMENTS: [(&str, &str); 9] = [
        ("read,write", "fd"),
        ("read,write,pread64", "count"),
        ("openat", "filename"),
        ("openat", "flags"),
        ("mmap", "prot"),
        ("mmap,brk", "flags"),
        ("close,fstat,newfstatat", "fd"),
        ("rt_sigaction,kill", "sig"),
        ("execve", "filename"),
    ];
    let mut compared = 0;
    for tape in tapes() {
        for (calls, name) in ARGUMENTS {
            let listed = rows(&format!("-e {calls}"), &tape);
            let listed: Vec<&Value> = listed.iter().filter(|row| row.get("syscall").is_some()).collect();
            let mut expected: BTreeMap<[String; 4], (u64, u64)> = BTreeMap::new();
            for call in &listed {
                let of = [call["syscall"].to_string(), key(call, "comm"), argument(call, name), argument(call, "ret")];
                let sum = expected.entry(of).or_default();
                sum.0 += 1;
                sum.1 += call["ret"].as_u64().or_else(|| call["ret"].as_str()?.parse().ok()).unwrap_or(0);
            }
            if listed.iter().all(|call| call["args"].get(name).is_none()) {
                continue;
            }
            let got = rows(&format!("top -e {calls} --by comm,args.{name},ret --value ret"), &tape);
            let got: BTreeMap<[String; 4], (u64, u64)> = got
                .iter()
                .map(|row| {
                    let of = [
                        row["event"].to_string(),
                        key(row, "comm"),
                        field(row, "fields", name),
                        field(row, "fields", "ret"),
                    ];
                    (of, (row["count"].as_u64().unwrap(), row["total"].as_u64().unwrap_or(0)))
                })
                .collect();
            assert_eq!(got, expected, "{calls} {name} {tape:?}");
            compared += got.len();
        }
    }
    assert!(compared > 200, "{compared} rows");
}

/// `file` and `errno` are the same beside arguments as without them.
#[test]
fn files_and_errors_beside_arguments_are_those_of_other_sums() {
    let mut compared = 0;
    for tape in tapes() {
        for by in ["file", "errno", "file,errno"] {
            let plain = rows(&format!("top --by syscall,{by}"), &tape);
            let keys = |row: &Value, of: &str| by.split(',').map(|name| field(row, of, name)).collect::<Vec<_>>();
            let mut expected: BTreeMap<(String, Vec<String>), u64> = BTreeMap::new();
            for row in &plain {
                // what was counted has no arguments
                let stored = row["calls"].as_u64().unwrap() - row["ledger_calls"].as_u64().unwrap();
                if stored > 0 {
                    *expected.entry((row["syscall"].as_str().unwrap().to_owned(), keys(row, ""))).or_default() +=
                        stored;
                }
            }
            let got = rows(&format!("top --by {by} --value ret"), &tape);
            let got: BTreeMap<(String, Vec<String>), u64> = got
                .iter()
                .map(|row| {
                    ((row["event"].as_str().unwrap().to_owned(), keys(row, "fields")), row["count"].as_u64().unwrap())
                })
                .collect();
            assert_eq!(got, expected, "{by} {tape:?}");
            compared += got.len();
        }
    }
    assert!(compared > 300, "{compared} rows");
}

/// What several tapes have together is what each has, added up.
#[test]
fn several_tapes_have_the_sums_of_each() {
    let tapes = tapes();
    let dir = tapes[0].parent().unwrap();
    for by in ["syscall", "comm,errno", "file", "uid,cpu", "dir,syscall"] {
        let names: Vec<&str> = by.split(',').collect();
        let sums = |row: &Value| {
            // a lower bound is added up like any other number
            ["calls", "errors", "total_ns", "incomplete_calls", "ledger_calls"].map(|name| row[name].as_u64().unwrap())
        };
        let keys = |row: &Value| names.iter().map(|name| row[*name].to_string()).collect::<Vec<_>>();
        let mut expected: BTreeMap<Vec<String>, [u64; 5]> = BTreeMap::new();
        let mut of_each: BTreeMap<(String, Vec<String>), [u64; 5]> = BTreeMap::new();
        for tape in &tapes {
            for row in rows(&format!("top --by {by}"), tape) {
                let name = tape.display().to_string();
                // pipes and sockets have other numbers in each tape: they are put together
                let keys: Vec<String> = keys(&row).into_iter().map(|key| without_number(&key)).collect();
                let sums = sums(&row);
                for (sum, more) in expected.entry(keys.clone()).or_default().iter_mut().zip(sums) {
                    *sum += more;
                }
                for (sum, more) in of_each.entry((name, keys)).or_default().iter_mut().zip(sums) {
                    *sum += more;
                }
            }
        }
        let together: BTreeMap<_, _> =
            rows(&format!("top --by {by}"), dir).iter().map(|row| (keys(row), sums(row))).collect();
        assert_eq!(together, expected, "{by}");
        let apart = rows(&format!("top --by tape,{by}"), dir);
        let apart: BTreeMap<_, _> =
            apart.iter().map(|row| ((row["tape"].as_str().unwrap().to_owned(), keys(row)), sums(row))).collect();
        assert_eq!(apart, of_each, "{by}");
    }
}

/// The summary of several tapes by tape has the sums that the ranking has.
#[test]
fn the_summary_of_several_tapes_has_the_same_sums() {
    let tapes = tapes();
    let dir = tapes[0].parent().unwrap();
    for by in ["tape", "host,syscall", "tape,comm,errno"] {
        let sorted = |words: &str| {
            let mut rows = rows(words, dir);
            rows.iter_mut().for_each(|row| drop(row.as_object_mut().unwrap().remove("share_percent")));
            rows.iter_mut().for_each(|row| drop(row.as_object_mut().unwrap().remove("share_percent_of_known")));
            let mut rows: Vec<String> = rows.iter().map(Value::to_string).collect();
            rows.sort();
            rows
        };
        let summary = sorted(&format!("-s --by {by}"));
        assert_eq!(summary, sorted(&format!("top --by {by}")), "{by}");
        assert!(!summary.is_empty());
    }
}

/// What was counted and not stored is said of each of several tapes.
#[test]
fn counted_calls_of_several_tapes_are_said() {
    let place = Place::new();
    common::ledger::write(&place.path("a.tape"), &[]);
    common::ledger::write(&place.path("b.tape"), &[]);
    let one = place.analyze("top a.tape").out;
    let said: Vec<&str> = one.lines().filter(|line| line.contains("counted")).collect();
    assert!(!said.is_empty(), "{one}");
    for words in ["top a.tape b.tape", "-s --by tape a.tape b.tape"] {
        let both = place.analyze(words).out;
        for line in &said {
            let line = line.trim();
            assert!(both.contains(&format!("a.tape: {line}")) && both.contains(&format!("b.tape: {line}")), "{both}");
        }
    }
}

/// A call with an empty path is on its descriptor if its flags say so, on nothing otherwise: never on a file named "".
#[test]
fn an_empty_path_is_the_descriptor() {
    const EMPTY_PATH: u64 = 0x1000;
    const CWD: u64 = 0xffff_ff9c;
    let place = Place::new();
    let row = |name, args, errno, path| Row { tid: 100, name, args, errno, path, dur: 5, ..Row::default() };
    let on = |name, args| row(name, args, 0, Some("/etc/hosts"));
    let fstat = [3, 0x7f00, 0x7f10, EMPTY_PATH, 0, 0];
    let mut rows = vec![
        on("newfstatat", fstat),
        row("newfstatat", fstat, 14, Some("/etc/hosts")),
        Row { state: CallState::InFlight, ..on("newfstatat", fstat) },
        on("statx", [3, 0x7f00, EMPTY_PATH, 0, 0x7f10, 0]),
        on("execveat", [3, 0x7f00, 0, 0, EMPTY_PATH, 0]),
        on("linkat", [3, 0x7f00, CWD, 0x7f10, EMPTY_PATH, 0]),
        on("fchownat", [3, 0x7f00, 0, 0, EMPTY_PATH, 0]),
        on("name_to_handle_at", [3, 0x7f00, 0, 0, EMPTY_PATH, 0]),
        on("readlinkat", [3, 0x7f00, 0, 0, 0, 0]),
        // refused for it
        row("newfstatat", [3, 0x7f00, 0x7f10, 0, 0, 0], 2, Some("/etc/hosts")),
        row("openat", [CWD, 0x7f00, 0, 0, 0, 0], 2, None),
        row("newfstatat", [CWD, 0x7f00, 0x7f10, EMPTY_PATH, 0, 0], 0, None),
    ];
    rows.iter_mut().for_each(|row| row.captured = vec![(1, ByteStatus::Whole, 0, b"")]);
    // a null pointer: nothing is captured
    rows.push(on("utimensat", [3, 0, 0, 0, 0, 0]));
    rows.push(row("stat", [0, 0x7f00, 0, 0, 0, 0], 14, None));
    rows.push(row("getppid", [0; 6], 0, None));
    (0..).zip(&mut rows).for_each(|(at, row)| row.start = at * 10);
    let mut tape = Tape::create_at(&place.path("empty.tape"), &common::session(), &common::ledger::start());
    tape.segment(1_000, &rows, &[]);
    tape.finish();
    for words in ["top --by file", "-s --by file", "rate --by file"] {
        let got = place.analyze(&format!("{words} --format json empty.tape")).json();
        let mut files: Vec<_> = got.iter().map(|row| (row["file"].as_str(), row["calls"].as_u64())).collect();
        files.sort_unstable();
        let expected = [("", 4), (".", 1), ("/etc/hosts", 10)].map(|(file, calls)| (Some(file), Some(calls)));
        assert_eq!(files, expected, "{words}");
    }
    let got = place.analyze("files --format json empty.tape").json();
    let hosts = got.iter().find(|row| row["file"] == "/etc/hosts").unwrap();
    assert_eq!((&hosts["calls"], &hosts["calls_at_least"]), (&10.into(), &false.into()), "{got:?}");
}

/// `"pipe"` of `"pipe:[17]"`.
fn without_number(key: &str) -> String {
    let numbered = |kind: &str| {
        let number = key.strip_prefix(&format!("\"{kind}:["))?.strip_suffix("]\"")?;
        number.bytes().all(|byte| byte.is_ascii_digit()).then(|| format!("\"{kind}\""))
    };
    numbered("pipe").or_else(|| numbered("socket")).unwrap_or_else(|| key.to_owned())
}
