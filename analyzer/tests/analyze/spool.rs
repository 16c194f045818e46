//! `analyze -`: a tape that comes through a pipe, a FIFO or a redirection gives the same answer as the file.

use std::fs::{self, File};
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use crate::common::{self, Place};

fn analyze(place: &Place, words: &[&str], input: Stdio) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("analyze"));
    command.args(words).current_dir(place.path(".")).stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn piped(place: &Place, words: &[&str], bytes: &[u8]) -> Output {
    let mut child = analyze(place, words, Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // it may not want all of it
    let _ = input.write_all(bytes);
    drop(input);
    child.wait_with_output().unwrap()
}

#[test]
fn a_pipe_is_as_good_as_a_file() {
    let place = Place::with_sample();
    let bytes = fs::read(place.path("sample.tape")).unwrap();
    for words in [&["-"][..], &["-s", "-"], &["kills", "-"], &["--format", "json", "-"], &["--no-sandbox", "-"]] {
        let named: Vec<&str> = words.iter().map(|word| if *word == "-" { "sample.tape" } else { word }).collect();
        let expected = analyze(&place, &named, Stdio::null()).output().unwrap();
        let got = piped(&place, words, &bytes);
        assert!(expected.status.success() && !expected.stdout.is_empty(), "{expected:?}");
        assert_eq!(got, expected, "{words:?}");
    }
    let info = piped(&place, &["check", "-"], &bytes);
    assert!(info.status.success(), "{info:?}");
}

#[test]
fn a_fifo_and_a_redirection_too() {
    let place = Place::with_sample();
    let expected = analyze(&place, &["-s", "sample.tape"], Stdio::null()).output().unwrap();
    let file = File::open(place.path("sample.tape")).unwrap();
    assert_eq!(analyze(&place, &["-s", "-"], file.into()).output().unwrap(), expected);
    let fifo = place.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let (from, to) = (place.path("sample.tape"), fifo.clone());
    let writer = std::thread::spawn(move || fs::write(to, fs::read(from).unwrap()).unwrap());
    let read = File::open(&fifo).unwrap();
    assert_eq!(analyze(&place, &["-s", "-"], read.into()).output().unwrap(), expected);
    writer.join().unwrap();
}

#[test]
fn what_is_no_tape_is_told() {
    let place = Place::new();
    for bytes in [&b""[..], b"no tape", &[7; 100_000]] {
        let got = piped(&place, &["-"], bytes);
        let err = String::from_utf8(got.stderr).unwrap();
        assert_eq!((got.status.code(), got.stdout.len(), err.lines().count()), (Some(1), 0, 1), "{err}");
        assert!(err.contains("standard input: "), "{err}");
    }
    // a terminal has no tape; what is kept has no name
    assert_eq!(fs::read_dir(place.path(".")).unwrap().count(), 0);
    let help = place.analyze("--help").out;
    assert!(help.contains("4 GiB at most"), "{help}");
}

/// Who names no tape and pipes one means that one; a pipe that says nothing is refused aloud.
#[test]
fn what_is_piped_is_read_without_a_name() {
    let place = Place::with_sample();
    fs::copy(place.path("sched.tape"), place.path("trace.tape")).unwrap();
    let bytes = fs::read(place.path("sample.tape")).unwrap();
    let named = analyze(&place, &["-s", "sample.tape"], Stdio::null()).output().unwrap();
    assert_eq!(piped(&place, &["-s"], &bytes), named);
    let file = File::open(place.path("sample.tape")).unwrap();
    assert_eq!(analyze(&place, &["-s"], file.into()).output().unwrap(), named);
    let usual = analyze(&place, &["-s", "trace.tape"], Stdio::null()).output().unwrap();
    assert_ne!(usual, named);
    for nothing in [Stdio::null(), Stdio::piped()] {
        // a pipe whose writer is gone
        let mut child = analyze(&place, &["-s"], nothing).spawn().unwrap();
        drop(child.stdin.take());
        let mut got = child.wait_with_output().unwrap();
        assert_eq!(
            String::from_utf8(std::mem::take(&mut got.stderr)).unwrap(),
            "analyze: reads trace.tape, as no tape is named\n"
        );
        assert_eq!(got, Output { stderr: Vec::new(), ..usual.clone() });
    }
    let mut child = analyze(&place, &["-s"], Stdio::piped()).spawn().unwrap();
    let silent = child.stdin.take().unwrap();
    let refused = child.wait_with_output().unwrap();
    drop(silent);
    let err = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(2) && err.contains("waits for it"), "{err}");
}

/// What is something else is named, also where a tape is inside of it.
#[test]
fn other_files_are_named_with_what_to_do() {
    let place = Place::with_sample();
    let tape = fs::read(place.path("sample.tape")).unwrap();
    // blocks that do not get smaller are in it as they are
    let zstd = [b"\x28\xb5\x2f\xfd\x04".as_slice(), &tape].concat();
    for (bytes, says) in [
        (zstd.as_slice(), "compressed with zstd: zstd -dc other | analyze "),
        (b"PERFILE2\0\0\0\0", "a recording of perf: perf script"),
        (b"[{\"name\": \"read\", \"ts\": 5}]\n   ", "JSON"),
    ] {
        fs::write(place.path("other"), bytes).unwrap();
        for words in [["other"].as_slice(), &["kills", "other"], &["info", "other"]] {
            let got = analyze(&place, words, Stdio::null()).output().unwrap();
            let err = String::from_utf8(got.stderr).unwrap();
            assert!(got.status.code() == Some(1) && got.stdout.is_empty() && err.contains(says), "{words:?} {err}");
        }
        assert_eq!(place.analyze("check other").status, 1);
    }
}

/// The command that is printed for a packed tape does what was asked of the tape.
#[test]
fn the_command_for_a_packed_tape_works() {
    let place = Place::with_sample();
    fs::copy(place.path("sample.tape"), place.path("a b.tape")).unwrap();
    let program = common::program();
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let shell = |line: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(place.path("")).env("PATH", &path).stdin(Stdio::null()).output().unwrap()
    };
    let wanted = place.analyze("exec sample.tape");
    let packs = [
        ("gzip -c 'a b.tape' > x.gz", "x.gz", true),
        ("zstd -qc 'a b.tape' > x.zst", "x.zst", true),
        ("xz -c 'a b.tape' > x.xz", "x.xz", true),
        ("tar -cf x.tar 'a b.tape'", "x.tar", true),
        ("echo x > y; tar -cf z.tar y 'a b.tape' sample.tape", "z.tar", false),
        ("tar -czf x.tgz 'a b.tape' sample.tape", "x.tgz", false),
        ("zip -q x.zip 'a b.tape'", "x.zip", true),
        ("zip -q z.zip y 'a b.tape' sample.tape", "z.zip", false),
    ];
    let mut tried = 0;
    for (pack, name, one) in packs {
        // not every machine has every program
        if !shell(pack).status.success() {
            continue;
        }
        let refused = place.analyze(&format!("exec {name}"));
        let (_, told) = refused.err.split_once(": not a tape: it is ").unwrap_or_else(|| panic!("{refused:?}"));
        let command = told.split_once(": ").unwrap().1.trim();
        let got = shell(command);
        let out = String::from_utf8(got.stdout).unwrap();
        assert!(got.status.success(), "{command}: {out} {:?}", String::from_utf8(got.stderr));
        match one {
            true => assert_eq!(out, wanted.out, "{command}"),
            false => assert_eq!(out.matches("==> tapes/").count(), 2, "{command}: {out}"),
        }
        shell("rm -r tapes");
        tried += 1;
    }
    assert!(tried >= 3, "{tried}");
}

/// Of what is no tape no more is kept than where a tape could begin.
#[test]
fn what_is_no_tape_is_not_kept() {
    let place = Place::new();
    let mut child = analyze(&place, &["-"], Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut taken = 0;
    while taken < 1_usize << 30 && input.write_all(&[0; 1 << 16]).is_ok() {
        taken += 1 << 16;
    }
    drop(input);
    let got = child.wait_with_output().unwrap();
    let err = String::from_utf8(got.stderr).unwrap();
    assert!(got.status.code() == Some(1) && err.contains("standard input: not a tape: it starts with [00, "), "{err}");
    assert!(taken < 64 << 20, "{taken} bytes were taken");
}

/// A tape whose first bytes are damaged is read through a pipe as it is from a file.
#[test]
fn a_damaged_beginning_is_no_reason() {
    let place = Place::with_sample();
    let mut bytes = fs::read(place.path("sample.tape")).unwrap();
    bytes[3] ^= 1;
    fs::write(place.path("bent.tape"), &bytes).unwrap();
    let expected = analyze(&place, &["-s", "bent.tape"], Stdio::null()).output().unwrap();
    assert!(!expected.stdout.is_empty(), "{expected:?}");
    assert_eq!(piped(&place, &["-s", "-"], &bytes), expected);
    let magic = piped(&place, &["info", "-"], &bytes_of_a_header(&place));
    let err = String::from_utf8(magic.stderr).unwrap();
    assert!(err.contains("it starts like one, but its first 8 bytes hold no whole block"), "{err}");
}

fn bytes_of_a_header(place: &Place) -> Vec<u8> {
    fs::read(place.path("sample.tape")).unwrap()[..8].to_vec()
}
