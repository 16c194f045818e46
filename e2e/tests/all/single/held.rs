//! `analyze fds --at` of a moment is what `/proc/self/fd` said then: of a command, of its forked and cloned children, after
//! exec, of a process that ran before the recording, by whatever target, and on a tape of several chunks. Where calls were not
//! recorded it is not certain.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use systape_e2e::more::Cgroup;
use systape_e2e::{Background, Call, Lab, lab};

/// Until /proc was read of everybody: of what changes before that it is not always known what it was at the start.
const UNTIL_READ: Duration = Duration::from_secs(2);

/// What a descriptor stands for, and whether exec closes it.
type Fd = (String, bool);
/// By moment and process, then by number.
type Moments = BTreeMap<(String, i64), BTreeMap<i64, Fd>>;

/// What the workload wrote of its moments.
fn written(lab: &Lab) -> Moments {
    let mut moments = Moments::new();
    for line in fs::read_to_string(lab.path("side")).expect("side").lines() {
        let mut words = line.splitn(5, ' ');
        let mut next = || words.next().expect("five words");
        let (moment, pid) = (next().to_owned(), next().parse().expect("pid"));
        let (fd, cloexec) = (next().parse().expect("fd"), next() != "0");
        moments.entry((moment, pid)).or_default().insert(fd, (next().to_owned(), cloexec));
    }
    moments
}

/// The moment that a call is a marker of.
fn moment(call: &Call) -> Option<String> {
    let path = String::from_utf8(call.bytes("filename")?).ok()?;
    path.strip_prefix("moment-").map(str::to_owned)
}

/// A socket is called by its ends, of which the first is its own number.
fn as_proc(name: &str) -> String {
    match name.strip_prefix("UNIX-STREAM:[").and_then(|ends| ends.split_once("->")) {
        Some((own, _)) => format!("socket:[{own}]"),
        None => name.to_owned(),
    }
}

/// Compares every moment; each table must be whole and certain.
fn compare(lab: &Lab, tape: &str, count: usize) {
    let (mut moments, dir) = (written(lab), fs::canonicalize(lab.path(".")).expect("its directory"));
    assert_eq!(moments.len(), count, "{:?}", moments.keys());
    for call in lab.calls(tape, &["-e", "=access"]) {
        let Some(moment) = moment(&call) else { continue };
        let (pid, at) = (call.pid().to_string(), format!("{}ns", call.ts()));
        let run = lab.analyze(&["fds", tape, "-p", &pid, "--at", &at, "--format", "json", "--fail-on-loss"]).expect(0);
        assert_eq!(run.stderr, "", "{moment}");
        let mut held: BTreeMap<i64, Fd> = BTreeMap::new();
        for row in run.json() {
            assert_eq!((&row["open"], &row["complete"]), (&true.into(), &true.into()), "{moment}: {row}");
            let name = as_proc(row["name"].as_str().unwrap_or_else(|| panic!("{moment}: no name: {row}")));
            if row["kind"] == "cwd" {
                assert_eq!((name.as_str(), &row["fd"]), (dir.to_str().expect("UTF-8"), &serde_json::Value::Null));
                continue;
            }
            let cloexec = row["cloexec"].as_bool().unwrap_or_else(|| panic!("{moment}: {row}"));
            held.insert(row["fd"].as_i64().expect("fd"), (name, cloexec));
        }
        let said = moments.remove(&(moment.clone(), call.pid())).unwrap_or_else(|| panic!("{moment} twice"));
        assert_eq!(held, said, "{moment}");
    }
    assert_eq!(moments.keys().collect::<Vec<_>>(), Vec::<&(String, i64)>::new(), "not on the tape");
}

#[test]
fn of_a_command_and_its_children() {
    let Some(lab) = Lab::with_bpf() else { return };
    let held = lab.cc("held", &["-lpthread"]);
    lab.record("t.tape", &[], &[&held, "side", "run"]).expect(0);
    lab.assert_whole("t.tape");
    compare(&lab, "t.tape", 9);
    // who opened it, and when, is there too
    let call =
        lab.calls("t.tape", &["-e", "=access"]).into_iter().find(|call| moment(call).as_deref() == Some("copied"));
    let at = format!("{}ns", call.expect("moment-copied").ts());
    let rows = lab.analyze(&["fds", "t.tape", "--comm=held", "--at", &at, "--format", "json"]).expect(0).json();
    let of = |fd: i64| rows.iter().find(|row| row["fd"] == fd).unwrap_or_else(|| panic!("no {fd}: {rows:?}"));
    let (tty, copy) = (of(0), of(50));
    assert_eq!((&tty["since_ns"], &tty["by"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    assert_eq!(
        (copy["by"].as_str(), copy["mode"].as_str(), copy["kind"].as_str()),
        (Some("openat"), Some("rw"), Some("path"))
    );
    assert!(copy["since_ns"].as_i64().is_some_and(|since| since > 0), "{copy}");
    // after its end it holds nothing
    let none = lab.analyze(&["fds", "t.tape", "--format", "json"]).expect(0);
    assert!(none.stdout.is_empty() && none.stderr.contains("an earlier moment is --at "), "{}", none.stderr);
}

/// Starts the workload anew, and returns once it waits.
#[track_caller]
fn waiting(lab: &Lab, command: &[&str]) -> Background {
    for name in ["side", "waits", "ready"] {
        fs::remove_file(lab.path(name)).ok();
    }
    let program = Background::start(lab.command(command[0]).args(&command[1..]));
    lab.until("the program waits", || lab.path("waits").exists());
    program
}

/// Has it go on, to its end, a while after a recorder of `target` began; returns that.
#[track_caller]
fn go_on(lab: &Lab, program: Background, target: &[&str], pause: Duration) -> Background {
    let record = lab.attach("t.tape", target);
    std::thread::sleep(pause);
    fs::write(lab.path("ready"), "").expect("ready");
    program.wait().expect(0);
    record
}

#[test]
fn of_a_process_from_before_the_recording() {
    let Some(lab) = Lab::with_bpf() else { return };
    let held = lab.cc("held", &["-lpthread"]);
    let program = waiting(&lab, &[&held, "side", "wait"]);
    let target = ["-p", &program.pid_text()];
    let record = go_on(&lab, program, &target, UNTIL_READ);
    record.wait().expect(0);
    lab.assert_whole("t.tape");
    compare(&lab, "t.tape", 9);
}

/// Whatever selects all of it: everything, its user, its cgroup.
#[test]
fn of_each_target() {
    let Some(lab) = Lab::with_bpf() else { return };
    let held = lab.cc("held", &["-lpthread"]);
    fs::set_permissions(lab.path("."), std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("chmod");
    let name = format!("systape-held-{}", std::process::id());
    let group = Cgroup::new(&name).expect("cgroup v2 is mounted");
    let script =
        format!("echo 0 > {}/cgroup.procs; exec setpriv --reuid 54321 --clear-groups {held} side wait", group.dir());
    for target in [&["-a"][..], &["-u", "54321"], &["-G", &format!("/{name}")]] {
        let program = waiting(&lab, &["sh", "-c", &script]);
        go_on(&lab, program, target, UNTIL_READ).stop(libc::SIGINT).expect(0);
        eprintln!("{target:?}");
        compare(&lab, "t.tape", 9);
    }
    // a part of its calls
    for target in [&["--comm=held"][..], &["-C", "0"]] {
        let program = waiting(&lab, &[&held, "side", "wait"]);
        go_on(&lab, program, target, Duration::ZERO).stop(libc::SIGINT).expect(0);
        let run = lab.analyze(&["fds", "t.tape", "--comm=held", "--at", "50%", "--format", "json"]).expect(0);
        assert!(run.stderr.contains("NOT RECORDED"), "{target:?}: {}", run.stderr);
        assert!(run.json().iter().all(|row| row["open"] == false && row["complete"] == false), "{target:?}");
    }
}

/// What a process did as another user was not recorded: what it holds is not certain, be it the command or another.
#[test]
fn of_who_was_another_user_meanwhile() {
    let Some(lab) = Lab::with_bpf() else { return };
    fs::set_permissions(lab.path("."), std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("chmod");
    let script = "import os, time\n\
        os.setresuid(54321, 54321, 0)\na = os.open('a', os.O_CREAT | os.O_RDWR)\nos.write(a, b'x')\nos.access('moment-before', 0)\n\
        os.setresuid(0, 0, 0)\nos.close(a)\nos.open('b', os.O_CREAT | os.O_RDWR)\n\
        os.setresuid(54321, 54321, 0)\nos.access('moment-after', 0)\n";
    for command in [true, false] {
        let python = ["/usr/bin/python3", "-c", script];
        if command {
            lab.record("t.tape", &["-u", "54321"], &python).expect(0);
        } else {
            let record = lab.attach("t.tape", &["-u", "54321"]);
            lab::run(lab.command(python[0]).args(&python[1..])).expect(0);
            record.stop(libc::SIGINT).expect(0);
        }
        let moments: Vec<Call> =
            lab.calls("t.tape", &["-e", "=access"]).into_iter().filter(|c| moment(c).is_some()).collect();
        let names: Vec<_> = moments.iter().filter_map(moment).collect();
        assert_eq!(names, ["before", "after"]);
        for call in &moments {
            let at = format!("{}ns", call.ts());
            let pid = call.pid().to_string();
            let rows = lab.analyze(&["fds", "t.tape", "-p", &pid, "--at", &at, "--format", "json"]).json();
            let sure = |row: &serde_json::Value| {
                row["open"] == true && row["name"].as_str().is_some_and(|n| n.ends_with("/a"))
            };
            assert_eq!(rows.iter().any(sure), moment(call).as_deref() == Some("before"), "{command} {rows:?}");
            assert!(rows.iter().all(|row| row["complete"] == false), "{command} {rows:?}");
        }
    }
}

#[test]
fn on_a_tape_of_several_chunks() {
    let Some(lab) = Lab::with_bpf() else { return };
    let held = lab.cc("held", &["-lpthread"]);
    // what is kept in memory is in chunks of a part of that time
    lab.record("t.tape", &["--last", "3s"], &[&held, "side", "slow"]).expect(0);
    let chunks = lab.info("t.tape")["chunks"].as_u64().expect("chunks");
    assert!(chunks >= 2, "{chunks} chunks");
    compare(&lab, "t.tape", 9);
}

#[test]
fn calls_that_were_not_recorded_make_it_uncertain() {
    let Some(lab) = Lab::with_bpf() else { return };
    let held = lab.cc("held", &["-lpthread"]);
    lab.record("t.tape", &["-e", "=access,fcntl"], &[&held, "side", "run"]).expect(0);
    let call =
        lab.calls("t.tape", &["-e", "=access"]).into_iter().find(|call| moment(call).as_deref() == Some("opened"));
    let at = format!("{}ns", call.expect("moment-opened").ts());
    let run = lab.analyze(&["fds", "t.tape", "--comm=held", "--at", &at, "--format", "json"]).expect(0);
    assert!(run.stderr.contains("NOT RECORDED"), "{}", run.stderr);
    let rows = run.json();
    // each is open as far as it goes: used by a call, or there at the start
    let said = &written(&lab)[&("opened".to_owned(), rows[0]["pid"].as_i64().expect("pid"))];
    for row in &rows {
        assert_eq!((&row["open"], &row["complete"]), (&false.into(), &false.into()), "{row}");
        let fd = row["fd"].as_i64().expect("fd");
        let (name, _) = said.get(&fd).unwrap_or_else(|| panic!("{fd} was not open"));
        assert_eq!(&as_proc(row["name"].as_str().expect("name")), name);
    }
    assert!(rows.len() > 10, "{rows:?}");
}
