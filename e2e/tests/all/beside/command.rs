//! A command under `record` runs as it would without: same signal dispositions, limits, descriptors, environment,
//! priority and process group, whatever `record` needed for itself.

use systape_e2e::Lab;
use systape_e2e::lab::{binary, run};

/// What a process inherits, as text.
const REPORT: &str = r"
grep -E '^(Sig(Blk|Ign)|ShdPnd|Uid|Gid|Groups|NoNewPrivs|Seccomp|Cpus_allowed|Cap)' /proc/self/status
cut -d' ' -f5-8,18,19,40,41 /proc/self/stat
cat /proc/self/limits /proc/self/oom_score_adj /proc/self/cgroup /proc/self/timerslack_ns
ls /proc/self/fd
pwd; umask; env | grep -v '^_=' | sort
";

#[test]
fn it_inherits_what_it_would() {
    let Some(lab) = Lab::beside() else { return };
    let record = binary("record");
    let record = record.to_str().expect("UTF-8");
    // the shell that stands for the user's; what it ignores or limits stays so
    for before in [
        "true",
        "trap '' HUP USR1 PIPE INT TERM",
        "ulimit -n 256; ulimit -c 0",
        "ulimit -l 64",
        "umask 077",
        "exec 7</dev/null",
    ] {
        let inside = |wrapper: &str| {
            let script = format!("{before}; {wrapper} sh -c \"$REPORT\"");
            let mut shell = lab.command("sh");
            shell.args(["-c", &script]).env_clear().envs([("REPORT", REPORT), ("PATH", "/usr/bin:/bin"), ("A", "b c")]);
            run(shell).expect(0).text()
        };
        let (bare, recorded) = (inside("env"), inside(&format!("{record} -o t.tape --")));
        assert!(bare.contains("SigIgn") && bare.lines().count() > 40, "{bare}");
        let differences: Vec<_> = bare.lines().zip(recorded.lines()).filter(|(a, b)| a != b).collect();
        assert!(differences.is_empty(), "after '{before}', without record and with it: {differences:?}");
        assert_eq!(recorded.lines().count(), bare.lines().count(), "{recorded}");
        lab.assert_whole("t.tape");
    }
}

#[test]
fn it_has_its_standard_input() {
    let Some(lab) = Lab::beside() else { return };
    let record =
        lab::in_shell(&lab, "echo 23 | RECORD -o t.tape -- cat; echo 17 | RECORD -o u.tape -- sh -c 'read n; exit $n'");
    assert_eq!((record.code(), record.text().as_str()), (17, "23\n"), "{}", record.stderr);
    // a pipe that closes ends the command, not the recording
    let head = lab::in_shell(&lab, "RECORD -o v.tape -- yes | head -n 2");
    assert_eq!(head.text(), "y\ny\n");
    lab.assert_whole("v.tape");
    assert_eq!(lab.info("v.tape")["command_exit"], 128 + 13);
}

/// Runs scripts that mention RECORD.
mod lab {
    use systape_e2e::lab::{binary, run};
    use systape_e2e::{Lab, Run};

    pub(super) fn in_shell(lab: &Lab, script: &str) -> Run {
        let record = binary("record");
        run(lab.command("sh").args(["-c", &script.replace("RECORD", record.to_str().expect("UTF-8"))]))
    }
}

/// Calls are not needed to know where the command begins.
#[test]
fn it_is_recorded_without_its_calls_too() {
    let Some(lab) = Lab::beside() else { return };
    for families in ["process", "sched"] {
        let script = "sleep 0.01; exec true";
        lab.record("t.tape", &["--families", families], &["sh", "-c", script]).expect(0);
        let execs = lab.analyze(&["exec", "t.tape", "--format", "json"]).expect(0).json();
        let names: Vec<&str> = execs.iter().filter_map(|exec| exec["comm"].as_str()).collect();
        assert!(["sh", "sleep", "true"].iter().all(|name| names.contains(name)), "{families}: {execs:?}");
        if families == "sched" {
            let runs = lab.analyze(&["sched", "t.tape", "--format", "json"]).expect(0).json();
            assert!(runs.iter().any(|run| run["comm"] == "sleep"), "{runs:?}");
        }
        lab.assert_whole("t.tape");
    }
}
