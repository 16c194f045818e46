//! Several tapes beside each of them alone: a view's rows of all are those of one after the other, and a listing has the lines
//! of each, in order by time of day.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::commands::COMMANDS;
use crate::common::stored::tapes;
use serde_json::Value;

/// Exit status, standard output and stderr.
fn ask(words: &[&str], paths: &[PathBuf]) -> (i32, String, String) {
    let run = Command::new(env!("CARGO_BIN_EXE_analyze")).args(words).args(paths).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (run.status.code().unwrap(), text(run.stdout), text(run.stderr))
}

/// The members of a row but the tape's, and the tape.
fn split(line: &str) -> (String, Value) {
    let mut row: Value = serde_json::from_str(line).unwrap();
    let members = row.as_object_mut().unwrap();
    let tape = members.remove("tape").and_then(|tape| Some(tape.as_str()?.to_owned()));
    (tape.unwrap_or_else(|| panic!("no tape: {line}")), row)
}

/// The rows of each tape of an answer, in their order.
fn by_tape(text: &str) -> BTreeMap<String, Vec<Value>> {
    let mut all = BTreeMap::<String, Vec<Value>>::new();
    for line in text.lines() {
        let (tape, row) = split(line);
        all.entry(tape).or_default().push(row);
    }
    all
}

#[test]
fn a_listing_has_the_lines_of_each_by_time_of_day() {
    let tapes = tapes();
    for words in ["", "-e all,sched:*,signal:*,block:*", "--failure", "--sort end -e !read", "--time 10%,60%"] {
        let words: Vec<&str> = words.split_whitespace().chain(["--format", "json"]).collect();
        let (code, text, _) = ask(&words, &tapes);
        assert_eq!(code, 0);
        let merged = by_tape(&text);
        let mut all = 0;
        for tape in &tapes {
            let (_, alone, _) = ask(&words, std::slice::from_ref(tape));
            let alone: Vec<Value> = alone.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            all += alone.len();
            assert_eq!(merged.get(tape.to_str().unwrap()).cloned().unwrap_or_default(), alone, "{words:?} {tape:?}");
        }
        assert!(all > 20, "{words:?}: {all} lines");
        if !words.contains(&"end") {
            let times: Vec<String> =
                text.lines().filter_map(|line| Some(split(line).1["time"].as_str()?.to_owned())).collect();
            assert!(times.is_sorted(), "{words:?}");
        }
    }
}

#[test]
fn tapes_of_one_time_are_mixed() {
    let dir = tempfile::tempdir().unwrap();
    let of = |name: &str| {
        let path = dir.path().join(name);
        std::fs::copy(tapes().into_iter().find(|path| path.ends_with("mix-1.5.tape")).unwrap(), &path).unwrap();
        path
    };
    let both = [of("a.tape"), of("b.tape")];
    let (code, text, said) = ask(&[], &both);
    assert_eq!(code, 0, "{said}");
    let (_, alone, _) = ask(&["--clock", "wall"], &both[..1]);
    let of = |path: &Path| {
        let before = format!("{} ", path.display());
        text.lines().filter_map(|line| line.strip_prefix(&before)).collect::<Vec<_>>()
    };
    assert_eq!(text.lines().count(), 2 * alone.lines().count());
    for path in &both {
        assert_eq!(of(path), alone.lines().collect::<Vec<_>>());
    }
    // of equal times the first tape is first, so that they take turns
    let lines: Vec<&str> = text.lines().collect();
    let first = |line: &str| line.starts_with(both[0].to_str().unwrap());
    let turns = lines.windows(2).filter(|pair| first(pair[0]) && !first(pair[1])).count();
    assert!(turns * 10 > alone.lines().count() * 9, "{turns} turns");
    assert!(!said.contains("real time"), "nobody set the clock: {said}");
    // the first lines of all, not of each
    let (_, few, _) = ask(&["--max-events", "5"], &both);
    assert_eq!(few.lines().collect::<Vec<_>>(), lines[..5]);
    let (code, _, said) = ask(&["--clock", "mono"], &both);
    assert!(code == 2 && said.contains("--clock wall"), "{code} {said}");
}

#[test]
fn each_view_answers_of_one_after_the_other() {
    let tapes: Vec<PathBuf> = tapes()
        .into_iter()
        .filter(|path| ["mix-1.5.tape", "stacks-1.2.tape"].iter().any(|name| path.ends_with(name)))
        .collect();
    assert_eq!(tapes.len(), 2);
    let mut asked = 0;
    for (report, commands) in COMMANDS {
        let Some(command) = commands.first().filter(|command| {
            command.ends_with(" TAPE") && !["SOUND", "ASKS"].iter().any(|word| command.contains(word))
        }) else {
            continue;
        };
        // these are of the whole, or of one
        let apart = ["--svg", "--folded", "--diff", "OUT"].iter().any(|word| command.contains(word));
        if apart || ["", "top", "list", "tables", "tables TABLE"].contains(report) || command.starts_with("top ") {
            continue;
        }
        let words: Vec<&str> = command.trim_end_matches(" TAPE").split_whitespace().collect();
        let json: Vec<&str> = words.iter().copied().chain(["--format", "json"]).collect();
        let (_, text, said) = ask(&json, &tapes);
        let mut expected = BTreeMap::new();
        for tape in &tapes {
            let (_, alone, _) = ask(&json, std::slice::from_ref(tape));
            let rows: Vec<Value> = alone.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            if !rows.is_empty() {
                expected.insert(tape.to_str().unwrap().to_owned(), rows);
            }
        }
        let mut found = by_tape(&text);
        for rows in found.values_mut().flatten() {
            // where a row has a machine of its own it stays
            let members = rows.as_object_mut().unwrap();
            if expected.values().flatten().all(|row| row.get("host").is_none()) {
                assert!(members.remove("host").is_some_and(|host| host == "(none)"), "{report}: {rows}");
            }
        }
        assert_eq!(found, expected, "{report}: {said}");
        let (_, text, _) = ask(&words, &tapes);
        let headings: Vec<&str> = text.lines().filter(|line| line.starts_with("==> ")).collect();
        let expected: Vec<String> = tapes.iter().map(|tape| format!("==> {} ((none)) <==", tape.display())).collect();
        assert_eq!(headings, expected, "{report}");
        asked += usize::from(!found.is_empty());
    }
    assert!(asked > 25, "{asked} views with rows");
}

#[test]
fn csv_has_one_head() {
    let (code, text, said) = ask(&["kills", "--format", "csv"], &tapes());
    assert_eq!(code, 0, "{said}");
    let heads = text.lines().filter(|line| line.starts_with("host,tape,ts_ns,")).count();
    assert!(heads == 1 && text.lines().count() > 3, "{text}");
    assert!(
        text.lines().all(|line| line.split(',').nth(1).is_some_and(|tape| tape == "tape" || tape.ends_with(".tape")))
    );
    assert!(said.lines().all(|line| line.contains(".tape: ")), "{said}");
}

#[test]
fn what_is_wrong_with_one_is_told_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let sound = tapes().into_iter().find(|path| path.ends_with("mix-1.5.tape")).unwrap();
    let bytes = std::fs::read(&sound).unwrap();
    std::fs::write(at("a.tape"), &bytes).unwrap();
    // cut off: nothing says how it ended
    std::fs::write(at("b.tape"), &bytes[..bytes.len() - 400]).unwrap();
    std::fs::write(at("c.tape"), "no tape").unwrap();
    for view in [&[][..], &["-s"], &["kills"]] {
        let words: Vec<&str> = view.iter().copied().chain(["--fail-on-loss", "--format", "json"]).collect();
        let (code, text, said) = ask(&words, &[dir.path().to_owned()]);
        assert!(code == 1 && !text.is_empty(), "{view:?}: {code} {said}");
        let of = |name: &str, what: &str| {
            said.lines().any(|line| line.contains(&format!("{}: ", at(name).display())) && line.contains(what))
        };
        assert!(
            of("b.tape", "abnormally") && of("c.tape", "not a tape") && !of("a.tape", "abnormally"),
            "{view:?}: {said}"
        );
        assert_eq!(ask(&words, &[at("a.tape"), at("b.tape")]).0, 3, "{view:?}");
        assert_eq!(ask(&words, &[at("a.tape"), at("a.tape")]).0, 0, "{view:?}");
    }
    let (code, _, said) = ask(&["kills"], &[at("a.tape"), at("gone.tape")]);
    assert!(code == 1 && said.contains("gone.tape: no such file"), "{said}");
    let (code, _, said) = ask(&["kills"], &[at("a.tape"), PathBuf::from("info")]);
    assert!(code == 1 && said.contains("'info' is a report"), "{said}");
    let (code, _, said) = ask(&["callgraph", "--folded"], &[at("a.tape"), at("b.tape")]);
    assert!(code == 2 && said.contains("--folded has no effect here"), "{said}");
}
