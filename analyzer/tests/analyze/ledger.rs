//! Calls that were counted instead of stored: a summary is that of a tape which has every call; a listing says what it lacks.

use crate::common::ledger::{count, counted_gap, parts, start, system, write};
use crate::common::{self, Place, Row, Tape};
use serde_json::Value;
use systape_format::model::{CallState, GapCause, LedgerReason};

/// Length of the tapes, µs.
const LENGTH: u64 = 9_000;
const SEGMENTS: u64 = 3;

/// 900 calls of four threads in three processes, in order of start.
fn calls() -> Vec<Row<'static>> {
    let mut seed = 7_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let one = |i: u64| {
        let name = ["read", "write", "futex", "poll"][random(4) as usize];
        let errno = [0, 0, 0, 11, 4, 512][random(6) as usize];
        let state = match random(40) {
            0 => CallState::Killed,
            1 => CallState::BeganBefore,
            2 => CallState::Denied,
            _ => CallState::Complete,
        };
        let most = 1 << (1 + random(6));
        let dur = if state == CallState::Denied { 0 } else { 1 + random(most) };
        Row { tid: 100 + random(4) as u32, name, start: i * 10, dur, errno, state, ..Row::default() }
    };
    (0..900).map(one).collect()
}

/// Writes the calls: those for which `reason` has one are counted, the others stored.
fn tape(place: &Place, name: &str, filters: &str, reason: impl Fn(usize, &Row<'_>) -> Option<LedgerReason>) {
    let mut tape = Tape::create_at(&place.path(name), &system(filters), &start());
    let all: Vec<(usize, Row<'_>)> = calls().into_iter().enumerate().collect();
    for segment in 0..SEGMENTS {
        let (from, to) = (segment * LENGTH / SEGMENTS, (segment + 1) * LENGTH / SEGMENTS);
        let here = all.iter().filter(|(_, row)| (from..to).contains(&(row.start + row.dur)));
        let last = segment + 1 == SEGMENTS;
        let late = all.iter().filter(|(_, row)| last && row.start + row.dur >= to);
        let here: Vec<_> = here.chain(late).collect();
        let stored: Vec<Row<'_>> =
            here.iter().filter(|(at, row)| reason(*at, row).is_none()).map(|(_, row)| row.clone()).collect();
        let mut gaps = Vec::new();
        let mut counted = Vec::new();
        for (wanted, cause) in [
            (LedgerReason::Lost, GapCause::RingFull),
            (LedgerReason::OverShare, GapCause::OverShare),
            (LedgerReason::Filtered, GapCause::Filtered),
        ] {
            let rows: Vec<Row<'_>> =
                here.iter().filter(|(at, row)| reason(*at, row) == Some(wanted)).map(|(_, row)| row.clone()).collect();
            if !rows.is_empty() {
                gaps.push(counted_gap(cause, 1, rows.len() as u64, (from, to)));
                counted.extend(parts(&rows, wanted, false));
            }
        }
        let until = if last { to + 100 } else { to };
        tape.segment_with(until, &stored, &gaps, |builder| counted.iter().for_each(|part| count(builder, part)));
    }
    tape.finish();
}

fn every_third(at: usize, _: &Row<'_>) -> Option<LedgerReason> {
    match at % 6 {
        0 => Some(LedgerReason::Lost),
        3 => Some(LedgerReason::OverShare),
        _ => None,
    }
}

/// Tapes of the same calls: all stored, a third counted, those up to 9 µs not asked for.
fn place() -> Place {
    let place = Place::new();
    tape(&place, "all.tape", "", |_, _| None);
    tape(&place, "part.tape", "", every_third);
    let short = |_: usize, row: &Row<'_>| (row.dur <= 9).then_some(LedgerReason::Filtered);
    tape(&place, "short.tape", "--duration 9us", short);
    place
}

/// What must be the same whether a call was stored or counted.
const EXACT: [&str; 8] = ["calls", "errors", "total_ns", "min_ns", "avg_ns", "max_ns", "incomplete_calls", "errnos"];

fn rows(place: &Place, words: &str) -> Vec<Value> {
    let got = place.analyze(words);
    assert_eq!(got.status, 0, "{words}: {}", got.err);
    got.json()
}

fn number(row: &Value, name: &str) -> u64 {
    row[name].as_u64().unwrap_or_else(|| panic!("{name} of {row}"))
}

/// Rows by everything that identifies one.
fn keyed(rows: &[Value]) -> std::collections::BTreeMap<String, &Value> {
    let key = |row: &Value| ["pid", "cgroup", "syscall"].map(|name| row[name].to_string()).join(" ");
    rows.iter().map(|row| (key(row), row)).collect()
}

#[test]
fn a_summary_is_that_of_every_call() {
    let place = place();
    for mode in ["total", "process", "cgroup"] {
        for filter in [
            "",
            "-p 100",
            "-u 1000",
            "-u root -e read",
            "-e !futex",
            "-C 1,2",
            "--failure",
            "--duration 128us",
            "-G /user.slice",
            "--time ,1",
            "--comm=nosuch",
        ] {
            let words = format!("--errno-summary --summary-mode {mode} --format json {filter}");
            let all = rows(&place, &format!("{words} all.tape"));
            let all = keyed(&all);
            for name in ["part.tape", "short.tape"] {
                let got = place.analyze(&format!("{words} --fail-on-loss {name}"));
                assert_eq!((got.status, got.told().as_str()), (0, ""), "{name} {words}");
                let got = got.json();
                let got = keyed(&got);
                assert_eq!(got.keys().collect::<Vec<_>>(), all.keys().collect::<Vec<_>>(), "{name} {words}");
                for (key, row) in &got {
                    for field in EXACT {
                        assert_eq!(row[field], all[key][field], "{field} of {key}: {name} {words}");
                    }
                    assert_eq!(row["calls_at_least"], false, "{key}: {name} {words}");
                    assert!(number(row, "ledger_calls") <= number(row, "calls"));
                }
            }
        }
    }
    // something was counted at all
    let sum = |words: &str, field: &str| rows(&place, words).iter().map(|row| number(row, field)).sum::<u64>();
    assert_eq!(sum("-s --summary-mode total --format json part.tape", "ledger_calls"), 300);
    assert_eq!(sum("-s --summary-mode total --format json part.tape", "calls"), 900);
    assert_eq!(sum("-s --summary-mode total --format json all.tape", "ledger_calls"), 0);
}

#[test]
fn quantiles_are_within_their_stated_error() {
    let place = place();
    let mut known = 0;
    for mode in ["total", "process"] {
        let words = format!("-s --summary-mode {mode} --format json");
        for name in ["part.tape", "short.tape"] {
            for row in rows(&place, &format!("{words} {name}")) {
                let mine = |call: &Row<'_>| {
                    let pid = common::task(call.tid).pid;
                    call.state == CallState::Complete
                        && call.name == row["syscall"].as_str().unwrap()
                        && row.get("pid").is_none_or(|of| of.as_u64() == Some(pid.into()))
                };
                let mut durs: Vec<u64> =
                    calls().iter().filter(|call| mine(call)).map(|call| call.dur * 1_000).collect();
                durs.sort_unstable();
                for (field, permille) in [("p50_ns", 500), ("p99_ns", 990)] {
                    let Some(value) = row[field].as_u64() else { continue };
                    let exact = durs[(durs.len() * permille).div_ceil(1000) - 1];
                    let error = row["quantile_error"].as_f64().unwrap();
                    assert!(
                        value.abs_diff(exact) as f64 <= exact as f64 * error + 1.0,
                        "{field} {value} for {exact}: {row}"
                    );
                    known += 1;
                }
                if let Some(percent) = row["stddev_percent"].as_f64() {
                    // rows of one or two calls say everything of them
                    let n = durs.len() as f64;
                    let mean = durs.iter().sum::<u64>() as f64 / n;
                    let variance = durs.iter().map(|dur| (*dur as f64 - mean).powi(2)).sum::<f64>() / (n - 1.0);
                    assert!((percent - 100.0 * (variance / n).sqrt() / mean).abs() < 1e-6, "{row}");
                }
            }
        }
    }
    assert!(known >= 40, "{known} quantiles were known");
    // from log2 buckets alone they are rough, and text says so
    let text = one("-s --summary-mode total").1.out;
    let read = text.lines().find(|line| line.trim_start().starts_with("read ")).unwrap();
    assert!(read.contains('~') && read.contains(" -  "), "{read}");
}

#[test]
fn a_table_of_threads_has_what_is_known_of_processes_apart() {
    let place = place();
    let got = rows(&place, "-s --format json part.tape");
    let stored = |tid: u32, name: &str| {
        let mine = |(at, row): &(usize, Row<'_>)| row.tid == tid && row.name == name && every_third(*at, row).is_none();
        calls().into_iter().enumerate().filter(mine).count() as u64
    };
    let (mut all, mut apart) = (0, 0);
    for row in &got {
        all += number(row, "calls");
        match row["tid"].as_u64() {
            Some(tid) => {
                assert_eq!(number(row, "calls"), stored(tid as u32, row["syscall"].as_str().unwrap()), "{row}");
                assert_eq!((number(row, "ledger_calls"), &row["calls_at_least"]), (0, &true.into()), "{row}");
            }
            None => {
                assert_eq!(number(row, "ledger_calls"), number(row, "calls"));
                assert_eq!((&row["utid"], &row["calls_at_least"]), (&Value::Null, &false.into()), "{row}");
                apart += number(row, "calls");
            }
        }
    }
    assert_eq!((all, apart), (900, 300));
    let text = place.analyze("-s --fail-on-loss part.tape");
    assert_eq!((text.status, text.err.as_str()), (3, ""), "every call is in some row, and rows are at least");
    assert!(text.out.contains(" are two):\n"), "{}", text.out);
    assert!(text.out.contains(" app (100) calls counted per process, "), "{}", text.out);
    assert!(text.out.contains(" app (101), at least "), "{}", text.out);
    assert!(
        text.out.contains("   150 calls were not stored and are counted here (ring buffer full, 0."),
        "{}",
        text.out
    );
}

#[test]
fn what_may_pass_is_at_least() {
    let place = place();
    let sum = |rows: &[Value]| rows.iter().map(|row| number(row, "calls")).sum::<u64>();
    for (filter, part) in [
        ("-t 101", "by which threads is not known"),
        ("--duration 10us", "whether longer than --duration is not known"),
        ("--time 0.0045,", "whether inside --time is not known"),
    ] {
        let words = format!("-s --summary-mode total --format json {filter}");
        let all = sum(&rows(&place, &format!("{words} all.tape")));
        let got = place.analyze(&format!("{words} --fail-on-loss part.tape"));
        assert_eq!(got.status, 3, "{filter}");
        assert!(got.err.contains("AT LEAST: ") && got.err.contains(part), "{filter}: {}", got.err);
        let missing: u64 = {
            let line = got.err.lines().find(|line| line.contains(part)).unwrap();
            line.split(' ').find_map(|word| word.parse().ok()).unwrap()
        };
        let known = sum(&got.json());
        assert!(known < all && all <= known + missing, "{filter}: {known} of {all}, {missing} may pass");
        assert!(got.json().iter().any(|row| row["calls_at_least"] == true), "{filter}");
        let text = place.analyze(&format!("-s {filter} part.tape"));
        assert!(text.out.contains("; counts and times are lower bounds)") && text.out.contains(part), "{}", text.out);
        // what record was asked to leave out is at least all the same, and no loss
        let filtered = place.analyze(&format!("{words} --fail-on-loss short.tape"));
        assert_eq!(filtered.status, 0, "{filter}: {}", filtered.err);
    }
    // every thread of the process is asked for, or it has no other
    for filter in ["--comm=app", "--comm=other", "--comm=*", "--comm=!app", "-t 102"] {
        let words = format!("-s --summary-mode total --format json {filter}");
        let got = place.analyze(&format!("{words} --fail-on-loss part.tape"));
        assert_eq!((got.status, got.told().as_str()), (0, ""), "{filter}");
        assert_eq!(sum(&got.json()), sum(&rows(&place, &format!("{words} all.tape"))), "{filter}");
    }
    // no thread of the others has that name: they do not matter
    let other = place.analyze("-s --fail-on-loss --comm=app -p 102 part.tape");
    assert_eq!((other.status, other.told().as_str()), (0, ""));
    // all that were left out took 9 us at most, which a limit of 9 us rules out
    let long = rows(&place, "-s --summary-mode process --format json --duration 9us short.tape");
    assert_eq!(sum(&long), sum(&rows(&place, "-s --summary-mode process --format json --duration 9us all.tape")));
    assert!(long.iter().all(|row| row["calls_at_least"] == false));
}

fn one(words: &str) -> (Place, common::Output) {
    let place = Place::new();
    write(&place.path("ledger.tape"), &[]);
    let got = place.analyze(&format!("{words} ledger.tape"));
    (place, got)
}

#[test]
fn calls_of_nobody_known_have_a_row_of_their_own() {
    let (place, got) = one("--errno-summary --summary-mode process --format json --fail-on-loss");
    assert_eq!((got.status, got.err.as_str()), (3, ""));
    let all = got.json();
    let nobody: Vec<_> = all.iter().filter(|row| row["pid"].is_null()).collect();
    assert_eq!(nobody.len(), 1);
    let futex = nobody[0];
    assert_eq!((number(futex, "calls"), number(futex, "errors"), number(futex, "total_ns")), (2, 1, 140_000));
    assert_eq!(futex["errnos"], serde_json::json!({"unknown": 1}));
    // a futex of any process may be among them, a read cannot
    assert!(all.iter().filter(|row| row["syscall"] == "read").all(|row| row["calls_at_least"] == false));
    let total = rows(&place, "-s --summary-mode total --format json ledger.tape");
    assert!(total.iter().all(|row| row["calls_at_least"] == false));
    let text = place.analyze("-s --summary-mode process ledger.tape").out;
    assert!(text.contains(" (process not known), 4 events"), "{text}");
    assert!(text.contains(" app (100), at least "), "{text}");
    let asked = place.analyze("-s --summary-mode process --fail-on-loss -p 100 ledger.tape");
    assert_eq!(asked.status, 3);
    assert!(
        asked.out.contains("AT LEAST: 2 more calls were counted, by which processes is not known"),
        "{}",
        asked.out
    );
}

#[test]
fn sums_hold_each_call_once() {
    let (place, got) = one("-s --summary-mode total --format json");
    let calls: Vec<(String, u64, u64)> = got
        .json()
        .iter()
        .map(|row| (row["syscall"].as_str().unwrap().to_owned(), number(row, "calls"), number(row, "ledger_calls")))
        .collect();
    let of = |name: &str| calls.iter().find(|(call, ..)| call == name).map(|(_, calls, ledger)| (*calls, *ledger));
    // the checked one is stored, the close is in the ledger, the child's side of clone is nobody's call
    assert_eq!(of("read"), Some((44, 41)));
    assert_eq!(of("close"), Some((1, 1)));
    assert_eq!(of("write"), Some((10, 9)));
    assert_eq!(of("futex"), Some((2, 2)));
    assert_eq!(of("poll"), Some((1, 1)));
    assert_eq!((of("clone"), calls.len()), (None, 6));
    let poll = got.json().into_iter().find(|row| row["syscall"] == "poll").unwrap();
    assert_eq!((number(&poll, "incomplete_calls"), &poll["min_ns"]), (1, &Value::Null));
    // two tapes side by side are two summaries
    let diff = place.analyze("diff --fail-on-loss --format json ledger.tape ledger.tape");
    assert_eq!((diff.status, diff.err.as_str()), (0, ""));
    let read = diff.json().into_iter().find(|row| row["syscall"] == "read").unwrap();
    assert_eq!((&read["calls_before"], &read["calls_before_at_least"]), (&44.into(), &false.into()));
}

#[test]
fn a_listing_lacks_what_was_lost_and_says_so() {
    let (place, got) = one("--fail-on-loss");
    assert_eq!((got.status, got.err.as_str()), (3, ""));
    let line = "TOTALS ONLY 42 syscall events on cpu 0, 0.000–0.000 s: ring buffer full";
    assert!(got.out.lines().any(|text| text == line), "{}", got.out);
    assert!(
        got.out.contains(
            "TOTALS ONLY 9 syscall events on cpu 2 of pid 102, 0.001–0.001 s: the process had filled its share"
        ),
        "{}",
        got.out
    );
    assert!(!got.out.contains("close("), "{}", got.out);
    assert!(
        got.out.contains("read(fd: 3, buf: 0x7f00, count: 64)"),
        "a path that is not known is not guessed: {}",
        got.out
    );
    // not even by name
    for words in ["-e close", "-e =close --format csv", "-e close --sort end", "-e desc"] {
        let close = place.analyze(&format!("{words} ledger.tape"));
        assert!(!close.out.contains("close"), "{words}: {}", close.out);
    }
    let json = place.analyze("--format json ledger.tape").json();
    let lost: Vec<_> = json.iter().filter(|line| line.get("lost").is_some()).collect();
    assert!(lost.len() == 4 && lost.iter().all(|line| line["ledger"] == true), "{lost:?}");
    assert_eq!(json.len() - lost.len(), 5);
    // the sums below it are whole
    let both = place.analyze("-S --fail-on-loss ledger.tape");
    assert_eq!(both.status, 3);
    assert!(both.out.contains(" are two):\n") && both.out.contains("TOTALS ONLY 42 syscall"), "{}", both.out);
    assert_eq!(place.analyze("-s --summary-mode total --fail-on-loss ledger.tape").status, 0);
    assert_eq!(place.analyze("-s --fail-on-loss ledger.tape").status, 3, "which thread made some is not known");
}

/// The ledger knows which calls were counted only: others are all there.
#[test]
fn calls_that_an_answer_is_not_about_are_no_loss_of_it() {
    let place = Place::new();
    let row = |name, start: u64, errno| Row { tid: 102, name, start, dur: 5, errno, ..Row::default() };
    let with = |name: &str, lost: &[Row<'_>]| {
        let mut tape = Tape::create_at(&place.path(name), &system(""), &start());
        let stored = [row("execve", 100, 2), row("openat", 120, 0), row("futex", 140, 0)];
        let gaps = [counted_gap(GapCause::RingFull, 1, lost.len().max(1) as u64, (400, 900))];
        tape.segment_with(1_000, &stored, &gaps, |builder| {
            parts(lost, LedgerReason::Lost, false).iter().for_each(|part| count(builder, part));
        });
        tape.finish();
    };
    let other: Vec<Row<'_>> = (0..40).map(|i| row("wait4", 400 + i * 10, 0)).collect();
    with("other.tape", &other);
    // fds says "incomplete" of any call that was counted
    for (name, view) in [("execve", "exec"), ("futex", "locks"), ("openat", "-e openat")] {
        let tape = format!("{name}.tape");
        with(&tape, &[&other[..], &[row(name, 850, 0)]].concat());
        let (whole, part) = ("other.tape", tape.as_str());
        let got = place.analyze(&format!("{view} --fail-on-loss {whole}"));
        assert!(got.status == 0 && !got.out.contains("at least"), "{view}: {} {}", got.out, got.err);
        let got = place.analyze(&format!("{view} --fail-on-loss {part}"));
        assert_eq!(got.status, 3, "{view} of {part}: {}", got.out);
        // it was over by then
        let got = place.analyze(&format!("{view} --fail-on-loss --time ,0.0006 {part}"));
        assert!(got.status == 0, "{view} before it: {} {}", got.out, got.err);
    }
    // a gap of which no ledger knows may be of any call
    with("gone.tape", &[]);
    assert_eq!(place.analyze("exec --fail-on-loss gone.tape").status, 3);
    assert_eq!(place.analyze("--fail-on-loss other.tape").status, 3, "the whole listing");
}

#[test]
fn what_record_left_out_is_no_loss() {
    let place = place();
    let listed = place.analyze("--fail-on-loss short.tape");
    assert_eq!(listed.status, 0);
    assert_eq!(listed.err, "analyze: record stored only some calls (--duration 9us); --summary counts all\n");
    assert!(!listed.out.contains("LOST") && !listed.out.contains("TOTALS ONLY"), "{}", listed.out);
    let summary = place.analyze("-s --summary-mode process --fail-on-loss short.tape");
    assert_eq!((summary.status, summary.err.as_str()), (0, ""));
    assert!(summary.out.contains("record stored only some calls (--duration 9us): "), "{}", summary.out);
    let exec = place.analyze("exec --fail-on-loss short.tape");
    assert_eq!(exec.status, 0);
    assert!(exec.out.contains("record stored only some calls (--duration 9us): other attempts"), "{}", exec.out);
    let info = place.analyze("info --format json --fail-on-loss short.tape");
    assert_eq!((info.status, &info.json()[0]["complete"]), (0, &true.into()));
    assert_eq!(info.json()[0]["call_filters"], serde_json::json!(["--duration", "9us"]));
    assert_eq!(info.json()[0]["lost"], serde_json::json!({}));
}

#[test]
fn info_counts_what_was_counted() {
    let (place, got) = one("info --format json --fail-on-loss");
    assert_eq!(got.status, 0, "nothing is missing from every sum");
    let info = &got.json()[0];
    let ledger = serde_json::json!({
        "rows": 9, "calls": 54, "lost_calls": 45, "filtered_calls": 0, "over_share_calls": 9, "behind_calls": 0,
        "unattributed_calls": 2,
    });
    assert_eq!((&info["ledger"], &info["complete"]), (&ledger, &true.into()));
    assert_eq!(info["lost"], serde_json::json!({}));
    let gaps = info["gaps"].as_array().unwrap();
    assert!(gaps.iter().all(|gap| gap["ledger"] == true && !gap["remedy"].as_str().unwrap().is_empty()), "{gaps:?}");
    let text = place.analyze("info ledger.tape").out;
    assert!(text.contains("complete in sums (command exited)"), "{text}");
    assert!(text.contains("ledger      54 calls in 9 rows: 45 for which there was no room"), "{text}");
    // a loss that nothing counts is one everywhere
    write(&place.path("ledger.tape"), &[common::gap()]);
    for words in ["info", "-s", "-s --summary-mode total", "diff ledger.tape", ""] {
        assert_eq!(place.analyze(&format!("{words} --fail-on-loss ledger.tape")).status, 3, "{words}");
    }
    let info = place.analyze("info --format json ledger.tape").json();
    assert_eq!((&info[0]["complete"], &info[0]["lost"]), (&false.into(), &serde_json::json!({"syscall": 47})));
}

#[test]
fn a_ledger_that_cannot_be_read_is_a_hole() {
    let place = Place::new();
    write(&place.path("ledger.tape"), &[]);
    let whole = std::fs::read(place.path("ledger.tape")).unwrap();
    // blocks begin with the magic number; the kind is at offset 12
    let magic = &whole[..8];
    let at = (0..whole.len() - 14)
        .find(|at| &whole[*at..*at + 8] == magic && whole[*at + 12] == 20)
        .expect("a block of the ledger");
    let mut broken = whole.clone();
    broken[at + 140] ^= 0xff;
    std::fs::write(place.path("broken.tape"), broken).unwrap();
    for words in ["-s", "-s --summary-mode total", "-s --format json", "diff broken.tape", "info"] {
        let got = place.analyze(&format!("{words} --fail-on-loss broken.tape"));
        assert_eq!(got.status, 3, "{words}: {}{}", got.out, got.err);
    }
    let text = place.analyze("-s --summary-mode total broken.tape").out;
    assert!(text.contains("; counts and times are lower bounds)"), "{text}");
    assert!(text.contains("LOST an unknown number of syscall events"), "{text}");
}

#[test]
fn a_process_that_moved_is_of_no_cgroup_for_sure() {
    use systape_format::model::{CGROUP_ALL_THREADS, ProcessEvent, ProcessKind};
    let place = Place::new();
    let row = |start| Row { tid: 100, name: "read", start, dur: 5, ..Row::default() };
    let rows: Vec<Row<'_>> = (0..10).map(|i| row(100 + i * 10)).collect();
    let write = |name: &str, moved_at: u64| {
        let mut tape = Tape::create_at(&place.path(name), &system(""), &start());
        tape.segment_with(1_000, &[row(500)], &[], |builder| {
            parts(&rows, LedgerReason::Lost, false).iter().for_each(|part| count(builder, part));
            let nowhere = &parts(&[row(300), row(310)], LedgerReason::Lost, true)[0];
            count(builder, nowhere);
            let leader = builder.intern_task(&common::task(100));
            builder.push_process(ProcessEvent {
                flags: CGROUP_ALL_THREADS,
                ..ProcessEvent::new(common::OPEN + moved_at * common::US, ProcessKind::Cgroup, leader)
            });
        });
        tape.finish();
    };
    write("before.tape", 50);
    write("meanwhile.tape", 150);
    let counted = |tape: &str| {
        let all = self::rows(&place, &format!("-s --summary-mode cgroup --format json {tape}"));
        let of =
            |null: bool| all.iter().filter(move |row| row["cgroup"].is_null() == null).map(|row| number(row, "calls"));
        (of(false).sum::<u64>(), of(true).sum::<u64>())
    };
    // two are of nobody known
    assert_eq!(counted("before.tape"), (11, 2));
    assert_eq!(counted("meanwhile.tape"), (1, 12));
    let text = place.analyze("-s --summary-mode cgroup meanwhile.tape").out;
    assert!(text.contains(" (moved to another cgroup meanwhile), 20 events"), "{text}");
    assert!(text.contains(" /user.slice/app.service, at least 2 events"), "{text}");
    let asked = place.analyze("-s --summary-mode total -G /user.slice --fail-on-loss meanwhile.tape");
    assert_eq!(asked.status, 3);
    assert!(asked.out.contains("AT LEAST: 10 more calls were counted, in which cgroup is not known"), "{}", asked.out);
    let before = place.analyze("-s --summary-mode total -G /user.slice before.tape");
    assert!(!before.out.contains("in which cgroup"), "{}", before.out);
}

/// Rows of a summary by `by`, by the text of their keys: (calls, errors, whether there may be more).
fn by_key(place: &Place, by: &str, tape: &str) -> std::collections::BTreeMap<String, (u64, u64, bool)> {
    let all = rows(place, &format!("-s --by {by} --format json {tape}"));
    let keyed = all.iter().map(|row| {
        let names = ["pid", "tid", "comm", "uid", "cgroup", "cpu", "syscall", "file", "errno", "second"];
        let key: Vec<String> = names.iter().filter_map(|name| Some(format!("{name}={}", row.get(*name)?))).collect();
        let least = row["calls_at_least"].as_bool().expect("a flag");
        (key.join(" "), (number(row, "calls"), number(row, "errors"), least))
    });
    keyed.collect()
}

#[test]
fn sums_by_any_key_are_exact_or_at_least() {
    let place = place();
    let keys = ["pid", "tid", "comm", "uid", "cgroup", "cpu", "syscall", "file", "errno", "second"];
    let more = ["comm,file", "pid,cpu,errno", "syscall,tid", "errno,syscall,cpu,uid"];
    for by in keys.into_iter().chain(more) {
        let all = by_key(&place, by, "all.tape");
        let calls = |rows: &std::collections::BTreeMap<String, (u64, u64, bool)>| {
            rows.values().fold((0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1))
        };
        assert!(all.len() > 1 || by == "file", "{by}: {all:?}");
        assert!(all.values().all(|(.., least)| !least), "{by}: {all:?}");
        for name in ["part.tape", "short.tape"] {
            let got = by_key(&place, by, name);
            assert_eq!(calls(&got), calls(&all), "all rows together are all calls: {by} {name}");
            for (key, (calls, errors, least)) in &got {
                let (all_calls, all_errors) = all.get(key).map_or((0, 0), |row| (row.0, row.1));
                match least {
                    // a row for what is not known has what stands nowhere else
                    _ if key.contains("null") && all_calls == 0 => {}
                    // calls that were counted began at no known time, as those that began before the recording
                    _ if key == "second=null" => assert!(*calls >= all_calls, "{key}: {name}"),
                    true => assert!(*calls <= all_calls && *errors <= all_errors, "{key}: {by} {name}"),
                    false => assert_eq!((*calls, *errors), (all_calls, all_errors), "{key}: {by} {name}"),
                }
            }
        }
    }
}
