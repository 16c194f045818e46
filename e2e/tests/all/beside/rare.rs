//! Descriptors that change without a call of the one they happen to, or in tables that are not a process's:
//! seccomp's NOTIF_ADDFD, a thread or a process with a table of its own, i386
//! calls of a 64-bit program. What the tape says of them is right or unknown; what can be known is.

use systape_e2e::probes::scenario;

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
