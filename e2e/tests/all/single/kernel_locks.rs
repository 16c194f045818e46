//! Waits for locks of the kernel (`--families lock`): beside perf on the same run the same waits by thread, lock and kind, with its durations;
//! of targets only; sums and the graph agree with the listing; everything recorded at once, with stacks, leaves the kernel in order.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;
use systape_e2e::disk::has;
use systape_e2e::lab;
use systape_e2e::{Background, Lab};

const LOCK: &[&str] = &["-e", "lock:contention", "--format", "json"];

/// Durations of waits in order of time, by thread, address and kind.
type Waits = BTreeMap<(u64, u64, String), Vec<u64>>;

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// Whether this kernel has the tracepoints (5.19).
fn has_locks() -> bool {
    let is_there = |root: &str| fs::exists(format!("{root}/events/lock/contention_begin/id")).unwrap_or(false);
    let has = is_there("/sys/kernel/tracing") || is_there("/sys/kernel/debug/tracing");
    if !has {
        eprintln!("SKIPPED: this kernel has no tracepoint contention_begin");
    }
    has
}

fn workload(lab: &Lab) -> String {
    lab.cc("contend", &["-pthread"])
}

/// What perf prints of flags as this program names it.
fn kind(flags: &str) -> &str {
    match flags {
        "SPIN" => "spinlock",
        "SPIN|READ" => "rwlock:R",
        "SPIN|WRITE" => "rwlock:W",
        "READ" => "rwsem:R",
        "WRITE" => "rwsem:W",
        "READ|PERCPU" => "percpu-rwsem:R",
        "WRITE|PERCPU" => "percpu-rwsem:W",
        "RT" => "rtmutex",
        "MUTEX" | "SPIN|MUTEX" => "mutex",
        other => other,
    }
}

/// The waits in perf's text: nanoseconds, thread, event, address, `(flags=...)` or `(ret=...)`. Of one for a mutex only the first
/// beginning counts: a second one says that it sleeps from then on. One whose end perf missed is none.
fn of_perf(text: &str) -> Waits {
    let mut open: BTreeMap<(u64, u64), (u64, String)> = BTreeMap::new();
    let mut waits = Waits::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [tid, time, event, address, what] = words[..] else { panic!("{line}") };
        let time: u64 = time.trim_end_matches(':').replace('.', "").parse().expect("a time");
        let key = (tid.parse().expect("a tid"), hex(address));
        let (_, value) = what.trim_matches(['(', ')']).split_once('=').expect("a value");
        if event.contains("contention_begin") {
            let goes_on = value.contains("MUTEX") && open.contains_key(&key);
            if !goes_on {
                open.insert(key, (time, kind(value).to_owned()));
            }
        } else if let Some((began, kind)) = open.remove(&key) {
            waits.entry((key.0, key.1, kind)).or_default().push(time - began);
        }
    }
    waits
}

fn waits(rows: &[Value]) -> Waits {
    let mut waits = Waits::new();
    // not what says that records are missing
    for row in rows.iter().filter(|row| row["event"].is_string()) {
        let args = &row["args"];
        let text = |name: &str| args[name].as_str().unwrap_or_else(|| panic!("{name}: {row}"));
        let key = (number(&row["tid"]), hex(text("lock")), text("kind").to_owned());
        waits.entry(key).or_default().push(number(&args["dur"]));
    }
    waits
}

#[test]
fn perf_sees_the_same_waits() {
    let Some(lab) = Lab::with_bpf() else { return };
    if !has("perf") || !has_locks() {
        eprintln!("SKIPPED perf_sees_the_same_waits");
        return;
    }
    let program = workload(&lab);
    let events = "lock:contention_begin,lock:contention_end";
    let perf = ["perf", "record", "-q", "-a", "-m", "4096", "-o", "p.data", "-e", events, "--", &program, "8", "3001"];
    lab.record("t.tape", &["-a", "--families", "lock"], &perf).expect(0);
    let script = ["script", "-i", "p.data", "--ns", "--comms", "contend", "-F", "tid,time,event,trace"];
    let theirs = of_perf(&lab::run(lab.command("perf").args(script)).expect(0).text());
    let ours = lab.analyze(&[&["t.tape", "--comm", "contend"], LOCK].concat());
    assert!(matches!(ours.code(), 0 | 3), "{ours:?}");
    let ours = waits(&ours.json());
    // a wait inside of a tracer, an interrupt's or for the tracer's own lock, is lost: we count it, perf says nothing
    let lost: u64 = lab.info("t.tape")["lost"].as_object().expect("lost").values().map(number).sum();
    let all: usize = theirs.values().map(Vec::len).sum();
    let [mut missed, mut more] = [0, 0];
    for key in ours.keys().chain(theirs.keys()).collect::<BTreeSet<_>>() {
        let [one, other] = [&ours, &theirs].map(|waits| waits.get(key).map_or(0, Vec::len));
        assert!(one == other || key.2 == "spinlock", "{key:?}: {one}, perf {other}");
        missed += other.saturating_sub(one);
        more += one.saturating_sub(other);
    }
    assert!(missed as u64 <= lost && lost as usize <= all / 50, "{lost} lost, {missed} of {all} are not on the tape");
    assert!(more <= all / 50, "{more} of {all} are not in perf's");
    assert!(ours.keys().any(|(.., kind)| kind == "rwsem:W"), "nobody waited: {ours:?}");
    // both programs look at the clock at one tracepoint, one after the other
    let same = |key| ours.get(key).filter(|durs: &&Vec<u64>| durs.len() == theirs[key].len());
    let pairs = theirs.keys().filter_map(|key| Some(same(key)?.iter().zip(&theirs[key]))).flatten();
    let mut apart: Vec<u64> = pairs.map(|(one, other)| one.abs_diff(*other)).collect();
    apart.sort_unstable();
    assert!(apart[apart.len() / 2] < 1_000_000, "{apart:?}");
    // what is left alone was in progress at an end of the recording, and none of the workload's was, or its other end was lost
    let alone = ["t.tape", "--comm", "contend", "-e", "lock:unpaired", "--format", "json"];
    let alone = lab.analyze(&alone);
    assert!(matches!(alone.code(), 0 | 3) && alone.json().len() as u64 <= lost, "{alone:?}");
}

#[test]
fn targets_sums_and_graphs_agree() {
    let Some(lab) = Lab::with_bpf() else { return };
    if !has_locks() {
        return;
    }
    let program = workload(&lab);
    for graph in [&["-g"][..], &["--call-graph", "dwarf"]] {
        let options = [&["--families", "lock"], graph].concat();
        // an interrupt that waits while the stack of another wait is taken is lost, and counted
        lab.record("t.tape", &options, &[&program, "8", "2003"]).expect(0);
        let mut rows = lab.analyze(&[&["t.tape"], LOCK].concat()).expect(0).json();
        rows.retain(|row| row["event"].is_string());
        // it began as record's child, and is the only target
        assert!(!rows.is_empty() && rows.iter().all(|row| row["pid"] == rows[0]["pid"]), "{rows:?}");
        let total: u64 = rows.iter().map(|row| number(&row["args"]["dur"])).sum();
        assert!(rows.iter().any(|row| row["args"]["name"] == "[mmap_lock]"), "threads map memory");
        let sums = lab.analyze(&[&["t.tape", "-s"], LOCK].concat()).expect(0).json();
        assert_eq!(sums.iter().map(|sum| number(&sum["count"])).sum::<u64>(), rows.len() as u64);
        // the kernel's functions that wait are there without --kernel-stacks
        let graph = ["callgraph", "t.tape", "--of", "lock", "--metric", "time", "--format", "json"];
        let nodes = lab.analyze(&graph).expect(0).json();
        let roots = || nodes.iter().filter(|node| node["parent"].is_null());
        assert_eq!(roots().map(|node| number(&node["count"])).sum::<u64>(), rows.len() as u64);
        assert_eq!(roots().map(|node| number(&node["time_ns"])).sum::<u64>(), total);
        let of = |function: &str| nodes.iter().filter(|node| node["sym"] == function).count();
        assert!(of("rwsem_down_write_slowpath") > 0 && of("__x64_sys_munmap") > 0, "{nodes:?}");
    }
}

#[test]
fn the_tracepoints_themselves_are_this_family() {
    let Some(lab) = Lab::with_bpf() else { return };
    if !has_locks() {
        return;
    }
    let program = workload(&lab);
    let run = lab.record("t.tape", &["-e", "lock:contention_*"], &[&program, "4", "1009"]).expect(0);
    assert!(run.stderr.contains("lock:contention_end is recorded by the family lock"), "{}", run.stderr);
    assert!(lab.info("t.tape")["families"].to_string().contains("\"lock\""));
    assert!(!lab.analyze(&[&["t.tape"], LOCK].concat()).expect(0).json().is_empty());
    // by default and with all they are not
    lab.record("t.tape", &["--families", "all"], &[&program, "1", "1"]).expect(0);
    assert!(!lab.info("t.tape")["families"].to_string().contains("\"lock\""));
    let force = ["--families", "syscall,lock", "--force", "unloadable=lock_end"];
    let said = lab.record("t.tape", &force, &[&program, "1", "1"]).expect(0).stderr;
    assert!(said.contains("lock is not recorded: the kernel refused the program lock_end"), "{said}");
}

#[test]
fn everything_at_once_leaves_the_kernel_in_order() {
    let Some(lab) = Lab::with_bpf() else { return };
    if !has_locks() {
        return;
    }
    let program = workload(&lab);
    let before = lab::run(&mut lab.command("dmesg")).expect(0).text();
    let all = [
        "-a",
        "--families",
        "all,lock,fault",
        "--call-graph",
        "dwarf",
        "--kernel-stacks",
        "--stacks-on",
        "all",
        "-F",
        "999",
    ];
    let run = lab.record("t.tape", &all, &[&program, "8", "2003"]);
    run.expect(0);
    let after = lab::run(&mut lab.command("dmesg")).expect(0).text();
    let said: Vec<&str> = after.strip_prefix(before.as_str()).unwrap_or(&after).lines().collect();
    let bad = |line: &&&str| {
        ["WARNING", "BUG", "lockup", "deadlock", "rcu_sched self-detected"].iter().any(|word| line.contains(word))
    };
    assert_eq!(said.iter().find(bad), None);
    // it may be too much, which is said then; what there is has two ends
    for row in lab.analyze(&[&["t.tape"], LOCK].concat()).json().iter().filter(|row| row.get("lost").is_none()) {
        assert!(number(&row["args"]["dur"]) > 0, "{row}");
    }
}

#[test]
fn a_recorder_that_cannot_read_counts_what_is_lost() {
    let Some(lab) = Lab::with_bpf() else { return };
    if !has_locks() {
        return;
    }
    let program = workload(&lab);
    let record = lab.attach("t.tape", &["-a", "--families", "lock", "-m", "4"]);
    // it reads nothing while the buffers fill: of 4 KiB for each CPU here
    record.signal(libc::SIGSTOP);
    Background::start(lab.command(&program).args(["8", "3001"])).wait().expect(0);
    record.signal(libc::SIGCONT);
    record.stop(libc::SIGINT).expect(0);
    let info = lab.info("t.tape");
    assert!(info["lost"]["lock"].as_u64().is_some_and(|lost| lost > 0), "{info}");
    let run = lab.analyze(&[&["t.tape", "--fail-on-loss"], LOCK].concat());
    assert_eq!(run.code(), 3);
    let gaps: Vec<Value> = run.json().into_iter().filter(|row| row.get("lost").is_some()).collect();
    // the kernel may skip a run besides, on a machine that is busy
    assert!(gaps.iter().any(|gap| gap["cause"] == "ring-full"), "{gaps:?}");
    let told = |gap: &Value| {
        gap["family"] == "lock" && ["ring-full", "skipped"].contains(&gap["cause"].as_str().unwrap_or(""))
    };
    assert!(gaps.iter().all(told), "{gaps:?}");
}
