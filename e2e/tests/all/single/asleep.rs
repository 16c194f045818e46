//! Threads that slept before the recording began: where they hang is known all the same.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;

use serde_json::Value;
use systape_e2e::Lab;
use systape_e2e::lab::Background;

/// Functions of workloads/asleep.c in which a thread sleeps, of each kind.
const WAITS: [&str; 4] = ["waits_in_pipe", "waits_for_lock", "waits_in_poll", "waits_for_time"];

/// Starts the workload; all its threads sleep then.
fn asleep(lab: &Lab, count: usize, flags: &[&str]) -> Background {
    lab.cc("asleep", flags);
    let program = Background::start(lab.command(lab.file("asleep")).arg(count.to_string()));
    lab.until_file("ready");
    let all_sleep = || tids(&program).iter().all(|tid| state(&program, *tid) == "S");
    lab.until("all threads sleep", all_sleep);
    program
}

fn tids(program: &Background) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{}/task", program.pid())).expect("tasks");
    tasks.map(|task| task.expect("task").file_name().to_str().expect("number").parse().expect("number")).collect()
}

fn state(program: &Background, tid: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{}/task/{tid}/stat", program.pid())).expect("stat");
    stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next()).expect("a state").to_owned()
}

/// Functions of the kernel that a thread is in, the innermost first, as /proc has them.
fn in_kernel(program: &Background, tid: u32) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{}/task/{tid}/stack", program.pid())).expect("stack");
    let name = |line: &str| line.split_once("] ").and_then(|(_, rest)| rest.split('+').next()).map(str::to_owned);
    aliased(text.lines().filter_map(name).collect())
}

/// A call's function has several names (__x64_sys_pause, __do_sys_pause), and who prints one chooses.
fn aliased(names: Vec<String>) -> Vec<String> {
    let one = |name: String| name.split_once("_sys_").map_or(name.clone(), |(_, call)| format!("sys_{call}"));
    names.into_iter().map(one).collect()
}

/// Groups of threads at a time, as JSON.
fn groups(lab: &Lab, tape: &str, at: &str) -> Vec<Value> {
    let run = lab.analyze(&["states", tape, "--at", at, "--call-graph", "--format", "json"]).expect(0);
    assert_eq!(run.complaints(), "");
    run.json()
}

fn symbols(group: &Value, kernel: bool) -> Vec<String> {
    let frames = group["stack"].as_array().expect("stack").iter().filter(|frame| frame["kernel"] == kernel);
    frames.map(|frame| frame["sym"].as_str().unwrap_or("?").to_owned()).collect()
}

fn by_tid(groups: &[Value]) -> BTreeMap<u32, &Value> {
    let mut all = BTreeMap::new();
    for group in groups {
        let tids = group["tids"].as_array().expect("tids");
        assert_eq!(group["threads"], tids.len(), "{group}");
        for tid in tids {
            let tid = u32::try_from(tid.as_u64().expect("a number")).expect("tid");
            assert!(all.insert(tid, group).is_none(), "{tid} twice");
        }
    }
    all
}

/// What the thread of a group waits in: the functions of the workload.
fn own(group: &Value) -> Vec<String> {
    let own =
        |name: &String| WAITS.contains(&&**name) || ["waits_to_go", "went_on", "moves", "main"].contains(&&**name);
    symbols(group, false).into_iter().filter(own).collect()
}

#[test]
fn every_sleeper_is_named_where_it_hangs() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = asleep(&lab, 3, &["-O2", "-fomit-frame-pointer"]);
    let kernel: BTreeMap<u32, Vec<String>> =
        tids(&program).into_iter().map(|tid| (tid, in_kernel(&program, tid))).collect();
    for options in [&["-g"][..], &["--call-graph", "dwarf"]] {
        let recorder = lab.attach("t.tape", &[options, &["-p", &program.pid_text()]].concat());
        std::thread::sleep(std::time::Duration::from_millis(300));
        recorder.stop(libc::SIGINT).expect(0);
        lab.assert_whole("t.tape");
        for at in ["0", "0.1"] {
            let groups = groups(&lab, "t.tape", at);
            let found = by_tid(&groups);
            assert!(found.keys().eq(kernel.keys()), "{found:?} {kernel:?}");
            let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
            for (tid, group) in &found {
                assert_eq!(group["stack_status"], "complete", "{options:?} {tid}: {group}");
                assert_eq!(aliased(symbols(group, true)), kernel[tid], "{options:?} {tid}");
                assert_eq!((&group["off_cpu_ns_of_known"], &group["states"]["S"]), (&true.into(), &group["threads"]));
                *kinds.entry(own(group).join(" ")).or_default() += 1;
            }
            let mut want: BTreeMap<String, usize> = WAITS.iter().map(|name| ((*name).to_owned(), 3)).collect();
            want.extend([("waits_to_go moves".to_owned(), 1), ("main".to_owned(), 1)]);
            assert_eq!(kinds, want, "{options:?} at {at}");
            assert_eq!(groups.len(), 6, "threads that hang alike are together");
        }
        // and the whole time off the CPU counts there
        let graph = lab.analyze(&["callgraph", "t.tape", "--of", "offcpu", "--folded"]).expect(0).text();
        for name in WAITS {
            let lines = graph.lines().filter(|line| line.contains(&format!(";{name};")));
            let ns: u64 = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum();
            assert!(ns >= 3 * 300_000_000, "{name}: {ns} ns\n{graph}");
        }
        assert!(!graph.contains("[no stack"), "{graph}");
    }
}

#[test]
fn whoever_went_on_has_the_stack_of_its_last_sleep() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = asleep(&lab, 1, &["-O1", "-fno-omit-frame-pointer"]);
    let recorder = lab.attach("t.tape", &["--call-graph", "dwarf", "-p", &program.pid_text()]);
    std::thread::sleep(std::time::Duration::from_millis(300));
    fs::File::options().write(true).open(lab.path("go")).and_then(|mut go| go.write_all(b"x")).expect("go");
    lab.until_file("moved");
    std::thread::sleep(std::time::Duration::from_millis(300));
    recorder.stop(libc::SIGINT).expect(0);
    lab.assert_whole("t.tape");
    let has =
        |at: &str, chain: &str| groups(&lab, "t.tape", at).iter().filter(|group| own(group).join(" ") == chain).count();
    assert_eq!((has("0", "waits_to_go moves"), has("0", "waits_for_time went_on moves")), (1, 0));
    let end = lab.info("t.tape")["duration_ns"].as_f64().expect("duration") / 1e9;
    let end = format!("{:.3}", end - 0.05);
    assert_eq!((has(&end, "waits_to_go moves"), has(&end, "waits_for_time went_on moves")), (0, 1));
    // text and CSV say the same
    let text = lab.analyze(&["states", "t.tape", "--at", &end, "--call-graph"]).expect(0).text();
    assert!(text.contains("        went_on ("), "{text}");
    let csv = lab.analyze(&["states", "t.tape", "--at", &end, "--call-graph", "--format", "csv"]).expect(0).text();
    assert!(csv.lines().any(|line| line.contains("went_on") && line.contains(";waits_for_time")), "{csv}");
}

#[test]
fn thousands_of_sleepers_share_few_stacks() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = asleep(&lab, 1000, &["-O2"]);
    let recorder = lab.attach("t.tape", &["-g", "-p", &program.pid_text()]);
    recorder.stop(libc::SIGINT).expect(0);
    lab.assert_whole("t.tape");
    let groups = groups(&lab, "t.tape", "0");
    let sizes: Vec<(String, u64)> =
        groups.iter().map(|group| (own(group).join(" "), group["threads"].as_u64().expect("threads"))).collect();
    for name in WAITS {
        assert!(sizes.contains(&(name.to_owned(), 1000)), "{name}: {sizes:?}");
    }
    assert_eq!(sizes.iter().map(|(_, n)| n).sum::<u64>(), 4002);
}

#[test]
fn what_passes_a_tape_on_keeps_them() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = asleep(&lab, 2, &["-O2"]);
    let recorder = lab.attach("t.tape", &["-g", "-p", &program.pid_text()]);
    recorder.stop(libc::SIGINT).expect(0);
    let before = groups(&lab, "t.tape", "0");
    assert!(before.iter().any(|group| own(group) == ["waits_in_poll"]), "{before:?}");
    // a tape that was cut behind its first segments, and mended
    let whole = fs::read(lab.path("t.tape")).expect("tape");
    fs::write(lab.path("cut.tape"), &whole[..whole.len() - 64]).expect("write");
    lab.analyze(&["repair", "cut.tape", "mended.tape"]);
    assert_eq!(groups(&lab, "mended.tape", "0"), before);
    // without the programs' paths there are no modules, and the functions are the same
    lab.analyze(&["redact", "t.tape", "redacted.tape"]);
    lab.analyze(&["check", "redacted.tape"]).expect(0);
    let names = |groups: &[Value]| groups.iter().map(|group| symbols(group, true)).collect::<Vec<_>>();
    assert_eq!(names(&groups(&lab, "redacted.tape", "0")), names(&before));
}
