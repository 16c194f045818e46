//! Lines that people type who know perf, strace, the bcc tools, sysdig, trace-cmd or just a shell (tests/lines/*.txt): each is answered as it
//! is meant, or refused with what to type. What is suggested is taken by `analyze`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::hints::{not_taken, refused};
use crate::common::{self, Place};
use systape_cli::words;

/// A line, and what is to come of it.
#[derive(Debug)]
struct Line {
    /// Where it stands.
    at: String,
    /// As a shell reads it.
    typed: String,
    status: i32,
    /// Is in what is printed.
    says: String,
}

/// The lines of a file: `LINE => STATUS TEXT`, `#` begins a comment.
fn lines(file: &Path) -> Vec<Line> {
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    let text = fs::read_to_string(file).unwrap();
    let all = text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    all.map(|(number, line)| {
        let at = format!("{name}:{}", number + 1);
        let (typed, expected) = line.rsplit_once(" => ").unwrap_or_else(|| panic!("{at}: no ' => '"));
        let (status, says) = expected.trim().split_once(' ').unwrap_or((expected.trim(), ""));
        Line { status: status.parse().expect(&at), typed: typed.trim().to_owned(), says: says.trim().to_owned(), at }
    })
    .collect()
}

/// A directory with tapes and with what is none.
fn place() -> Place {
    let place = Place::new();
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes");
    fs::create_dir(place.path("two")).unwrap();
    fs::create_dir(place.path("empty")).unwrap();
    for (from, to) in [
        ("kernel-6.1-mix.tape", "trace.tape"),
        ("kernel-6.1-mix.tape", "t.tape"),
        ("kernel-6.1-mix.tape", "two/a.tape"),
        ("kernel-6.12-sh.tape", "two/b.tape"),
        ("kernel-6.12-sh.tape", "sh.tape"),
        ("stacks-1.2.tape", "stacks.tape"),
    ] {
        fs::copy(recorded.join(from), place.path(to)).unwrap();
    }
    let elf = |kind: u8| [&b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0"[..], &[kind, 0], &[0; 40]].concat();
    let tar = [&b"t.tape"[..], &[0; 251], b"ustar\x0000", &[0; 280]].concat();
    let files: [(&str, Vec<u8>); 14] = [
        ("t.tape.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03".into()),
        ("t.tar.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03".into()),
        ("t.tape.zst", b"\x28\xb5\x2f\xfd\x04\0\0\0\0\0".into()),
        ("t.tape.xz", b"\xfd7zXZ\0\0\0".into()),
        ("t.zip", b"PK\x03\x04\x14\0".into()),
        ("t.tar", tar),
        ("perf.data", [&b"PERFILE2"[..], &[0; 64]].concat()),
        ("trace.scap", [&b"\x0a\x0d\x0d\x0a"[..], &[0; 28]].concat()),
        ("trace.pcap", [&b"\xd4\xc3\xb2\xa1\x02\0\x04\0"[..], &[0; 16]].concat()),
        ("strace.out", b"127 execve(\"/bin/sh\", [\"sh\"], 0x7ffc /* 3 vars */) = 0\n".into()),
        ("core", elf(4)),
        ("a.out", elf(2)),
        ("notes.txt", b"buy milk\n".into()),
        ("data.json", b"{\"a\": 1}\n".into()),
    ];
    for (name, bytes) in files {
        fs::write(place.path(name), bytes).unwrap();
    }
    fs::write(place.path("empty.tape"), "").unwrap();
    place
}

/// Both outputs of a line, and its status: by a process that answers many, or, if it needs a shell or another program, by a shell.
fn run(place: &Place, line: &Line, path: &str) -> (i32, String, String) {
    let shell = line.typed.contains(['|', '<', '>', '$', '*']) || !line.typed.starts_with("analyze");
    if !shell && ![" sql", " export"].iter().any(|word| line.typed.contains(word)) {
        let all = words(&line.typed);
        let got = place.ask_words(all.iter().skip(1).map(String::as_str));
        return (got.status, got.out, got.err);
    }
    let mut command = Command::new("sh");
    command.arg("-c").arg(&line.typed).current_dir(place.path("")).env("PATH", path).stdin(Stdio::null());
    let got = command.env_remove("NO_COLOR").env_remove("LC_ALL").output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (got.status.code().unwrap_or(-1), text(&got.stdout), text(&got.stderr))
}

#[test]
fn each_is_answered_or_refused_with_what_to_type() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lines");
    let mut files: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let all: Vec<Line> = files.iter().flat_map(|file| lines(file)).collect();
    assert!(all.len() >= 1400, "{}", all.len());
    let program = common::program();
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(4);
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let work = || {
            // what a line writes stays with these lines
            let (place, mut wrong) = (place(), Vec::new());
            while let Some(line) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                let (status, out, err) = run(&place, line, &path);
                let shown = format!("{err}{}", out.get(..out.len().min(200)).unwrap_or_default());
                if status != line.status || !(out.contains(&line.says) || err.contains(&line.says)) {
                    wrong.push(format!(
                        "{}: {}\n  not {} '{}': {status} {shown}",
                        line.at, line.typed, line.status, line.says
                    ));
                }
                if let Some(why) = refused(&err) {
                    wrong.push(format!("{}: {}\n  what it suggests is refused: {why}", line.at, line.typed));
                }
                if let Some(option) = (status == 2).then(|| not_taken(&line.typed, &err)).flatten() {
                    wrong.push(format!("{}: {}\n  it suggests {option}: {err}", line.at, line.typed));
                }
                let useless = ["invalid digit", "to pass '", "unexpected argument", "panicked"];
                if useless.iter().any(|text| err.contains(text)) {
                    wrong.push(format!("{}: {}\n  {shown}", line.at, line.typed));
                }
            }
            wrong
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} of {} lines:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}
