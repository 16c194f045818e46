//! `analyze --follow`: rows of a tape that is being written are those of the whole tape, and come when their segment does.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::common::{self, Place};

/// The tapes of older versions, the sample, and one with losses of process life.
fn place() -> (Place, Vec<String>) {
    let place = Place::with_sample();
    common::life::write(&place.path("life.tape"), &[]);
    common::life::write(&place.path("lossy.tape"), &[common::gap()]);
    let mut names = ["sample.tape", "life.tape", "lossy.tape"].map(str::to_owned).to_vec();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "tape") {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            fs::copy(&path, place.path(&name)).unwrap();
            names.push(name);
        }
    }
    (place, names)
}

/// Rows without what depends on clock samples that come later.
fn rows(text: &str) -> Vec<Value> {
    let row = |line: &str| {
        let mut row: Value = serde_json::from_str(line).unwrap();
        row.as_object_mut().unwrap().remove("time");
        row.as_object_mut().unwrap().remove("time_uncertain_ns");
        row
    };
    text.lines().map(row).collect()
}

fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn the_listing_is_that_of_the_whole_tape_by_end() {
    let (place, names) = place();
    let mut lines = 0;
    for name in &names {
        for words in
            ["", "--format json", "--format csv", "-e open* --duration 0.001", "-p 100,101 --failure", "--max-events 3"]
        {
            let whole = place.ask(&format!("-i {name} --sort end {words}"));
            let follow = place.ask(&format!("-i {name} --follow {words}"));
            lines += follow.out.lines().count();
            if words.contains("json") {
                // a loss is told with its segment, wherever its time is
                let parted = |text: &str| rows(text).into_iter().partition::<Vec<_>, _>(|row| row["lost"].is_null());
                let [(calls, mut lost), (all_calls, mut all_lost)] = [&follow.out, &whole.out].map(|text| parted(text));
                assert_eq!(calls, all_calls, "{name} {words}");
                lost.sort_by_key(Value::to_string);
                all_lost.sort_by_key(Value::to_string);
                assert_eq!(lost, all_lost, "{name} {words}");
            } else if !words.contains("csv") {
                let calls = |text: &str| text.lines().filter(|line| line.contains(" = ")).map(str::to_owned).collect();
                let (calls, lines): (Vec<Vec<String>>, Vec<_>) =
                    [&follow.out, &whole.out].map(|text| (calls(text), sorted(text))).into_iter().unzip();
                assert_eq!(calls[0], calls[1], "{name} {words}");
                assert_eq!(lines[0], lines[1], "{name} {words}");
            }
            assert_eq!(follow.status, 0, "{name} {words}: {}", follow.err);
        }
    }
    assert!(lines > 500, "{lines}");
}

#[test]
fn a_program_has_a_row_when_it_starts_and_one_when_it_ends() {
    let (place, names) = place();
    let mut ended = 0;
    for name in &names {
        let whole = rows(&place.ask(&format!("exec -i {name} --format json")).out);
        let follow = rows(&place.ask(&format!("exec -i {name} --follow --format json")).out);
        let id = |row: &Value| [&row["ts_ns"], &row["upid"], &row["errno"]].map(Value::clone);
        for row in &whole {
            let same: Vec<&Value> = follow.iter().filter(|other| id(other) == id(row)).collect();
            let last = *same.last().unwrap_or_else(|| panic!("{name}: {row}"));
            if row["ended"] == "exit" {
                assert_eq!((same.len(), last, &same[0]["ended"]), (2, row, &Value::Null), "{name}");
                ended += 1;
            } else {
                assert_eq!((same.len(), &last["args"], &last["ended"]), (1, &row["args"], &Value::Null), "{name}");
            }
        }
        assert_eq!(follow.len(), whole.len() + whole.iter().filter(|row| row["ended"] == "exit").count(), "{name}");
    }
    assert!(ended > 10, "{ended}");
    let failed = place.ask("exec -i life.tape --follow --exit !=0 --format json");
    let failed = rows(&failed.out);
    assert!(
        !failed.is_empty() && failed.iter().all(|row| row["ended"] == "exit" && row["exit_code"] != 0),
        "{failed:?}"
    );
}

#[test]
fn a_signal_has_the_outcome_that_it_has_in_the_whole_tape() {
    let (place, names) = place();
    let mut caused = 0;
    for name in &names {
        let whole = rows(&place.ask(&format!("kills -i {name} --all --format json")).out);
        let follow = rows(&place.ask(&format!("kills -i {name} --all --follow --format json")).out);
        let id = |row: &Value| [&row["ts_ns"], &row["signal"], &row["target"]["utid"]].map(Value::clone);
        for row in whole.iter().filter(|row| row["lost"].is_null()) {
            let last =
                follow.iter().rev().find(|other| id(other) == id(row)).unwrap_or_else(|| panic!("{name}: {row}"));
            for of in ["via", "sender", "result"] {
                assert_eq!(last[of], row[of], "{name}: {of}");
            }
            assert_eq!(last["outcome"]["exit_signal"], row["outcome"]["exit_signal"], "{name}");
            caused += usize::from(row["outcome"]["cause"] == true);
        }
    }
    assert!(caused > 0);
}

fn begin(place: &Place, words: &[&str]) -> Child {
    // a suite in the background was started with SIGINT ignored, and so would be what it starts
    Command::new("env")
        .arg("--default-signal=INT")
        .arg(common::program())
        .args(words)
        .current_dir(place.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The end of a child that is to end by itself: status and what it told.
fn end(mut child: Child) -> (Option<i32>, String) {
    let status = child.wait().unwrap();
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    (status.code(), err)
}

/// Where the last segment of the sample begins, about.
fn half(bytes: &[u8]) -> usize {
    let tape = systape_format::Tape::from_bytes(bytes.to_vec()).unwrap();
    let last = tape.segments().last().unwrap().segment;
    let first = tape.blocks().into_iter().find(|block| block.segment == Some(last)).unwrap();
    first.offset as usize
}

#[test]
fn rows_come_before_the_tape_ends() {
    let place = Place::with_sample();
    let bytes = fs::read(place.path("sample.tape")).unwrap();
    let (first, rest) = bytes.split_at(half(&bytes));
    let whole = place.ask("sample.tape --sort end").out;
    let mut child = begin(&place, &["--follow", "-"]);
    let mut input = child.stdin.take().unwrap();
    input.write_all(first).unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // the writer waits: nothing else could make this line come
    let begun = lines.next().unwrap().unwrap();
    assert_eq!(Some(&*begun), whole.lines().next());
    input.write_all(rest).unwrap();
    drop(input);
    let all: Vec<String> = std::iter::once(begun).chain(lines.map(Result::unwrap)).collect();
    assert_eq!(all, whole.lines().collect::<Vec<_>>());
    assert_eq!(end(child).0, Some(0));
}

#[test]
fn who_reads_no_more_ends_it_quietly() {
    let place = Place::with_sample();
    let bytes = fs::read(place.path("sample.tape")).unwrap();
    let mut child = begin(&place, &["--follow", "-"]);
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    // it may be gone before it has all
    let _ = input.write_all(&bytes);
    drop(input);
    assert_eq!(end(child), (Some(0), String::new()));
}

#[test]
fn a_signal_ends_it_cleanly() {
    let place = Place::with_sample();
    let bytes = fs::read(place.path("sample.tape")).unwrap();
    for (file, signals) in [(false, 2), (true, 1)] {
        let held = File::options().read(true).open(place.path("sample.tape")).unwrap();
        fs::write(place.path("grows.tape"), &bytes[..half(&bytes)]).unwrap();
        let writer = File::options().append(true).open(place.path("grows.tape")).unwrap();
        systape_cli::held::hold(&writer);
        let mut child = begin(&place, &["--follow", if file { "grows.tape" } else { "-" }]);
        let mut input = child.stdin.take().unwrap();
        input.write_all(&bytes[..half(&bytes)]).unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        lines.next().unwrap().unwrap();
        for _ in 0..signals {
            let pid = child.id().to_string();
            assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
            // two that are pending at a time are one
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(end(child), (Some(0), String::new()), "{file}");
        drop((held, input, writer));
    }
}

#[test]
fn what_is_missing_is_told() {
    let place = Place::with_sample();
    let bytes = fs::read(place.path("sample.tape")).unwrap();
    let piped = |bytes: &[u8], words: &[&str]| {
        let mut child = begin(&place, words);
        child.stdin.take().unwrap().write_all(bytes).unwrap();
        let (mut out, mut stdout) = (String::new(), child.stdout.take().unwrap());
        stdout.read_to_string(&mut out).unwrap();
        let (status, err) = end(child);
        (status, out, err)
    };
    // as kill -9 of record leaves it
    let (status, out, err) = piped(&bytes[..half(&bytes)], &["--follow", "--fail-on-loss", "-"]);
    assert_eq!((status, err.lines().count()), (Some(3), 1), "{err}");
    assert!(!out.is_empty() && err.contains("abnormally"), "{err}");
    let (status, _, err) = piped(&bytes[..half(&bytes) + 50], &["exec", "--follow", "-"]);
    assert!(status == Some(0) && err.is_empty(), "text has its own lines: {err}");
    let (status, _, err) = piped(b"no tape at all", &["--follow", "-"]);
    assert!(status == Some(1) && err.contains("not a tape"), "{err}");
    common::life::write(&place.path("lossy.tape"), &[common::gap()]);
    let lost = place.ask("exec --follow -i lossy.tape");
    assert!(lost.out.contains("LOST"), "{}", lost.out);
}

#[test]
fn what_needs_the_whole_tape_is_refused() {
    let place = Place::with_sample();
    for words in [
        "--follow --time 0,1",
        "--follow -P /etc/passwd",
        "--follow --sort start",
        "--follow -p 1 --tree",
        "--follow --show-cwd",
        "--follow --call-graph",
        "exec --follow --tree",
        "kills --follow --time 1",
        "--follow -s",
        "files --follow",
    ] {
        let refused = place.ask(&format!("{words} -i sample.tape"));
        assert_eq!((refused.status, refused.out.len()), (2, 0), "{words}: {}", refused.err);
    }
    let refused = place.ask("--follow sample.tape sample.tape");
    assert_eq!(refused.status, 2, "{}", refused.err);
}
