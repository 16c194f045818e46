//! Tapes of logs: testdata/strace/NAME.log was written by strace 6.1 about e2e/workloads/imported.c, in several of its forms; NAME.txt is what
//! `analyze` says of the tape. `UPDATE_GOLDEN=1 cargo test -p systape-analyzer --test analyze import::` writes these anew; read the diff.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::Value;

use crate::common::{Output, Place};

/// Questions whose answers are kept.
const ASKED: [&str; 6] =
    ["info", "-s --by syscall,errno", "exec --tree --all", "files --top 0", "why --floor 0", "trace"];

/// The logs: `split` is three files and more.
const LOGS: [&str; 4] = ["whole", "terminal", "short", "split"];

fn logs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/strace")
}

/// A place with the logs.
fn place() -> Place {
    let place = Place::new();
    for entry in fs::read_dir(logs()).unwrap() {
        let path = entry.unwrap().path();
        if !path.to_str().unwrap().ends_with(".txt") {
            fs::copy(&path, place.path(path.file_name().unwrap().to_str().unwrap())).unwrap();
        }
    }
    place
}

/// Imports a log, which must succeed.
fn import(place: &Place, words: &str) -> Output {
    let imported = place.analyze(&format!("import strace {words}"));
    assert_eq!((imported.status, imported.err.as_str()), (0, ""), "{words}: {}", imported.out);
    imported
}

#[test]
fn answers_of_a_log_stay_the_same() {
    let place = place();
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    for name in LOGS {
        let mut text = import(&place, &format!("{name}.log")).out;
        for asked in ASKED {
            let answer = place.analyze(&format!("{asked} {name}.tape"));
            assert_eq!(answer.status, 0, "{asked} {name}: {}", answer.err);
            text.push_str(&format!("\n$ analyze {asked} {name}.tape\n{}{}", answer.out, answer.err));
        }
        let text = without_sizes(&text);
        let expected = logs().join(format!("{name}.txt"));
        if update {
            fs::write(&expected, &text).unwrap();
        } else {
            assert_eq!(fs::read_to_string(&expected).unwrap_or_default(), text, "{name}");
        }
    }
}

/// Sizes and ids change with every improvement of the format.
fn without_sizes(text: &str) -> String {
    let mut kept = String::new();
    let mut sizes = false;
    for line in text.lines() {
        sizes = line.starts_with("bytes ") || (sizes && line.starts_with(' '));
        if !sizes && !line.starts_with("written by ") {
            kept.push_str(line.split(" segment").next().unwrap_or(line));
            kept.push('\n');
        }
    }
    kept
}

/// Calls by name and error, as a tape has them.
fn of_tape(place: &Place, tape: &str) -> BTreeMap<(String, String), u64> {
    let listed = place.analyze(&format!("trace --format json --sort end {tape}"));
    let mut calls = BTreeMap::new();
    for row in listed.json().iter().filter(|row| row.get("syscall").is_some()) {
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        *calls.entry((text("syscall"), text("errno"))).or_default() += 1;
    }
    calls
}

/// Calls by name and error, as the lines of a log have them: a call has a line with its result, or one that begins it and no more.
fn of_lines<'a>(lines: impl Iterator<Item = &'a str>) -> BTreeMap<(String, String), u64> {
    let mut calls = BTreeMap::new();
    for line in lines {
        let Some((_, body)) = line.split_once("1796070").and_then(|(_, rest)| rest.split_once(' ')) else { continue };
        if body.starts_with("+++") || body.starts_with("---") || body.contains("<unfinished") {
            continue;
        }
        let name = match body.strip_prefix("<... ") {
            Some(resumed) => resumed.split(' ').next().unwrap(),
            None => body.split('(').next().unwrap(),
        };
        let errno = body.rsplit_once(" = -1 ").map_or("", |(_, error)| error.split(' ').next().unwrap());
        *calls.entry((name.to_owned(), errno.to_owned())).or_default() += 1;
    }
    calls
}

#[test]
fn every_call_of_a_log_is_on_the_tape() {
    let place = place();
    import(&place, "whole.log");
    import(&place, "split.log");
    let read = |name: &str| fs::read_to_string(place.path(name)).unwrap();
    assert_eq!(of_tape(&place, "whole.tape"), of_lines(read("whole.log").lines()));
    let parts: Vec<String> = fs::read_dir(place.path("."))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("split.log."))
        .collect();
    let all: String = parts.iter().map(|name| read(name)).collect();
    assert!(parts.len() > 3);
    assert_eq!(of_tape(&place, "split.tape"), of_lines(all.lines()));
}

/// Signals of a tape, with the thread that took each.
fn signals(place: &Place, tape: &str) -> Vec<(u64, String, Option<i64>, Option<u64>)> {
    let rows = place.analyze(&format!("trace -e signal:* --format json {tape}")).json();
    let taken = rows.iter().filter(|row| row["event"] == "signal:signal_deliver");
    let of = |row: &Value| {
        let args = &row["args"];
        assert!(args["sa_handler"].is_null() && args["result"].is_null(), "{row}");
        let name = args["signal_name"].as_str().unwrap().to_owned();
        (args["target_tid"].as_u64().unwrap(), name, args["code"].as_i64(), args["sender_pid"].as_u64())
    };
    taken.map(of).collect()
}

#[test]
fn every_signal_of_a_log_is_on_the_tape() {
    let place = Place::new();
    let text = "7 1796070471.0 execve(\"/bin/sh\", [\"sh\"], 0x7ffe /* 3 vars */) = 0 <0.000100>\n\
                7 1796070471.1 fork() = 8 <0.000010>\n\
                8 1796070471.2 pause( <unfinished ...>\n\
                7 1796070471.3 kill(8, SIGUSR1) = 0 <0.000010>\n\
                8 1796070471.4 <... pause resumed>) = ? ERESTARTNOHAND (To be restarted if no handler) <0.2>\n\
                8 1796070471.5 --- SIGUSR1 {si_signo=SIGUSR1, si_code=SI_USER, si_pid=7, si_uid=0} ---\n\
                8 1796070471.6 rt_sigreturn({mask=[]}) = -1 EINTR (Interrupted system call) <0.000010>\n\
                8 1796070471.7 --- SIGTERM {si_signo=SIGTERM, si_code=SI_USER, si_pid=4711, si_uid=33} ---\n\
                8 1796070471.8 +++ killed by SIGTERM +++\n\
                7 1796070471.8 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_KILLED, si_pid=8, si_uid=0, si_status=SIGTERM, si_utime=0, si_stime=0} ---\n\
                7 1796070471.9 --- SIGSTOP {si_signo=SIGSTOP, si_code=SI_USER, si_pid=4711, si_uid=33} ---\n\
                7 1796070471.9 --- stopped by SIGSTOP ---\n\
                7 1796070472.0 --- SIGNONE {si_signo=SIGNONE} ---\n\
                7 1796070472.1 --- SIGSEGV {si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=0x10} ---\n\
                7 1796070472.2 +++ killed by SIGSEGV (core dumped) +++\n";
    fs::write(place.path("x.log"), text).unwrap();
    let imported = place.analyze("import strace x.log");
    assert!(imported.out.contains("5 signals, each when it was taken"), "{}", imported.out);
    assert!(
        imported.out.ends_with("\"at least\".\n") && imported.out.contains("\n1 line not understood"),
        "{}",
        imported.out
    );
    let signal = |tid, name: &str, code, sender| (tid, name.to_owned(), Some(code), sender);
    assert_eq!(
        signals(&place, "x.tape"),
        [
            signal(8, "SIGUSR1", 0, Some(7)),
            signal(8, "SIGTERM", 0, None),
            signal(7, "SIGCHLD", 2, Some(8)),
            signal(7, "SIGSTOP", 0, None),
            signal(7, "SIGSEGV", 1, Some(7)),
        ]
    );
    let kills = place.analyze("kills x.tape").out;
    for line in [
        "sh (8) killed by process 4711; died 100",
        "sh (7) stopped by process 4711; stopped",
        "sh (7) killed by itself via fault: address 0x10; died 100",
    ] {
        assert!(kills.contains(line), "{line}: {kills}");
    }
    let rows = place.analyze("kills --all --format json x.tape").json();
    let of = |name: &str| rows.iter().find(|row| row["signal_name"] == name).unwrap();
    let handled = of("SIGUSR1");
    assert_eq!(handled["sender"]["pid"], 7);
    for unknown in ["result", "disposition", "blocked"] {
        assert!(handled[unknown].is_null(), "{unknown}: {handled}");
    }
    assert_eq!((&handled["outcome"]["cause"], &of("SIGTERM")["outcome"]["cause"]), (&false.into(), &true.into()));
    assert_eq!((&of("SIGSTOP")["outcome"]["stopped"], of("SIGSEGV")["ip"].is_null()), (&true.into(), true));
    let info = place.analyze("info --format json x.tape").json();
    assert_eq!((&info[0]["lost"]["signal"], &info[0]["lost"]["syscall"]), (&1.into(), &Value::Null));
    // what goes out again is what came in
    let lines = place.analyze("export strace x.tape").out;
    assert!(lines.contains("--- SIGTERM {si_signo=SIGTERM, si_code=SI_USER, si_pid=4711, si_uid=33} ---"), "{lines}");
}

#[test]
fn a_log_of_several_files_passes_midnight() {
    let place = Place::new();
    let logs = [
        (7, "23:59:58.5 fork() = 8 <0.000010>\n00:00:02.5 fork() = 9 <0.000010>\n00:00:04.5 +++ exited with 0 +++\n"),
        (
            8,
            "23:59:59.5 close(3) = 0 <0.000010>\n00:00:01.5 close(3) = 0 <0.000010>\n00:00:02.0 +++ exited with 0 +++\n",
        ),
        (9, "00:00:03.5 close(3) = 0 <0.000010>\n00:00:04.0 +++ exited with 0 +++\n"),
    ];
    logs.iter().for_each(|(tid, text)| fs::write(place.path(&format!("x.log.{tid}")), text).unwrap());
    import(&place, "--day 2026-11-30 x.log");
    let rows = place.analyze("trace --format json x.tape").json();
    let calls: Vec<_> = rows.iter().map(|row| (row["tid"].as_u64(), row["time"].as_str().unwrap())).collect();
    let at = |tid, time| (Some(tid), time);
    assert_eq!(
        calls,
        [
            at(7, "2026-11-30T23:59:58.500000000Z"),
            at(8, "2026-11-30T23:59:59.500000000Z"),
            at(8, "2026-12-01T00:00:01.500000000Z"),
            at(7, "2026-12-01T00:00:02.500000000Z"),
            at(9, "2026-12-01T00:00:03.500000000Z"),
        ]
    );
}

#[test]
fn what_strace_does_not_say_is_unknown() {
    let place = place();
    import(&place, "whole.log");
    for row in place.analyze("trace --format json whole.tape").json() {
        assert_eq!((row["cpu"].as_u64(), row["uid"].as_u64(), row["cgroup"].as_str()), (None, None, None), "{row}");
    }
    let stat = place.analyze("trace --format json -e execve whole.tape").json();
    assert_eq!(stat[0]["args"]["filename"], "./imported");
    let info = place.analyze("info --format json whole.tape").json();
    assert_eq!((info[0]["imported"].as_str(), info[0]["kernel"].as_str()), (Some("strace"), Some("")));
    for report in ["offcpu", "sched latency", "block", "runqlat", "states"] {
        let refused = place.analyze(&format!("{report} whole.tape"));
        assert!(
            refused.status != 0 && refused.err.contains("not recorded"),
            "{report}: {}{}",
            refused.out,
            refused.err
        );
    }
}

#[test]
fn a_log_that_cannot_be_dated_is_refused() {
    let place = Place::new();
    let refused = |text: &str, words: &str| {
        fs::write(place.path("x.log"), text).unwrap();
        let refused = place.analyze(&format!("import strace {words} x.log"));
        assert_eq!(refused.status, 1, "{text}: {}", refused.out);
        assert!(!place.path("x.tape").exists(), "{text}");
        refused.err
    };
    assert!(refused("     0.000123 close(3) = 0\n", "").contains("strace -r"));
    assert!(refused("close(3) = 0\n", "").contains("no times"));
    assert!(refused("7 close(3) = 0\n", "").contains("no times"));
    assert!(refused("", "").contains("no line is a call of strace's"));
    assert!(refused("hello\nworld\n", "").contains("no line is a call of strace's"));
    assert!(refused("1796070471.5 close(3) = 0\n", "").contains("--of-pid"));
    assert!(refused("7 12:00:00 close(3) = 0\n7 1796070471.5 close(3) = 0\n", "").contains("some lines"));
    fs::write(place.path("x.log"), "1796070471.5 close(3) = 0\n").unwrap();
    import(&place, "--of-pid 7 x.log");
    assert!(place.analyze("import strace x.log").err.contains("never overwrites"));
    assert_eq!(place.analyze("import strace --day 2026 x.log").status, 2);
}

#[test]
fn lines_that_are_not_understood_are_losses() {
    let place = Place::new();
    let text = "7 1796070471.1 close(3) = 0 <0.000010>\n7 1796070471.2 clo\u{1}se(3 = 0\n7 1796070471.3 nosuchcall(3) = 0 <0.1>\nnoise\n\
                7 1796070471.4 read(0,  <unfinished ...>\n7 1796070471.5 close(4) = -1 EBADF (Bad file descriptor) <0.000010>\n\
                7 1796070471.6 write(1, \"a";
    fs::write(place.path("x.log"), text).unwrap();
    let imported = place.analyze("import strace x.log");
    assert_eq!(imported.status, 0, "{}", imported.err);
    let last = imported.out.lines().last().unwrap();
    assert!(last.starts_with("3 lines not understood"), "{}", imported.out);
    assert!(imported.out.contains("nosuchcall") && imported.out.contains("1 line not strace's"), "{}", imported.out);
    assert_eq!(place.analyze("import strace --fail-on-loss -o y.tape x.log").status, 3);
    let info = place.analyze("info --format json x.tape").json();
    assert_eq!(info[0]["lost"]["syscall"], 3);
    let summary = place.analyze("-s --fail-on-loss x.tape");
    assert_eq!(summary.status, 3, "{}{}", summary.out, summary.err);
    assert!(
        summary.out.contains("not understood") || summary.err.contains("not understood"),
        "{}{}",
        summary.out,
        summary.err
    );
    // the call that the end of the file cut
    let rows = place.analyze("trace -e write --format json x.tape").json();
    let open = rows.iter().find(|row| row["syscall"] == "write").unwrap();
    assert_eq!((open["incomplete"].as_str(), open["args"]["count"].as_u64()), (Some("in-flight"), None));
}

/// A line of a log, perhaps changed.
fn changed(line: &[u8], change: &(u8, u16, u8)) -> Vec<u8> {
    let (how, at, byte) = *change;
    let mut line = line.to_vec();
    let at = usize::from(at) % (line.len() + 1);
    match how % 6 {
        0 => line.truncate(at),
        1 => line.insert(at, byte),
        2 if at < line.len() => line[at] = byte,
        3 if at < line.len() => _ = line.remove(at),
        4 => line = [&line[at..], &line[..at]].concat(),
        _ => {}
    }
    line
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 50, ..ProptestConfig::default() })]

    /// Whatever a log has becomes a tape that follows all rules, or is refused.
    #[test]
    fn no_log_is_too_strange(
        which in 0..3_usize,
        changes in prop::collection::vec((any::<u16>(), (any::<u8>(), any::<u16>(), any::<u8>())), 0..60),
        more in prop::collection::vec((any::<u16>(), prop::collection::vec(any::<u8>(), 0..40)), 0..8),
    ) {
        let text = fs::read(logs().join(["whole.log", "terminal.log", "short.log"][which])).unwrap();
        let mut lines: Vec<Vec<u8>> = text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        for (at, change) in &changes {
            let at = usize::from(*at) % lines.len();
            lines[at] = changed(&lines[at], change);
        }
        for (at, line) in more {
            lines.insert(usize::from(at) % lines.len(), line);
        }
        let place = Place::new();
        fs::write(place.path("x.log"), lines.join(&b'\n')).unwrap();
        let imported = place.ask("import strace x.log");
        prop_assert!(imported.status < 2, "{}{}", imported.out, imported.err);
        if imported.status == 0 {
            prop_assert!(imported.out.contains(": good: "), "{}", imported.out);
            for asked in ["check x.tape", "-s x.tape", "trace --format json x.tape", "why x.tape", "files x.tape", "exec --tree --all x.tape"] {
                let answer = place.ask(asked);
                prop_assert!(answer.status < 2, "{asked}: {}{}", answer.out, answer.err);
            }
        }
    }
}
