//! Tests of whole expressions.

use proptest::prelude::*;

use super::*;
use crate::number;

fn parse(exprs: &[&str]) -> Selection {
    Selection::parse(exprs).unwrap_or_else(|error| panic!("{exprs:?}: {error}"))
}

fn has(selection: &Selection, name: &str) -> bool {
    selection.contains(Abi::X86_64, number(Abi::X86_64, name).unwrap())
}

/// Names selected of x86-64.
fn selected(exprs: &[&str]) -> Vec<&'static str> {
    let selection = parse(exprs);
    names::all(Abi::X86_64).filter(|(nr, _)| selection.contains(Abi::X86_64, *nr)).map(|(_, name)| name).collect()
}

fn error(expr: &str) -> String {
    Selection::parse(&[expr]).unwrap_err().to_string()
}

#[test]
fn nothing_given_is_everything() {
    for selection in [Selection::all(), parse(&[])] {
        assert!(
            selection.contains(Abi::X86_64, 0)
                && selection.contains(Abi::Unknown, 7)
                && selection.contains(Abi::X86_64, 99_999)
        );
        assert!(!selection.has_positive() && !selection.positively_names(Abi::X86_64, 0));
    }
}

#[test]
fn union_of_positive_terms_minus_negative_ones() {
    assert_eq!(selected(&["read,write"]), ["read", "write"]);
    assert_eq!(selected(&["read", "write"]), ["read", "write"]);
    assert_eq!(selected(&["read,!read,write"]), ["write"]);
    assert_eq!(selected(&["!read"]).len(), names::all(Abi::X86_64).count() - 1);
}

#[test]
fn a_leading_bang_negates_its_whole_list_and_no_other() {
    let perf = parse(&["!futex,read"]);
    assert!(!has(&perf, "futex") && !has(&perf, "read") && has(&perf, "write"));
    assert_eq!(selected(&["!futex,read", "read,write"]), ["write"]);
    assert_eq!(selected(&["!futex,!read"]), selected(&["!futex,read"]));
    assert_eq!(selected(&["read,!futex,write"]), ["read", "write"]);
}

#[test]
fn strace_spellings() {
    assert_eq!(selected(&["trace=read,write"]), ["read", "write"]);
    assert_eq!(selected(&["trace=!read"]), selected(&["!read"]));
    assert_eq!(selected(&["t=read, write"]), ["read", "write"]);
    assert_eq!(selected(&["read,?nosuchcall"]), ["read"]);
    assert_eq!(selected(&["?write"]), ["write"]);
    assert!(!parse(&["read@32"]).contains(Abi::X86_64, 0));
    assert!(parse(&["read@32"]).contains(Abi::I386, 3));
    assert!(parse(&["read@i386", "re*@x86_64"]).contains(Abi::I386, 3));
    assert!(parse(&["re*@x86_64"]).contains(Abi::X86_64, 0) && !parse(&["re*@x86_64"]).contains(Abi::I386, 3));
    assert!(Selection::parse(&["read@mips"]).is_err());
    assert!(parse(&["all"]).contains(Abi::X86_64, 9999) && selected(&["none"]).is_empty());
    assert!(selected(&["all,!all"]).is_empty());
}

#[test]
fn globs() {
    assert_eq!(selected(&["epoll_pwait*"]), ["epoll_pwait", "epoll_pwait2"]);
    assert_eq!(selected(&["dup?"]), ["dup2", "dup3"]);
    assert_eq!(selected(&["?up3*"]), ["dup3"], "not an optional up3*, which is nothing");
    assert_eq!(selected(&["dup[!2]"]), ["dup3"]);
    assert_eq!(selected(&["dup[1-2]"]), ["dup2"]);
    assert_eq!(error("nosuch*"), "no syscall matches 'nosuch*' in -e");
    assert!(
        glob_matches("*a*b*", "xxaxxbxx")
            && !glob_matches("*a*b", "xxaxxbxx")
            && glob_matches("[", "[")
            && !glob_matches("", "a")
    );
}

#[test]
fn names_stand_for_what_libc_calls() {
    assert_eq!(selected(&["stat"]), ["stat", "newfstatat", "statx"]);
    assert_eq!(parse(&["stat"]).notes(), ["stat also selects newfstatat, statx (write =stat for stat alone)"]);
    assert_eq!(parse(&["!open"]).notes(), ["open also excludes openat (write =open for open alone)"]);
    let both = "fork, vfork also select clone, clone3 (write =fork,=vfork for fork, vfork alone)";
    assert_eq!(parse(&["fork,vfork,fork"]).notes(), [both]);
    assert_eq!(selected(&["=stat"]), ["stat"]);
    assert!(parse(&["=stat"]).notes().is_empty() && parse(&["newfstatat"]).notes().is_empty());
    assert_eq!(selected(&["recv"]), ["recvfrom"]);
    assert_eq!(parse(&["recv,recv"]).notes(), ["recv selects recvfrom, the calls libc makes for it"]);
    assert_eq!(selected(&["!stat", "statx,read"]), ["read"]);
    assert!(parse(&["getuid"]).contains(Abi::I386, number(Abi::I386, "getuid32").unwrap()));
    assert!(parse(&["poll"]).contains(Abi::I386, number(Abi::I386, "ppoll_time64").unwrap()));
}

#[test]
fn groups_with_and_without_percent() {
    for group in groups::GROUPS {
        assert!(!selected(&[&format!("%{group}")]).is_empty(), "{group}");
        if !group.contains("stat") {
            assert_eq!(selected(&[&format!("%{group}")]), selected(&[group]), "{group}");
        }
    }
    assert_eq!(selected(&["%%stat"]), ["stat", "fstat", "lstat", "newfstatat", "statx"]);
    assert_eq!(selected(&["%statfs", "%fstatfs"]), ["statfs", "fstatfs"]);
    assert_eq!(selected(&["net"]), selected(&["network"]));
}

#[test]
fn groups_hold_what_strace_users_expect() {
    let cases: [(&str, &[&str], &[&str]); 9] = [
        (
            "file",
            &["open", "openat", "stat", "execve", "mount", "getcwd", "inotify_add_watch", "symlinkat", "statx"],
            &["read", "memfd_create", "mq_open"],
        ),
        (
            "desc",
            &[
                "read",
                "close",
                "openat",
                "mmap",
                "poll",
                "socket",
                "pipe2",
                "epoll_wait",
                "memfd_create",
                "io_uring_enter",
            ],
            &["stat", "getpid", "brk"],
        ),
        ("process", &["clone3", "execve", "exit_group", "wait4", "kill", "vfork"], &["getpid", "read"]),
        ("network", &["socket", "connect", "recvmmsg", "shutdown", "setsockopt"], &["read", "poll"]),
        ("signal", &["kill", "rt_sigaction", "rt_sigprocmask", "signalfd4", "pause"], &["read", "wait4"]),
        ("memory", &["mmap", "brk", "munmap", "madvise", "mprotect", "mseal"], &["read", "cachestat"]),
        ("ipc", &["shmget", "semop", "msgrcv", "shmat"], &["pipe"]),
        ("creds", &["getuid", "setresgid", "capset", "getgroups"], &["getpid"]),
        ("clock", &["clock_gettime", "gettimeofday", "adjtimex"], &["clock_nanosleep", "nanosleep"]),
    ];
    for (group, members, others) in cases {
        let selection = parse(&[group]);
        for name in members {
            assert!(has(&selection, name), "{name} belongs to {group}");
        }
        for name in others {
            assert!(!has(&selection, name), "{name} does not belong to {group}");
        }
    }
}

#[test]
fn a_group_with_the_name_of_a_call_contains_the_call() {
    let (signal, ipc) = (number(Abi::I386, "signal").unwrap(), number(Abi::I386, "ipc").unwrap());
    assert!(parse(&["signal"]).contains(Abi::I386, signal) && parse(&["ipc"]).contains(Abi::I386, ipc));
    let exact = parse(&["=signal"]);
    assert!(exact.contains(Abi::I386, signal) && !has(&exact, "kill"));
}

#[test]
fn numbers_without_a_name() {
    assert!(!parse(&["read"]).contains(Abi::X86_64, 9999) && parse(&["!read"]).contains(Abi::X86_64, 9999));
    let named = parse(&["sys_9999,sys_600"]);
    assert!(
        named.contains(Abi::X86_64, 9999)
            && named.contains(Abi::X32, 0x4000_0000 | 600)
            && !named.contains(Abi::X86_64, 601)
    );
    assert!(!parse(&["!sys_9999"]).contains(Abi::Unknown, 9999));
    // of no ABI; older tapes have it as one of x32
    let none = parse(&["sys_-1"]);
    assert!([Abi::X86_64, Abi::I386, Abi::X32].iter().all(|abi| none.contains(*abi, crate::NO_CALL)));
    assert!(!none.contains(Abi::X86_64, 9999) && !parse(&["read"]).contains(Abi::X32, crate::NO_CALL));
    assert_eq!(crate::display_name(Abi::X32, crate::NO_CALL), "sys_-1");
}

#[test]
fn events_are_kept_and_count_as_positive() {
    let selection = parse(&["sched:*,read", "!signal:signal_generate"]);
    let terms: Vec<_> =
        selection.other_events().iter().map(|t| (t.negated, t.family.as_str(), t.event.as_str())).collect();
    assert_eq!(terms, [(false, "sched", "*"), (true, "signal", "signal_generate")]);
    assert!(has(&selection, "read") && !has(&selection, "write"));
    assert!(selected(&["sched:*"]).is_empty(), "perf trace -e 'sched:*' prints no syscalls");
    assert!(has(&parse(&["!sched:*"]), "read"));
}

#[test]
fn every_abi_is_meant() {
    let selection = parse(&["read"]);
    for abi in Abi::KNOWN {
        assert!(selection.positively_names(abi, number(abi, "read").unwrap()), "{abi}");
    }
    assert!(!selection.contains(Abi::Unknown, 0));
}

#[test]
fn errors_say_what_to_write() {
    assert_eq!(error("opennat"), "unknown syscall 'opennat' in -e; did you mean openat, openat2?");
    assert_eq!(error("=recv"), "unknown syscall 'recv' in -e; did you mean recvfrom?");
    assert!(error("%fiel").starts_with("unknown group '%fiel' in -e; groups are clock, creds,"));
    for empty in ["", ",", "read,", "!", "read,!", "trace="] {
        assert_eq!(error(empty), format!("empty term in -e '{empty}'"));
    }
    assert!(error(":x").contains("family:event") && error("sched:").contains("family:event"));
    assert!(error("/^open").contains("glob") && error("signal=TERM").contains("signal:*"));
}

proptest! {
    #[test]
    fn order_never_matters(
        terms in prop::sample::subsequence(vec!["read", "!stat", "file", "!%network", "epoll*", "!futex", "sys_451", "!open*", "desc"], 1..9),
        swaps: [prop::sample::Index; 4],
    ) {
        let lists: Vec<String> = terms.iter().map(|term| (*term).to_owned()).collect();
        let mut shuffled = lists.clone();
        for swap in swaps {
            let at = swap.index(shuffled.len());
            shuffled.rotate_left(at);
            shuffled.swap(0, at);
        }
        let (a, b) = (Selection::parse(&lists).unwrap(), Selection::parse(&shuffled).unwrap());
        for abi in Abi::KNOWN {
            for nr in 0..1100 {
                prop_assert_eq!(a.contains(abi, nr), b.contains(abi, nr));
            }
        }
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in "[a-z%!=?*\\[\\]:,@ -]{0,20}|.{0,20}") {
        let _ = Selection::parse(&[text]);
    }
}

#[test]
fn a_filter_belongs_to_its_event() {
    let selection = parse(&["a:b/x == 1,2 && name ~ \"/tmp/*,\"/,read,c:*", "d:e/x=='/'/", "a:f"]);
    let terms: Vec<_> = selection.other_events().iter().map(|t| (t.event.as_str(), t.filter.as_deref())).collect();
    let filter = "x == 1,2 && name ~ \"/tmp/*,\"";
    assert_eq!(terms, [("b", Some(filter)), ("*", None), ("e", Some("x=='/'")), ("f", None)]);
    assert!(has(&selection, "read"));
    let error = |text: &str| Selection::parse(&[text]).unwrap_err().to_string();
    for open in ["a:b/x==1", "a:b/", "a:b/x==1/2", "a:b/x=='/"] {
        assert!(error(open).contains("ends with a slash"), "{open}: {}", error(open));
    }
    assert!(error("!a:b/x==1/").contains("negate"));
    assert!(error("syscalls:sys_enter_read/fd==1/").contains("no filter"));
    assert!(error("read,/x/").contains("glob"), "{}", error("read,/x/"));
}

#[test]
fn tracepoints_of_syscalls_are_syscalls() {
    let one = Selection::parse(&["syscalls:sys_enter_openat"]).unwrap();
    assert!(one.contains(Abi::X86_64, 257) && !one.contains(Abi::X86_64, 0), "openat alone");
    assert!(one.other_events().is_empty());
    assert_eq!(one.notes(), ["syscalls:sys_enter_openat is openat: a call's enter and exit are one event here"]);
    let both = Selection::parse(&["syscalls:sys_enter_read,syscalls:sys_exit_read"]).unwrap();
    assert!(both.contains(Abi::X86_64, 0) && !both.contains(Abi::X86_64, 1));
    let all = Selection::parse(&["raw_syscalls:sys_enter"]).unwrap();
    assert!(all.contains(Abi::X86_64, 0) && all.contains(Abi::X86_64, 257));
    assert!(Selection::parse(&["syscalls:sys_enter_*at"]).unwrap().contains(Abi::X86_64, 257));
    let none = Selection::parse(&["!syscalls:sys_exit_read"]).unwrap();
    assert!(!none.contains(Abi::X86_64, 0) && none.contains(Abi::X86_64, 1));
    let error = |text: &str| Selection::parse(&[text]).unwrap_err().to_string();
    assert!(error("syscalls:sys_enter_opennat").contains("openat"), "{}", error("syscalls:sys_enter_opennat"));
    assert!(error("inject=read:error=EIO").contains("strace"), "{}", error("inject=read:error=EIO"));
}
