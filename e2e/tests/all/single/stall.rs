//! A disk that takes nothing for a while: the recording goes on in memory. When that is full the least valuable is counted instead
//! of stored, exactly; calls that failed or took long, signals, and the life of processes are all there. The command begins whether
//! the tape takes anything or not, and a full ring keeps room for what is worth more.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use systape_e2e::disk::Loop;
use systape_e2e::lab::run;
use systape_e2e::more::{Frozen, Mounted};
use systape_e2e::{Background, Lab};

/// A file system whose writes wait while the file `stall` is there; gone when the test is.
struct Stalling {
    dir: PathBuf,
    stall: PathBuf,
    daemon: Option<Background>,
}

impl Stalling {
    fn mount(lab: &Lab) -> Self {
        let flags = ["-lfuse3", "-I/usr/include/fuse3", "-D_FILE_OFFSET_BITS=64"];
        let stallfs = lab.cc("stallfs", &flags);
        let [dir, backing, stall] = ["stalling", "backing", "stall"].map(|name| lab.path(name));
        fs::create_dir(&dir).expect("mkdir");
        fs::create_dir(&backing).expect("mkdir");
        fs::write(backing.join("here"), "").expect("here");
        let daemon = Background::start(lab.command(stallfs).args([&dir, &backing, &stall]));
        let mounted = Self { dir, stall, daemon: Some(daemon) };
        lab.until("the file system", || mounted.dir.join("here").exists());
        mounted
    }

    fn stall(&self) {
        fs::write(&self.stall, "").expect("stall");
    }

    fn go_on(&self) {
        fs::remove_file(&self.stall).expect("stall");
    }
}

impl Drop for Stalling {
    fn drop(&mut self) {
        fs::remove_file(&self.stall).ok();
        std::process::Command::new("fusermount3").args(["-u", "-z"]).arg(&self.dir).status().ok();
        self.daemon.take();
    }
}

fn until_begun(lab: &Lab, tape: &str) {
    lab.until("the tape's beginning", || fs::metadata(lab.path(tape)).is_ok_and(|meta| meta.len() > 0));
}

/// What `worth` printed: getppid calls, naps, children.
fn truth(text: &str) -> [u64; 3] {
    let numbers: Vec<u64> = text.split_whitespace().map(|word| word.parse().expect("a number")).collect();
    numbers.try_into().expect("three numbers")
}

/// Calls in the sums of a tape.
fn summed(lab: &Lab, tape: &str, call: &str, more: &[&str]) -> u64 {
    let options = [&["-s", "-e", call, "--format", "json", tape], more].concat();
    let rows = lab.analyze(&options).expect(0).json();
    rows.iter().map(|row| row["calls"].as_u64().expect("calls")).sum()
}

/// Lines of a report for which `is` holds.
fn listed(lab: &Lab, arguments: &[&str], is: impl Fn(&Value) -> bool) -> u64 {
    let run = lab.analyze(&[arguments, &["--format", "json"]].concat());
    assert!(matches!(run.code(), 0 | 3), "{run:?}");
    run.json().iter().filter(|row| row.get("lost").is_none() && is(row)).count() as u64
}

/// Nothing that is worth much is missing, and sums are exact.
fn assert_worth(lab: &Lab, tape: &str, [calls, naps, children]: [u64; 3]) {
    assert_eq!(summed(lab, tape, "getppid", &[]), calls, "sums");
    assert_eq!(summed(lab, tape, "nanosleep", &[]), naps, "sums");
    assert_eq!(listed(lab, &[tape, "-e", "read", "--failed", "--comm=worth"], |_| true), naps, "calls that failed");
    let slow = listed(lab, &[tape, "-e", "nanosleep", "--comm=worth"], |row| row["errno"].is_null());
    assert_eq!(slow, naps, "calls that took long");
    let execs = listed(lab, &["exec", tape], |row| row["comm"] == "true");
    assert_eq!(execs, children, "programs");
    let signals = listed(lab, &["kills", tape, "--signal", "USR1"], |_| true);
    assert_eq!(signals, children, "signals");
}

/// Families of what is not there.
fn missing(info: &Value) -> Vec<&str> {
    let gaps = info["gaps"].as_array().expect("gaps").iter().filter(|gap| gap["cause"] != "string-fault");
    let mut families: Vec<&str> = gaps.filter_map(|gap| gap["family"].as_str()).collect();
    families.sort_unstable();
    families.dedup();
    families
}

#[test]
fn a_minute_without_a_write() {
    const STALL: Duration = Duration::from_secs(60);
    let Some(lab) = Lab::with_bpf() else { return };
    let (worth, stalling) = (lab.cc("worth", &[]), Stalling::mount(&lab));
    // 64 MiB do for the whole of it at this rate: nothing is missing
    let mut command = lab.record_command("stalling/t.tape", &["--buffer", "64M"], &[&worth, "120000"]);
    let recorder = Background::start(command.env("PAUSE", "1"));
    until_begun(&lab, "stalling/t.tape");
    stalling.stall();
    // in full flood: with memory for what is worth more, and without
    std::thread::sleep(Duration::from_secs(1));
    let flood = |tape, buffer| {
        Background::start(lab.record_command(&format!("stalling/{tape}"), &["--buffer", buffer], &[&worth, "120000"]))
    };
    let [flooded, swamped] = [flood("u.tape", "8M"), flood("v.tape", "1M")];
    std::thread::sleep(STALL);
    let before = fs::metadata(lab.path("backing/t.tape")).expect("tape").len();
    fs::write(lab.path("stop"), "").expect("stop");
    stalling.go_on();
    let [paused, flooded, swamped] = [recorder, flooded, swamped].map(|run| run.wait().expect(0));
    for tape in ["t.tape", "u.tape", "v.tape"] {
        fs::copy(lab.path("backing").join(tape), lab.path(tape)).expect("copy");
    }

    lab.assert_whole("t.tape");
    assert_worth(&lab, "t.tape", truth(&paused.text()));
    let info = lab.info("t.tape");
    let len = fs::metadata(lab.path("t.tape")).expect("tape").len();
    assert!(len > before + (1 << 20), "{before} of {len} bytes before it went on: the test tests nothing");
    assert!(info["duration_ns"].as_u64().expect("ns") > STALL.as_nanos() as u64);

    let info = lab.info("u.tape");
    let behind = info["ledger"]["behind_calls"].as_u64().expect("calls");
    assert!(behind > 100_000, "{behind} calls were counted: the test tests nothing");
    assert!(flooded.stderr.contains("as totals only"), "{}", flooded.stderr);
    let few = missing(&info);
    assert!(few.iter().all(|family| ["sched", "syscall"].contains(family)), "{}", info["gaps"]);
    assert_worth(&lab, "u.tape", truth(&flooded.text()));

    // everything is counted
    let info = lab.info("v.tape");
    let gone = missing(&info);
    assert!(["process", "sched", "signal", "syscall"].iter().all(|of| gone.contains(of)), "{}", info["gaps"]);
    let [calls, naps, _] = truth(&swamped.text());
    assert_eq!(["getppid", "nanosleep", "read"].map(|call| summed(&lab, "v.tape", call, &["--failed"])), [0, 0, naps]);
    assert_eq!(["getppid", "nanosleep"].map(|call| summed(&lab, "v.tape", call, &[])), [calls, naps]);
}

#[test]
fn a_frozen_disk() {
    let Some(lab) = Lab::with_bpf() else { return };
    let Some(disk) = Loop::new(&lab, "image", 64 << 20) else { return };
    let worth = lab.cc("worth", &[]);
    run(lab.command("mkfs.ext4").args(["-q", &disk.path])).expect(0);
    let _mounted = Mounted::disk(&lab, "disk", &disk.path);
    let mut command = lab.record_command("disk/t.tape", &[], &[&worth, "60000"]);
    let recorder = Background::start(command.env("PAUSE", "1"));
    until_begun(&lab, "disk/t.tape");
    let frozen = Frozen::new(&lab, "disk");
    std::thread::sleep(Duration::from_secs(8));
    let before = fs::metadata(lab.path("disk/t.tape")).expect("tape").len();
    fs::write(lab.path("stop"), "").expect("stop");
    std::thread::sleep(Duration::from_secs(1));
    drop(frozen);
    let run = recorder.wait().expect(0);
    fs::copy(lab.path("disk/t.tape"), lab.path("t.tape")).expect("copy");
    lab.assert_whole("t.tape");
    assert_worth(&lab, "t.tape", truth(&run.text()));
    let len = fs::metadata(lab.path("t.tape")).expect("tape").len();
    assert!(len > before + (100 << 10), "{before} of {len} bytes before it went on: the test tests nothing");
}

#[test]
fn the_command_begins_though_the_tape_takes_nothing() {
    let Some(lab) = Lab::with_bpf() else { return };
    let (target, stalling) = (lab.cc("target", &[]), Stalling::mount(&lab));
    stalling.stall();
    let recorder = lab.record_command("stalling/t.tape", &[], &["sh", "-c", &format!("{target} spin 997; touch done")]);
    let recorder = Background::start(recorder);
    lab.until("the command's end", || lab.path("done").exists());
    // it is over, and waits
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(fs::metadata(lab.path("backing/t.tape")).expect("tape").len(), 0);
    stalling.go_on();
    let run = recorder.wait().expect(0);
    assert!(run.stderr.contains("accepts nothing yet"), "{}", run.stderr);
    fs::copy(lab.path("backing/t.tape"), lab.path("t.tape")).expect("copy");
    lab.assert_whole("t.tape");
    assert_eq!(lab.calls("t.tape", &["-e", "getppid", "--comm=target"]).len(), 997);
}

/// When rings are full all the time, calls that failed or took long have room left.
#[test]
fn a_full_ring_keeps_room() {
    let Some(lab) = Lab::with_bpf() else { return };
    let worth = lab.cc("worth", &[]);
    let options = ["-m", "64k", "--force", "cpu-buffer=16", "--families", "syscall,process,signal"];
    let began = Instant::now();
    let run = lab.record("t.tape", &options, &[&worth, "3000"]).expect(0);
    let lost = systape_e2e::more::lost_calls(&lab.info("t.tape"));
    assert!(lost > 1000, "{lost} calls had no room in {:?}: the test tests nothing", began.elapsed());
    assert_worth(&lab, "t.tape", truth(&run.text()));
}
