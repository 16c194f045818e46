//! `diff` beside the listing: calls, errors and times of each key on both sides are those of the listed calls.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn tape(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes").join(name)
}

fn rows(words: &[&str], tapes: &[&Path]) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_analyze"));
    let run = command.args(words).args(["--format", "json"]).args(tapes).output().unwrap();
    assert!(run.status.success(), "{run:?}");
    String::from_utf8(run.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The rows of calls, without those of what is measured besides.
fn calls(words: &[&str], tapes: &[&Path]) -> Vec<Value> {
    rows(words, tapes).into_iter().filter(|row| row.get("measure").is_none()).collect()
}

/// Calls, errors and time, ns, by program, call and error, of the listed calls.
fn listed(tape: &Path) -> BTreeMap<String, [i64; 3]> {
    let mut sums: BTreeMap<String, [i64; 3]> = BTreeMap::new();
    for call in rows(&[], &[tape]) {
        // one that is made again has not failed
        let failed = call["errno"].as_str().is_some_and(|name| !name.starts_with("ERESTART"));
        // what did not return might have returned anything
        let ended = !matches!(call["incomplete"].as_str(), Some("in-flight" | "killed" | "no-return"));
        let errno = if failed {
            call["errno"].as_str().unwrap()
        } else if ended {
            "0"
        } else {
            "null"
        };
        let key = format!("{} {} {errno}", call["comm"], call["syscall"]);
        let sum = sums.entry(key).or_default();
        let more = [1, i64::from(failed), call["dur_ns"].as_i64().unwrap_or(0)];
        sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    }
    sums
}

#[test]
fn each_side_is_what_is_listed_of_it() {
    let names = ["mix-1.1.tape", "kernel-6.1-mix.tape", "kernel-6.1-sh.tape", "kernel-6.12-sh.tape", "mix-1.5.tape"];
    for (one, other) in names.iter().zip(names.iter().skip(1)) {
        let (before, after) = (tape(one), tape(other));
        let sides = [listed(&before), listed(&after)];
        assert!(sides.iter().all(|side| side.len() > 10));
        let mut left: Vec<String> = sides.iter().flat_map(BTreeMap::keys).cloned().collect();
        left.sort();
        left.dedup();
        for row in calls(&["diff", "--by", "comm,syscall,errno"], &[&before, &after]) {
            let key = format!("{} {} {}", row["comm"], row["syscall"], row["errno"].as_str().unwrap_or("null"));
            let at = left.binary_search(&key).unwrap_or_else(|_| panic!("{key} is nowhere listed, or twice here"));
            left.remove(at);
            let of = |side: usize| sides[side].get(&key).copied().unwrap_or_default();
            for (nth, column) in ["calls", "errors", "total_ns"].into_iter().enumerate() {
                let told = ["before", "after", "diff"].map(|when| row[format!("{column}_{when}")].as_i64().unwrap());
                let expected = [of(0)[nth], of(1)[nth], of(1)[nth] - of(0)[nth]];
                assert_eq!(told, expected, "{column} of {key}, {one} and {other}");
            }
        }
        assert_eq!(left, Vec::<String>::new());
    }
}

#[test]
fn a_tape_differs_in_nothing_from_itself() {
    let same = tape("mix-1.5.tape");
    for by in ["syscall", "file,errno", "comm,peer,cgroup,uid", "dir,ext,cpu"] {
        for measure in rows(&["diff", "--by", by], &[&same, &same]).iter().filter(|row| row.get("measure").is_some()) {
            assert_eq!((&measure["diff"], &measure["changed"]), (&0.into(), &false.into()), "{measure}");
        }
        let rows = calls(&["diff", "--by", by], &[&same, &same]);
        assert!(rows.len() > 3 || by.contains("cgroup"), "{by}: {rows:?}");
        for row in &rows {
            for column in ["calls_diff", "errors_diff", "total_ns_diff"] {
                assert_eq!(row[column], 0, "{by}: {row}");
            }
        }
    }
}

#[test]
fn stretches_of_one_tape_are_its_times() {
    let tape = tape("mix-1.5.tape");
    let of = |time: &str| -> BTreeMap<String, [i64; 2]> {
        let sums = rows(&["-s", "--summary-mode", "total", "--time", time], &[&tape]);
        let sums = sums.into_iter().filter(|row| row.get("kind").is_none());
        let numbers = |row: &Value| ["calls", "total_ns"].map(|name| row[name].as_i64().unwrap());
        sums.map(|row| (row["syscall"].as_str().unwrap().to_owned(), numbers(&row))).collect()
    };
    let (before, after) = (of(",40%"), of("40%,"));
    assert!(before.len() > 10 && after.len() > 10);
    let found = calls(&["diff", "--before", ",40%", "--after", "40%,"], &[&tape]);
    for row in &found {
        let call = row["syscall"].as_str().unwrap();
        for (when, sums) in [("before", &before), ("after", &after)] {
            let told = ["calls", "total_ns"].map(|name| row[format!("{name}_{when}")].as_i64().unwrap());
            assert_eq!(told, sums.get(call).copied().unwrap_or_default(), "{call} {when}");
        }
    }
    let calls: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    assert_eq!(found.len(), calls.len());
}

#[test]
fn measures_are_those_of_states() {
    let (before, after) = (tape("mix-1.5.tape"), tape("stacks-1.2.tape"));
    let found = rows(&["diff"], &[&before, &after]);
    for (tape, when) in [(&before, "before"), (&after, "after")] {
        let mut states: BTreeMap<String, i64> = BTreeMap::new();
        for row in rows(&["states", "--by", "state,syscall"], &[tape]) {
            // the kernel's threads without work
            if row["state"] == "S" && row["syscall"] == "[kernel]" {
                continue;
            }
            *states.entry(row["state"].as_str().unwrap().to_owned()).or_default() += row["time_ns"].as_i64().unwrap();
        }
        let sum = |names: &[&str]| -> i64 {
            let of = |row: &&Value| row["measure"].as_str().is_some_and(|name| names.contains(&name));
            found.iter().filter(of).map(|row| row[when].as_i64().unwrap()).sum()
        };
        let state = |name: &str| states.get(name).copied().unwrap_or(0);
        assert_eq!(sum(&["cpu-user", "cpu-calls", "cpu-other"]), state("RUN"), "{when}");
        assert_eq!(sum(&["cpu-wait"]), state("RQ"), "{when}");
        assert_eq!(sum(&["asleep-disk"]), state("D"), "{when}");
        let asleep = ["futex", "poll", "wait", "timer", "calls", "unknown"].map(|name| format!("asleep-{name}"));
        assert_eq!(sum(&asleep.each_ref().map(String::as_str)), state("S"), "{when}");
        assert!(state("RUN") > 0);
    }
}

/// What `analyze` prints, and its status.
fn text(words: &[&str], tapes: &[&Path]) -> (String, Option<i32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_analyze"));
    let run = command.args(words).args(tapes).output().unwrap();
    (String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned(), run.status.code())
}

#[test]
fn one_tape_needs_two_stretches() {
    let tape = tape("mix-1.5.tape");
    for (words, says) in [
        (&["diff"][..], "compares two tapes: name both; or two stretches of one"),
        (&["diff", "--before", "0,1"], "two stretches of one"),
        (&["diff", "--before", "0,1", "--after", "1,2", "--time", "0,9"], "--time is of both sides"),
        (&["diff", "--before", "0,1", "--after", "1,2,3"], "give FROM,TO"),
    ] {
        let (said, status) = text(words, &[&tape]);
        assert!(said.contains(says) && status == Some(2), "{words:?}: {status:?} {said}");
    }
    let (said, status) = text(&["diff", "--before", ",50%", "--after", "50%,"], &[&tape]);
    assert!(status == Some(0) && said.contains("tape ,50%, ") && said.contains("tape 50%,, "), "{said}");
}
