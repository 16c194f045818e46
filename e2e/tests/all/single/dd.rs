//! Counts are strace's: `dd` with a known number of reads and writes, nothing lost, every call of it there once, and
//! the exit status of `record` is the command's.

use std::collections::HashMap;

use systape_e2e::{Lab, strace};

const DD: [&str; 4] = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1"];
/// A prime: what comes out as this number was counted.
const FEW: u64 = 10_007;
const MANY: u64 = 500 * 1024;

/// Calls and errors by name, from `analyze --summary`.
fn summary(lab: &Lab, tape: &str) -> HashMap<String, (u64, u64)> {
    let rows = lab.analyze(&[tape, "--summary", "--summary-mode", "total", "--format", "json"]).expect(0).json();
    let count = |row: &serde_json::Value, key: &str| row[key].as_u64().unwrap_or_else(|| panic!("{key}: {row}"));
    rows.iter()
        .map(|row| {
            assert_eq!(row["calls_at_least"], false, "{row}");
            (row["syscall"].as_str().expect("name").to_owned(), (count(row, "calls"), count(row, "errors")))
        })
        .collect()
}

#[test]
fn every_count_is_straces() {
    let Some(lab) = Lab::with_bpf() else { return };
    let count = format!("count={FEW}");
    let command = [&DD[..], &[&count]].concat();
    let mut truth = strace::count(&lab, &command);
    // strace counts a call when it returns; this one does not, but it was made
    assert_eq!(truth.insert("exit_group".into(), (1, 0)), None, "strace counts exit_group now");

    lab.record("few.tape", &[], &command).expect(0);
    lab.assert_whole("few.tape");
    assert_eq!(summary(&lab, "few.tape"), truth);
    assert_eq!(lab.info("few.tape")["events"]["syscall"], truth.values().map(|(calls, _)| calls).sum::<u64>());

    // the same program, 51 times as much of it: all else it does is the same
    lab.record("many.tape", &[], &[&DD[..], &["count=500k"]].concat()).expect(0);
    lab.assert_whole("many.tape");
    for name in ["read", "write"] {
        truth.get_mut(name).expect(name).0 += MANY - FEW;
    }
    let counted = summary(&lab, "many.tape");
    for name in ["read", "write", "openat", "close", "mmap", "execve", "exit_group"] {
        assert_eq!(counted.get(name), truth.get(name), "{name}");
    }
}

#[test]
fn every_call_is_listed_once_with_its_arguments() {
    let Some(lab) = Lab::with_bpf() else { return };
    lab.record("t.tape", &[], &[&DD[..], &[&format!("count={FEW}")]].concat()).expect(0);
    lab.assert_whole("t.tape");
    let calls = lab.calls("t.tape", &["-e", "read,write"]);
    // its report, on descriptor 2, has writes of one byte too
    let (mut reads, mut writes) = (0, 0);
    for call in calls.iter().filter(|c| c.num("count") == 1 && c.num("fd") < 2) {
        let (fd, path, n) = match call.name() {
            "read" => (0, "/dev/zero", &mut reads),
            _ => (1, "/dev/null", &mut writes),
        };
        assert_eq!((call.num("fd"), call.fd_path("fd"), call.ret()), (fd, Some(path), Some(1)), "{call:?}");
        assert!(call.dur().is_some_and(|d| d > 0) && call.incomplete().is_none(), "{call:?}");
        *n += 1;
    }
    assert_eq!((reads, writes), (FEW, FEW));
    // one thread: calls follow each other and do not overlap
    let all = lab.calls("t.tape", &[]);
    for pair in all.windows(2) {
        let end = pair[0].ts() + pair[0].dur().unwrap_or(0);
        assert!(pair[1].ts() >= end, "overlap: {pair:?}");
    }
    // json, text and csv list the same number
    let lines = |format: &str| lab.analyze(&["t.tape", "--format", format]).expect(0).text().lines().count();
    assert_eq!((lines("text"), lines("csv")), (all.len(), all.len() + 1));
}

#[test]
fn exit_status_is_the_commands() {
    let Some(lab) = Lab::with_bpf() else { return };
    let cases: [(&[&str], i32); 6] = [
        (&["true"], 0),
        (&["sh", "-c", "exit 37"], 37),
        (&["sh", "-c", "kill -9 $$"], 128 + 9),
        (&["sh", "-c", "kill -15 $$"], 128 + 15),
        (&["no-such-program-here"], 127),
        (&["/etc/passwd"], 126),
    ];
    for (command, code) in cases {
        let run = lab.record("t.tape", &[], command).expect(code);
        assert_eq!(run.stderr.lines().count(), 1, "{command:?}: {}", run.stderr);
    }
    // the command has record's own standard streams
    let run = lab.record("t.tape", &[], &["sh", "-c", "echo out; echo err >&2"]).expect(0);
    assert_eq!(run.text(), "out\n");
    assert!(run.stderr.starts_with("err\n"), "{}", run.stderr);
}
