//! Words of users (names of programs, files, hosts, arguments) act on no terminal, whichever report and form shows them.

use std::process::Command;

use crate::common::commands::{COMMANDS, MACHINES};
use crate::common::{self, Place};
use systape_abi::is_unsafe;

/// What a terminal could obey or hide, with what is before it. Lines end, and tabs indent.
fn acting(printed: &[u8]) -> Option<String> {
    let text = match std::str::from_utf8(printed) {
        Ok(text) => text,
        Err(error) => return Some(format!("no UTF-8 at {}", error.valid_up_to())),
    };
    text.split('\n').map(|line| line.trim_start_matches('\t')).find_map(|line| {
        let at = line.find(is_unsafe)?;
        Some(format!("{:?} in {line:?}", line[at..].chars().next()))
    })
}

#[test]
fn no_report_lets_words_of_a_tape_act() {
    let place = Place::with_sample();
    common::hostile::write(&place.path("hostile.tape"));
    let mut wrong = Vec::new();
    let all = COMMANDS.iter().flat_map(|(_, words)| words.iter());
    // files for other programs
    for words in all.filter(|words| !words.starts_with("export p")) {
        for form in ["", "--format json", "--format csv"] {
            let words = format!("{words} {form}");
            std::fs::remove_file(place.path("out")).ok();
            let words = words.split_whitespace().map(|word| match word {
                "TAPE" => "hostile.tape",
                "SOUND" => "sample.tape",
                "ASKS" => MACHINES[0],
                "OUT" => "out",
                word => word,
            });
            let words: Vec<&str> = words.collect();
            let analyze = assert_cmd::cargo::cargo_bin!("analyze");
            let got = Command::new(analyze).args(&words).current_dir(place.path(".")).output().unwrap();
            for printed in [&got.stdout, &got.stderr] {
                wrong.extend(acting(printed).map(|what| format!("{}: {what}", words.join(" "))));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of them: {:#?}", wrong.len(), &wrong[..wrong.len().min(12)]);
}

#[test]
fn no_message_about_a_name_lets_it_act() {
    let place = Place::with_sample();
    let long = format!("\u{1b}[31m\r\u{202e}\u{9b}{}", "x".repeat(200));
    std::fs::copy(place.path("sample.tape"), place.path(&long)).unwrap();
    std::fs::write(place.path(&format!("{long}.none")), "none").unwrap();
    let none = format!("{long}.none");
    let huge = format!("\u{1b}]0;{}\u{7}\n", "y".repeat(4096));
    for words in [
        &[&*long][..],
        &[&none],
        &[&huge],
        &["-e", &huge, "sample.tape"],
        &["--comm", &huge, "sample.tape"],
        &["--by", &huge, "-s", "sample.tape"],
        &["--time", &huge, "sample.tape"],
        &["--", &huge],
        &[&huge, "sample.tape"],
        &["-s", &long, &none],
        &["report", "-o", "/nowhere/\u{1b}[m", "sample.tape"],
        &["redact", &long, "sample.tape"],
    ] {
        let analyze = assert_cmd::cargo::cargo_bin!("analyze");
        let got = Command::new(analyze).args(words).current_dir(place.path(".")).output().unwrap();
        for printed in [&got.stdout, &got.stderr] {
            assert_eq!(acting(printed), None, "{words:?}");
        }
    }
}
