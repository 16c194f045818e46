//! Simple calls take a short way through the kernel side: by an entry that a task owns, or the long way when another task
//! has it; and to user space by the CPU's buffer, or by its ring when that is full. All must tell the same.

use systape_e2e::more::FREESTANDING;
use systape_e2e::{Call, Lab};

/// As many entries as there are; one, which one task has and the others want; buffers that are mostly full.
const WAYS: [&[&str]; 3] = [&[], &["--force", "plain-calls=1"], &["--force", "cpu-buffer=2"]];

#[test]
fn every_call_of_many_tasks() {
    let Some(lab) = Lab::with_bpf() else { return };
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
    let Some(lab) = Lab::with_bpf() else { return };
    let flood = lab.cc("flood", &FREESTANDING);
    for options in WAYS {
        lab.record("t.tape", &[&["--duration", "1000"], options].concat(), &[&flood, "7", "10007"]).expect(0);
        let rows = lab.analyze(&["t.tape", "-s", "--summary-mode", "process", "--format", "json"]).expect(0).json();
        let counted = rows.iter().filter(|row| row["syscall"] == "getppid");
        let counted: Vec<_> = counted.map(|row| (row["calls"].as_u64(), row["ledger_calls"].as_u64())).collect();
        assert_eq!(counted, [(Some(10007), Some(10007)); 7]);
    }
}

#[test]
fn a_call_that_is_still_in_progress() {
    let Some(lab) = Lab::with_bpf() else { return };
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
    let Some(lab) = Lab::with_bpf() else { return };
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
