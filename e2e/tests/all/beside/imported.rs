//! Logs of strace as tapes (`analyze import strace`): ten programs, each once under strace and once recorded. The imported tape has every call of
//! the log, by name and error, as an independent reader of the lines counts them; and as many as the recording, on the same files.
//! [`VARY`] is the whole list of calls that two runs make in other numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;
use systape_e2e::Lab;
use systape_e2e::lab::run;
use systape_e2e::more::without_random;

/// Programs of the same work every time, as words of sh.
const PROGRAMS: [(&str, &str); 11] = [
    ("ls", "exec ls -l tree"),
    ("cat", "exec cat tree/a nosuchfile"),
    ("pipeline", "seq 1 200 | sort -n | wc -l"),
    ("python", "exec /usr/bin/python3 -S -E -B -c 'import os; os.listdir(\"tree\"); os.path.exists(\"none\")'"),
    ("gcc", "exec gcc -O0 -c -o out.o tree/main.c"),
    ("dd", "exec dd if=/dev/zero of=out bs=4096 count=37"),
    ("connect", "exec ./imported"),
    ("git", "git -C tree status --short; git init -q repo"),
    ("tar", "exec tar cf out.tar tree"),
    ("find", "exec find tree -name '*.c' -exec cat {} +"),
    ("threads", "./imported > /dev/null; exit 5"),
];

/// Calls that differ in number from run to run, also under no observer, and why.
const VARY: [(&str, &str); 8] = [
    ("brk", "where the heap begins is random, and so how often it must grow"),
    ("mmap", "as brk, in glibc's arenas"),
    ("munmap", "as mmap"),
    ("mprotect", "as mmap"),
    ("getrandom", "mkstemp draws again on some runs"),
    ("futex", "who waits for whom depends on time"),
    ("pause", "it is killed in it, or before it came so far"),
    ("rt_sigreturn", "two children that end together send one SIGCHLD"),
];

type Counts = BTreeMap<(String, String), u64>;

/// Calls and errors of a tape.
fn summary(lab: &Lab, tape: &str) -> Counts {
    let rows = lab.analyze(&["-s", "--by", "syscall,errno", "--format", "json", tape]).expect(0).json();
    let word = |row: &Value, key: &str| row[key].as_str().unwrap_or("0").to_owned();
    rows.iter().map(|row| ((word(row, "syscall"), word(row, "errno")), row["calls"].as_u64().expect("calls"))).collect()
}

/// Calls and errors of a log with pid and time in front: a line with a result is a call; `<unfinished ...>` is not.
fn counted(log: &Path) -> Counts {
    let mut counts = Counts::new();
    for line in fs::read_to_string(log).expect("a log").lines() {
        // strace pads a pid of less than five digits
        let (_pid, rest) = line.split_once(' ').expect("a pid");
        let (_time, body) = rest.trim_start().split_once(' ').expect("a time");
        let body = body.trim_start();
        if body.starts_with("+++") || body.starts_with("---") || body.ends_with("<unfinished ...>") {
            continue;
        }
        let name = match body.strip_prefix("<... ") {
            Some(resumed) => resumed.split(' ').next().expect("a name"),
            None => body.split('(').next().expect("a name"),
        };
        let result = body.rsplit_once(" = ").expect("a result").1;
        let error = result.strip_prefix("-1 ").map_or("0", |error| error.split(' ').next().expect("an error"));
        *counts.entry((name.to_owned(), error.to_owned())).or_default() += 1;
    }
    counts
}

/// Files of a tape with opens, reads, writes and errors; without those whose numbers are of one run.
fn files(lab: &Lab, tape: &str) -> BTreeMap<String, [u64; 4]> {
    let rows = lab.analyze(&["files", "--top", "0", "--format", "json", tape]).expect(0).json();
    let number = |row: &Value, key: &str| row[key].as_u64().expect("a number");
    let mut files: BTreeMap<String, [u64; 4]> = BTreeMap::new();
    for row in &rows {
        // strace says behind the name that a file was removed, and the import passes that over
        let Some(file) = row["file"].as_str().map(|file| file.trim_end_matches(" (deleted)")) else { continue };
        let odd = ["pipe:[", "TCP:[", "/proc/", "socket:["].iter().any(|odd| file.starts_with(odd));
        if !odd {
            // several of one run may have such a name
            let all = files.entry(without_random(file.as_bytes())).or_default();
            let work = ["opens", "reads", "writes", "errors"].map(|key| number(row, key));
            all.iter_mut().zip(work).for_each(|(sum, more)| *sum += more);
        }
    }
    files
}

fn prepare(lab: &Lab) {
    fs::create_dir_all(lab.path("tree/sub")).expect("a directory");
    for (name, text) in [("a", "some\n"), ("main.c", "int main(void) { return 0; }\n"), ("sub/b.c", "int b;\n")] {
        fs::write(lab.path("tree").join(name), text).expect("a file");
    }
}

/// What a run leaves behind.
fn tidy(lab: &Lab) {
    for name in ["out", "out.o", "out.tar"] {
        let _ = fs::remove_file(lab.path(name));
    }
    let _ = fs::remove_dir_all(lab.path("repo"));
}

#[test]
fn an_imported_log_has_the_calls_and_files_of_a_recording() {
    let Some(lab) = Lab::beside() else { return };
    lab.cc("imported", &["-pthread"]);
    prepare(&lab);
    let vary: BTreeSet<&str> = VARY.iter().map(|(name, _)| *name).collect();
    for (name, script) in PROGRAMS {
        let (log, tape, recorded) = (format!("{name}.log"), format!("{name}.tape"), format!("{name}-recorded.tape"));
        tidy(&lab);
        let words = ["-f", "-ttt", "-T", "-y", "-s", "64", "-o", &log, "sh", "-c", script];
        run(lab.command("strace").args(words));
        tidy(&lab);
        lab.record(&recorded, &[], &["sh", "-c", script]);
        tidy(&lab);
        let imported = lab.analyze(&["import", "strace", "-o", &tape, &log]).expect(0).text();
        assert!(imported.contains("Every line of strace's was understood."), "{name}: {imported}");
        assert!(lab.analyze(&["check", &tape]).expect(0).text().contains("good"), "{name}");
        let of_tape = summary(&lab, &tape);
        assert_eq!(of_tape, counted(&lab.path(&log)), "{name}: the tape beside the lines of its log");
        let same = |counts: Counts| -> Counts {
            counts.into_iter().filter(|((call, _), _)| !vary.contains(call.as_str())).collect()
        };
        assert_eq!(same(of_tape), same(summary(&lab, &recorded)), "{name}: the log beside the recording");
        assert_eq!(
            files(&lab, &tape),
            files(&lab, &recorded),
            "{name}: files of the log beside those of the recording"
        );
    }
}

#[test]
fn an_imported_tree_ends_as_the_recorded_one() {
    let Some(lab) = Lab::beside() else { return };
    let program = lab.cc("imported", &["-pthread"]);
    run(lab.command("strace").args(["-f", "-ttt", "-T", "-y", "-o", "x.log", &program]));
    lab.record("recorded.tape", &[], &[&program]);
    lab.analyze(&["import", "strace", "-o", "x.tape", "x.log"]).expect(0);
    // each process: its program, and how it ended
    let ends = |tape: &str| -> Vec<(String, String)> {
        let rows = lab.analyze(&["exec", "--format", "json", tape]).expect(0).json();
        let end = |row: &Value| format!("{} {} {}", row["ended"], row["exit_code"], row["exit_signal"]);
        let mut ends: Vec<(String, String)> = rows.iter().map(|row| (row["args"].to_string(), end(row))).collect();
        ends.sort();
        ends
    };
    let (of_log, of_recording) = (ends("x.tape"), ends("recorded.tape"));
    assert!(of_log.len() >= 2, "{of_log:?}");
    assert_eq!(of_log, of_recording);
}

#[test]
fn an_imported_log_has_the_signals_of_a_recording() {
    let Some(lab) = Lab::beside() else { return };
    // one that is handled, one that another process sends, one that a process sends to itself, and what the kernel sends
    let script = "trap : USR1; kill -USR1 $$; sleep 60 & kill -TERM $!; wait; sh -c 'kill -SEGV $$'; exit 3";
    run(lab.command("strace").args(["-f", "-ttt", "-T", "-o", "x.log", "sh", "-c", script]));
    lab.record("recorded.tape", &[], &["sh", "-c", script]);
    lab.analyze(&["import", "strace", "-o", "x.tape", "x.log"]).expect(0);
    // each of these: code, whether it was sent to itself, what it did
    let kills = |tape: &str| -> Vec<String> {
        let rows = lab.analyze(&["kills", "--signal", "USR1,TERM,SEGV", "--format", "json", tape]).expect(0).json();
        let own = |row: &Value| row["sender"]["pid"] == row["target"]["pid"];
        let of = |row: &Value| {
            let outcome = &row["outcome"];
            format!(
                "{} {} {} {} {}",
                row["signal_name"],
                row["code_name"],
                own(row),
                outcome["cause"],
                outcome["stopped"]
            )
        };
        let mut all: Vec<String> = rows.iter().filter(|row| row["signal"].is_u64()).map(of).collect();
        all.sort();
        all
    };
    let (of_log, of_recording) = (kills("x.tape"), kills("recorded.tape"));
    assert_eq!(of_log.len(), 3, "{of_log:?}");
    assert_eq!(of_log, of_recording);
    // each line of the log about a signal that was taken is one event
    let log = fs::read_to_string(lab.path("x.log")).expect("a log");
    let lines = log.lines().filter(|line| line.contains("--- SIG")).count();
    let rows = lab.analyze(&["-e", "signal:*", "--format", "json", "x.tape"]).expect(0).json();
    assert_eq!(rows.iter().filter(|row| row["event"] == "signal:signal_deliver").count(), lines);
}
