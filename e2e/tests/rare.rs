//! Descriptors that change without a call of the one they happen to, or in tables that are not a process's: io_uring
//! (also one set up before the recording), seccomp's NOTIF_ADDFD, a thread or a process with a table of its own, i386
//! calls of a 64-bit program. What the tape says of them is right or unknown; what can be known is.

use std::fs;
use std::path::Path;

use systape_e2e::probes::{compare, scenario};
use systape_e2e::{Background, Lab};

#[test]
fn io_uring_closes_and_opens() {
    let Some((_lab, calls)) = scenario("rare", "uring", 8) else { return };
    assert!(calls.iter().any(|c| c.name() == "io_uring_enter" && c.ret() == Some(1)), "no io_uring_enter");
}

#[test]
fn io_uring_set_up_before_the_recording() {
    let Some(lab) = Lab::with_bpf() else { return };
    let rare = lab.cc("rare", &[]);
    fs::create_dir(lab.path("work")).expect("mkdir");
    let mut command = lab.command(rare);
    let program = Background::start(command.args(["uring_before", &lab.file("side")]).current_dir(lab.path("work")));
    lab.until("the ring", || lab.path("work/ready").exists());
    let record = lab.attach("t.tape", &["-p", &program.pid_text()]);
    std::thread::sleep(std::time::Duration::from_millis(200));
    fs::write(lab.path("side.go"), "").expect("write");
    program.wait().expect(0);
    record.wait().expect(0);
    lab.assert_whole("t.tape");
    compare(&lab, "t.tape", "side", 4, Path::new("/"));
}

#[test]
fn a_thread_with_its_own_table() {
    scenario("rare", "thread_table", 8);
}

#[test]
fn exec_by_a_process_that_shares_a_table() {
    scenario("rare", "shared_exec", 2 + 3);
}

#[test]
fn a_file_put_there_by_a_supervisor() {
    scenario("rare", "addfd", 6);
}

#[test]
fn i386_calls_of_a_64_bit_program() {
    let Some((_lab, calls)) = scenario("rare", "compat", 9) else { return };
    let i386: Vec<_> = calls.iter().filter(|c| c.0["abi"] == "i386").map(|c| c.name()).collect();
    // socketcall may be listed as the call it is
    assert_eq!(i386[..5], ["open", "dup2", "close", "read", "dup"]);
    assert!(i386.len() == 6 && ["socketcall", "socket"].contains(&i386[5]), "{i386:?}");
}

#[test]
fn a_file_renamed_while_open() {
    scenario("rare", "renamed", 3);
}
