//! The slow read of the seed story: a FUSE file system whose reads take 20 to 800 ms, a program with busy futex threads
//! that opened `/staging/big_file` before the recording began, and one command that finds its slow reads, by path, and
//! nothing else. The program's own clock says which reads there were.

use std::fs;
use std::path::PathBuf;

use systape_e2e::{Background, Lab};

/// The mounted file system; gone when the test is.
struct Staging {
    dir: PathBuf,
    daemon: Option<Background>,
}

impl Staging {
    fn mount(lab: &Lab) -> Self {
        let flags = ["-lfuse3", "-I/usr/include/fuse3", "-D_FILE_OFFSET_BITS=64"];
        let slowfs = lab.cc("slowfs", &flags);
        // as in the story, when the machine has nothing there
        let staging = PathBuf::from("/staging");
        let dir = if fs::create_dir(&staging).is_ok() { staging } else { lab.path("staging") };
        fs::create_dir(&dir).ok();
        let daemon = Background::start(lab.command(slowfs).arg(&dir));
        let mounted = Self { dir, daemon: Some(daemon) };
        lab.until("the file system", || mounted.dir.join("big_file").exists());
        mounted
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        let umount = std::process::Command::new("fusermount3").args(["-u", "-z"]).arg(&self.dir).status();
        self.daemon.take();
        if umount.is_ok_and(|status| status.success()) {
            fs::remove_dir(&self.dir).ok();
        }
    }
}

/// Start and duration of each read the program made, ms of CLOCK_MONOTONIC.
fn truth(log: &[u8]) -> Vec<(f64, f64)> {
    let mut words = log.chunks_exact(8).map(|w| u64::from_le_bytes(w.try_into().expect("8 bytes")));
    let count = words.next().expect("count") as usize;
    let times: Vec<u64> = words.take(2 * count).collect();
    times.chunks(2).map(|t| (t[0] as f64 / 1e6, (t[1] - t[0]) as f64 / 1e6)).collect()
}

/// A line of a call that returned: start, duration, the rest.
fn completed(line: &str) -> Option<(f64, f64, &str)> {
    let (start, rest) = line.split_once('(')?;
    let (dur, rest) = rest.split_once(" ms): ")?;
    Some((start.trim().parse().ok()?, dur.trim().parse().ok()?, rest))
}

#[test]
fn the_slow_reads_are_found_by_path() {
    let Some(lab) = Lab::beside() else { return };
    let staging = Staging::mount(&lab);
    let slowread = lab.cc("slowread", &[]);
    let big_file = staging.dir.join("big_file");
    let mut program = Background::start(lab.command(slowread).arg(&big_file).arg(lab.path("log")));
    // long before the recording: the first read is over
    lab.until("the first read", || fs::read(lab.path("log")).is_ok_and(|log| log.len() > 8 && !truth(&log).is_empty()));
    lab.record("t.tape", &["-p", &program.pid_text(), "--for", "5s"], &[]).expect(0);
    assert!(program.ended().is_none(), "the program must outlive the recording");
    let reads = truth(&fs::read(lab.path("log")).expect("log"));
    drop(program);
    lab.assert_whole("t.tape");

    let listing = lab.analyze(&["t.tape", "--duration", "10", "-e", "!futex", "-T"]).expect(0);
    assert_eq!(listing.complaints(), "");
    let call = format!("read(fd: 3<{}>, buf: 0x", big_file.display());
    let (mut seen, mut bounds) = (Vec::new(), Vec::new());
    for line in listing.text().lines() {
        assert!(line.contains(&call), "something else: {line}");
        match completed(line) {
            Some((start, dur, rest)) => {
                assert!(rest.starts_with("slowread/") && rest.ends_with(" = 8192"), "{line}");
                assert!(rest.contains(", count: 8192)"), "{line}");
                seen.push((start, dur));
            }
            None => {
                let (_, bound) = line.split_once("(>=").unwrap_or_else(|| panic!("{line}"));
                bounds.push((bound.split_once(" ms): ").expect("ms").0.parse::<f64>().expect("ms"), line.to_owned()));
            }
        }
    }
    // every read that began and ended in the window, each once, each as long as the program found it
    let (first, last) = (seen.first().expect("reads").0, seen.last().expect("reads").0);
    let within: Vec<_> = reads.iter().filter(|(start, _)| *start > first - 1.0 && *start < last + 1.0).collect();
    assert_eq!(seen.len(), within.len(), "tape {seen:?}\nprogram {within:?}");
    for (tape, program) in seen.iter().zip(&within) {
        let close = (tape.0 - program.0).abs() < 5.0 && (tape.1 - program.1).abs() < 5.0;
        assert!(close && tape.1 > 19.9, "tape {tape:?}, program {program:?}");
    }
    // at the edges, calls in flight: a lower bound that is one. The program is in a read all the time.
    assert!(bounds.len() <= 2, "{bounds:?}");
    // what is left of it inside the recording may be less than 10 ms
    let edges = lab.analyze(&["t.tape", "-e", "read"]).expect(0).text();
    assert!(edges.contains("(>="), "{edges}");
    let before = reads.iter().rev().find(|(start, _)| *start < first - 1.0).expect("the read before");
    for (bound, line) in &bounds {
        let began_before = line.trim_start().starts_with('?');
        assert!(*bound > 10.0 && (!began_before || *bound <= before.1 + 1.0), "{line}: it took {} ms", before.1);
        assert!(line.ends_with(if began_before { " = 8192" } else { "= ? in flight" }), "{line}");
    }
    assert!(last - first > 3000.0 && seen.len() > 10, "the window was not covered: {seen:?}");
    // all of them went to the daemon: the file is in no page cache, and on no disk
    let files = lab.analyze(&["files", "t.tape", "-P", "*big_file", "--format", "json"]).expect(0).json();
    let [file] = &files[..] else { panic!("{files:?}") };
    assert!(file["reads"].as_u64() > Some(10) && file["cached_reads"] == 0, "{file}");
    // and the futexes were busy, all in the tape
    let rows = lab.analyze(&["t.tape", "-s", "--summary-mode", "process", "--format", "json"]).expect(0).json();
    let futex = rows.iter().find(|row| row["syscall"] == "futex").expect("futex row");
    assert!(futex["calls"].as_u64().expect("calls") > 10_000, "{futex}");
}
