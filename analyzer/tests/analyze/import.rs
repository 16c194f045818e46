//! Tapes of logs: testdata/strace/NAME.log was written by strace 6.1 about e2e/workloads/imported.c, in several of its forms; NAME.txt is what
//! `analyze` says of the tape. `UPDATE_GOLDEN=1 cargo test -p systape-analyzer --test analyze import::` writes these anew; read the diff.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

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
