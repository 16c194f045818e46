//! Simple calls take a short way through the kernel side: by an entry that a task owns, or the long way when another task
//! has it; and to user space by the CPU's buffer, or by its ring when that is full. All must tell the same.

use systape_e2e::more::FREESTANDING;
use systape_e2e::{Call, Lab};

/// As many entries as there are; one, which one task has and the others want; buffers that are mostly full.
const WAYS: [&[&str]; 3] = [&[], &["--force", "plain-calls=1"], &["--force", "cpu-buffer=2"]];

#[test]
fn every_call_of_many_tasks() {
    let Some(lab) = Lab::beside() else { return };
    let flood = lab.cc("flood", &FREESTANDING);
    for options in WAYS {
        lab.record("t.tape", options, &[&flood, "7", "10007"]).expect(0);
        lab.assert_whole("t.tape");
        let calls = lab.calls("t.tape", &["-e", "getppid"]);
        let mut by_pid = std::collections::BTreeMap::<i64, Vec<&Call>>::new();
        calls.iter().for_each(|call| by_pid.entry(call.pid()).or_default().push(call));
        assert_eq!(by_pid.len(), 7);
        for (pid, calls) in by_pid {
            assert_eq!(calls.len(), 10007, "{pid}");
            assert!(calls.iter().all(|c| c.ret() == calls[0].ret() && c.incomplete().is_none()), "{pid}");
            let ends = |c: &Call| c.ts() + c.dur().expect("duration");
            assert!(calls.windows(2).all(|two| ends(two[0]) <= two[1].ts()), "{pid}: calls overlap");
        }
    }
}

#[test]
fn calls_that_are_only_counted() {
    let Some(lab) = Lab::beside() else { return };
    let flood = lab.cc("flood", &FREESTANDING);
    for options in WAYS {
        lab.record("t.tape", &[&["--duration", "1000"], options].concat(), &[&flood, "7", "10007"]).expect(0);
        let rows = lab.analyze(&["t.tape", "-s", "--summary-mode", "process", "--format", "json"]).expect(0).json();
        let counted = rows.iter().filter(|row| row["syscall"] == "getppid");
        let counted: Vec<_> = counted.map(|row| (row["calls"].as_u64(), row["ledger_calls"].as_u64())).collect();
        assert_eq!(counted, [(Some(10007), Some(10007)); 7]);
    }
}

/// More kinds of calls than a CPU has entries for, by two users, before and after an exec: each is counted for whom it was.
#[test]
fn many_kinds_of_calls_that_are_only_counted() {
    let Some(lab) = Lab::with_bpf() else { return };
    // some succeed, the others fail, with EBADF and with EINVAL
    const NUMBERS: [i64; 30] = [
        8, 24, 48, 50, 73, 74, 75, 77, 95, 102, 104, 107, 108, 110, 111, 121, 124, 140, 145, 146, 147, 186, 203, 204,
        225, 226, 251, 252, 255, 277,
    ];
    let script = format!(
        "import ctypes, os, sys\n\
         call = ctypes.CDLL(None).syscall\n\
         def all(rounds):\n    for i in range(rounds):\n        for nr in {NUMBERS:?}: call(nr, -1, 0, 0)\n\
         if len(sys.argv) > 1: all(59)\n\
         else:\n    all(257)\n    os.setresuid(65534, 65534, 65534)\n    all(101)\n\
         \x20   os.execv('/usr/bin/python3', ['python3', 'calls.py', 'again'])\n"
    );
    std::fs::write(lab.path("calls.py"), script).expect("write");
    // whom nothing is hidden from by the directory's rights
    std::fs::set_permissions(lab.path("."), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("chmod");
    for options in WAYS {
        lab.record("t.tape", &[&["--duration", "1000"], options].concat(), &["python3", "calls.py"]).expect(0);
        let counts = |user: &str| {
            let rows = lab.analyze(&["t.tape", "-s", "-u", user, "--summary-mode", "total", "--format", "json"]);
            let rows = rows.expect(0).json();
            let count = |row: &serde_json::Value| Some((row["syscall"].as_str()?.to_owned(), row["calls"].as_u64()?));
            rows.iter().filter_map(count).collect::<std::collections::BTreeMap<_, _>>()
        };
        let (root, nobody) = (counts("0"), counts("65534"));
        for name in ["getpriority", "getsid", "timer_delete", "inotify_rm_watch", "shutdown", "sched_yield", "umask"] {
            assert_eq!((root.get(name), nobody.get(name)), (Some(&257), Some(&160)), "{options:?} {name}: {root:?}");
        }
        assert!(root.values().filter(|count| **count >= 257).count() >= NUMBERS.len(), "{root:?}");
        assert!(nobody.values().filter(|count| **count >= 160).count() >= NUMBERS.len(), "{nobody:?}");
    }
}

#[test]
fn a_call_that_is_still_in_progress() {
    let Some(lab) = Lab::beside() else { return };
    for options in WAYS {
        // the first sleep has whatever entry there is
        lab.record("t.tape", options, &["sh", "-c", "sleep 9.5 & sleep 9.25 & sleep 0.5"]).expect(0);
        let calls = lab.calls("t.tape", &["-e", "clock_nanosleep"]);
        let (open, ended): (Vec<&Call>, Vec<&Call>) = calls.iter().partition(|c| c.incomplete() == Some("in-flight"));
        assert_eq!((open.len(), ended.len()), (2, 1), "{calls:?}");
        assert_eq!((ended[0].ret(), ended[0].incomplete()), (Some(0), None));
    }
}

/// The thread takes over its leader's ids; what it owned by its own is nobody's then.
#[test]
fn a_thread_becomes_another_program() {
    let Some(lab) = Lab::beside() else { return };
    let script = "import os, threading, time\n\
        def other():\n    for i in range(101): os.getppid()\n    os.execv('/bin/echo', ['echo', 'there'])\n\
        thread = threading.Thread(target=other)\nthread.start()\ntime.sleep(9)\n";
    for options in WAYS {
        lab.record("t.tape", options, &["python3", "-c", script]).expect(0);
        lab.assert_whole("t.tape");
        let calls = lab.calls("t.tape", &[]);
        let asked: Vec<&Call> = calls.iter().filter(|c| c.name() == "getppid" && c.tid() != c.pid()).collect();
        assert_eq!(asked.len(), 101);
        let pid = asked[0].pid();
        let exec = calls.iter().find(|c| c.name() == "execve" && c.ts() > asked[100].ts()).expect("execve");
        assert_eq!(exec.ret(), Some(0), "{exec:?}");
        let after: Vec<&Call> = calls.iter().filter(|c| c.comm() == "echo" && c.ts() > exec.ts()).collect();
        assert!(after.iter().all(|c| (c.pid(), c.tid()) == (pid, pid)), "{after:?}");
        let written: Vec<i64> = after.iter().filter(|c| c.name() == "write").filter_map(|c| c.ret()).collect();
        assert_eq!(written, [6], "{after:?}");
        assert_eq!(after.iter().filter(|c| c.name() == "exit_group").count(), 1);
    }
}

/// A program that the verifier refuses because of a load it does not know falls back on what old kernels need, and works.
#[test]
fn what_newer_kernels_can_is_used() {
    let Some(lab) = Lab::with_bpf() else { return };
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("osrelease");
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    let new = (numbers.next(), numbers.next()) >= (Some(5), Some(12));
    for options in [&[][..], &["-F", "99", "--call-graph", "dwarf"], &["-a", "-G", "/"], &["--duration", "1"]] {
        lab.record("t.tape", options, &["true"]).expect(0);
        let notes = lab.info("t.tape")["notes"].to_string();
        assert_eq!(notes.contains("keep nothing with a task"), !new, "{options:?}: {notes}");
    }
}
