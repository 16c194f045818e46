//! `record` inside a container: a pid namespace in which every process has another id than on the machine. It takes targets by the
//! ids it sees; the tape has the machine's. What /proc and perf's side-band say of a number is of the right process, or not
//! used: here a process outside has the very number that another one has inside.

use std::fs;
use std::process::Command;

use serde_json::Value;
use systape_e2e::lab::{binary, run};
use systape_e2e::more::{Cgroup, NOBODY, count};
use systape_e2e::{Background, Call, Lab};

/// Makes the shell that runs a script the first process of a pid namespace.
const CONTAINER: [&str; 5] = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];

/// What scripts share. `record_on TAPE OPTIONS` returns once it records, `record_off` ends that.
const FUNCTIONS: &str = r#"
record_on() {
    tape=$1; shift
    $RECORD -o $tape "$@" 2>>errors & recorder=$!
    until [ -s $tape ]; do kill -0 $recorder || exit 9; sleep 0.01; done
}
record_off() { kill -TERM $recorder; wait $recorder || exit 8; }
lines() { until [ "$(wc -l <$1 2>/dev/null)" = $2 ]; do sleep 0.01; done; sleep 0.05; }
"#;

/// A shell script in a container, `depth` of them deep.
fn container(lab: &Lab, depth: usize, script: &str) -> Command {
    let mut command = lab.command("env");
    command.env("RECORD", binary("record")).args(CONTAINER.repeat(depth));
    command.args(["sh", "-c", &format!("{FUNCTIONS}{script}")]);
    command
}

fn of<'a>(calls: &'a [Call], comm: &str) -> Vec<&'a Call> {
    calls.iter().filter(|call| call.comm() == comm).collect()
}

/// Calls of getppid by how many each thread made.
fn spun(calls: &[Call]) -> Vec<u64> {
    let mut counts = std::collections::BTreeMap::<i64, u64>::new();
    let ours = calls.iter().filter(|call| call.comm() == "target" && call.name() == "getppid");
    ours.for_each(|call| *counts.entry(call.tid()).or_default() += 1);
    let mut counts: Vec<u64> = counts.into_values().collect();
    counts.sort_unstable();
    counts
}

fn notes(lab: &Lab, tape: &str) -> String {
    lab.info(tape)["notes"].to_string()
}

#[test]
fn a_command() {
    let Some(lab) = Lab::beside() else { return };
    let target = lab.cc("target", &[]);
    for depth in [1, 2] {
        // a few ids are used first
        let script =
            format!("for i in 1 2 3 4 5; do /bin/true; done; $RECORD -o t.tape -- {target} spin 1009 3</etc/hostname");
        let stderr = run(container(&lab, depth, &script)).expect(0).stderr;
        assert!(stderr.contains("this pid namespace has its own ids") && stderr.contains(" 0 lost"), "{stderr}");
        lab.assert_whole("t.tape");
        assert!(notes(&lab, "t.tape").contains("this pid namespace has its own ids"));
        let calls = lab.calls("t.tape", &[]);
        assert_eq!(spun(&calls), [1009]);
        assert_eq!(of(&calls, "target").len(), calls.len(), "nobody else");
        let execs = lab.analyze(&["exec", "t.tape", "--format", "json"]).expect(0).json();
        let pid = calls[0].pid();
        let seen = execs.iter().find(|exec| exec["pid"] == pid).expect("the exec");
        assert!(seen["ns_pid"].as_i64().is_some_and(|inside| inside > 5 && inside < 100 && inside != pid), "{seen}");
    }
}

/// Clocks of a time namespace are its own: times on the tape are the machine's, as are those of BPF.
#[test]
fn a_time_namespace() {
    let Some(lab) = Lab::beside() else { return };
    let target = lab.cc("target", &[]);
    let real = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock").as_secs_f64();
    let before = real();
    let mut command = lab.command("unshare");
    command.args(["--fork", "--time", "--monotonic", "500000", "--boottime", "1000000"]);
    run({
        command.arg(binary("record")).args(["-o", "t.tape", "--", &target, "spin", "1009"]);
        command
    })
    .expect(0);
    let after = real();
    lab.assert_whole("t.tape");
    assert!(notes(&lab, "t.tape").contains("this time namespace has its own clocks"));
    let calls = lab.calls("t.tape", &[]);
    assert_eq!(spun(&calls), [1009]);
    let info = lab.info("t.tape");
    let length = info["duration_ns"].as_f64().expect("its length") / 1e9;
    assert!((0.0..=after - before).contains(&length), "{info}");
    assert!(calls.iter().all(|call| (0.0..=length).contains(&(call.ts() as f64 / 1e9))), "{info}");
    // the wall clock of the first call
    let rows = lab.analyze(&["-e", "getppid", "--max-events", "1", "--format", "json", "t.tape"]).expect(0).json();
    let time = rows[0]["time"].as_str().expect("a time").to_owned();
    let first: f64 = run(lab.command("date").args(["-d", &time, "+%s.%N"])).text().trim().parse().expect("seconds");
    assert!((before..=after).contains(&first), "{first} of {before} to {after}");
}

#[test]
fn processes_and_threads_by_the_ids_of_the_container() {
    let Some(lab) = Lab::beside() else { return };
    let target = lab.cc("target", &[]);
    for depth in [1, 2] {
        run(container(
            &lab,
            depth,
            &format!(
                "for which in p t; do
                    {target} threads usr1 1009 1013 >threads & ours=$!
                    {target} threads usr1 2003 >strangers & stranger=$!
                    lines threads 2; lines strangers 1
                    tid=$(sed -n 's/ 1013//p' threads)
                    if [ $which = p ]; then record_on p.tape -p $ours; else record_on t.tape -t $tid; fi
                    kill -USR1 $ours $stranger
                    wait $ours $stranger
                    wait $recorder || exit 7
                done"
            ),
        ))
        .expect(0);
        for (tape, counts) in [("p.tape", &[1009, 1013][..]), ("t.tape", &[1013])] {
            lab.assert_whole(tape);
            assert_eq!(lab.info(tape)["end_reason"], "recorded processes exited", "{tape}");
            assert_eq!(spun(&lab.calls(tape, &[])), counts, "{tape}");
            fs::remove_file(lab.path(tape)).expect("remove");
        }
    }
}

#[test]
fn users_names_and_cgroups() {
    let Some(lab) = Lab::beside() else { return };
    let target = lab.cc("target", &[]);
    let nobody = NOBODY.join(" ");
    run(container(
        &lab,
        1,
        &format!(
            "record_on u.tape -u 65534; {nobody} {target} spin 997; {target} spin 2003; record_off
            ln -s {target} painted; record_on c.tape --comm=painted; ./painted spin 991; {target} spin 2003; record_off"
        ),
    ))
    .expect(0);
    assert_eq!(spun(&lab.calls("u.tape", &[])), [997]);
    let calls = lab.calls("c.tape", &["-e", "getppid"]);
    assert_eq!((of(&calls, "painted").len(), calls.len()), (991, 991));
    let Some(cgroup) = Cgroup::new("systape-pidns") else { return };
    let dir = cgroup.dir();
    let script = format!(
        "record_on g.tape -G {dir}; sh -c 'echo 0 >{dir}/cgroup.procs; exec {target} spin 983'; {target} spin 2003; record_off"
    );
    run(container(&lab, 1, &script)).expect(0);
    assert_eq!(spun(&lab.calls("g.tape", &[])), [983]);
}

/// Reads its standard input for ever.
const READER: &str = "while :; do read line; done";

fn paths_read(calls: &[Call], pid: impl Fn(i64) -> bool) -> Vec<Option<&str>> {
    let reads = calls.iter().filter(|call| call.name() == "read" && pid(call.pid()));
    let mut paths: Vec<_> = reads.map(|call| call.fd_path("fd")).collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

#[test]
fn files_are_those_of_the_right_process() {
    let Some(lab) = Lab::beside() else { return };
    let outside = Background::start(
        lab.command("sh").args(["-c", READER]).stdin(fs::File::open("/etc/hostname").expect("hostname")),
    );
    let pid = outside.pid();
    // the next process inside gets the number that the one outside has on the machine
    let script = format!(
        "echo {before} >/proc/sys/kernel/ns_last_pid || exit 77
        sh -c '{READER}' </etc/passwd & inside=$!
        [ $inside = {pid} ] || exit 77
        $RECORD -o p.tape -p $inside --for 200ms || exit 1
        $RECORD -o a.tape -a --for 300ms || exit 2
        $RECORD -o c.tape -- sh -c 'read line <&3' 3</etc/group || exit 3",
        before = pid - 1
    );
    let run = run(container(&lab, 1, &script));
    if run.code() == 77 {
        // a kernel without CONFIG_CHECKPOINT_RESTORE, or somebody took the number
        assert!(!fs::exists("/proc/sys/kernel/ns_last_pid").expect("sysctl"), "{}", run.stderr);
        return;
    }
    let run = run.expect(0);
    assert!(run.stderr.contains("outside this pid namespace"), "{}", run.stderr);
    let calls = lab.calls("p.tape", &[]);
    assert_eq!(paths_read(&calls, |_| true), [Some("/etc/passwd")]);
    assert!(calls.iter().all(|call| call.pid() != i64::from(pid)), "the one outside");
    let calls = lab.calls("a.tape", &["--comm=sh"]);
    assert_eq!(paths_read(&calls, |of| of == i64::from(pid)), [None], "of a process outside nothing is known");
    let ours = lab.calls("p.tape", &[])[0].pid();
    assert_eq!(paths_read(&calls, |of| of == ours), [Some("/etc/passwd")]);
    assert!(paths_read(&lab.calls("c.tape", &["--comm=sh"]), |_| true).contains(&Some("/etc/group")));
    assert!(notes(&lab, "a.tape").contains("outside this pid namespace"));
}

/// The process on the machine that calls itself `comm` and is `number` in its own pid namespace.
fn find(comm: &str, number: &str) -> Option<String> {
    fs::read_dir("/proc").expect("/proc").flatten().find_map(|entry| {
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let inside = field("NSpid:")?.split_whitespace().skip(1).last()?;
        (field("Name:")? == comm && inside == number).then(|| entry.file_name().into_string().ok())?
    })
}

#[test]
fn senders_and_targets_of_signals() {
    let Some(lab) = Lab::beside() else { return };
    let target = lab.cc("target", &[]);
    let script = format!(
        "{target} threads usr1 3 >threads & first=$!; {target} threads usr1 5 >threads2 & second=$!
        lines threads 1; lines threads2 1
        record_on t.tape -p $first -p $second
        # /proc is read from then on, and says nothing of who has ended
        sleep 0.5
        sh -c 'echo $$ >sender; kill -TERM '$first'; sleep 0.5'
        wait $first
        echo $first $second >pids
        until [ -e sent ]; do sleep 0.01; done
        wait $second; wait $recorder"
    );
    let container = Background::start(container(&lab, 1, &script));
    let pids = lab.until_file("pids");
    let (first, second) = pids.trim().split_once(' ').expect("two ids");
    let sender = lab.until_file("sender").trim().parse::<i64>().expect("an id");
    let outside = find("target", second).expect("the second on the machine");
    run(lab.command("kill").args(["-TERM", &outside])).expect(0);
    fs::write(lab.path("sent"), "").expect("write");
    container.wait().expect(0);
    lab.assert_whole("t.tape");
    let kills = lab.analyze(&["kills", "t.tape", "--format", "json"]).expect(0).json();
    let of = |number: &str| -> Value {
        let is = |kill: &&Value| {
            kill["target"]["ns_pid"].as_i64() == number.parse().ok() && kill["signal_name"] == "SIGTERM"
        };
        kills.iter().find(is).unwrap_or_else(|| panic!("{number}: {kills:?}")).clone()
    };
    let shell = fs::canonicalize("/bin/sh").expect("sh");
    for kill in [of(first), of(second)] {
        assert_eq!((kill["via"].as_str(), kill["target"]["comm"].as_str()), (Some("kill"), Some("target")), "{kill}");
        assert_eq!(kill["target"]["exe"], target.as_str(), "{kill}");
        assert_eq!(kill["outcome"]["exit_signal"], libc::SIGTERM, "{kill}");
    }
    let inside = &of(first)["sender"];
    assert_eq!((inside["ns_pid"].as_i64(), inside["comm"].as_str()), (Some(sender), Some("sh")), "{inside}");
    assert_eq!(inside["exe"], shell.to_str().expect("UTF-8"), "{inside}");
    // who is outside is known by what the kernel says; /proc says nothing of him
    let second = of(second);
    assert_eq!(second["target"]["pid"].to_string(), outside);
    assert_eq!((second["sender"]["comm"].as_str(), second["sender"]["exe"].as_str()), (Some("kill"), None), "{second}");
}

/// Names of the functions of each stack, the innermost first; status where there are none.
fn stacks(lab: &Lab, tape: &str, filters: &[&str]) -> Vec<String> {
    let lines = lab.analyze(&[&[tape, "-e", "getppid", "--call-graph", "--format", "json"], filters].concat());
    let stack = |line: &Value| {
        let names: Vec<_> = line["stack"].as_array()?.iter().filter_map(|frame| frame["sym"].as_str()).collect();
        Some(if names.is_empty() { line["stack_status"].as_str()?.to_owned() } else { names.join(" ") })
    };
    lines.expect(0).json().iter().map(|line| stack(line).unwrap_or_default()).collect()
}

#[test]
fn stacks_have_names() {
    let Some(lab) = Lab::beside() else { return };
    let target = lab.cc("target", &["-O0"]);
    let script = format!(
        "$RECORD --call-graph dwarf -o c.tape -- sh -c '{target} spin 499; exec {target} spin 503'
        {target} threads usr1 1009 >threads & ours=$!
        lines threads 1
        record_on p.tape --call-graph dwarf -p $ours
        kill -USR1 $ours; wait $ours; wait $recorder"
    );
    for depth in [1, 2] {
        run(container(&lab, depth, &script)).expect(0);
        let of = |tape: &str, chain: &str| {
            let all = stacks(&lab, tape, &["--comm=target"]);
            let is = |stack: &&String| stack.contains(chain);
            (all.iter().filter(is).count(), all.len(), all.first().cloned())
        };
        let (named, all, first) = of("c.tape", "spin main __libc_start_call_main");
        assert_eq!((named, all), (1002, 1002), "{first:?}");
        // mapped before the recording began
        let (named, all, first) = of("p.tape", "spin one_thread");
        assert_eq!((named, all), (1009, 1009), "{first:?}");
        for name in ["c.tape", "p.tape", "threads"] {
            fs::remove_file(lab.path(name)).expect("remove");
        }
    }
}

#[test]
fn the_whole_machine_from_inside() {
    let Some(lab) = Lab::with_bpf() else { return };
    let target = lab.cc("target", &["-O0"]);
    let script = "record_on a.tape -a --call-graph dwarf; echo $recorder >begun; until [ -e stop ]; do sleep 0.01; done; record_off";
    for options in ["", "--force task-states=16384"] {
        for name in ["begun", "stop", "a.tape"] {
            fs::remove_file(lab.path(name)).ok();
        }
        let container = Background::start(container(&lab, 1, &script.replace("-a", &format!("-a {options}"))));
        let recorder = lab.until_file("begun");
        let recorder = find("record", recorder.trim()).expect("the recorder on the machine");
        run(lab.command(&target).args(["spin", "1009"])).expect(0);
        // in a call at the end, which no walk inside shows
        let asleep = Background::start(lab.command("sh").args(["-c", "exec sleep 1000"]));
        lab.until("sleep", || {
            let call = fs::read_to_string(format!("/proc/{}/syscall", asleep.pid())).unwrap_or_default();
            let comm = fs::read_to_string(format!("/proc/{}/comm", asleep.pid())).unwrap_or_default();
            comm == "sleep\n" && (call.starts_with("230 ") || call.starts_with("35 "))
        });
        fs::write(lab.path("stop"), "").expect("write");
        container.wait().expect(0);
        let all = lab.analyze(&["a.tape", "--format", "json", "--comm=target"]).expect(0).json();
        let calls: Vec<Call> = all.into_iter().filter(|line| line.get("lost").is_none()).map(Call).collect();
        assert_eq!(count(&calls, "getppid"), 1009);
        // its mappings are not told in here: its frames are unknown, and nobody else's
        let stacks = stacks(&lab, "a.tape", &["--comm=target"]);
        assert!(stacks.iter().any(|stack| stack == "no-mapping"), "{stacks:?}");
        // on a busy machine some are given up
        let unknown = |stack: &String| ["no-mapping", "late", "lost", ""].contains(&stack.as_str());
        assert!(stacks.iter().all(unknown), "{stacks:?}");
        let open = lab.calls("a.tape", &["--comm=sleep", "-p", &asleep.pid_text()]);
        let last = open.last().expect("calls of sleep");
        assert!(last.name().ends_with("nanosleep") && last.incomplete() == Some("in-flight"), "{last:?}");
        let own = lab.calls("a.tape", &["-p", &recorder]);
        assert!(own.is_empty(), "of the recorder itself: {:?}", own[0]);
        let info = lab.info("a.tape");
        assert!(info["lost"].get("syscall").is_none());
        // nothing that this kernel can do is refused in here
        let notes = info["notes"].to_string();
        assert!(!notes.contains("refused"), "{notes}");
        assert!(!notes.contains("keep nothing with a task"), "{notes}");
    }
}
