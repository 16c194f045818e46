//! What calls in flight point to when the recording begins and ends, and what futexes hold when a wait for them begins.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use systape_e2e::{Background, Lab};

/// A program that is in a call for ever, or until something happens; it has begun that call when this returns.
fn in_call(lab: &Lab, command: &[&str], call: u32) -> Background {
    let mut started = lab.command(command[0]);
    started.args(&command[1..]);
    let program = Background::start(started);
    let path = format!("/proc/{}/syscall", program.pid());
    lab.until("the call", || fs::read_to_string(&path).is_ok_and(|text| text.starts_with(&format!("{call} "))));
    program
}

/// Calls of that name, as JSON.
fn calls(lab: &Lab, tape: &str, name: &str) -> Vec<Value> {
    lab.analyze(&[tape, "-e", name, "--format", "json"]).expect(0).json()
}

fn fifo(lab: &Lab, name: &str) -> String {
    let path = lab.file(name);
    assert!(lab.command("mkfifo").arg(&path).status().expect("mkfifo").success());
    path
}

const OPENAT: u32 = 257;
const POLL: u32 = 7;
const PAUSE: u32 = 34;

#[test]
fn a_path_of_a_call_that_hung_before_is_known() {
    let Some(lab) = Lab::beside() else { return };
    // opening the end of a pipe that nobody has open at the other end
    let (hangs, goes_on) = (fifo(&lab, "hangs"), fifo(&lab, "goes-on"));
    let stuck = in_call(&lab, &["cat", &hangs], OPENAT);
    let other = in_call(&lab, &["cat", &goes_on], OPENAT);
    let recording = lab.attach("t.tape", &["-p", &format!("{},{}", stuck.pid(), other.pid())]);
    std::thread::sleep(Duration::from_millis(300));
    fs::write(&goes_on, "x").expect("the other end");
    other.wait().expect(0);
    recording.stop(libc::SIGINT);
    stuck.stop(libc::SIGKILL);
    let found = calls(&lab, "t.tape", "openat");
    let of =
        |path: &str| found.iter().find(|call| call["args"]["filename"] == path).unwrap_or_else(|| panic!("{found:#?}"));
    assert_eq!(of(&hangs)["incomplete"], "in-flight");
    assert_eq!((&of(&goes_on)["incomplete"], of(&goes_on)["ret"].as_i64()), (&"began-before".into(), Some(3)));
}

#[test]
fn who_is_polled_before_the_start_is_known() {
    let Some(lab) = Lab::beside() else { return };
    let script = "import os,select; r,w=os.pipe(); p=select.poll(); p.register(r, 1); p.poll()";
    let waits = in_call(&lab, &["python3", "-c", script], POLL);
    let recording = lab.attach("t.tape", &["-p", &waits.pid_text()]);
    std::thread::sleep(Duration::from_millis(200));
    recording.stop(libc::SIGINT);
    waits.stop(libc::SIGKILL);
    let found = calls(&lab, "t.tape", "poll");
    assert_eq!(found.len(), 1, "{found:#?}");
    let ufds = &found[0]["args"]["ufds"];
    assert!(ufds.to_string().contains("fd=3") && ufds.to_string().contains("POLLIN"), "{ufds}");
}

/// Three threads read: of a pipe, of a pipe and of a socket whose numbers another thread gave to files since.
const REUSED: &str = "
import os, signal, socket, threading, time
pair = socket.socketpair()
ends = [os.pipe()[0], os.pipe()[0], pair[0].fileno()]
for end in ends: threading.Thread(target=os.read, args=(end, 8), daemon=True).start()
others = lambda: (tid for tid in os.listdir('/proc/self/task') if int(tid) != os.getpid())
while sum(open(f'/proc/self/task/{tid}/syscall').read().startswith('0 ') for tid in others()) < 3: time.sleep(0.01)
for end in ends[1:]: os.dup2(os.open('reused', os.O_RDWR | os.O_CREAT), end)
signal.pause()
";

#[test]
fn a_call_is_not_named_after_the_file_that_has_its_number_since() {
    let Some(lab) = Lab::beside() else { return };
    let program = in_call(&lab, &["python3", "-c", REUSED], PAUSE);
    let recording = lab.attach("t.tape", &["-p", &program.pid_text()]);
    std::thread::sleep(Duration::from_millis(200));
    recording.stop(libc::SIGINT);
    program.stop(libc::SIGKILL);
    let mut paths: Vec<String> =
        calls(&lab, "t.tape", "read").iter().map(|call| call["args"]["fd"]["path"].to_string()).collect();
    paths.sort();
    assert!(paths.len() == 3 && paths[0].starts_with("\"pipe:["), "{paths:?}");
    assert_eq!(paths[1..], ["null", "null"]);
}

/// By each thread that waits for a mutex: who has that, by the text that the program wrote, and by the tape.
fn owners(lab: &Lab, tape: &str, said: &Path) -> BTreeMap<i64, (i64, i64)> {
    let said = fs::read_to_string(said).expect("output");
    let holders: BTreeMap<String, i64> = said
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(tid, lock)| (lock.trim_start_matches("0x").to_owned(), tid.parse().expect("a tid")))
        .collect();
    let waits = calls(lab, tape, "futex");
    let locks = waits.iter().filter_map(|call| {
        let holder = holders.get(call["args"]["uaddr"].as_str()?.trim_start_matches("0x"))?;
        Some((call["tid"].as_i64()?, (*holder, call["args"]["at_uaddr"][2].as_i64()?)))
    });
    locks.collect()
}

fn agree(owners: &BTreeMap<i64, (i64, i64)>) {
    assert_eq!(owners.len(), 2, "two threads wait: {owners:?}");
    assert!(owners.values().all(|(said, found)| said == found), "{owners:?}");
}

#[test]
fn owners_of_mutexes_of_a_deadlock() {
    let Some(lab) = Lab::beside() else { return };
    let program = lab.cc("deadlock", &["-pthread"]);
    // it hung before
    let said = lab.path("before.out");
    let mut started = lab.command("sh");
    started.args(["-c", &format!("exec {program} 10 >{}", said.display())]);
    let hung = Background::start(started);
    let tasks = format!("/proc/{}/task", hung.pid());
    lab.until("the deadlock", || {
        let waits = |tid: fs::DirEntry| {
            fs::read_to_string(tid.path().join("syscall")).is_ok_and(|text| text.starts_with("202 "))
        };
        fs::read_dir(&tasks).is_ok_and(|all| all.flatten().map(waits).filter(|waits| *waits).count() == 3)
    });
    let recording = lab.attach("before.tape", &["-p", &hung.pid_text()]);
    std::thread::sleep(Duration::from_millis(200));
    recording.stop(libc::SIGINT);
    hung.stop(libc::SIGKILL);
    agree(&owners(&lab, "before.tape", &said));
    // it hangs during the recording
    let command = format!("{program} 50 >{}", lab.file("during.out"));
    lab.record("during.tape", &["--for", "1s", "--kill"], &["sh", "-c", &command]);
    agree(&owners(&lab, "during.tape", &lab.path("during.out")));
}
