//! What is taken out of a tape is nowhere in its bytes, whether it was left out while recording or taken out later; what is counted stays.

use std::fs;

use serde_json::Value;
use systape_e2e::Lab;
use systape_e2e::blocks::unpacked;
use systape_format::Tape;

/// (mark, whether `paths`, `strings` and `all` take it out).
const MARKS: [(&[u8], [bool; 3]); 9] = [
    (b"MARKpath", [true; 3]),
    // the debug information's source file
    (b"workloads/redact.c", [true; 3]),
    (b"MARKargv", [false, true, true]),
    (b"MARKstring", [false, true, true]),
    (b"MARKcomm", [false, false, true]),
    // an address as sockets have it, in a word of its own
    (&[127, 77, 66, 55, 0, 0, 0, 0], [false, false, true]),
    // the same in a captured sockaddr is user memory
    (b"\x02\0\0\0\x7f\x4d\x42\x37", [false, false, true]),
    // names of functions are not
    (b"secret_function", [false; 3]),
    (b"connection", [false; 3]),
];
const LEVELS: [&str; 3] = ["paths", "strings", "all"];

/// The file, and what its blocks hold.
fn contents(lab: &Lab, tape: &str) -> Vec<u8> {
    [fs::read(lab.path(tape)).expect(tape), unpacked(&lab.path(tape))].concat()
}

fn marks(lab: &Lab, tape: &str) -> Vec<bool> {
    let all = contents(lab, tape);
    MARKS.iter().map(|(mark, _)| !all.windows(mark.len()).any(|window| window == *mark)).collect()
}

/// Calls that the workload makes a known number of times, by name.
fn counts(lab: &Lab, tape: &str) -> Vec<(String, Value)> {
    let names = "mkdir,link,linkat,memfd_create,connect,accept4,kill,listen,bind,execve,fork,clone,clone3,open,openat,\
                 symlink,symlinkat,mount,mq_open,mq_unlink";
    let rows = lab.analyze(&["-s", "--summary-mode", "total", "-e", names, "--format", "json", tape]).expect(0).json();
    let mut counts: Vec<_> = rows.iter().map(|row| (row["syscall"].to_string(), row["calls"].clone())).collect();
    // they are listed by the time they took
    counts.sort_by(|a, b| a.0.cmp(&b.0));
    counts
}

fn lines(lab: &Lab, arguments: &[&str]) -> usize {
    lab.analyze(arguments).expect(0).text().lines().count()
}

fn record(lab: &Lab, tape: &str, options: &[&str]) {
    fs::remove_dir_all(lab.path("MARKpath")).ok();
    let options = [&["--call-graph", "dwarf"], options].concat();
    lab.record(tape, &options, &["./redact"]).expect(0);
    lab.assert_whole(tape);
}

#[test]
fn nothing_of_a_class_is_left() {
    let Some(lab) = Lab::beside() else { return };
    lab.cc("redact", &[]);
    record(&lab, "plain.tape", &[]);
    let all_there = marks(&lab, "plain.tape");
    for ((mark, _), gone) in MARKS.iter().zip(&all_there) {
        assert!(!gone, "the tape has no {} to begin with", String::from_utf8_lossy(mark));
    }
    assert_eq!(lab.info("plain.tape")["redacted"], serde_json::json!([]));
    let reports: [&[&str]; 8] = [
        &["--no-comm"],
        &["-s"],
        &["kills", "--signal", "TERM"],
        &["exec"],
        &["net"],
        &["callgraph", "--of", "syscall", "--folded"],
        &["--format", "json"],
        &["block"],
    ];
    for (at, level) in LEVELS.into_iter().enumerate() {
        let expected: Vec<bool> = MARKS.iter().map(|(_, gone)| gone[at]).collect();
        // while recording
        let recorded = format!("recorded-{level}.tape");
        record(&lab, &recorded, &["--redact", level]);
        assert_eq!(marks(&lab, &recorded), expected, "record --redact {level}");
        assert_eq!(counts(&lab, &recorded), counts(&lab, "plain.tape"), "record --redact {level}");
        // later
        let copy = format!("copy-{level}.tape");
        lab.analyze(&["redact", "--level", level, "plain.tape", &copy]).expect(0);
        lab.assert_whole(&copy);
        assert_eq!(marks(&lab, &copy), expected, "analyze redact --level {level}");
        for tape in [recorded.as_str(), copy.as_str()] {
            let info = lab.info(tape);
            let taken = info["redacted"].as_array().expect("redacted");
            assert_eq!(taken.len(), [1, 3, 7][at], "{info}");
            let users = Tape::open(&lab.path(tape)).expect(tape).session().users.len();
            assert_eq!(users == 0, level == "all", "{tape}: {users} names of users");
            let inside = info["classes"].as_array().expect("classes");
            assert!(taken.iter().all(|class| !inside.contains(class)), "{info}");
        }
        // every report has as many lines, and none says that what was taken out is not known
        for report in reports {
            let of = |tape| lines(&lab, &[report, &[tape]].concat());
            // equal stacks of files that are told apart by nothing else become one
            if report[0] == "callgraph" {
                assert!(of(&copy) > 10 && of(&copy) <= of("plain.tape"), "{report:?} {level}");
            } else {
                assert_eq!(of(&copy), of("plain.tape"), "{report:?} {level}");
            }
        }
        let sums =
            |tape: &str| lab.analyze(&["-s", "--summary-mode", "total", "--format", "json", tape]).expect(0).text();
        assert_eq!(sums(&copy), sums("plain.tape"), "{level}");
        let listing = lab.analyze(&["-e", "openat,open,execve", &copy]).expect(0).text();
        assert!(listing.contains("filename: <redacted>"), "{listing}");
        let kills = lab.analyze(&["kills", "-v", "--signal", "TERM", &copy]).expect(0).text();
        assert!(kills.contains("exe     <redacted>"), "{kills}");
        assert_eq!(kills.contains("command <redacted>"), level != "paths", "{kills}");
        assert_eq!(kills.contains("command prog MARKargv"), level == "paths", "{kills}");
        assert_eq!(kills.contains("MARKcomm"), level != "all", "{kills}");
        let exec = lab.analyze(&["exec", "--format", "json", &copy]).expect(0).text();
        assert!(exec.contains("<redacted>"), "{exec}");
        let graph = lab.analyze(&["callgraph", "--of", "syscall", "--folded", &copy]).expect(0).text();
        assert!(graph.contains("worker;secret_function"), "{graph}");
        let net = lab.analyze(&["net", &copy]).expect(0).text();
        assert_eq!(net.contains("127.77.66.55"), level != "all", "{net}");
        assert!(!net.contains('?') || lab.analyze(&["net", "plain.tape"]).text().contains('?'), "{net}");
    }
}
