//! A path behind a descriptor is right or unknown, never wrong. The workload asks the kernel (`/proc/self/fd`) what each
//! descriptor is at points the test finds in the tape, and every one of them must be there with that path; where the
//! tape cannot know (a descriptor that came over a socket), with that or none; with none when nothing was open.

use std::fs;

use systape_e2e::probes::scenario;
use systape_e2e::strace;

#[test]
fn a_lingering_close_does_not_take_the_next_file() {
    let Some((_lab, calls)) = scenario("fds", "linger", 4) else { return };
    // it did linger, and what it closed was the socket
    let close = calls.iter().find(|c| c.name() == "close" && c.dur().is_some_and(|d| d > 500_000_000));
    let close = close.expect("a close of more than half a second");
    assert!(close.fd_path("fd").is_some_and(|p| p.starts_with("TCP:[")), "{close:?}");
}

#[test]
fn dup_over_an_open_descriptor() {
    let Some((_lab, calls)) = scenario("fds", "dups", 17) else { return };
    // onto itself: both arguments are what the descriptor is now, not what the call before replaced
    let onto_itself = |name: &str, fd: i64| {
        let calls = calls.iter().filter(|c| c.name() == name && (c.num("oldfd"), c.num("newfd")) == (fd, fd));
        calls.map(|c| [c.fd_path("oldfd"), c.fd_path("newfd")]).collect::<Vec<_>>()
    };
    for name in ["dup2", "dup3"] {
        let [[Some(old), Some(new)]] = onto_itself(name, 30)[..] else { panic!("{name}: {:?}", onto_itself(name, 30)) };
        assert!(old.ends_with("/a") && new.ends_with("/a"), "{name}: {old} {new}");
    }
    assert_eq!(onto_itself("dup2", 31), [[None, None]]);
}

#[test]
fn paths_as_long_as_the_kernel_shows_them() {
    scenario("fds", "long_paths", 9);
}

#[test]
fn close_range_and_its_cloexec() {
    scenario("fds", "ranges", 9 + 17);
}

#[test]
fn exec_by_a_thread() {
    let Some((_lab, calls)) = scenario("fds", "thread_exec", 7 + 17) else { return };
    // the exec was a thread's: its caller had another tid than the process
    let execs: Vec<_> = calls.iter().filter(|c| c.name() == "execve" && c.ret() == Some(0)).collect();
    assert_eq!(execs.len(), 2, "{execs:?}");
}

#[test]
fn fork_with_copied_and_shared_tables() {
    scenario("fds", "forks", 4 + 2 + 2 + 2 + 2 + 2 + 2);
}

#[test]
fn a_denied_close_closes_nothing_and_counts() {
    let Some((lab, calls)) = scenario("fds", "denied", 5) else { return };
    for (name, times) in [("close", 7), ("dup2", 5), ("openat", 3)] {
        let denied: Vec<_> = calls.iter().filter(|c| c.name() == name && c.errno() == Some("EPERM")).collect();
        assert_eq!(denied.len(), times, "{name}");
        for call in denied {
            // it never began: no duration, and no claim of one
            assert_eq!((call.ret(), call.dur(), call.incomplete()), (Some(-1), None, None), "{call:?}");
        }
    }
    // the summary counts them as strace does
    fs::remove_file(lab.path("side")).expect("rm");
    let workload = lab.file("fds");
    let counted = strace::count(&lab, &[&workload, "denied", &lab.file("side")]);
    let rows = lab.analyze(&["t.tape", "-s", "--summary-mode", "total", "--format", "json"]).expect(0).json();
    for name in ["close", "dup2", "openat", "fcntl", "readlinkat"] {
        let row = rows.iter().find(|row| row["syscall"] == name).unwrap_or_else(|| panic!("no row {name}"));
        let ours = (row["calls"].as_u64().expect("calls"), row["errors"].as_u64().expect("errors"));
        assert_eq!(Some(&ours), counted.get(name), "{name}");
    }
}

#[test]
fn every_kind_of_descriptor() {
    scenario("fds", "kinds", 22);
}

#[test]
fn descriptors_that_came_another_way() {
    scenario("fds", "passed", 4);
}

#[test]
fn directories_and_relative_opens() {
    scenario("fds", "directories", 10);
}

#[test]
fn inside_a_chroot() {
    let Some((_lab, calls)) = scenario("fds", "rooted", 3) else { return };
    assert!(calls.iter().any(|c| c.name() == "chroot" && c.ret() == Some(0)), "no chroot");
}

#[test]
fn two_threads_that_get_each_others_numbers() {
    scenario("fds", "race", 2 * (499 + 167));
}
