//! Inside the sandbox nothing can be done but what was asked for, and every report can be had.
#![cfg(target_os = "linux")]

mod common;

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use common::Place;
use systape_analyzer::sandbox::{Needs, enter};

/// Tells this program that it is the child that confines itself: where its files are, and a port that listens.
const CHILD: &str = "SYSTAPE_TEST_CONFINED";

/// The version of Landlock; 0 = the kernel has none.
fn landlock() -> i64 {
    // SAFETY: asks for the version, with no memory involved.
    unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0, 1) }.max(0)
}

fn refused<T>(what: &str, result: std::io::Result<T>) {
    match result {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {}
        Err(error) => panic!("{what}: {error}"),
        Ok(_) => panic!("{what}: it can be done"),
    }
}

/// What code that has taken over the process could try.
fn attempts(dir: &Path, port: u16) {
    refused("read a file", fs::read("/etc/passwd"));
    refused("list a directory", fs::read_dir("/"));
    refused("make a file", File::create("/tmp/made-in-the-sandbox"));
    refused("make a file beside the tape", File::create(dir.join("other")));
    refused("write to the tape", fs::OpenOptions::new().write(true).open(dir.join("tape")));
    refused("remove the tape", fs::remove_file(dir.join("tape")));
    refused("rename the tape", fs::rename(dir.join("tape"), dir.join("other")));
    refused("make a directory", fs::create_dir(dir.join("other")));
    refused("make a link", std::os::unix::fs::symlink("/etc/passwd", dir.join("other")));
    refused("run a program", Command::new("/bin/true").spawn());
    refused("connect", TcpStream::connect(("127.0.0.1", port)));
    refused("listen", TcpListener::bind("127.0.0.1:0"));
    refused("send", UdpSocket::bind("127.0.0.1:0"));
    refused("a local socket", UnixListener::bind(dir.join("socket")));
    assert_eq!(fs::read(dir.join("tape")).unwrap(), b"tape");
    fs::write(dir.join("out"), "written").unwrap();
}

/// Runs as a process of its own: what is given up does not come back.
fn child(place: &str) {
    let (port, dir) = place.split_once(' ').unwrap();
    let (port, dir) = (port.parse().unwrap(), Path::new(dir));
    assert!(TcpStream::connect(("127.0.0.1", port)).is_ok() && fs::read("/etc/passwd").is_ok());
    enter(&Needs { read: vec![dir.join("tape")], write: vec![dir.join("out")], ..Needs::default() });
    attempts(dir, port);
    // threads made afterwards, as rayon's are
    std::thread::scope(|scope| scope.spawn(|| attempts(dir, port)).join()).unwrap();
    println!("confined");
}

#[test]
fn nothing_can_be_done_but_what_was_asked_for() {
    if let Ok(place) = std::env::var(CHILD) {
        return child(&place);
    }
    if landlock() < 4 {
        eprintln!("SKIPPED: this kernel's Landlock has version {}, files and TCP need 4", landlock());
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("tape"), "tape").unwrap();
    File::create(dir.path().join("out")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = format!("{} {}", listener.local_addr().unwrap().port(), dir.path().display());
    let out = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "nothing_can_be_done_but_what_was_asked_for", "--nocapture"])
        .env(CHILD, place)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && text.contains("confined"), "{text} {}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(fs::read(dir.path().join("out")).unwrap(), b"written");
}

/// The program itself, as the kernel sees it.
#[test]
fn a_run_is_confined_unless_told_otherwise() {
    if landlock() == 0 {
        eprintln!("SKIPPED: this kernel has no Landlock");
        return;
    }
    let place = Place::new();
    let status = |option: &[&str]| -> Vec<String> {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin("analyze"))
            .args(option)
            .args(["--format", "json", "many.tape"])
            .current_dir(place.path(""))
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // it has read of the tape, and waits: the rest does not fit the pipe
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let text = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let wanted = |line: &&str| line.starts_with("NoNewPrivs:") || line.starts_with("Seccomp:");
        text.lines().filter(wanted).map(|line| line.split_whitespace().last().unwrap_or("").to_owned()).collect()
    };
    many(&place.path("many.tape"));
    assert_eq!(status(&["--no-sandbox"]), ["0", "0"]);
    assert_eq!(status(&[]), ["1", "2"], "no new privileges, a filter of calls");
}

/// A tape whose listing does not fit a pipe.
fn many(path: &Path) {
    let mut tape = common::Tape::create(path);
    let row = |i: u64| common::Row { tid: 100, name: "read", start: i * 10, dur: 5, ..common::Row::default() };
    let rows: Vec<_> = (0..20_000).map(row).collect();
    tape.segment(common::OPEN + 1_000_000_000, &rows, &[]);
    tape.finish();
}

#[test]
fn files_named_on_the_command_line_are_written() {
    let place = Place::new();
    common::stacks::write(&place.path("a.tape"), 1);
    for option in ["", "--no-sandbox "] {
        for file in ["out.svg", "copy.tape"] {
            let _ = fs::remove_file(place.path(file));
        }
        let got = place.analyze(&format!("{option}callgraph --svg out.svg a.tape"));
        assert_eq!(got.status, 0, "{}", got.err);
        assert!(fs::read_to_string(place.path("out.svg")).unwrap().contains("</svg>"));
        // one that exists is written over
        File::options().append(true).open(place.path("out.svg")).unwrap().write_all(&[b'x'; 1 << 20]).unwrap();
        assert_eq!(place.analyze(&format!("{option}callgraph --svg out.svg --diff a.tape a.tape")).status, 0);
        assert!(fs::metadata(place.path("out.svg")).unwrap().len() < 1 << 20);
        assert_eq!(place.analyze(&format!("{option}repair a.tape copy.tape")).status, 0);
        assert_eq!(place.analyze(&format!("{option}diff a.tape copy.tape")).status, 0);
    }
}

#[test]
fn what_was_begun_for_nothing_is_removed() {
    let place = Place::new();
    fs::write(place.path("no.tape"), "no tape at all, and long enough to be looked at").unwrap();
    for words in ["callgraph --svg new.svg no.tape", "repair no.tape new.tape"] {
        let got = place.analyze(words);
        assert_eq!(got.status, 1, "{words}: {}", got.err);
        assert!(got.err.contains("not a tape"), "{words}: {}", got.err);
    }
    assert!(!place.path("new.svg").exists() && !place.path("new.tape").exists());
}
