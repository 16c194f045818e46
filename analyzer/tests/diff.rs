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

/// Calls, errors and time, ns, by program, call and error, of the listed calls.
fn listed(tape: &Path) -> BTreeMap<String, [i64; 3]> {
    let mut sums: BTreeMap<String, [i64; 3]> = BTreeMap::new();
    for call in rows(&[], &[tape]) {
        // one that is made again has not failed
        let failed = call["errno"].as_str().is_some_and(|name| !name.starts_with("ERESTART"));
        let errno = if failed { call["errno"].as_str().unwrap() } else { "0" };
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
        for row in rows(&["diff", "--by", "comm,syscall,errno"], &[&before, &after]) {
            let key = format!("{} {} {}", row["comm"], row["syscall"], row["errno"].as_str().unwrap());
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
        let rows = rows(&["diff", "--by", by], &[&same, &same]);
        assert!(rows.len() > 3 || by.contains("cgroup"), "{by}: {rows:?}");
        for row in &rows {
            for column in ["calls_diff", "errors_diff", "total_ns_diff"] {
                assert_eq!(row[column], 0, "{by}: {row}");
            }
        }
    }
}
