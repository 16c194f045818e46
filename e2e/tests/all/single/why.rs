//! `analyze why` names the cause: programs that are slow, or break, for one reason each (workloads/causes.c), and programs that are sound.
//!
//! On a busy machine any of them may wait for a CPU too: findings of that rule are left out of both comparisons, but where it is the cause.

use std::fs;

use serde_json::Value;
use systape_e2e::disk::has;
use systape_e2e::lab::{binary, run};
use systape_e2e::{Background, Lab};

/// What `analyze why` finds, as JSON. A kernel may run no program at the end of an I/O: figures are marked then.
#[track_caller]
fn findings(lab: &Lab, tape: &str) -> Vec<Value> {
    let mut rows = lab.analyze(&["why", tape, "--format", "json"]).expect(0).json();
    // where the time went is no finding
    rows.retain(|row| row["kind"] == "finding");
    rows
}

/// The same without waits for a CPU.
#[track_caller]
fn causes(lab: &Lab, tape: &str) -> Vec<Value> {
    let mut all = findings(lab, tape);
    all.retain(|finding| finding["rule"] != "cpu-wait");
    all
}

/// What one workload must be found to be.
struct Cause {
    reason: &'static str,
    file: Option<String>,
    rule: &'static str,
    /// A part of the finding's object; empty: any.
    object: String,
    syscall: Option<&'static str>,
}

fn cause(
    reason: &'static str,
    file: Option<String>,
    rule: &'static str,
    object: &str,
    syscall: Option<&'static str>,
) -> Cause {
    Cause { reason, file, rule, object: object.to_owned(), syscall }
}

/// The place of the cause among the findings, from 1. The command that the finding names must show it.
#[track_caller]
fn place(lab: &Lab, program: &str, cause: &Cause) -> usize {
    let command: Vec<&str> = [program, cause.reason].into_iter().chain(cause.file.as_deref()).collect();
    lab.record("t.tape", &[], &command).expect(0);
    let found = causes(lab, "t.tape");
    let is = |finding: &&Value| {
        let object = finding["object"].as_str().unwrap_or_default();
        finding["rule"] == cause.rule
            && object.contains(&cause.object)
            && cause.syscall.is_none_or(|call| finding["syscall"] == call)
    };
    let at = found.iter().position(|finding| is(&finding));
    let at = at.unwrap_or_else(|| panic!("{}: {} is not found: {found:#?}", cause.reason, cause.rule));
    shows(lab, "t.tape", &found[at]);
    at + 1
}

/// Runs the command of `finding`: its output has the figure.
#[track_caller]
fn shows(lab: &Lab, tape: &str, finding: &Value) {
    let words = finding["command"].as_str().expect("a command");
    let format = format!("exec {} {words} {tape}", binary("analyze").display());
    let shell = run(lab.command("sh").args(["-c", &format])).expect(0);
    let text = shell.text();
    assert!(!text.trim().is_empty(), "{words}");
    // of who is waited for it shows the sleeps
    let of_other = (finding["rule"] == "waited-for").then_some("nanosleep");
    let call = of_other.unwrap_or(finding["syscall"].as_str().unwrap_or_default());
    assert!(text.contains(call), "{words}: {text}");
    if words.starts_with("-s ") && !words.contains("--by tid") {
        let rows = run(lab.command("sh").args(["-c", &format!("{format} --format json")])).json();
        let calls: u64 = rows.iter().map(|row| row["calls"].as_u64().expect("calls")).sum();
        let count: u64 = finding["count"].as_str().expect("a count").parse().expect("a number");
        assert!(calls >= count, "{words}: {calls} of {count}");
    }
}

#[test]
fn the_cause_is_named_first() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = lab.cc("causes", &[]);
    let file = |name: &str| Some(lab.file(name));
    let name = |name: &str| lab.file(name);
    fs::write(lab.path("there"), "x").expect("a file");
    let all = [
        cause("stat-storm", file("there"), "storm", &name("there"), None),
        cause("open-storm", file("absent"), "failures", &name("absent"), None),
        cause("tiny-writes", file("tiny"), "storm", &name("tiny"), Some("write")),
        cause("programs", None, "program-storm", "true", None),
        cause("contended", None, "lock", "0x", Some("futex")),
        cause("file-lock", file("locked"), "lock", &name("locked"), Some("flock")),
        cause("slow-peer", None, "slow-calls", "127.0.0.1", Some("read")),
        cause("kill", None, "death", "SIGKILL", None),
        cause("terminate", None, "death", "SIGTERM", None),
        cause("crash", None, "death", "SIGSEGV", None),
        cause("leak", None, "memory", "", None),
    ];
    let places: Vec<(&str, usize)> = all.iter().map(|cause| (cause.reason, place(&lab, &program, cause))).collect();
    println!("{places:?}");
    assert!(places.iter().all(|(_, place)| *place <= 3), "{places:?}");
    let first = places.iter().filter(|(_, place)| *place == 1).count();
    assert!(first * 10 >= places.len() * 8, "{places:?}");
}

#[test]
fn a_log_that_is_made_durable_is_as_slow_as_it_says() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = lab.cc("causes", &[]);
    let log = lab.file("log");
    let run = lab.record("t.tape", &[], &[&program, "durable-log", &log]).expect(0);
    let us: u64 = run.text().trim().parse().expect("microseconds");
    let found = causes(&lab, "t.tape");
    let fsync = found.iter().find(|finding| finding["rule"] == "fsync" && finding["object"] == log.as_str());
    // where the file is on no disk it takes no time
    match fsync {
        Some(fsync) => {
            let cost = fsync["cost_ns"].as_u64().expect("a cost");
            assert!(cost <= us * 1000, "{fsync}: the program waited {us} us");
            assert_eq!(fsync["count"], "1000");
            shows(&lab, "t.tape", fsync);
        }
        None => {
            let rows = lab.analyze(&["-s", "-e", "fsync", "t.tape", "--format", "json"]).expect(0).json();
            assert_eq!(rows.iter().map(|row| row["calls"].as_u64().expect("calls")).sum::<u64>(), 1000, "{rows:?}");
        }
    }
}

#[test]
fn slow_reads_of_a_file_system_are_named() {
    let Some(lab) = Lab::with_bpf() else { return };
    let slowfs = lab.cc("slowfs", &["-lfuse3", "-I/usr/include/fuse3", "-D_FILE_OFFSET_BITS=64"]);
    let program = lab.cc("causes", &[]);
    let dir = lab.path("slow");
    fs::create_dir(&dir).expect("a directory");
    let daemon = Background::start(lab.command(slowfs).arg(&dir));
    lab.until("the file system", || dir.join("big_file").exists());
    let big = dir.join("big_file").to_str().expect("UTF-8").to_owned();
    let place = place(&lab, &program, &cause("read-file", Some(big.clone()), "slow-calls", &big, Some("read")));
    let cost = causes(&lab, "t.tape")[0]["cost_ns"].as_u64().expect("a cost");
    let unmounted = std::process::Command::new("fusermount3").args(["-u", "-z"]).arg(&dir).status();
    drop(daemon);
    assert!(unmounted.is_ok_and(|status| status.success()));
    assert_eq!(place, 1);
    // the first four take 20, 350, 35 and 120 ms
    assert!(cost >= 525_000_000, "{cost}");
}

#[test]
fn programs_that_share_a_cpu_wait_for_it() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = lab.cc("causes", &[]);
    lab.record("t.tape", &[], &[&program, "crowded"]).expect(0);
    let found = findings(&lab, "t.tape");
    assert_eq!(found[0]["rule"], "cpu-wait", "{found:#?}");
    // four that need 250 ms each: who is last waits for 750
    let cost = found[0]["cost_ns"].as_u64().expect("a cost");
    assert!(cost > 300_000_000, "{cost}");
    shows(&lab, "t.tape", &found[0]);
}

#[test]
fn sound_programs_have_no_finding() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = lab.cc("causes", &[]);
    fs::write(lab.path("small.c"), "#include <stdio.h>\nint main(void) { return puts(\"x\") < 0; }\n").expect("a file");
    fs::write(lab.path("data"), vec![7; 16 << 20]).expect("a file");
    let (small, object) = (lab.file("small.c"), lab.file("small.o"));
    let (data, copy) = (lab.file("data"), lab.file("copy"));
    let all: [&[&str]; 5] = [
        &["sleep", "0.4"],
        &[&program, "quiet"],
        &["cc", "-O1", "-c", "-o", &object, &small],
        &["ls", "-R", "/usr/include/linux"],
        &["cp", &data, &copy],
    ];
    for command in all {
        // what must be read from a disk has been read then
        run(lab.command(command[0]).args(&command[1..])).expect(0);
        lab.record("t.tape", &[], command).expect(0);
        let found = causes(&lab, "t.tape");
        assert!(found.is_empty(), "{command:?}: {found:#?}");
        let text = lab.analyze(&["why", "t.tape"]).expect(0).text();
        assert!(text.contains("(floor: 30.0 ms)") || text.contains("for a CPU"), "{text}");
    }
}

#[test]
fn a_lock_of_a_file_has_its_holder() {
    let Some(lab) = Lab::with_bpf() else { return };
    if !has("flock") {
        return;
    }
    // who holds it says its number
    let script =
        "flock lock sh -c 'echo $PPID >holder; sleep 3' & while ! [ -s holder ]; do sleep 0.02; done; flock lock true";
    lab.record("t.tape", &[], &["sh", "-c", script]).expect(0);
    let holder: i64 = fs::read_to_string(lab.path("holder")).expect("holder").trim().parse().expect("a pid");
    let found = causes(&lab, "t.tape");
    // with the sleep of who holds it; on a busy machine the wait for a CPU may cost more than the least that the lock did
    let first = found.iter().find(|row| row["rule"] == "lock").unwrap_or_else(|| panic!("{found:#?}"));
    assert_eq!(first["syscall"], "flock", "{first}");
    assert!(first["object"].as_str().is_some_and(|path| path.ends_with("/lock")), "{first}");
    assert_eq!((first["by_pid"].as_i64(), first["by_comm"].as_str()), (Some(holder), Some("flock")), "{first}");
    // whether the shell needed the holder's end too is not on the tape: it would wait as long then, without the lock
    let (least, most) = (first["cost_ns"].as_i64().expect("cost"), first["cost_hi_ns"].as_i64().expect("a range"));
    assert!(least < 100_000_000 && most > 2_800_000_000, "{first}");
}

#[test]
fn the_command_of_a_short_stretch_is_about_that() {
    let Some(lab) = Lab::with_bpf() else { return };
    let script = "sleep 1; i=0; while [ $i -lt 300 ]; do (exec /no/such) 2>/dev/null; cat /etc/hostname >/dev/null; i=$((i+1)); done; sleep 4";
    lab.record("t.tape", &[], &["sh", "-c", script]).expect(0);
    let found = findings(&lab, "t.tape");
    let timed: Vec<&Value> =
        found.iter().filter(|finding| finding["command"].as_str().is_some_and(|c| c.contains("--time "))).collect();
    assert!(!timed.is_empty(), "{found:#?}");
    for finding in timed {
        assert_eq!(finding["class"], "time");
        shows(&lab, "t.tape", finding);
    }
}
