//! Sums stay exact whatever could not be stored, or was not asked to be: the truth is what programs do by their own
//! account, and for durations bpftrace. Rings of 64 KiB lose calls by the hundred thousand here.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use serde_json::Value;
use systape_e2e::disk::{has, skipped};
use systape_e2e::more::{FREESTANDING, lost_calls, mono, monotonic};
use systape_e2e::{Background, Lab, strace};

/// Children of `crowd`.
const CROWD: i64 = 1000;

/// calls and errors by (pid, syscall) of a summary by process; no line may be at least.
fn by_process(lab: &Lab, tape: &str) -> HashMap<(i64, String), (u64, u64)> {
    let rows = lab.analyze(&[tape, "--summary", "--summary-mode", "process", "--format", "json"]).expect(0).json();
    rows.iter()
        .map(|row| {
            assert_eq!(row["calls_at_least"], false, "{row}");
            let number = |key: &str| row[key].as_u64().unwrap_or_else(|| panic!("{key}: {row}"));
            let key = (row["pid"].as_i64().expect("pid"), row["syscall"].as_str().expect("syscall").to_owned());
            (key, (number("calls"), number("errors")))
        })
        .collect()
}

/// What child `i` of `crowd` calls: (syscall, calls, errors).
fn child(i: i64) -> Vec<(&'static str, i64, i64)> {
    let end = if i % 3 == 0 { vec![("getpid", 1, 0), ("kill", 1, 0)] } else { vec![("exit_group", 1, 0)] };
    let mut calls = vec![("execve", 1, 0), ("getppid", i % 17 + 1, 0), ("close", i % 5, i % 5)];
    calls.extend(end);
    calls.retain(|(_, calls, _)| *calls > 0);
    calls
}

#[test]
fn every_process_is_summed_exactly_although_calls_are_lost() {
    let Some(lab) = Lab::with_bpf() else { return };
    let crowd = lab.cc("crowd", &FREESTANDING);
    let dd = |count: u64| format!("dd if=/dev/zero of=/dev/null bs=1 count={count} status=none");
    // two primes; a thousand processes beside them, and all is over when they are
    let counts = [400_009, 300_007];
    let script = format!("{} & {} & {crowd} {CROWD} >pids; wait", dd(counts[0]), dd(counts[1]));
    lab.record("t.tape", &["-m", "64k"], &["sh", "-c", &script]).expect(0);
    let info = lab.info("t.tape");
    assert!(info["ledger"]["calls"].as_u64().expect("calls") > 100_000, "nothing to test: {info}");

    let sums = by_process(&lab, "t.tape");
    let pids: Vec<i64> = fs::read(lab.path("pids"))
        .expect("pids")
        .chunks_exact(4)
        .map(|word| i32::from_ne_bytes(word.try_into().expect("4 bytes")).into())
        .collect();
    assert_eq!(pids.len() as i64, CROWD);
    let mut wrong = Vec::new();
    for (i, pid) in (0..).zip(&pids) {
        let calls = child(i);
        for (name, calls, errors) in &calls {
            let seen = sums.get(&(*pid, (*name).to_owned()));
            if seen != Some(&(*calls as u64, *errors as u64)) {
                wrong.push(format!("child {i}, {name}: {calls} calls, {errors} errors; the tape has {seen:?}"));
            }
        }
        let other = sums.keys().filter(|(p, name)| p == pid && !calls.iter().any(|(known, ..)| known == name));
        wrong.extend(other.map(|key| format!("child {i} never called {key:?}")));
    }
    assert_eq!(wrong, [""; 0]);
    let parent: Vec<i64> = sums.iter().filter(|((_, name), _)| name == "fork").map(|((pid, _), _)| *pid).collect();
    let [parent] = parent[..] else { panic!("who forks? {parent:?}") };
    for (name, calls) in [("execve", 1), ("fork", CROWD), ("wait4", CROWD), ("write", 1), ("exit_group", 1)] {
        assert_eq!(sums.get(&(parent, name.to_owned())), Some(&(calls as u64, 0)), "{name} of crowd");
    }

    // dd: what strace counts of a short one, and the difference
    let few = strace::count(&lab, &["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=1009", "status=none"]);
    for count in counts {
        let reads = few["read"].0 + count - 1009;
        let of = sums.iter().find(|((_, name), (calls, _))| name == "read" && *calls == reads);
        let Some(((pid, _), _)) = of else { panic!("no process has {reads} reads") };
        // the shell's child opens, duplicates and closes before it becomes dd
        for name in ["execve", "read", "write", "mmap", "munmap", "lseek", "brk", "exit_group"] {
            let (calls, errors) = if name == "exit_group" { (1, 0) } else { few[name] };
            let more = if ["read", "write"].contains(&name) { count - 1009 } else { 0 };
            assert_eq!(sums.get(&(*pid, name.to_owned())), Some(&(calls + more, errors)), "{name} of dd {count}");
        }
    }

    // processes and signals have a ring of their own: every one is there
    let execs = lab.analyze(&["exec", "t.tape", "--format", "json"]).expect(0).json();
    let of_children = execs.iter().filter(|e| pids.contains(&e["pid"].as_i64().unwrap_or(0))).count();
    assert_eq!(of_children as i64, CROWD, "{} execs", execs.len());
    let kills = lab.analyze(&["kills", "t.tape", "--format", "json"]).expect(0).json();
    let killed = |i: &usize| kills.iter().any(|k| k["target"]["pid"] == pids[*i] && k["signal_name"] == "SIGUSR1");
    let missing: Vec<usize> = (0..CROWD as usize).step_by(3).filter(|i| !killed(i)).collect();
    assert_eq!(missing, [0; 0]);
}

#[test]
fn a_greedy_process_does_not_blind_a_polite_one() {
    let Some(lab) = Lab::with_bpf() else { return };
    let flood = lab.cc("flood", &FREESTANDING);
    // both on one CPU, so in one ring; 300 calls nobody else makes, 100 a second, once python is done with its own start,
    // which is a burst too
    let polite = "import os, time\ntime.sleep(0.1)\nfor i in range(300):\n    try:\n        os.getpgid(4000000 + i)\n    except OSError:\n        pass\n    time.sleep(0.01)\n";
    fs::write(lab.path("polite.py"), polite).expect("script");
    let both = format!("taskset -c 0 {flood} 1 4000037 & taskset -c 0 python3 polite.py; kill $! 2>/dev/null; wait");
    lab.record("t.tape", &["-m", "64k"], &["sh", "-c", &both]).expect(0);
    let info = lab.info("t.tape");
    assert!(info["ledger"]["calls"].as_u64().expect("calls") > 100_000, "nothing to test: {info}");
    assert!(info["gaps"].to_string().contains("over-share"), "{info}");
    let lines = lab.analyze(&["t.tape", "-e", "getpgid", "--format", "json"]).expect(0).json();
    let asked: Vec<i64> = lines
        .iter()
        .filter(|line| line.get("lost").is_none())
        .map(|line| line["args"]["pid"].as_i64().expect("pid"))
        .collect();
    let missing: Vec<i64> = (4_000_000..4_000_300).filter(|id| !asked.contains(id)).collect();
    assert_eq!((missing, asked.len()), (Vec::new(), 300));
    let rows = lab.analyze(&["t.tape", "-s", "--summary-mode", "process", "-e", "getpgid", "--format", "json"]);
    for row in rows.expect(0).json() {
        assert_eq!(
            (&row["calls"], &row["ledger_calls"], &row["calls_at_least"]),
            (&300.into(), &0.into(), &false.into()),
            "{row}"
        );
    }
}

/// A call bpftrace saw: thread, start, duration, and whether a recorder made it or a process of one.
#[derive(Debug)]
struct Long {
    tid: i64,
    start: i64,
    dur: i64,
    by_tracer: bool,
}

/// Whether its thread lost the CPU near the call while it could run: between two tracers, the call is longer for one of them.
fn was_preempted(lab: &Lab, call: &Long) -> bool {
    const NEAR: i64 = 5_000_000;
    let window = format!("{},{}", mono(call.start - NEAR), mono(call.start + call.dur + NEAR));
    let tid = call.tid.to_string();
    let runs = lab.analyze(&["sched", "t.tape", "-t", &tid, "--time", &window, "--format", "json"]).json();
    runs.iter().any(|run| run["state"] == "R")
}

/// Whether a call of its thread that is stored began when it did or while it lasted. A CPU that the host takes away between two tracers makes
/// the call longer for one of them, and no event tells that.
fn is_stored(lab: &Lab, call: &Long) -> bool {
    let window = format!("{},{}", mono(call.start - 100_000), mono(call.start + call.dur - 1_000_000));
    let of_thread = lab.analyze(&["t.tape", "-t", &call.tid.to_string(), "--time", &window, "--format", "json"]).json();
    of_thread
        .iter()
        .any(|line| line["incomplete"].is_null() && line["dur_ns"].as_i64().is_some_and(|dur| dur > 10_000_000))
}

#[test]
fn only_long_calls_are_stored_and_all_of_them() {
    let Some(lab) = Lab::with_bpf() else { return };
    if !has("bpftrace") {
        return skipped("bpftrace is missing");
    }
    let script = "BEGIN { printf(\"ready\\n\"); }
        tracepoint:raw_syscalls:sys_enter { @at[tid] = nsecs; @nr[tid] = args->id; }
        tracepoint:raw_syscalls:sys_exit /@at[tid]/ {
            $dur = nsecs - @at[tid];
            $task = (struct task_struct *)curtask;
            if ($dur > 9000000) {
                printf(\"%d %d %llu %llu %d %d\\n\", tid, @nr[tid], @at[tid], $dur, pid, $task->real_parent->tgid);
            }
            delete(@at[tid]); delete(@nr[tid]);
        }";
    fs::write(lab.path("script.bt"), script).expect("script");
    // sleeps around the threshold, beside the torture
    let sleeps = "import time\nfor i in range(200):\n    time.sleep(0.0085 + i % 40 * 0.0001)\n";
    fs::write(lab.path("sleeps.py"), sleeps).expect("script");

    let bpftrace = Background::start(lab.command("sh").args(["-c", "exec bpftrace -B line script.bt >bpftrace.out"]));
    lab.until("bpftrace", || fs::read_to_string(lab.path("bpftrace.out")).is_ok_and(|t| t.contains("ready\n")));
    let record = lab.attach("t.tape", &["--duration", "10", "-a"]);
    let from = monotonic();
    let torture = ["if=/dev/zero", "of=/dev/null", "bs=1", "count=1000003", "status=none"];
    let dd = Background::start(lab.command("dd").args(torture));
    systape_e2e::lab::run(lab.command("python3").arg("sleeps.py")).expect(0);
    let dd_pid = i64::from(dd.pid());
    dd.wait().expect(0);
    let to = monotonic();
    // no recorder records itself, nor the processes that work for it; some of them have ended by now
    let tracers = [i64::from(record.pid()), i64::from(bpftrace.pid())];
    record.stop(libc::SIGINT).expect(0);
    std::thread::sleep(Duration::from_millis(200));
    let text = fs::read_to_string(lab.path("bpftrace.out")).expect("out");
    drop(bpftrace);

    let info = lab.info("t.tape");
    assert_eq!(lost_calls(&info), 0, "{info}");
    assert_eq!(info["ledger"]["calls"], info["ledger"]["filtered_calls"], "{info}");
    let lines = lab.analyze(&["t.tape", "--format", "json"]).expect(0).json();
    let stored: Vec<&Value> = lines.iter().filter(|l| l.get("lost").is_none() && l["incomplete"].is_null()).collect();
    for line in &stored {
        assert!(line["dur_ns"].as_i64().expect("dur") > 10_000_000, "{line}");
    }
    let seen: Vec<Long> = text
        .lines()
        .filter_map(|line| {
            let words: Vec<i64> = line.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
            let &[tid, _, start, dur, pid, parent] = &words[..] else { return None };
            Some(Long { tid, start, dur, by_tracer: tracers.contains(&pid) || tracers.contains(&parent) })
        })
        .filter(|call| call.start > from && call.start + call.dur < to)
        .collect();
    let sure: Vec<&Long> = seen.iter().filter(|call| call.dur >= 10_100_000 && !call.by_tracer).collect();
    assert!(sure.len() >= 100, "bpftrace saw {} long calls: nothing to test", sure.len());
    let mut missing = Vec::new();
    for call in &sure {
        // the tape's clock is the same; each has its own cost in between, and may lose the CPU there
        let near = (call.dur / 10).max(1_000_000);
        let is = |l: &&&Value| l["tid"] == call.tid && (l["dur_ns"].as_i64().unwrap_or(0) - call.dur).abs() < near;
        if !stored.iter().any(|line| is(&line)) && !was_preempted(&lab, call) && !is_stored(&lab, call) {
            let of_it: Vec<&&Value> = stored.iter().filter(|line| line["tid"] == call.tid).collect();
            missing.push((call, of_it));
        }
    }
    assert!(missing.is_empty(), "{} of {}: {missing:#?}", missing.len(), sure.len());
    // the sum of everything is dd's own account
    let sums = by_process(&lab, "t.tape");
    let few = strace::count(&lab, &["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=1009", "status=none"]);
    for name in ["read", "write"] {
        let expected = few[name].0 + 1_000_003 - 1009;
        assert_eq!(sums.get(&(dd_pid, name.to_owned())).map(|s| s.0), Some(expected), "{name}");
    }
    let bytes = fs::metadata(lab.path("t.tape")).expect("tape").len();
    assert!(bytes < 1 << 20, "{bytes} bytes");
}

#[test]
fn calls_that_are_counted_move_descriptors_all_the_same() {
    let Some(lab) = Lab::with_bpf() else { return };
    // a FIFO is opened, moved twice and closed in between, all at once; only the reads from it wait
    let script = "import os, threading, time
def write():
    with open('fifo', 'w') as fifo:
        for i in range(7):
            time.sleep(0.03)
            print(i, file=fifo, flush=True)
os.mkfifo('fifo')
threading.Thread(target=write).start()
first = os.open('fifo', os.O_RDONLY)
second = os.dup(first)
os.close(first)
for i in range(50):
    os.close(os.open('/etc/passwd', os.O_RDONLY))
while os.read(second, 100):
    pass
";
    fs::write(lab.path("moves.py"), script).expect("script");
    lab.record("t.tape", &["--families", "syscall", "--duration", "10"], &["python3", "moves.py"]).expect(0);
    assert_eq!(lost_calls(&lab.info("t.tape")), 0);
    let calls = lab.analyze(&["t.tape", "--format", "json"]).expect(0).json();
    let reads: Vec<&Value> = calls.iter().filter(|call| call["syscall"] == "read" && call["ret"] == 2).collect();
    assert_eq!(reads.len(), 7, "{calls:?}");
    for read in reads {
        assert_eq!(read["args"]["fd"]["path"].as_str(), lab.path("fifo").to_str(), "{read}");
    }
    // nothing that was not asked for takes room
    assert!(calls.iter().all(|call| call["dur_ns"].as_i64() > Some(10_000_000)), "{calls:?}");
    assert_eq!(lab.info("t.tape")["events"]["syscall"].as_u64(), Some(calls.len() as u64));
}
