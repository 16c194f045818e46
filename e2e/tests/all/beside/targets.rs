//! Who is recorded, what, when, and for how long: every option of `record` that selects is asked for calls that are known
//! to be made by a process that matches and by one that does not. Counts are primes of workloads, so a call too many or
//! too few shows, and so does a process that was not meant.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use systape_e2e::more::{Cgroup, NOBODY, clock, monotonic, numbered};
use systape_e2e::{Background, Call, Lab, lab, strace};

/// Calls of getppid by thread.
fn by_tid(calls: &[Call]) -> BTreeMap<i64, u64> {
    let mut counts = BTreeMap::new();
    calls.iter().filter(|c| c.name() == "getppid").for_each(|c| *counts.entry(c.tid()).or_default() += 1);
    counts
}

/// The same of the workload alone: sh asks once itself.
fn spun(calls: &[Call]) -> u64 {
    let ours = |c: &&Call| c.comm() == "target" || c.comm() == "painted";
    calls.iter().filter(ours).filter(|c| c.name() == "getppid").count() as u64
}

/// Lines "NUMBER NUMBER" that a workload wrote.
fn pairs(text: &str) -> BTreeMap<i64, u64> {
    let pair = |line: &str| {
        let (tid, n) = line.split_once(' ').expect("two numbers");
        (tid.parse().expect("tid"), n.parse().expect("count"))
    };
    text.lines().map(pair).collect()
}

/// Starts a shell script with its output in the file `out`.
fn script(lab: &Lab, text: &str) -> Background {
    Background::start(lab.command("sh").args(["-c", &format!("exec >out\n{text}")]))
}

/// Starts threads that wait for SIGUSR1; gives their ids and counts.
fn start_threads(lab: &Lab, counts: &[&str]) -> (Background, BTreeMap<i64, u64>) {
    let target = lab.cc("target", &[]);
    let program = script(lab, &format!("exec {target} threads usr1 {}", counts.join(" ")));
    lab.until("threads", || fs::read_to_string(lab.path("out")).is_ok_and(|t| t.matches('\n').count() == counts.len()));
    std::thread::sleep(Duration::from_millis(20)); // all of them are in read now
    let said = pairs(&lab.until_file("out"));
    (program, said)
}

#[test]
fn a_process_and_its_children() {
    let Some(lab) = Lab::beside() else { return };
    let target = lab.cc("target", &[]);
    let wait = "while [ ! -e go ]; do sleep 0.01; done";
    let family = format!("{wait}; {target} spin 1009 & echo $! 1009; {target} spin 1013 & echo $! 1013; wait");
    let family = script(&lab, &family);
    let stranger = Background::start(lab.command("sh").args(["-c", &format!("{wait}; exec {target} spin 2003")]));
    let recorder = lab.attach("t.tape", &["-p", &family.pid_text()]);
    fs::write(lab.path("go"), "").expect("write");
    let (pid, stranger_pid) = (i64::from(family.pid()), i64::from(stranger.pid()));
    family.wait().expect(0);
    stranger.wait().expect(0);
    // its target is gone, so it ends by itself
    recorder.wait().expect(0);
    lab.assert_whole("t.tape");
    assert_eq!(lab.info("t.tape")["end_reason"], "recorded processes exited");
    let calls = lab.calls("t.tape", &[]);
    let children = pairs(&lab.until_file("out"));
    assert_eq!(by_tid(&calls), children);
    // only the shell and what it started: sleep, and the two
    let started: BTreeSet<i64> = calls
        .iter()
        .filter(|c| c.tid() == pid && ["clone", "clone3", "fork", "vfork"].contains(&c.name()))
        .filter_map(Call::ret)
        .collect();
    assert!(children.keys().all(|child| started.contains(child)), "{children:?} {started:?}");
    // one sleep may have been made between the mark on its parent and the first moment of the tape
    for call in &calls {
        let ours = call.pid() == pid || started.contains(&call.pid()) || call.comm() == "sleep";
        assert!(ours && call.pid() != stranger_pid, "{call:?}");
    }
}

#[test]
fn one_thread_of_three() {
    let Some(lab) = Lab::beside() else { return };
    let (program, threads) = start_threads(&lab, &["1009", "1013", "1019"]);
    let (&tid, &n) = threads.iter().nth(1).expect("second thread");
    let recorder = lab.attach("t.tape", &["-t", &tid.to_string()]);
    program.signal(libc::SIGUSR1);
    program.wait().expect(0);
    recorder.wait().expect(0);
    lab.assert_whole("t.tape");
    let calls = lab.calls("t.tape", &[]);
    assert_eq!(by_tid(&calls), BTreeMap::from([(tid, n)]));
    assert!(calls.iter().all(|c| c.tid() == tid));
}

#[test]
fn every_thread_of_a_process() {
    let Some(lab) = Lab::beside() else { return };
    // threads that are there, attached to
    let counts = ["1009", "1013", "1019", "1021", "1031"];
    let (program, threads) = start_threads(&lab, &counts);
    let recorder = lab.attach("t.tape", &["-p", &program.pid_text(), "--no-inherit"]);
    program.signal(libc::SIGUSR1);
    program.wait().expect(0);
    recorder.wait().expect(0);
    lab.assert_whole("t.tape");
    assert_eq!(by_tid(&lab.calls("t.tape", &[])), threads);
    // threads made while recording; not children, but other threads of a recorded process
    for options in [&[][..], &["--no-inherit"]] {
        let target = lab.file("target");
        let command = [&[&*target, "threads", "now"][..], &counts].concat();
        let run = lab.record("t.tape", options, &command).expect(0);
        lab.assert_whole("t.tape");
        assert_eq!(by_tid(&lab.calls("t.tape", &[])), pairs(&run.text()));
    }
}

#[test]
fn children_are_left_out_with_no_inherit() {
    let Some(lab) = Lab::beside() else { return };
    let target = lab.cc("target", &[]);
    let text = format!("{target} spin 1009; exec {target} spin 1013");
    for (options, n) in [(&[][..], 1009 + 1013), (&["--no-inherit"], 1013)] {
        lab.record("t.tape", options, &["sh", "-c", &text]).expect(0);
        assert_eq!(spun(&lab.calls("t.tape", &[])), n, "{options:?}");
    }
}

#[test]
fn who_runs_below_a_process_is_left_out_and_told_or_recorded_with_tree() {
    let Some(lab) = Lab::beside() else { return };
    let target = lab.cc("target", &[]);
    // a worker that was there before the recording, and its child
    let text = format!("(while [ ! -e go ]; do sleep 0.02; done; {target} spin 1009; exec {target} spin 1013) & wait");
    for (options, n) in [(&[][..], 0), (&["--tree"], 1009 + 1013)] {
        fs::remove_file(lab.path("go")).ok();
        let parent = script(&lab, &text);
        // until the worker is there
        let children = format!("/proc/{}/task/{}/children", parent.pid_text(), parent.pid_text());
        let deadline = Instant::now() + Duration::from_secs(20);
        while fs::read_to_string(&children).is_ok_and(|text| text.trim().is_empty()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let pid = parent.pid_text();
        let recorder = lab.attach("t.tape", &[&["-p", &pid][..], options].concat());
        fs::write(lab.path("go"), "").expect("go");
        parent.wait().expect(0);
        let run = recorder.wait().expect(0);
        assert_eq!(spun(&lab.calls("t.tape", &[])), n, "{options:?}");
        let told = run.stderr.contains(&format!("below {pid} ")) && run.stderr.contains("--tree");
        assert_eq!(told, options.is_empty(), "{options:?}: {}", run.stderr);
    }
}

#[test]
fn a_user_a_name_a_cpu_a_cgroup() {
    let Some(lab) = Lab::with_bpf() else { return };
    let target = lab.cc("target", &[]);
    fs::set_permissions(&target, fs::Permissions::from_mode(0o755)).expect("chmod");
    let group = format!("systape-targets-{}", std::process::id());
    let parent = Cgroup::new(&group).expect("cgroup v2 is mounted");
    let child = Cgroup::new(&format!("{group}/below")).expect("cgroup v2");
    let join = |dir: &str| format!("echo 0 > {dir}/cgroup.procs");
    let home = Path::new(parent.dir()).parent().expect("mount").to_str().expect("UTF-8").to_owned();
    let as_nobody = NOBODY.join(" ");
    let name = format!("{target} rename 1009 painted 1013 target 1019");
    let groups = format!(
        "{target} spin 2003; {}; {target} spin 1009; {}; {target} spin 1013; {}; {target} spin 2011",
        join(parent.dir()),
        join(child.dir()),
        join(&home)
    );
    let cases: [(&[&str], String, u64); 8] = [
        (&["-u", "65534"], format!("{target} spin 2003; {as_nobody} {target} spin 1009"), 1009),
        (&["-u", "nobody"], format!("{target} spin 2003; {as_nobody} {target} spin 1009"), 1009),
        (&["--comm", "painted"], name.clone(), 1013),
        (&["--comm", "target"], name, 1009 + 1019),
        (&["-C", "0"], format!("taskset -c 0 {target} spin 1009; taskset -c 1 {target} spin 2003"), 1009),
        (&["-G", &group], groups.clone(), 1009 + 1013),
        (&["-G", child.dir()], groups.clone(), 1013),
        (&["-G", &group, "-u", "65534"], groups, 0),
    ];
    for (options, text, n) in cases {
        // as a filter of a command, and of the whole machine
        lab.record("t.tape", options, &["sh", "-c", &text]).expect(0);
        let command = lab.calls("t.tape", &[]);
        assert_eq!(spun(&command), n, "{options:?} of a command");
        let recorder = lab.attach("t.tape", options);
        script(&lab, &text).wait().expect(0);
        recorder.stop(libc::SIGINT).expect(0);
        let machine = lab.calls("t.tape", &[]);
        assert_eq!(spun(&machine), n, "{options:?} of the machine");
        // nobody else, not even by a call that was open all the time
        for call in command.iter().chain(&machine) {
            let fits = match options[0] {
                "-u" => call.0["uid"] == 65534,
                "--comm" => call.comm() == options[1] || call.name() == "prctl",
                "-C" => true, // the tape has the CPU of the return, not that of the entry
                _ => call.0["cgroup"].as_str().is_some_and(|path| path.starts_with(&format!("/{group}"))),
            };
            // the write that moves it out of a cgroup was entered in it
            assert!(fits || call.name() == "write", "{options:?}: {call:?}");
            assert_ne!(call.incomplete(), Some("lost-enter"), "{options:?}: {call:?}");
        }
    }
}

#[test]
fn the_whole_machine_but_not_the_recorder() {
    let Some(lab) = Lab::with_bpf() else { return };
    let target = lab.cc("target", &[]);
    let recorder = lab.attach("t.tape", &["-a"]);
    let own = i64::from(recorder.pid());
    let programs: Vec<_> =
        ["1009", "1013", "1019"].map(|n| Background::start(lab.command(&target).args(["spin", n]))).into();
    let pids: Vec<_> = programs.iter().map(|p| i64::from(p.pid())).collect();
    programs.into_iter().for_each(|p| drop(p.wait().expect(0)));
    recorder.stop(libc::SIGINT).expect(0);
    lab.assert_whole("t.tape");
    let calls = lab.calls("t.tape", &[]);
    let counts = by_tid(&calls);
    assert_eq!(
        pids.iter().map(|pid| counts.get(pid).copied()).collect::<Vec<_>>(),
        [Some(1009), Some(1013), Some(1019)]
    );
    // this test itself is one more
    assert!(calls.iter().any(|c| c.pid() == i64::from(std::process::id())));
    assert!(calls.iter().all(|c| c.pid() != own));
    assert!(lab.info("t.tape")["own_calls"].as_u64().is_some_and(|n| n > 10), "{}", lab.info("t.tape"));
}

#[test]
fn selected_calls() {
    let Some(lab) = Lab::beside() else { return };
    fs::write(lab.path("file"), "some bytes").expect("write");
    let command = ["head", "-n", "1", "file"];
    let truth = strace::count(&lab, &command);
    let names = |calls: &[Call]| calls.iter().map(|c| c.name().to_owned()).collect::<BTreeSet<_>>();

    lab.record("t.tape", &["-e", "read"], &command).expect(0);
    lab.assert_whole("t.tape");
    let reads = lab.calls("t.tape", &[]);
    assert_eq!((names(&reads), reads.len() as u64), (BTreeSet::from(["read".into()]), truth["read"].0));
    // the opens that were kept without being asked for tell the path
    let path = lab.file("file");
    assert!(reads.iter().any(|c| c.ret() == Some(10) && c.fd_path("fd") == Some(&path)), "{:?}", reads.last());
    let rows = lab.analyze(&["t.tape", "-s", "--summary-mode", "total", "--format", "json"]).expect(0).json();
    assert!(rows.len() == 1 && rows[0]["calls"] == truth["read"].0, "{rows:?}");
    // and are not on the tape themselves
    let asked = lab.analyze(&["t.tape", "-e", "close,openat"]).expect(0);
    assert_eq!(
        (asked.text(), asked.complaints()),
        (String::new(), "analyze: close, openat: not recorded (record -e read)".into())
    );

    lab.record("t.tape", &["-e", "!read"], &command).expect(0);
    let mut others = truth.clone();
    others.remove("read").expect("head reads");
    others.insert("exit_group".into(), (1, 0));
    let calls = lab.calls("t.tape", &[]);
    assert_eq!(names(&calls), others.keys().cloned().collect());
    assert_eq!(calls.len() as u64, others.values().map(|(n, _)| n).sum::<u64>());
}

#[test]
fn a_tape_begins_when_everything_counts() {
    let Some(lab) = Lab::beside() else { return };
    let target = lab.cc("target", &[]);
    for option in ["-p", "-t"] {
        // enough calls for some seconds, without a pause: it is in a call, not asleep in one, when the recording begins
        fs::remove_file(lab.path("truth")).ok();
        let program = Background::start(lab.command(&target).args(["numbered", "truth", "20000000", "0"]));
        lab.until("calls", || fs::metadata(lab.path("truth")).is_ok_and(|m| m.len() > 8));
        lab.attach("t.tape", &[option, &program.pid_text(), "--for", "300ms"]).wait().expect(0);
        lab.assert_whole("t.tape");
        let truth = numbered(&lab, "truth");
        // the first of its calls that began in the recording
        let calls = lab.calls("t.tape", &["-e", "lseek", "--max-events", "2"]);
        let first = calls.iter().find(|c| c.incomplete().is_none());
        let first = first.unwrap_or_else(|| panic!("no whole call: {calls:?}"));
        let i = usize::try_from(first.num("offset")).expect("number");
        // the call before it began before the tape did, and this one before the next: so less time passed between
        // the tape's begin and this call than from the one to the other
        let most = truth[i + 1] - truth[i - 1];
        assert!(
            first.ts() < most,
            "{option}: no call in the first {} ns, although there is one every {most}",
            first.ts()
        );
        // a call that was open at the start is not one whose entry was lost
        assert!(calls.iter().all(|c| c.incomplete() != Some("lost-enter")), "{calls:?}");
    }
}

#[test]
fn for_a_time() {
    let Some(lab) = Lab::beside() else { return };
    let text = "echo $$ > started; sleep 1; touch late; exit 7";
    lab.record("t.tape", &["--for", "300ms"], &["sh", "-c", text]).expect(7);
    // it went on, untraced, and was waited for
    assert!(lab.path("late").exists());
    lab.assert_whole("t.tape");
    let info = lab.info("t.tape");
    assert_eq!(info["end_reason"], "--for reached", "{info}");
    let duration = info["duration_ns"].as_i64().expect("duration");
    assert!((300_000_000..900_000_000).contains(&duration), "{info}");
    let calls = lab.calls("t.tape", &[]);
    assert!(!calls.iter().any(|c| c.name() == "execve" && c.bytes("filename").is_some_and(|f| f.ends_with(b"touch"))));
    // what was open then is in flight: sleep, and the shell's wait for it
    let open: Vec<_> = calls.iter().filter(|c| c.incomplete() == Some("in-flight")).map(Call::name).collect();
    assert_eq!(BTreeSet::from_iter(open), BTreeSet::from(["clock_nanosleep", "wait4"]));

    // with --kill it does not go on: SIGTERM, which it may catch
    fs::remove_file(lab.path("late")).expect("remove");
    lab.record("t.tape", &["--for", "200ms", "--kill"], &["sh", "-c", "exec sleep 30"]).expect(128 + 15);
    let text = "trap 'exit 3' TERM; while :; do sleep 0.02; done; touch late";
    lab.record("t.tape", &["--for", "200ms", "--kill"], &["sh", "-c", text]).expect(3);
    assert!(!lab.path("late").exists());
    lab.assert_whole("t.tape");
}

#[test]
fn up_to_a_size_and_after_a_delay() {
    let Some(lab) = Lab::with_bpf() else { return };
    let target = lab.cc("target", &[]);
    lab.record("t.tape", &["--max-size", "300k", "--kill"], &[&target, "spin", "900000000"]).expect(128 + 15);
    let info = lab.info("t.tape");
    assert_eq!((&info["end_reason"], &info["clean_end"]), (&"--max-size reached".into(), &true.into()), "{info}");
    let size = fs::metadata(lab.path("t.tape")).expect("tape").len();
    assert!((300 << 10..2 << 20).contains(&size), "{size} bytes");

    let before = clock(libc::CLOCK_REALTIME);
    let begun = monotonic();
    lab.record("t.tape", &["-a", "-D", "700", "--for", "100ms"], &[]).expect(0);
    assert!(monotonic() - begun >= 800_000_000);
    let row = lab.analyze(&["t.tape", "--format", "json", "--max-events", "1", "--time", "0,"]).expect(0).json();
    let time = row[0]["time"].as_str().expect("time").to_owned();
    let second = lab::run(lab.command("date").args(["-d", &time, "+%s%N"])).expect(0).text();
    let late = second.trim().parse::<i64>().expect("ns") - before;
    assert!(late >= 700_000_000, "recording began after {late} ns, not 700 ms");
}

#[test]
fn what_record_writes_and_returns() {
    let Some(lab) = Lab::beside() else { return };
    lab.record("t.tape", &[], &["true"]).expect(0);
    let older = fs::read(lab.path("t.tape")).expect("tape");
    // readable for its owner only, whatever the umask
    let text = "umask 0; exec \"$0\" -o t.tape -- sh -c 'kill -9 $$'";
    lab::run(lab.command("sh").args(["-c", text]).arg(lab::binary("record"))).expect(128 + 9);
    let mode = |name: &str| fs::metadata(lab.path(name)).expect(name).permissions().mode() & 0o7777;
    assert_eq!((mode("t.tape"), mode("t.tape.old")), (0o600, 0o600));
    assert_eq!(fs::read(lab.path("t.tape.old")).expect("older tape"), older);
    assert_ne!(fs::read(lab.path("t.tape")).expect("tape"), older);
    // trace.tape unless told, and standard output for -
    lab::run(lab.command(lab::binary("record")).args(["--", "sh", "-c", "exit 7"])).expect(7);
    lab.assert_whole("trace.tape");
    let stream = lab.record("-", &[], &["true"]).expect(0);
    fs::write(lab.path("stream.tape"), &stream.stdout).expect("write");
    lab.assert_whole("stream.tape");
}
