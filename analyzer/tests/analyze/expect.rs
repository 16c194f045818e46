//! `analyze assert`: what holds, what fails, and what a loss leaves open.

use std::fs;

use crate::common::{Place, Row, Tape, gap};

/// Two reads, the longest of 900 µs, and an openat that failed; and the same with a loss.
fn place() -> Place {
    let place = Place::new();
    for (name, gaps) in [("whole.tape", vec![]), ("gap.tape", vec![gap()])] {
        let row = |name, start, dur| Row { name, start, dur, ..Row::default() };
        let rows = [row("read", 10, 100), row("read", 200, 900), Row { errno: 2, ..row("openat", 1_200, 5) }];
        let mut tape = Tape::create(&place.path(name));
        tape.segment(3_000, &rows, &gaps);
        tape.finish();
    }
    place
}

/// What became of the expectation `line` about `tape`: status, outcome, what was found, and why.
fn judged(place: &Place, tape: &str, line: &str) -> (i32, String, String, String) {
    fs::write(place.path("expect.txt"), format!("# a comment\n\nit: {line}\n")).unwrap();
    let got = place.analyze(&format!("assert --format json {tape} expect.txt"));
    let rows = got.json();
    let text = |name: &str| rows[0][name].as_str().unwrap_or("-").to_owned();
    assert_eq!((rows.len(), rows[0]["name"].as_str()), (1, Some("it")), "{}", got.err);
    (got.status, text("outcome"), text("found"), text("why"))
}

#[test]
fn each_of_the_three_values() {
    let place = place();
    const BY_CALL: &str = "top --by syscall";
    for (line, whole, lossy) in [
        // of what is missing there may be more, never less
        ("-e read => sum(calls) = 2", "holds 2", "not_known >=2"),
        ("-e read => sum(calls) >= 2", "holds 2", "holds >=2"),
        ("-e read => sum(calls) < 2", "fails 2", "fails >=2"),
        ("-e read => sum(calls) < 3", "holds 2", "not_known >=2"),
        ("-e read => max(max_ns) < 1ms", "holds 0.900 ms", "not_known >=0.900 ms"),
        ("-e read => max(max_ns) < 0.9ms", "fails 0.900 ms", "fails >=0.900 ms"),
        ("-e read => min(min_ns) <= 100us", "holds 0.100 ms", "holds <=0.100 ms"),
        ("-e read => min(min_ns) > 50us", "holds 0.100 ms", "not_known <=0.100 ms"),
        ("-e fsync => sum(calls) = 0", "holds 0", "not_known >=0"),
        ("-e fsync => rows = 0", "holds 0", "not_known >=0"),
        // of no row everything holds, and nothing is there
        ("-e fsync => max(max_ns) < 50ms", "holds -", "not_known -"),
        ("-e fsync => max(max_ns) > 50ms", "fails -", "not_known -"),
        ("--failure -e openat => sum(errors) != 1", "fails 1", "not_known >=1"),
    ] {
        for (tape, expected) in [("whole.tape", whole), ("gap.tape", lossy)] {
            let (status, outcome, found, why) = judged(&place, tape, &format!("{BY_CALL} {line}"));
            assert_eq!(format!("{outcome} {found}"), expected, "{tape}: {line}");
            let of_outcome = [("holds", 0), ("fails", 1), ("not_known", 3)];
            assert!(of_outcome.contains(&(outcome.as_str(), status)), "{tape}: {line}: {outcome} {status}");
            assert_eq!(outcome == "not_known", why != "-" && why != "no row", "{tape}: {line}: {why}");
        }
    }
}

#[test]
fn a_damaged_tape_never_turns_an_answer_round() {
    let place = place();
    let lines =
        "a: top --by syscall => sum(calls) = 3\nb: top --by syscall => max(max_ns) > 1ms\nc: top -e read => rows = 1\n";
    fs::write(place.path("expect.txt"), lines).unwrap();
    let outcomes = |tape: &str| -> Vec<String> {
        let got = place.ask(&format!("assert --format json {tape} expect.txt"));
        assert!(got.status < 100, "{}", got.err);
        let text = |row: &serde_json::Value| row["outcome"].as_str().unwrap().to_owned();
        got.json().iter().map(text).collect()
    };
    let whole = outcomes("whole.tape");
    assert_eq!(whole, ["holds", "fails", "holds"]);
    let bytes = fs::read(place.path("whole.tape")).unwrap();
    let mut open = 0;
    for at in (0..bytes.len()).step_by(3) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        fs::write(place.path("damaged.tape"), damaged).unwrap();
        for (outcome, whole) in outcomes("damaged.tape").iter().zip(&whole) {
            assert!(outcome == whole || outcome == "not_known", "byte {at}: {outcome}, not {whole}");
            open += usize::from(outcome == "not_known");
        }
    }
    assert!(open > 50, "{open}");
}

#[test]
fn what_was_not_recorded_is_not_known() {
    let place = place();
    let (status, outcome, _, why) = judged(&place, "whole.tape", "sched latency => rows = 0");
    assert_eq!((status, outcome.as_str()), (3, "not_known"));
    assert!(why.contains("not recorded"), "{why}");
}

#[test]
fn a_failure_is_worse_than_what_is_not_known() {
    let place = place();
    let lines = "a: top --by syscall => sum(calls) = 3\nb: top --by syscall => sum(calls) < 2\nc: top => rows > 0\n";
    fs::write(place.path("expect.txt"), lines).unwrap();
    let got = place.analyze("assert gap.tape expect.txt");
    assert_eq!(got.status, 1);
    assert!(got.out.contains("holds: 1, fails: 1, not known: 1\n  analyze top --by syscall\n"), "{}", got.out);
    let xml = place.analyze("assert --junit gap.tape expect.txt");
    assert_eq!(xml.status, 1);
    for part in [
        "<testsuite name=\"gap.tape\" tests=\"3\" failures=\"1\" errors=\"1\">",
        "name=\"a\">\n<error message=\"expected sum(calls) = 3, found &gt;=3\">events are missing",
        "name=\"b\">\n<failure message=\"expected sum(calls) &lt; 2, found &gt;=3\">",
        "name=\"c\"/>",
    ] {
        assert!(xml.out.contains(part), "{part}: {}", xml.out);
    }
}

#[test]
fn what_asks_for_nothing_that_there_is_is_bad_usage() {
    let place = place();
    for (line, why) in [
        ("x: nosuch => rows = 0", "line 1: 'nosuch' names no report"),
        ("x: top --nosuch => rows = 0", "line 1: --nosuch"),
        ("\nx: top => sum(nosuch) = 0", "line 2: there is no column 'nosuch'; numbers are in calls, errors, total_ns"),
        ("x: top => sum(comm) = 0", "line 1: column 'comm' has no numbers"),
        ("x: top => max(max_ns) < 5", "line 1: '5': a time has a unit: 5ms"),
        ("x: top", "expect.txt: line 1: an expectation is NAME: REPORT => CONDITION"),
        ("x: report => rows = 0", "line 1: 'analyze report'"),
        ("# nothing", "expect.txt: there is no expectation in it"),
    ] {
        fs::write(place.path("expect.txt"), line).unwrap();
        let got = place.analyze("assert whole.tape expect.txt");
        assert_eq!(got.status, 2, "{line}: {} {}", got.out, got.err);
        assert!(got.err.contains(why), "{line}: {}", got.err);
    }
    assert_eq!(place.analyze("assert whole.tape").status, 2);
    let missing = place.analyze("assert whole.tape nosuch.txt");
    assert_eq!(
        (missing.status, missing.err.as_str()),
        (1, "analyze: cannot read nosuch.txt: No such file or directory (os error 2)\n")
    );
}
