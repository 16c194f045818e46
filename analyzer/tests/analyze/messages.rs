//! One clear line and the right exit status for everything that can be wrong with what was typed or named.

use std::fs;
use std::io::Read as _;
use std::process::{Command, Stdio};

use crate::common::{self, Place, Row, Tape, gap};
use systape_format::model::{CallState, Family, ProcessEvent, ProcessKind, Session, SyscallRow, Task};

fn fails(place: &Place, words: &str, status: i32, parts: &[&str]) {
    let got = place.analyze(words);
    assert_eq!(got.status, status, "{words}: {}", got.err);
    assert!(got.out.is_empty(), "{words}: {}", got.out);
    assert_eq!(got.err.lines().count(), 1, "{words}: {}", got.err);
    for part in parts {
        assert!(got.err.contains(part), "{words}: '{part}' is not in: {}", got.err);
    }
}

#[test]
fn what_is_no_tape_is_told_in_one_line() {
    let place = Place::with_sample();
    fs::write(
        place.path("text"),
        "hello, I am no tape, not even nearly one, and I go on for a while to be longer than a header is".repeat(9),
    )
    .unwrap();
    fs::write(place.path("empty"), "").unwrap();
    fs::create_dir(place.path("dir")).unwrap();
    fails(&place, "text", 1, &["text", "not a tape"]);
    fails(&place, "empty", 1, &["empty"]);
    fails(&place, "dir", 1, &["there is no tape (*.tape) in dir"]);
    fails(&place, "", 1, &["trace.tape: no such file", "record --"]);
    fails(&place, "absent.tape", 1, &["absent.tape: no such file"]);
    fails(&place, "inof", 2, &["did you mean 'info'?"]);
    fails(&place, "-i inof", 1, &["did you mean the report 'info'?"]);
    for (file, why) in [("text", "it is text"), ("empty", "0 bytes")] {
        fails(&place, &format!("check {file}"), 1, &[&format!("{file}: not a tape: "), why]);
        let json = place.analyze(&format!("check --format json {file}")).json();
        assert_eq!(json[0]["grade"], "not a tape");
    }
    fails(&place, "check absent.tape", 1, &["no such file"]);
}

#[test]
fn a_newer_major_version_is_refused() {
    let place = Place::with_sample();
    let mut bytes = fs::read(place.path("sample.tape")).unwrap();
    // major is at offset 8 of the first header, its CRC32C at 124 (docs/reference/tape-format.md)
    bytes[8] = 99;
    let crc = crc32c(&bytes[..124]);
    bytes[124..128].copy_from_slice(&crc.to_le_bytes());
    fs::write(place.path("newer"), bytes).unwrap();
    fails(&place, "newer", 1, &["newer", "99"]);
}

/// CRC32C, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 })
    })
}

#[test]
fn bad_usage_is_2() {
    let place = Place::with_sample();
    fails(&place, "-e opennat sample.tape", 2, &["opennat", "openat"]);
    fails(&place, "-e sched:no_such sample.tape", 2, &["sched:no_such", "sched:sched_switch"]);
    common::tables::write(&place.path("tables.tape"));
    fails(&place, "-e writeback:no_such tables.tape", 2, &["writeback:no_such", "writeback:writeback_written"]);
    fails(&place, "-s -e sched:* sample.tape", 2, &["-s"]);
    fails(&place, "--top sample.tape", 2, &["analyze top"]);
    fails(&place, "block --top --hist sample.tape", 2, &["--hist and --top"]);
    fails(&place, "block --top --by state sample.tape", 2, &["--by state", "cgroup"]);
    fails(&place, "block --by disk sample.tape", 2, &["--top"]);
    fails(&place, "block -C 1 sample.tape", 2, &["-C"]);
    fails(&place, "net -e read sample.tape", 2, &["-e"]);
    fails(&place, "block sample.tape", 1, &["block I/Os were not recorded", "syscall, process"]);
    fails(&place, "net sample.tape", 1, &["connections were not recorded"]);
    fails(&place, "-e signal:* sample.tape", 1, &["signal events were not recorded"]);
    fails(&place, "--duration fast sample.tape", 2, &["--duration", "fast"]);
    fails(&place, "--time 1,2,3 sample.tape", 2, &["--time"]);
    fails(&place, "-C x sample.tape", 2, &["-C"]);
    fails(&place, "sample.tape other.tape", 1, &["other.tape: no such file"]);
    fails(&place, "-sS sample.tape", 2, &["-s", "-S"]);
    assert_eq!(place.analyze("--no-such-option").status, 2);
    fails(&place, "-u nobody-here sample.tape", 1, &["nobody-here", "eva"]);
    fails(&place, "-G /nowhere sample.tape", 1, &["nowhere"]);
}

#[test]
fn a_closed_pipe_is_no_error() {
    let place = Place::new();
    let mut tape = Tape::create(&place.path("trace.tape"));
    for segment in 0..20 {
        let rows: Vec<_> = (0..2_000)
            .map(|i| Row {
                tid: 100,
                name: "close",
                start: segment * 4_000 + i * 2,
                dur: 1,
                args: [3, 0, 0, 0, 0, 0],
                ..Row::default()
            })
            .collect();
        tape.segment((segment + 1) * 4_000, &rows, &[gap()]);
    }
    tape.finish();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("analyze"))
        .args(["--fail-on-loss", "trace.tape"])
        .current_dir(place.path("."))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut some = [0; 100];
    out.read_exact(&mut some).unwrap();
    drop(out);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), ""));
}

#[test]
fn help_version_and_generated_text() {
    let place = Place::new();
    let help = place.analyze("--help");
    assert_eq!(help.status, 0);
    assert!(help.out.contains("Examples:") && help.out.contains("--duration"));
    assert!(help.out.lines().all(|line| line.chars().count() <= 100), "{}", help.out);
    assert!(place.analyze("--version").out.starts_with("analyze 0."));
    assert!(place.analyze("--generate man").out.contains(".TH analyze"));
    assert!(place.analyze("--generate bash").out.contains("complete -F"));
}

#[test]
fn an_abnormal_end_is_said_and_open_calls_survive() {
    let place = Place::new();
    let mut tape = Tape::create(&place.path("trace.tape"));
    tape.segment(
        1_000,
        &[Row { tid: 100, name: "close", start: 5, dur: 1, args: [3, 0, 0, 0, 0, 0], ..Row::default() }],
        &[],
    );
    // both threads are in a call at 1 ms; 100 gets out of it
    tape.checkpoint(&[(100, "read", 900, 7), (101, "futex", 200, 0x7f00)]);
    tape.segment(
        2_000,
        &[Row { tid: 100, name: "read", start: 900, dur: 500, args: [7, 0, 0, 0, 0, 0], ..Row::default() }],
        &[],
    );
    tape.abandon();
    let listing = place.analyze("");
    assert_eq!(listing.status, 0);
    assert!(listing.err.contains("ended abnormally: complete until 0.002 s"), "{}", listing.err);
    let lines: Vec<_> = listing.out.lines().collect();
    assert_eq!(lines.len(), 3, "{}", listing.out);
    assert!(lines[1].contains("(>=1.800 ms): app/101 futex(") && lines[1].ends_with("= ? in flight"), "{}", lines[1]);
    assert_eq!(place.analyze("--fail-on-loss").status, 3);
    assert_eq!(place.analyze("--fail-on-loss --time 0,1500us").status, 0);
    let summary = place.analyze("-s");
    assert!(summary.out.contains("at least") && summary.out.contains("complete until 0.002 s"), "{}", summary.out);
    assert!(summary.out.contains("futex                  1"), "{}", summary.out);
    let info = place.analyze("info");
    assert!(info.out.contains("ended abnormally, complete until 0.002 s"), "{}", info.out);
    assert!(info.out.contains("2 syscall"), "{}", info.out);
    let check = place.analyze("check");
    assert_eq!(check.status, 1);
    assert!(check.out.contains("usable"), "{}", check.out);
}

#[test]
fn losses_reach_every_answer_they_touch() {
    let place = Place::new();
    let mut tape = Tape::create(&place.path("trace.tape"));
    let row = |start| Row { tid: 100, name: "close", start, dur: 1, args: [3, 0, 0, 0, 0, 0], ..Row::default() };
    tape.segment(3_000, &[row(1_000), row(2_900)], &[gap(), common::strings()]);
    tape.segment(9_000, &[row(5_000)], &[]);
    tape.finish();
    let listing = place.analyze("");
    let lines: Vec<_> = listing.out.lines().collect();
    assert_eq!((lines.len(), lines[1]), (4, "LOST 47 syscall events on cpu 1, 0.002–0.002 s: ring buffer full"));
    assert_eq!(listing.err, "analyze: reads trace.tape, as no tape is named\n");
    let summary = place.analyze("-s").out;
    assert!(summary.contains("LOST 47") && summary.contains("at least 6 events"), "{summary}");
    for (words, status) in [
        ("", 3),
        ("-s", 3),
        ("info", 3),
        ("--time 4ms,", 0),
        ("-C 0", 0),
        ("-C 1", 3),
        ("--time ,2.2ms", 3),
        ("-s --time 4ms,", 0),
    ] {
        assert_eq!(place.analyze(&format!("{words} --fail-on-loss")).status, status, "{words}");
        assert_eq!(place.analyze(words).status, 0, "{words}");
    }
    let json = place.analyze("--format json").json();
    assert_eq!(
        (&json[1]["lost"], &json[1]["cause"], &json[1]["cpu"], &json[1]["ts_ns"]),
        (&47.into(), &"ring-full".into(), &1.into(), &2_000_000.into())
    );
    assert!(place.analyze("-s --format json").json().iter().all(|row| row["calls_at_least"] == true));
    assert!(place.analyze("-s --format json --time 4ms,").json().iter().all(|row| row["calls_at_least"] == false));
    assert!(place.analyze("--format csv").err.contains("LOST 47"));
    let info = place.analyze("info --format json").json();
    assert_eq!((&info[0]["complete"], &info[0]["lost"]["syscall"]), (&false.into(), &47.into()));
}

#[test]
fn a_damaged_block_costs_what_it_holds() {
    let place = Place::with_sample();
    let bytes = fs::read(place.path("sample.tape")).unwrap();
    let tape = systape_format::Tape::open(&place.path("sample.tape")).unwrap();
    let clean = place.analyze("sample.tape").out.lines().count();
    for block in tape.blocks().iter().filter(|block| block.segment == Some(1)) {
        let mut damaged = bytes.clone();
        damaged[block.offset as usize + 140] ^= 0xff;
        fs::write(place.path("damaged"), damaged).unwrap();
        let got = place.analyze("damaged");
        assert_eq!(got.status, 0, "{:?}: {}", block.kind, got.err);
        let told = got.out.contains("LOST up to 5 syscall events") || got.err.contains("segment 1");
        assert!(told, "{:?}: {} {}", block.kind, got.out, got.err);
        assert!(got.out.lines().count() >= clean - 5 && got.out.lines().count() <= clean + 1);
        assert_eq!(place.analyze("check damaged").status, 1);
    }
}

#[test]
fn random_damage_never_panics() {
    let place = Place::with_sample();
    let bytes = fs::read(place.path("sample.tape")).unwrap();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..60 {
        let mut damaged = bytes.clone();
        for _ in 0..=round % 4 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (seed >> 33) as usize % damaged.len();
            damaged[at] = (seed >> 20) as u8;
        }
        if round % 3 == 0 {
            damaged.truncate((seed >> 30) as usize % bytes.len());
        }
        fs::write(place.path("damaged"), &damaged).unwrap();
        for words in ["damaged", "-s damaged", "--format json --sort end damaged", "info damaged"] {
            let got = place.analyze(words);
            assert!(matches!(got.status, 0 | 1), "{words}, round {round}: {got:?}");
            assert!(!got.err.contains("panicked"), "{words}, round {round}: {}", got.err);
        }
    }
}

#[test]
fn a_tape_without_syscalls_has_none_to_list() {
    let place = Place::new();
    let path = place.path("t.tape");
    let session = Session { families: vec![Family::Sched, Family::Block], ..common::session() };
    let mut tape = Tape::create_with(&path, &session);
    // as a recorder leaves it: what threads were in when it began
    let open = Row { tid: 100, name: "futex", dur: 900, state: CallState::InFlight, ..Row::default() };
    tape.segment(1_000, &[open], &[]);
    tape.finish();
    let why = ["syscalls were not recorded", "sched, block"];
    for words in ["", "-s", "-S", "-s --format json", "--format csv", "-s --summary-mode total"] {
        fails(&place, &format!("{words} t.tape"), 1, &why);
    }
    // other events are listed all the same
    let both = place.analyze("-e all,sched:sched_switch t.tape");
    assert_eq!((both.status, both.out.as_str(), both.err.lines().count()), (0, "", 1), "{both:?}");
    assert!(both.err.contains(why[0]), "{}", both.err);
}

#[test]
fn what_no_call_tells_is_not_a_number() {
    let place = Place::new();
    let path = place.path("t.tape");
    let mut tape = Tape::create(&path);
    let call = Row { tid: 100, name: "futex", dur: 900, state: CallState::InFlight, ..Row::default() };
    tape.segment(1_000, &[call.clone(), Row { name: "read", state: CallState::Complete, ..call }], &[]);
    tape.finish();
    let rows = place.analyze("-s --format json t.tape").json();
    let of = |name: &str| rows.iter().find(|row| row["syscall"] == name).unwrap();
    for field in ["min_ns", "avg_ns", "stddev_percent", "p50_ns", "p99_ns", "quantile_error"] {
        assert!(of("futex")[field].is_null(), "{field}: {}", of("futex"));
        assert!(of("read")[field].is_number(), "{field}: {}", of("read"));
    }
    // it is longer than it was
    assert_eq!((&of("futex")["max_ns"], &of("futex")["max_ns_at_least"]), (&900_000.into(), &true.into()));
    let text = place.analyze("-s t.tape").out;
    let line = text.lines().find(|line| line.contains("futex")).unwrap();
    assert!(!line.contains('%') && text.lines().any(|line| line.contains("read") && line.contains("0.00%")), "{text}");
}

/// A name that is no UTF-8 and one that reads as JSON used to print the first.
const NAMES: [&[u8]; 2] = [b"/x/amb_\xff", br"/x/amb_\xff"];

#[test]
fn json_and_csv_keep_names_apart_that_are_no_text() {
    let place = Place::new();
    let path = place.path("t.tape");
    let session = Session {
        families: vec![Family::Syscall, Family::Process, Family::Sched],
        hostname: b"h\xfe".to_vec(),
        cgroups: vec![(7, b"/c\xfd".to_vec())],
        ..common::session()
    };
    let mut tape = Tape::create_with(&path, &session);
    tape.segment_with(1_000, &[], &[], |builder| {
        for (nth, name) in NAMES.into_iter().enumerate() {
            let tid = 100 + nth as u32;
            let comm = name[3..].to_vec();
            let task = builder.intern_task(&Task { comm, ..common::task(tid) });
            let fd = builder.intern_fd_name(name);
            let call = builder.intern_call(common::call("close"));
            builder.push_syscall(SyscallRow {
                end: common::OPEN + 500_000,
                dur: 1_000,
                task,
                call,
                fd,
                args: [3, 0, 0, 0, 0, 0],
                ..Default::default()
            });
            let ts = common::OPEN + 600_000 + nth as u64;
            builder.push_process(ProcessEvent {
                path: name.to_vec(),
                argv: name.to_vec(),
                ..ProcessEvent::new(ts, ProcessKind::Exec, task)
            });
        }
    });
    tape.finish();
    let [hex, plain] =
        [serde_json::json!({"text": r"/x/amb_\xff", "hex": "2f782f616d625fff"}), serde_json::json!(r"/x/amb_\xff")];
    let lines = place.analyze("--format json t.tape").json();
    let path = |line: &serde_json::Value| line["args"]["fd"]["path"].clone();
    assert_eq!(lines.iter().map(path).collect::<Vec<_>>(), [hex.clone(), plain.clone()]);
    assert_eq!(lines[0]["comm"], serde_json::json!({"text": r"amb_\xff", "hex": "616d625fff"}));
    assert_eq!((&lines[1]["comm"], &lines[0]["host"]["hex"]), (&r"amb_\xff".into(), &"68fe".into()));
    assert_eq!(lines[0]["cgroup"]["hex"], "2f63fd");
    let lines = place.analyze("exec --format json t.tape").json();
    assert_eq!((&lines[0]["path"], &lines[0]["args"][0]), (&hex, &hex), "{lines:?}");
    assert_eq!((&lines[1]["path"], &lines[1]["args"][0]), (&plain, &plain), "{lines:?}");
    let programs = &place.analyze("exec --tree --format json t.tape").json();
    assert!(programs.iter().any(|line| line["programs"][0]["path"] == hex), "{programs:?}");
    // in CSV the one is escaped, and the backslash of the other
    for report in ["", "exec", "exec --tree", "-s"] {
        let text = place.analyze(&format!("{report} --format csv t.tape")).out;
        assert!(text.contains(r"amb_\xff") && text.contains(r"amb_\\xff"), "{report}: {text}");
    }
    let info = &place.analyze("info --format json t.tape").json()[0];
    assert_eq!(info["hostname"]["hex"], "68fe");
    assert!(place.analyze("info --format csv t.tape").out.contains("hostname,h\\xfe\n"));
}

#[test]
fn a_tape_that_is_still_being_written_is_called_that() {
    use std::os::fd::AsRawFd as _;

    let place = Place::new();
    let mut tape = Tape::create(&place.path("t.tape"));
    tape.segment(1_000, &[Row { tid: 100, name: "close", start: 5, dur: 1, ..Row::default() }], &[]);
    tape.abandon();
    let said = |words: &str| {
        let got = place.analyze(words);
        format!("{}{}", got.out, got.err)
    };
    assert!(said("info t.tape").contains("ended abnormally, complete until 0.001 s"), "{}", said("info t.tape"));
    // as `record` holds what it writes
    let held = fs::File::open(place.path("t.tape")).unwrap();
    // SAFETY: the descriptor is open; flock takes two numbers.
    assert_eq!(unsafe { libc::flock(held.as_raw_fd(), libc::LOCK_EX) }, 0);
    assert!(said("info t.tape").contains("still being written, complete until 0.001 s"), "{}", said("info t.tape"));
    let summary = said("-s t.tape");
    assert!(summary.contains("The tape is still being written: complete until 0.001 s, totals"), "{summary}");
    assert!(said("list .").contains("still being written"), "{}", said("list ."));
    assert!(!said("check t.tape").contains("abnormally"), "{}", said("check t.tape"));
    drop(held);
    assert!(said("info t.tape").contains("ended abnormally"));
}

#[test]
fn a_file_that_is_called_as_a_report_is_none() {
    let place = Place::with_sample();
    for name in ["sched", "kills", "why"] {
        fs::write(place.path(name), "").unwrap();
    }
    for words in ["sched latency sched.tape", "kills sample.tape", "why sample.tape"] {
        let got = place.analyze(words);
        assert!(matches!(got.status, 0 | 3) && !got.out.is_empty(), "{words}: {}", got.err);
    }
}
