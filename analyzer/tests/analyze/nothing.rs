//! An answer without rows says on stderr which filter left none, and what the tape has; one with rows says nothing.

use std::fs;

use crate::common::{self, Place};
use systape_analyzer::exercise::Operands;
use systape_analyzer::exercise::{VIEWS, View};

fn place() -> Place {
    let place = Place::with_sample();
    common::events::write(&place.path("events.tape"), false);
    common::stacks::write(&place.path("stacks.tape"), 1);
    common::tools::write(&place.path("tools.tape"), &[]);
    common::looks::write(&place.path("looks.tape"), &[]);
    common::held::write(&place.path("held.tape"), &[]);
    let recorded = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes");
    fs::copy(recorded.join("kernel-6.1-mix.tape"), place.path("mix.tape")).unwrap();
    fs::copy(recorded.join("kernel-6.12-sh.tape"), place.path("sh.tape")).unwrap();
    place
}

/// What is said of why there is nothing, of `words`; "" = nothing is said.
fn said(place: &Place, words: &str) -> String {
    let got = place.analyze(words);
    assert_eq!(got.status, 0, "{words}: {got:?}");
    got.err.lines().filter(|line| line.contains("nothing ")).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_view_says_why_it_is_empty() {
    let place = place();
    let mut tried = 0;
    for view in VIEWS.iter().filter(|view| view.takes("pids") && !view.makes_a_copy()) {
        let tapes = [
            "sample.tape",
            "events.tape",
            "stacks.tape",
            "mix.tape",
            "sh.tape",
            "tools.tape",
            "held.tape",
            "looks.tape",
        ];
        let mut answered = false;
        for tape in tapes {
            let operands = if view.operands == Operands::TwoTapes { format!("{tape} {tape}") } else { tape.to_owned() };
            let name = if view.name == "with-summary" { "-S" } else { view.name };
            for format in ["text", "json"] {
                let output = if view.takes("output") { " -o exported" } else { "" };
                let words = format!("{name} -p 99999999 --format {format}{output} {operands}");
                let got = place.ask(&words);
                // a tape without what the view is about
                if got.status != 0 {
                    continue;
                }
                let lines: Vec<&str> = got.err.lines().filter(|line| line.contains("nothing ")).collect();
                assert_eq!(lines.len(), 1, "{words}: {got:?}");
                assert!(
                    lines[0].contains("nothing matches -p 99999999: the tape has processes "),
                    "{words}: {}",
                    got.err
                );
                answered = true;
            }
        }
        assert!(answered, "'{}' was asked of no tape that it knows", view.name);
        tried += 1;
    }
    assert!(tried > 12, "{tried}");
}

#[test]
fn the_filter_that_is_to_blame_is_named_with_what_there_is() {
    let place = place();
    for (words, parts) in [
        ("--comm=ap sample.tape", &["--comm=ap", "did you mean app?"][..]),
        ("--comm=zzzzzzzzzz sample.tape", &["--comm=zzzzzzzzzz", "threads app, other"]),
        ("-s --comm apq sample.tape", &["--comm=apq", "app"]),
        ("-C 99 sample.tape", &["-C 99", "CPUs 0-3"]),
        ("--time 9000, sample.tape", &["--time", "from 0 to "]),
        ("-t 4000000 sample.tape", &["-t 4000000", "threads 100, 101"]),
        ("-u 77 sample.tape", &["-u 77", "users 0, 1000"]),
        ("-e reboot sample.tape", &["-e", "other calls: "]),
        ("--duration 1000s sample.tape", &["--duration", "the longest call that is stored took "]),
        ("--time 99%, -p 100 --duration 3ns -e reboot* sample.tape", &["-e"]),
        ("states -p 4000000000 mix.tape", &["-p 4000000000"]),
    ] {
        let said = said(&place, words);
        for part in parts {
            assert!(said.contains(part), "{words}: '{part}' is not in: {said}");
        }
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn filters_that_leave_nothing_only_together_are_all_named() {
    let place = place();
    let said = said(&place, "--comm=other -p 100 sample.tape");
    assert!(said.contains("matches -p 100 --comm=other together; the tape has 0 to "), "{said}");
}

#[test]
fn an_answer_with_rows_says_nothing() {
    let place = place();
    for words in
        ["sample.tape", "-s sample.tape", "-p 100 sample.tape", "states mix.tape", "block events.tape", "exec sh.tape"]
    {
        assert_eq!(said(&place, words), "", "{words}");
    }
    // one that has none without any filter is no surprise of a filter
    assert_eq!(said(&place, "kills sh.tape"), "");
}

#[test]
fn a_moment_without_anybody_names_one_with_somebody() {
    let place = Place::new();
    let guides = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/guides");
    // the recording of a command, which ends with it
    fs::copy(guides.join("kill.tape"), place.path("kill.tape")).unwrap();
    for (report, rows) in [("states", "--format json"), ("fds", "--format json"), ("fds", "")] {
        let at = if report == "states" { "--at 100% " } else { "" };
        let got = place.analyze(&format!("{report} {at}{rows} kill.tape"));
        let said = format!("{}{}", got.out, got.err);
        let moment = said.trim_end().rsplit_once("an earlier moment is --at ").expect(&said).1;
        assert!(
            said.contains(" lived at 0.244164 s: the last ended at 0.2") && !said.contains("nothing to show"),
            "{said}"
        );
        let then = place.analyze(&format!("{report} --at {moment} --format json kill.tape"));
        assert!(!then.json().is_empty(), "{report} --at {moment}");
        // a moment outside is none of the tape, which is said by the clock that was asked for
        for (outside, clock) in [("-1", "from 0 to "), ("13:00:00", "from 13:13:04.97")] {
            let got = place.analyze(&format!("{report} --at={outside} kill.tape"));
            assert_eq!(got.status, 1, "{outside}: {got:?}");
            let says = ["--at is before the tape began: the tape is ", clock, "0 to 0.244164 s"];
            assert!(says.iter().all(|text| got.err.contains(text)), "{report} {outside}: {}", got.err);
        }
    }
    // of those that nobody asked for, or that are not there, nothing is said to have ended
    let absent = said(&place, "states --at 100% -p 99999999 kill.tape");
    assert!(absent.contains("nothing matches -p 99999999: the tape has processes "), "{absent}");
}

#[test]
fn what_cannot_be_read_is_not_called_absent() {
    let place = place();
    let mut bytes = fs::read(place.path("sample.tape")).unwrap();
    // the end of the tape and its index are gone
    bytes.truncate(bytes.len() - 200);
    fs::write(place.path("cut.tape"), bytes).unwrap();
    let said = said(&place, "-p 99999999 cut.tape");
    assert!(said.contains("nothing in this report matches -p 99999999; the tape has 0 to "), "{said}");
}

/// Reports of each view, as they are asked here; of those that make a file or need a second one none.
fn asked(view: &View) -> Vec<String> {
    let modes: &[&str] = match view.name {
        "net" => &["", "--events", "--udp"],
        "block" => &["", "--top", "--hist", "--sizes"],
        "files" => &["", "--opens", "--slower 1ms"],
        "why" => &["", "--when"],
        "exec" => &["", "--tree"],
        "path" => &["", "--sums"],
        "requests" => &["", "--client", "--slowest 9"],
        "states" | "fds" => &["--at 50%"],
        _ => &[""],
    };
    let skipped = view.takes("output") || view.operands != Operands::Tape;
    let name = if view.name == "with-summary" { "-S" } else { view.name };
    modes.iter().filter(|_| !skipped).map(|mode| format!("{name} {mode}")).collect()
}

#[test]
fn an_answer_without_rows_has_a_word_why_on_every_recorded_tape() {
    let place = Place::new();
    let recorded = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes");
    let (mut empty, mut silent) = (0, Vec::new());
    for entry in fs::read_dir(recorded).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "tape") {
            continue;
        }
        fs::copy(&path, place.path("t.tape")).unwrap();
        for words in VIEWS.iter().flat_map(|view| asked(view)) {
            let got = place.ask(&format!("{words} --format json t.tape"));
            if got.status != 0 || !got.out.is_empty() {
                continue;
            }
            empty += 1;
            if got.err.is_empty() {
                silent.push(format!("{words} {}", path.display()));
            }
        }
    }
    assert!(empty > 40, "{empty}");
    assert!(silent.is_empty(), "no word: {silent:#?}");
}

#[test]
fn no_finding_about_nobody_is_not_good_news() {
    let place = Place::with_tapes();
    for (filter, has) in [
        ("-p 4711", "the tape has processes"),
        ("-t 4711", "the tape has threads"),
        ("--comm=nginx", "the tape has threads"),
        ("-u 4711", "the tape has users"),
        ("--time 50,60", "the tape is from 0 to"),
    ] {
        let got = place.analyze(&format!("why {filter} sample.tape"));
        let said = format!("analyze: nothing matches {}: ", filter.split(' ').next().unwrap());
        let begins = got.err.starts_with(&said) || got.err.starts_with(&format!("analyze: nothing matches {filter}: "));
        assert!(got.status == 0 && begins && got.err.contains(has), "{filter}: {} {}", got.out, got.err);
    }
    let got = place.analyze("why -p 100 sample.tape");
    assert!(!got.err.contains("nothing matches"), "somebody is there: {}", got.err);
}
