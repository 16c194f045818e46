//! Threads that the freezer of a control group holds: their state, from when to when, and who thawed them.

use std::fs;

use serde_json::Value;
use systape_e2e::Lab;
use systape_e2e::more::Cgroup;

/// Time in a state of the threads of a name, ns.
fn time(rows: &[Value], comm: &str, state: &str) -> u64 {
    let mine = rows.iter().filter(|row| row["comm"] == comm && row["state"] == state);
    mine.map(|row| row["time_ns"].as_u64().expect("known")).sum()
}

/// Three programs come into a group: one computes, one is asleep, one is stopped. The group is frozen, and 0.3 s after the kernel
/// has said that it is (`frozen 1`) thawed.
#[test]
fn frozen_is_neither_asleep_nor_stopped() {
    let Some(lab) = Lab::beside() else { return };
    let Some(group) = Cgroup::new("systape-e2e-freezer") else { return eprintln!("there is no cgroup2 here") };
    for (name, of) in [("busy", "/bin/sh"), ("asleep", "/bin/sleep"), ("stopped", "/bin/sleep")] {
        fs::copy(of, lab.dir().join(name)).expect("a program");
    }
    let dir = group.dir();
    let script = format!(
        "echo $$; ./busy -c 'while :; do :; done' & a=$!; ./asleep 100 & b=$!; ./stopped 100 & c=$!
         until grep -q busy /proc/$a/comm && grep -q asleep /proc/$b/comm && grep -q stopped /proc/$c/comm; do sleep 0.01; done
         for p in $a $b $c; do echo $p >{dir}/cgroup.procs; done
         kill -STOP $c; until grep -q '^State:.T' /proc/$c/status; do sleep 0.01; done
         echo 1 >{dir}/cgroup.freeze; until grep -q 'frozen 1' {dir}/cgroup.events; do sleep 0.01; done
         sleep 0.3; echo 0 >{dir}/cgroup.freeze
         until grep -q 'frozen 0' {dir}/cgroup.events; do sleep 0.01; done; kill -KILL $a $b $c; wait"
    );
    for scope in [&["-a"][..], &[]] {
        let shell = lab.record("t.tape", scope, &["sh", "-c", &script]).expect(0).text();
        let rows = lab.analyze(&["states", "t.tape", "--by", "comm,state", "--format", "json"]).expect(0).json();
        // of others here it may not be known what they write to
        let file = format!("{dir}/cgroup.freeze");
        let whole = lab.calls("t.tape", &["-e", "write", "-P", &file, "-p", shell.trim()]);
        let [freezes, thaws] = &whole[..] else { panic!("{} writes", whole.len()) };
        // nobody is frozen before it was asked for, or after the thaw (but for the wait for a CPU)
        let most = (thaws.ts() + thaws.dur().expect("ended") - freezes.ts()).cast_unsigned();
        for comm in ["busy", "asleep"] {
            let frozen = time(&rows, comm, "F");
            assert!((300_000_000..=most).contains(&frozen), "{comm}: {frozen} of {most} ns: {rows:#?}");
        }
        assert_eq!(
            (time(&rows, "stopped", "F"), time(&rows, "busy", "S"), time(&rows, "busy", "D")),
            (0, 0, 0),
            "{rows:#?}"
        );
        assert!(time(&rows, "stopped", "T") >= 300_000_000, "{rows:#?}");
        let why = lab.analyze(&["why", "t.tape", "--comm=busy"]).expect(0).text();
        assert!(why.contains("was frozen with its control group once") && why.contains("thawed by sh"), "{why}");
    }
}

/// Frozen since before the recording, and thawed in it.
#[test]
fn frozen_since_before_the_start() {
    let Some(lab) = Lab::beside() else { return };
    let Some(group) = Cgroup::new("systape-e2e-frozen") else { return eprintln!("there is no cgroup2 here") };
    let dir = group.dir();
    let mut busy = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("a shell");
    let (pid, events) = (busy.id().to_string(), format!("{dir}/cgroup.events"));
    fs::write(format!("{dir}/cgroup.procs"), &pid).expect("joins");
    fs::write(format!("{dir}/cgroup.freeze"), "1").expect("freezes");
    while !fs::read_to_string(&events).expect("events").contains("frozen 1") {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let script = format!("sleep 0.2; echo 0 >{dir}/cgroup.freeze; sleep 0.1");
    lab.record("t.tape", &["-a"], &["sh", "-c", &script]).expect(0);
    busy.kill().expect("killed");
    busy.wait().expect("ended");
    let rows =
        lab.analyze(&["states", "t.tape", "--by", "comm,state", "-p", &pid, "--format", "json"]).expect(0).json();
    assert!(time(&rows, "sh", "F") >= 200_000_000, "{rows:#?}");
    assert!(time(&rows, "sh", "RUN") > 0 && time(&rows, "sh", "S") == 0, "{rows:#?}");
}
