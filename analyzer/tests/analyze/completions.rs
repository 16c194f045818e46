//! Completions of bash, asked as bash asks them, and man pages.

use std::fs;
use std::process::Command;

use crate::common::Place;

/// What bash offers for the last of `words` in `place`, which has some tapes.
fn offered(place: &Place, words: &[&str]) -> Vec<String> {
    let script = place.path("completions.bash");
    if !script.exists() {
        fs::write(&script, place.analyze("--generate bash").out).expect("write");
        fs::create_dir(place.path("dir")).expect("mkdir");
        for name in ["one.tape", "two words.tape", "other.txt"] {
            fs::write(place.path(name), "").expect("write");
        }
    }
    let ask = r#"source ./completions.bash
        function=$(complete -p analyze); function=${function#*-F }; function=${function%% *}
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        $function analyze "${@: -1}" "${@: -2:1}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let mut bash = Command::new("bash");
    bash.current_dir(place.path("")).args(["--norc", "-c", ask, "bash", "analyze"]).args(words);
    let output = bash.output().expect("bash");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(str::to_owned).filter(|line| !line.is_empty()).collect()
}

fn has(offered: &[String], words: &[&str]) -> bool {
    words.iter().all(|word| offered.iter().any(|line| line == word))
}

#[test]
fn tapes_reports_and_families_are_offered() {
    let place = Place::with_sample();
    let first = offered(&place, &[""]);
    assert!(has(&first, &["kills", "block", "sched", "one.tape", "two words.tape", "dir"]), "{first:?}");
    assert!(!first.iter().any(|word| word.starts_with('-') || word == "other.txt"), "{first:?}");
    assert_eq!(offered(&place, &["ki"]), ["kills", "killsnoop"]);
    assert_eq!(offered(&place, &["kills", "o"]), ["one.tape"]);
    assert!(has(&offered(&place, &["sched", ""]), &["timehist", "latency", "one.tape"]));
    assert_eq!(offered(&place, &["-i", "tw"]), ["two words.tape"]);
    assert_eq!(offered(&place, &["kills", "--fail"]), ["--fail-on-loss"]);
    assert_eq!(offered(&place, &["--format", "j"]), ["json"]);
    let events = offered(&place, &["-e", ""]);
    assert!(has(&events, &["file", "network", "sched:*", "block:*"]), "{events:?}");
    // and every one of them is taken
    for word in events {
        let run = place.analyze(&format!("-e {word}"));
        assert_ne!(run.status, 2, "{word}: {}", run.err);
    }
}

#[test]
fn other_shells_know_tapes() {
    let place = Place::new();
    let zsh = place.analyze("--generate zsh").out;
    assert!(zsh.contains(r#"_files -g "*.tape(-.)""#) && zsh.contains("sched"));
    assert!(place.analyze("--generate fish").out.contains("__fish_complete_suffix .tape"));
}

#[test]
fn man_pages_say_how_it_ends_and_what_else_there_is() {
    let place = Place::new();
    for (line, more) in [("--generate man", "analyze\\-kills (1)"), ("kills --generate man", "analyze (1)")] {
        let page = place.analyze(line).out;
        let status = page.find(".SH \"EXIT STATUS\"").expect("exit status");
        let see = page.find(".SH \"SEE ALSO\"").expect("see also");
        assert!(page.find(".SH OPTIONS").expect("options") < status && status < see, "{page}");
        assert!(page[see..].contains("record (1)") && page[see..].contains(more), "{page}");
    }
}
