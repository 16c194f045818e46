//! `why` and `path`, `states` and `-s` about the same tapes: each figure that two of them have is the same in both.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common::{AT_FDCWD, Place, Row, Tape};
use serde_json::Value;
use systape_format::model::ByteStatus;

/// The recorded tapes, and those in the directory that SYSTAPE_TAPES names: `bench why --keep DIR` leaves sixty there.
fn tapes() -> Vec<PathBuf> {
    let dirs = [
        Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes")),
        std::env::var_os("SYSTAPE_TAPES").map(PathBuf::from),
    ];
    let files = dirs.into_iter().flatten().flat_map(|dir| std::fs::read_dir(dir).expect("a directory"));
    let files = files.map(|entry| entry.expect("an entry").path());
    let mut tapes: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "tape")).collect();
    tapes.sort();
    tapes
}

/// The rows; none of a tape without what is asked for.
fn rows(place: &Place, words: &str, tape: &Path) -> Vec<Value> {
    let got = place.analyze(&format!("{words} --format json {}", tape.display()));
    if got.err.contains("were not recorded in this tape") {
        return Vec::new();
    }
    assert!(got.status == 0 || got.status == 3, "{words} {}: {}", tape.display(), got.err);
    got.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn ns(row: &Value, key: &str) -> u64 {
    row[key].as_u64().unwrap_or_else(|| panic!("{key}: {row}"))
}

/// Sums of `ns` by two columns.
fn sums<'a>(rows: impl Iterator<Item = &'a Value>, keys: [&str; 2], of: &str) -> BTreeMap<[String; 2], u64> {
    let mut sums = BTreeMap::new();
    for row in rows {
        let key = keys.map(|key| row[key].as_str().unwrap_or("?").to_owned());
        *sums.entry(key).or_default() += ns(row, of);
    }
    sums
}

#[test]
fn a_budget_is_the_path_by_thread_and_cause_and_adds_up() {
    let place = Place::new();
    let mut seen = 0;
    for tape in tapes() {
        let why = rows(&place, "why", &tape);
        let level = |level: u64| why.iter().filter(move |row| row["kind"] == "budget" && row["level"] == level);
        if level(1).count() == 0 {
            continue;
        }
        seen += 1;
        let path = rows(&place, "path", &tape);
        assert_eq!(
            sums(level(2), ["comm", "state"], "cost_ns"),
            sums(path.iter(), ["comm", "cause"], "dur_ns"),
            "{}",
            tape.display()
        );
        let all = |rows: &mut dyn Iterator<Item = &Value>, of| rows.map(|row| ns(row, of)).sum::<u64>();
        let first = path.first().map_or(0, |row| ns(row, "ts_ns"));
        let last = path.last().map_or(0, |row| ns(row, "ts_ns") + ns(row, "dur_ns"));
        assert_eq!(all(&mut level(1), "cost_ns"), last - first, "{}: no hole, no overlap", tape.display());
        assert_eq!(all(&mut level(2), "cost_ns"), last - first, "{}", tape.display());
    }
    assert!(seen >= 3, "{seen} tapes with a subject");
}

#[test]
fn own_parts_of_a_path_are_states_of_the_thread() {
    let place = Place::new();
    let mut seen = 0;
    for tape in tapes() {
        let path = rows(&place, "path", &tape);
        let own = |cause: &str| {
            let own = path.iter().filter(|row| row["depth"] == 0 && row["cause"] == cause);
            own.map(|row| ns(row, "dur_ns")).sum::<u64>()
        };
        let Some(tid) = path.iter().find(|row| row["depth"] == 0).map(|row| ns(row, "tid")) else { continue };
        seen += 1;
        let (first, last) = (&path[0], &path[path.len() - 1]);
        let within = path.iter().filter(|row| row["depth"] != 0).map(|row| ns(row, "dur_ns")).sum::<u64>() / 10;
        let span = format!("{}ns,{}ns", ns(first, "ts_ns"), ns(last, "ts_ns") + ns(last, "dur_ns"));
        let states = rows(&place, &format!("states --by tid,state -t {tid} --time {span}"), &tape);
        // where a switch was not seen a call tells the path that the thread ran, and what comes behind the time asked for tells nothing
        let all = rows(&place, &format!("states --by tid,state -t {tid}"), &tape);
        let unseen = all.iter().filter(|row| row["state"] == "?").map(|row| ns(row, "time_ns")).sum::<u64>();
        let unsure = own("unknown") + unseen;
        for (cause, state) in [("cpu", "RUN"), ("runqueue", "RQ")] {
            let of = states.iter().filter(|row| row["state"] == state).map(|row| ns(row, "time_ns")).sum::<u64>();
            // a wait for several ends in a row is one: what the thread did in between, 1 ms at most each, is in it
            let (least, most) = (own(cause).saturating_sub(unsure), own(cause) + within + unsure);
            assert!((least..=most).contains(&of), "{} {cause}: {of} of {least}", tape.display());
        }
    }
    assert!(seen >= 3, "{seen} tapes with a path");
}

#[test]
fn own_code_has_its_hottest_functions() {
    let place = Place::new();
    let tape = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes/stacks-1.2.tape");
    let why = rows(&place, "why", &tape);
    let own = why.iter().find(|row| row["level"] == 1 && row["syscall"] == "[user]").expect("own code");
    assert_eq!(own["functions"], "hot_loop 99%", "{own}");
    let text = place.analyze(&format!("why {}", tape.display())).out;
    assert!(text.contains("on a CPU (in hot_loop 99%)"), "{text}");
}

/// Three slow openats in one directory, and one in another.
fn slow_opens(path: &Path) {
    let files = [("/nfs/lib/a", 50_000), ("/nfs/lib/b", 70_000), ("/nfs/lib/c", 60_000), ("/etc/d", 90_000)];
    let mut start = 100;
    let rows: Vec<Row<'_>> = files
        .iter()
        .map(|(name, dur)| {
            let captured = vec![(1, ByteStatus::Whole, name.len() as u64, name.as_bytes())];
            let row = Row {
                tid: 100,
                name: "openat",
                start,
                dur: *dur,
                args: [AT_FDCWD, 1, 0, 0, 0, 0],
                ret: 3,
                captured,
                ..Row::default()
            };
            start += dur + 10;
            row
        })
        .collect();
    let mut tape = Tape::create(path);
    tape.segment(start + 100, &rows, &[]);
    tape.finish();
}

#[test]
fn a_line_about_several_files_says_which() {
    let place = Place::new();
    let tape = place.path("opens.tape");
    slow_opens(&tape);
    let text = |options: &str| place.analyze(&format!("why --floor 1 {options} {}", tape.display())).out;
    let members = |text: &str| -> Vec<String> {
        text.lines().map(str::trim).filter(|line| line.contains(" in 1 call of ")).map(str::to_owned).collect()
    };
    let told =
        ["70.0 ms in 1 call of /nfs/lib/b", "60.0 ms in 1 call of /nfs/lib/c", "50.0 ms in 1 call of /nfs/lib/a"];
    assert_eq!(members(&text("--expand")), told, "{}", text("--expand"));
    assert_eq!(members(&text("")), [""; 0]);
    let rows = rows(&place, "why --floor 1 --expand", &tape);
    let of_members = rows.iter().filter(|row| row["kind"] == "member");
    let objects: Vec<&str> = of_members.filter_map(|row| row["object"].as_str()).collect();
    assert_eq!(objects, ["/nfs/lib/b", "/nfs/lib/c", "/nfs/lib/a"]);
}
