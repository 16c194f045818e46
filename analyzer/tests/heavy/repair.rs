//! `analyze repair`: whatever the damage, the copy checks as good, lists the same calls, and says "at least" where the
//! damaged tape does.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{Place, Row, Tape};

/// The lines of a listing that are calls.
fn calls(place: &Place, words: &str) -> Vec<String> {
    let got = place.ask(words);
    assert_eq!(got.status, 0, "{words}: {}", got.err);
    got.out
        .lines()
        .filter(|line| !["LOST", "TOTALS ONLY", "DAMAGED"].iter().any(|word| line.starts_with(word)))
        .filter(|line| !line.contains("\"lost\""))
        .map(str::to_owned)
        .collect()
}

/// Damages a tape with `bytes`, repairs it and compares what reports say of both.
fn compare(place: &Place, bytes: &[u8], what: &str) {
    fs::write(place.path("in"), bytes).unwrap();
    let _ = fs::remove_file(place.path("out"));
    let repaired = place.ask("repair in out");
    assert_eq!(repaired.status, 0, "{what}: {} {}", repaired.out, repaired.err);
    let check = place.ask("check out");
    assert!(check.status == 0 && check.out.contains("out: good"), "{what}: {}", check.out);
    for words in ["", "--format json"] {
        assert_eq!(calls(place, &format!("{words} in")), calls(place, &format!("{words} out")), "{what}: {words}");
    }
    let others = ["info", "exec", "states", "offcpu --by file", "sched latency", "states --at 50%"];
    for (words, both) in [("", true), ("-s", true), ("-s --summary-mode total", true)]
        .into_iter()
        .chain(others.map(|words| (words, false)))
    {
        let status = |file: &str| place.ask(&format!("{words} --fail-on-loss {file}")).status;
        let (before, after) = (status("in"), status("out"));
        // names of code: the copy says that there was a hole, and shows their addresses
        let names =
            words == "info" && before == 3 && repaired.out.contains("\n  a block of names; no total is touched\n");
        assert!(before == after || (!both && after == 3) || names, "{what}: '{words}': {before} before, {after} after");
        assert!(after != 1 || before == 1, "{what}: {words}");
    }
    let total = |file: &str| place.ask(&format!("-s --summary-mode total --format json {file}")).json();
    for (before, after) in total("in").iter().zip(&total("out")) {
        assert_eq!(before, after, "{what}");
    }
}

/// Offsets of the blocks, and the length.
fn offsets(file: &Path) -> Vec<usize> {
    let tape = systape_format::Tape::open(file).unwrap();
    tape.blocks().iter().map(|block| block.offset as usize).chain([tape.len_bytes() as usize]).collect()
}

fn damage_each_block(place: &Place, file: &Path) {
    let whole = fs::read(file).unwrap();
    let offsets = offsets(file);
    for pair in offsets.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        if from > 0 {
            compare(place, &whole[..from], &format!("cut at {from}"));
            compare(place, &whole[..from + 100], &format!("torn at {from}"));
        }
        let mut bytes = whole.clone();
        bytes[from + 132] ^= 8;
        compare(place, &bytes, &format!("payload at {from}"));
        let mut bytes = whole.clone();
        bytes[from + 80] ^= 8;
        compare(place, &bytes, &format!("header at {from}"));
        compare(place, &[&whole[..from], &whole[to..]].concat(), &format!("lost at {from}"));
    }
    compare(place, &whole, "whole");
    compare(place, &[&whole[..], &whole].concat(), "twice");
    compare(place, &[&whole[..], &[0; 5000]].concat(), "zeros behind it");
}

#[test]
fn every_block_of_a_small_tape() {
    let place = Place::with_sample();
    damage_each_block(&place, &place.path("sample.tape"));
}

#[test]
fn every_block_of_older_tapes() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes");
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<PathBuf> = files.filter(|file| file.extension().is_some_and(|e| e == "tape")).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let place = Place::new();
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            damage_each_block(&place, file);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(work);
        }
    });
}

#[test]
fn calls_that_were_open_when_the_recorder_was_killed_stay_open() {
    let place = Place::new();
    let mut tape = Tape::create(&place.path("trace.tape"));
    let row = Row { tid: 100, name: "close", start: 5, dur: 1, args: [3, 0, 0, 0, 0, 0], ..Row::default() };
    tape.segment(1_000, &[row], &[]);
    tape.checkpoint(&[(100, "read", 900, 7), (101, "futex", 200, 0x7f00)]);
    let row = Row { tid: 100, name: "read", start: 900, dur: 500, args: [7, 0, 0, 0, 0, 0], ..Row::default() };
    tape.segment(2_000, &[row], &[]);
    tape.abandon();
    compare(&place, &fs::read(place.path("trace.tape")).unwrap(), "killed");
    let listing = place.analyze("out");
    assert!(listing.err.contains("ended abnormally: complete until 0.002 s"), "{}", listing.err);
    assert!(listing.out.contains("app/101 futex(") && listing.out.contains("in flight"), "{}", listing.out);
    let check = place.analyze("check --format json in").json();
    assert_eq!((&check[0]["grade"], &check[0]["clean_end"]), (&"usable".into(), &false.into()));
    let hole = &check[0]["holes"][0];
    assert_eq!((&hole["from_ns"], &hole["to_ns"]), (&2_000_000.into(), &serde_json::Value::Null));
    assert_eq!((&hole["segments"], &hole["at_least"][0]), (&serde_json::Value::Null, &"unknown".into()));
    let check = place.analyze("check --format json out").json();
    assert_eq!((&check[0]["grade"], &check[0]["clean_end"]), (&"good".into(), &false.into()));
    assert!(check[0]["end_reason"].as_str().unwrap().contains("repaired from tape 0909"), "{}", check[0]);
}

#[test]
fn no_file_is_overwritten_and_no_link_followed() {
    let place = Place::with_sample();
    let fails = |words: &str, status: i32, part: &str| {
        let got = place.analyze(words);
        assert!(got.status == status && got.err.contains(part) && got.out.is_empty(), "{words}: {got:?}");
    };
    let whole = fs::read(place.path("sample.tape")).unwrap();
    fails("repair sample.tape sample.tape", 1, "not repaired in place");
    fs::write(place.path("there"), "mine").unwrap();
    fails("repair sample.tape there", 1, "never overwrites");
    assert_eq!(fs::read(place.path("there")).unwrap(), b"mine");
    symlink(place.path("nowhere"), place.path("link")).unwrap();
    fails("repair sample.tape link", 1, "never overwrites");
    assert!(!place.path("nowhere").exists());
    symlink(place.path("sample.tape"), place.path("same")).unwrap();
    fails("repair sample.tape same", 1, "not repaired in place");
    assert_eq!(fs::read(place.path("sample.tape")).unwrap(), whole);
    fails("repair sample.tape", 2, "name both files");
    fails("repair there new", 1, "not a tape");
    fails("repair sample.tape no/such/new", 1, "cannot create");
    assert!(!place.path("new").exists(), "nothing is begun for what is no tape");
    assert_eq!(place.analyze("repair -i sample.tape new").status, 0);
    assert_eq!(fs::metadata(place.path("new")).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn holes_are_named() {
    let place = Place::with_sample();
    let whole = fs::read(place.path("sample.tape")).unwrap();
    let tape = systape_format::Tape::open(&place.path("sample.tape")).unwrap();
    let core = tape.blocks().into_iter().find(|b| b.kind.name() == "syscalls.core" && b.segment == Some(1)).unwrap();
    let mut bytes = whole;
    bytes[core.offset as usize + 132] ^= 1;
    fs::write(place.path("in"), bytes).unwrap();
    let check = place.analyze("check in");
    assert_eq!(check.status, 1);
    assert!(check.out.starts_with("in: usable with this hole: "), "{}", check.out);
    assert!(check.out.contains("syscalls.core") && check.out.contains(" of segment 1, "), "{}", check.out);
    assert!(check.out.contains("; totals of syscall are lower bounds"), "{}", check.out);
    let json = &place.analyze("check --format json in").json()[0];
    assert_eq!((&json["holes"][0]["segments"], &json["grade"]), (&serde_json::json!([1, 1]), &"usable".into()));
    let repaired = &place.analyze("repair --format json in out").json()[0];
    assert_eq!((&repaired["holes"], &repaired["grade"]), (&json["holes"], &"good".into()));
    let listing = place.analyze("out");
    assert!(listing.out.contains("LOST 5 syscall events"), "{}", listing.out);
    assert!(listing.out.contains("damaged in the tape this one was repaired from"), "{}", listing.out);
}
