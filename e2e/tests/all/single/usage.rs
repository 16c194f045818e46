//! What processes used when they end is what wait4 says of 1,000 children, and what a process has in memory is what /proc says.

use std::collections::HashMap;
use std::fs;

use serde_json::Value;
use systape_e2e::{Background, Lab};

const CHILDREN: usize = 1000;
/// The kernel brings run times up to date at its ticks, the slowest at 10 ms, and wait4 sees the way from the event to the end. Seen
/// on 6.18 with 250 Hz: at most 3.5 ms.
const TICK_US: i64 = 12_000;
/// Children of which a thread was being released each time that the sums were made, so that the tape says that they are too small: none to
/// one on a quiet machine.
const SHORT_AT_MOST: usize = CHILDREN / 100;

fn args(line: &Value) -> HashMap<String, i64> {
    let number = |value: &Value| value.as_i64().or_else(|| value.as_str()?.parse().ok());
    let args = line["args"].as_object().unwrap_or_else(|| panic!("{line}"));
    args.iter().filter_map(|(name, value)| Some((name.clone(), number(value)?))).collect()
}

#[test]
fn what_children_used_is_what_wait4_says() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = lab.cc("usage", &[]);
    let run = lab.record("t.tape", &["--families", "process"], &[&program, &CHILDREN.to_string(), "data"]).expect(0);
    lab.assert_whole("t.tape");
    let mut rows: HashMap<i64, HashMap<String, i64>> = HashMap::new();
    for line in lab.analyze(&["t.tape", "-e", "process:usage", "--format", "json"]).expect(0).json() {
        let of = rows.insert(line["pid"].as_i64().expect("pid"), args(&line));
        assert!(of.is_none(), "a process ended twice: {line}");
    }
    // all, and the program itself
    assert_eq!(rows.len(), CHILDREN + 1);
    let text = run.text();
    let (mut worst, mut written, mut children, mut short) = (0, 0, 0, 0);
    for said in text.lines() {
        let said: Vec<i64> = said.split(' ').map(|word| word.parse().expect("a number")).collect();
        let [pid, minor, major, kib, read, wrote, voluntary, involuntary, user, system] = said[..] else {
            panic!("{said:?}")
        };
        let of = &rows[&pid];
        let names = ["minor_faults", "major_faults", "maxrss", "in_blocks", "out_blocks"];
        children += 1;
        if of["uncounted"] > 0 {
            let most = [minor, major, kib * 1024, read, wrote];
            assert!(names.iter().zip(most).all(|(name, most)| of[*name] <= most), "{said:?} {of:?}");
            assert!(of["user_ns"] + of["system_ns"] <= (user + system + 2) * 1000, "{said:?} {of:?}");
            short += 1;
            continue;
        }
        assert_eq!(names.map(|name| of[name]), [minor, major, kib * 1024, read, wrote], "{pid}");
        // the last switch of each of up to eight threads comes after
        assert!(
            (0..=8).contains(&(voluntary + involuntary - of["voluntary_switches"] - of["involuntary_switches"])),
            "{said:?} {of:?}"
        );
        let more = user + system - (of["user_ns"] + of["system_ns"]) / 1000;
        assert!((-2..=TICK_US).contains(&more), "{said:?} {of:?}");
        assert_eq!(of["out_blocks"] * 512, of["write_bytes"], "{pid}");
        worst = worst.max(more);
        written += wrote;
    }
    assert_eq!(children, CHILDREN);
    assert!(short <= SHORT_AT_MOST, "{short} of {children} are said to be too small");
    assert!(written > 0, "nothing was written");
    // a process that has ended as a program has these times there
    let execs = lab.analyze(&["t.tape", "exec", "--exit", "0", "--format", "json"]).expect(0).json();
    assert_eq!(execs.len(), 1, "{execs:?}");
    let of = &rows[&execs[0]["pid"].as_i64().expect("pid")];
    assert_eq!(
        ["user_ns", "system_ns"].map(|name| execs[0][name].as_i64()),
        ["user_ns", "system_ns"].map(|name| Some(of[name]))
    );
    assert!(lab.analyze(&["t.tape", "exec", "--exit", "!=0", "--format", "json"]).expect(0).json().is_empty());
    println!("CPU time after the event: at most {worst} us");
}

#[test]
fn what_threads_used_is_what_they_saw() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = lab.cc("thread_usage", &[]);
    let words = ["--families", "process"];
    let run = lab.record("t.tape", &words, &[&program, "200", "data"]).expect(0);
    lab.assert_whole("t.tape");
    let mut rows: HashMap<i64, HashMap<String, i64>> = HashMap::new();
    for line in lab.analyze(&["t.tape", "-e", "process:thread", "--format", "json"]).expect(0).json() {
        let of = rows.insert(line["tid"].as_i64().expect("tid"), args(&line));
        assert!(of.is_none(), "a thread ended twice: {line}");
    }
    // the first thread too: others ended before it
    assert_eq!(rows.len(), 201);
    let mut threads = 0;
    for said in run.text().lines() {
        let said: Vec<i64> = said.split(' ').map(|word| word.parse().expect("a number")).collect();
        let [tid, minor, major, voluntary, involuntary, us, io @ ..] = &said[..] else { panic!("{said:?}") };
        let of = &rows[tid];
        let names = ["rchar", "wchar", "read_calls", "write_calls", "read_bytes", "write_bytes"];
        assert_eq!(names.map(|name| of[name]), *io, "{tid}");
        // the way to its end: the stack is given back
        assert!((0..=8).contains(&(of["minor_faults"] - minor)), "{said:?} {of:?}");
        assert!((0..=2).contains(&(of["major_faults"] - major)), "{said:?} {of:?}");
        assert!(
            of["voluntary_switches"] >= *voluntary && of["involuntary_switches"] >= *involuntary,
            "{said:?} {of:?}"
        );
        let more = (of["user_ns"] + of["system_ns"]) / 1000 - us;
        assert!((-TICK_US..=TICK_US).contains(&more), "{said:?} {of:?}");
        threads += 1;
    }
    assert_eq!(threads, 200);
    let lines = lab.analyze(&["t.tape", "-e", "process:usage", "--format", "json"]).expect(0).json();
    let whole = args(&lines[0]);
    let sum = |name: &str| rows.values().map(|of| of[name]).sum::<i64>();
    for name in ["minor_faults", "major_faults", "rchar", "wchar", "read_calls", "write_calls", "write_bytes"] {
        assert_eq!(sum(name), whole[name], "{name}");
    }
    // a process that never had another thread has no such row
    lab.record("one.tape", &words, &["true"]).expect(0);
    let text = lab.analyze(&["one.tape", "-e", "process:*"]).expect(0).text();
    assert!(text.contains("process:usage(") && !text.contains("process:thread("), "{text}");
}

#[test]
fn voluntary_switches_lack_the_last() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = lab.cc("usage", &[]);
    let run = lab.record("t.tape", &["--families", "process"], &[&program, "64", "data"]).expect(0);
    let lines = lab.analyze(&["t.tape", "-e", "process:usage", "--format", "json"]).expect(0).json();
    let rows: HashMap<i64, HashMap<String, i64>> =
        lines.iter().map(|line| (line["pid"].as_i64().expect("pid"), args(line))).collect();
    // those without threads
    for said in run.text().lines().enumerate().filter(|(n, _)| n % 8 != 0).map(|(_, said)| said) {
        let said: Vec<i64> = said.split(' ').map(|word| word.parse().expect("a number")).collect();
        let after = said[6] - rows[&said[0]]["voluntary_switches"];
        assert!((0..=1).contains(&after), "{said:?}");
    }
}

/// Pages: resident, shared with files or tmpfs.
fn statm(pid: &str) -> (i64, i64) {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).expect("statm");
    let pages: Vec<i64> = text.split_whitespace().map(|word| word.parse().expect("a number")).collect();
    (pages[1], pages[2])
}

#[test]
fn memory_at_the_start_and_the_end_is_that_of_proc() {
    let Some(lab) = Lab::with_bpf() else { return };
    let script = "import mmap,sys\nm=mmap.mmap(-1,48<<20,flags=mmap.MAP_PRIVATE|mmap.MAP_ANONYMOUS)\nm.madvise(15)\n\
                  for i in range(0,48<<20,4096): m[i]=1\nopen('ready','w').close()\nsys.stdin.read()";
    let holds = Background::start(lab.command("python3").args(["-c", script]).stdin(std::process::Stdio::piped()));
    while !lab.path("ready").exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let pid = holds.pid_text();
    let (resident, shared) = statm(&pid);
    let record = lab.attach("t.tape", &["-p", &pid]);
    std::thread::sleep(std::time::Duration::from_millis(300));
    record.stop(libc::SIGINT).expect(0);
    assert_eq!(statm(&pid), (resident, shared), "it did something");
    let rows = lab.analyze(&["t.tape", "-e", "process:memory", "--format", "json"]).expect(0).json();
    // when the recording began, and at its end
    assert_eq!(rows.len(), 2, "{rows:?}");
    // SAFETY: sysconf has no preconditions.
    let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    let batch = cpus * (2 * cpus).max(32);
    for row in &rows {
        let of = args(row);
        assert_eq!(row["pid"].to_string(), pid);
        assert_eq!(of["rss"], of["anonymous"] + of["file"] + of["shared"]);
        let [anonymous, files] = [of["anonymous"], of["file"] + of["shared"]].map(|bytes| bytes / 4096);
        assert!((anonymous - (resident - shared)).abs() <= batch, "{row}: {resident} {shared}");
        assert!((files - shared).abs() <= 2 * batch, "{row}: {resident} {shared}");
        assert!(anonymous > 48 * 256 - batch, "{row}");
    }
    drop(holds);
}
