//! Descriptors that operations of io_uring make and close, with the same numbers as calls in turns: the tape's names are those of
//! `/proc/self/fd`, also of a ring from before the recording, and `analyze fds` has the whole table.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use systape_e2e::probes::{compare, scenario};
use systape_e2e::{Background, Lab};

/// The row of each descriptor of the program at its last moment is as /proc said: name, whether exec closes it.
#[track_caller]
fn the_table_is_known(lab: &Lab) {
    let calls = lab.calls("t.tape", &["-e", "=access"]);
    let moment = calls.iter().find(|call| call.text("filename") == "the table").expect("the moment");
    let (pid, at) = (moment.pid().to_string(), format!("{}ns", moment.ts()));
    let rows = lab.analyze(&["fds", "t.tape", "-p", &pid, "--at", &at, "--format", "json"]).expect(0).json();
    // sockets have names beside their numbers
    let name = |name: &str| if name.starts_with("TCP:") { "socket".to_owned() } else { name.to_owned() };
    let held = |row: &Value| {
        assert_eq!(row["open"], true, "{row}");
        // what was found there by its number may be closed by exec or not
        let cloexec = row["cloexec"].as_bool();
        (row["fd"].as_u64().expect("fd"), (name(row["name"].as_str().expect("name")), cloexec))
    };
    let held: BTreeMap<u64, _> = rows.iter().filter(|row| row["kind"] != "cwd").map(held).collect();
    let text = fs::read_to_string(lab.path("side.table")).expect("the table");
    let said = |line: &str| {
        let [fd, cloexec, target] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let target = if target.starts_with("socket:") { "socket" } else { target };
        (fd.parse().expect("fd"), (target.to_owned(), cloexec != "0"))
    };
    let said: BTreeMap<u64, _> = text.lines().map(said).collect();
    assert_eq!(held.keys().collect::<Vec<_>>(), said.keys().collect::<Vec<_>>());
    for (fd, (name, cloexec)) in &said {
        let (held, closes) = &held[fd];
        assert!(held == name && closes.is_none_or(|closes| closes == *cloexec), "{fd}: {:?} {:?}", held, said[fd]);
    }
    assert!(rows.iter().all(|row| row["unseen"] == true), "a ring may bring others: {rows:?}");
}

#[test]
fn a_ring_replaces_what_calls_opened() {
    let Some((lab, calls)) = scenario("rings", "replaces", 9) else { return };
    assert!(calls.iter().any(|c| c.name() == "io_uring_enter" && c.ret() == Some(1)), "no io_uring_enter");
    the_table_is_known(&lab);
}

#[test]
fn numbers_of_operations_and_calls_in_turns() {
    let Some((lab, _)) = scenario("rings", "all", 46) else { return };
    the_table_is_known(&lab);
    // what a CLOSE closed has its name, and what has no descriptor has none
    let rows = lab.analyze(&["t.tape", "-e", "io_uring:complete", "--format", "json"]).expect(0).json();
    let of = |op: &'static str| rows.iter().map(|row| &row["args"]).filter(move |args| args["op"] == op);
    let ended = |args: &&Value| args["fd"].as_i64().is_some_and(|fd| fd < 9999) && args["error"] == 0;
    let work = fs::canonicalize(lab.path("work")).expect("its directory");
    let closed: Vec<_> = of("CLOSE")
        .filter(ended)
        .map(|args| args["file"].as_str().unwrap_or("?").replace(work.to_str().expect("UTF-8"), ""))
        .collect();
    let turn = ["/by the ring", "/kept", "/kept"];
    assert_eq!(closed[..9], ["/a", turn[1], turn[2], "/b", turn[1], turn[2], "/b", turn[1], turn[2]], "{closed:?}");
    assert!(of("OPENAT").chain(of("SOCKET")).all(|args| args["fd"].is_null()), "{rows:?}");
}

#[test]
fn a_ring_that_the_kernel_polls() {
    let Some((lab, _)) = scenario("rings", "polled", 46) else { return };
    the_table_is_known(&lab);
}

#[test]
fn a_ring_from_before_the_recording() {
    let Some(lab) = Lab::beside() else { return };
    let program = lab.cc("rings", &[]);
    fs::create_dir(lab.path("work")).expect("mkdir");
    let mut command = lab.command(program);
    let program = Background::start(command.args(["before", &lab.file("side")]).current_dir(lab.path("work")));
    lab.until("the ring", || lab.path("work/ready").exists());
    let record = lab.attach("t.tape", &["-p", &program.pid_text()]);
    std::thread::sleep(std::time::Duration::from_millis(200));
    fs::write(lab.path("side.go"), "").expect("write");
    program.wait().expect(0);
    record.wait().expect(0);
    lab.assert_whole("t.tape");
    compare(&lab, "t.tape", "side", 4, Path::new("/"));
    the_table_is_known(&lab);
}

/// Without the operations a process with a ring has no names.
#[test]
fn what_is_not_recorded_is_not_known() {
    let Some(lab) = Lab::beside() else { return };
    let program = lab.cc("rings", &[]);
    let families = ["--families", "syscall,process"];
    lab.record("t.tape", &families, &[&program, "replaces", &lab.file("side")]).expect(0);
    let calls = lab.calls("t.tape", &["-e", "=fcntl", "--sort", "end"]);
    let probes: Vec<_> = calls.iter().filter(|call| call.num("arg") == 0x5157).map(|call| call.fd_path("fd")).collect();
    assert!(probes.len() == 9 && probes[..2].iter().all(Option::is_some), "{probes:?}");
    assert_eq!(probes[2..], [None; 7]);
}
