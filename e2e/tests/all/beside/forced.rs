//! Every way to lose something, forced: what it touches says "at least" or unknown, and nothing else does. The rooms that
//! are made small here (`record --force`) are large enough in practice.

use serde_json::Value;
use systape_e2e::more::{FREESTANDING, count};
use systape_e2e::{Call, Lab};

const CROWD: i64 = 300;
const FILES: i64 = 97;

/// Events of a family that found no room, as totals only or not.
fn lost(info: &Value, family: &str) -> u64 {
    let gaps = info["gaps"].as_array().expect("gaps").iter();
    gaps.filter(|gap| gap["family"] == family && gap["cause"] == "ring-full")
        .filter_map(|gap| gap["count"].as_u64())
        .sum()
}

/// Whether every line of a summary says it is complete.
fn summary_is_complete(lab: &Lab) -> bool {
    let rows = lab.analyze(&["t.tape", "-s", "--summary-mode", "total", "--format", "json"]).expect(0).json();
    assert!(!rows.is_empty());
    rows.iter().all(|row| row["calls_at_least"] == false)
}

#[test]
fn lost_changes_of_descriptors_make_paths_unknown() {
    let Some(lab) = Lab::beside() else { return };
    let target = lab.cc("target", &[]);
    let churn = "import os\nfor i in range(60000):\n    os.close(os.open('/dev/null', 0))\n";
    std::fs::write(lab.path("churn.py"), churn).expect("script");
    let script = format!("python3 churn.py & {target} polite {FILES}; {target} polite {FILES}; wait");
    lab.record("t.tape", &["--force", "state-ring=4k"], &["sh", "-c", &script]).expect(0);
    let info = lab.info("t.tape");
    assert!(lost(&info, "state") > 1000, "nothing to test: {info}");

    // whatever is said of a descriptor is right
    let calls: Vec<Call> = {
        let lines = lab.analyze(&["t.tape", "--format", "json", "--comm=target"]).expect(0).json();
        lines.into_iter().filter(|line| line.get("lost").is_none()).map(Call).collect()
    };
    let (mut known, mut unknown) = (0, 0);
    for call in calls.iter().filter(|c| c.name() == "lseek" && c.arg("whence")["text"] == "SEEK_SET") {
        match call.fd_path("fd") {
            Some(path) => {
                assert_eq!(path, lab.file(&format!("made-by-polite/file-{}", call.num("offset"))), "{call:?}");
                known += 1;
            }
            None => unknown += 1,
        }
    }
    assert!(unknown > 0, "{known} known: nothing was lost of it");
    // the calls themselves are counted: 2 x 97 files and python's 60,000 among them
    assert!(summary_is_complete(&lab));
    let rows = lab.analyze(&["t.tape", "-s", "--summary-mode", "process", "--format", "json"]).expect(0).json();
    let closes = |row: &&Value| row["comm"] == "python3" && row["syscall"] == "close";
    let closed: u64 = rows.iter().filter(closes).map(|row| row["calls"].as_u64().expect("calls")).sum();
    assert!((60_000..61_000).contains(&closed), "{closed}");
    lab.analyze(&["t.tape", "-s", "--summary-mode", "total", "--fail-on-loss"]).expect(0);
    // of each thread it is not known how many are its own; the listing lacks them
    lab.analyze(&["t.tape", "-s", "--fail-on-loss"]).expect(3);
    lab.analyze(&["t.tape", "--fail-on-loss"]).expect(3);
}

#[test]
fn a_full_process_ring_makes_exec_and_kills_at_least() {
    let Some(lab) = Lab::beside() else { return };
    let (crowd, flood) = (lab.cc("crowd", &FREESTANDING), lab.cc("flood", &FREESTANDING));
    let script = format!("{flood} 2 400009 & {crowd} {CROWD} >/dev/null & {crowd} {CROWD} >/dev/null; wait");
    lab.record("t.tape", &["-m", "1", "--force", "process-ring=4k"], &["sh", "-c", &script]).expect(0);
    let info = lab.info("t.tape");
    assert!(lost(&info, "process") + lost(&info, "signal") > 0, "nothing to test: {info}");
    for report in ["exec", "kills"] {
        let text = lab.analyze(&[report, "t.tape"]).expect(0);
        let all = text.text() + &text.stderr;
        assert!(all.contains("LOST ") || all.contains("at least"), "{report}: {all}");
        lab.analyze(&[report, "t.tape", "--fail-on-loss"]).expect(3);
    }
    // calls have nothing to do with it
    assert!(summary_is_complete(&lab));
}

#[test]
fn tasks_without_room_for_their_state_make_totals_at_least() {
    let Some(lab) = Lab::beside() else { return };
    let flood = lab.cc("flood", &FREESTANDING);
    lab.record("t.tape", &["--force", "task-states=4"], &[&flood, "9", "20011"]).expect(0);
    let info = lab.info("t.tape");
    let gaps = info["gaps"].as_array().expect("gaps");
    assert!(gaps.iter().any(|gap| gap["cause"] == "state-failed"), "nothing to test: {info}");
    assert_eq!(info["complete"], false, "{info}");
    assert!(!summary_is_complete(&lab));
    let text = lab.analyze(&["t.tape", "-s"]).expect(0).text();
    assert!(text.contains("at least") && text.contains("no room for the state of a task"), "{text}");
    lab.analyze(&["t.tape", "-s", "--fail-on-loss"]).expect(3);
    // what there was room for is right
    let lines = lab.analyze(&["t.tape", "-e", "getppid", "--format", "json"]).expect(0).json();
    let calls: Vec<Call> = lines.into_iter().filter(|line| line.get("lost").is_none()).map(Call).collect();
    let pids: std::collections::BTreeSet<i64> = calls.iter().map(Call::pid).collect();
    assert!(pids.len() < 9, "{pids:?}");
    assert!(count(&calls, "getppid") <= 9 * 20011);
}

/// Calls that were lost because their task has no state.
fn without_state(info: &Value) -> u64 {
    let gaps = info["gaps"].as_array().expect("gaps").iter();
    gaps.filter(|gap| gap["cause"] == "state-failed" && gap["family"] == "syscall")
        .filter_map(|gap| gap["count"].as_u64())
        .sum()
}

#[test]
fn each_call_of_a_task_without_state_is_counted() {
    let Some(lab) = Lab::beside() else { return };
    let flood = lab.cc("flood", &FREESTANDING);
    let (children, calls) = (5, 2003);
    let command = [flood.as_str(), "5", "2003"];
    // all of the program's calls, see flood.c: execve, forks, wait4s, exits and getppids
    for (options, all) in [(&[][..], 2 + 3 * children + children * calls), (&["-e", "getppid"], children * calls)] {
        lab.record("t.tape", &[options, &["--force", "no-task-states"]].concat(), &command).expect(0);
        let info = lab.info("t.tape");
        assert_eq!((without_state(&info), info["events"]["syscall"].as_u64().unwrap_or(0)), (all, 0), "{info}");
        assert_eq!(info["complete"], false);
        // what other families record of the program needs no state
        let processes = lab.analyze(&["exec", "--tree", "t.tape", "--format", "json"]).expect(0).json();
        let floods = processes.iter().filter(|row| row["comm"] == "flood" && row["exit_code"] == 0).count();
        assert_eq!(floods as u64, 1 + children, "{processes:?}");
        let switches = lab.analyze(&["sched", "t.tape", "--format", "json"]).expect(0).json();
        assert!(switches.iter().any(|row| row["comm"] == "flood"), "{switches:?}");
    }
    // where tasks are not marked but asked at each call
    std::fs::copy(&flood, lab.path("lacks-state")).expect("copy");
    let options = ["-a", "--comm", "lacks-state", "-e", "getppid", "--force", "no-task-states"];
    lab.record("t.tape", &options, &["./lacks-state", "5", "2003"]).expect(0);
    assert_eq!(without_state(&lab.info("t.tape")), children * calls);
    // some have a state: what is stored and what is lost are all. So many calls that the children run beside each other
    let (many, room) = (200_003, ["-e", "getppid", "--force", "task-states=3"]);
    lab.record("t.tape", &room, &[&flood, "5", &many.to_string()]).expect(0);
    let rows = lab.analyze(&["t.tape", "-s", "--summary-mode", "total", "--format", "json"]).expect(0).json();
    let known: u64 = rows.iter().filter_map(|row| row["calls"].as_u64()).sum();
    let lost = without_state(&lab.info("t.tape"));
    assert!(known > 0 && lost > 0, "{known} {lost}");
    assert_eq!(known + lost, children * many);
}

/// The programs of calls do nothing at every seventh run, as if the kernel had skipped them: their seconds do it, and nothing twice.
#[test]
fn a_second_program_does_what_the_first_was_skipped_for() {
    let Some(lab) = Lab::beside() else { return };
    let flood = lab.cc("flood", &FREESTANDING);
    let target = lab.cc("target", &[]);
    let script = format!("{flood} 3 20011; {target} polite {FILES}");
    // the shell asks once
    let asked = 3 * 20011 + 1;
    for options in [&[][..], &["--duration", "1"], &["--force", "cpu-buffer=1"], &["--call-graph", "fp"]] {
        lab.record("t.tape", &[options, &["--force", "skip-first=7"]].concat(), &["sh", "-c", &script]).expect(0);
        let info = lab.info("t.tape");
        assert_eq!(
            (&info["complete"], &info["lost"]),
            (&Value::Bool(true), &serde_json::json!({})),
            "{options:?}: {info}"
        );
        let rows = lab.analyze(&["t.tape", "-s", "--summary-mode", "total", "--format", "json"]).expect(0).json();
        let calls = |name: &str| rows.iter().find(|row| row["syscall"] == name).and_then(|row| row["calls"].as_i64());
        assert_eq!((calls("getppid"), calls("exit_group")), (Some(asked), Some(6)), "{options:?}: {rows:?}");
        if options.is_empty() {
            let calls = lab.calls("t.tape", &["--comm=target"]);
            let seeks = calls.iter().filter(|c| c.name() == "lseek" && c.arg("whence")["text"] == "SEEK_SET");
            let seeks: Vec<&Call> = seeks.collect();
            assert_eq!(seeks.len() as i64, 3 * FILES);
            for call in seeks {
                let path = lab.file(&format!("made-by-polite/file-{}", call.num("offset")));
                assert_eq!(call.fd_path("fd"), Some(path.as_str()), "{call:?}");
            }
            assert!(calls.iter().all(|c| c.incomplete().is_none() || c.name() == "exit_group"));
        }
    }
}

/// Nothing makes the kernel skip a run at will here: fio on the disk did not in 5 runs of 3 s. So its counters are made
/// to say it; reading them and everything behind is as always.
#[test]
fn programs_the_kernel_skips_make_totals_at_least() {
    let Some(lab) = Lab::beside() else { return };
    let flood = lab.cc("flood", &FREESTANDING);
    lab.record("t.tape", &["--force", "skips=3"], &[&flood, "2", "1009"]).expect(0);
    let info = lab.info("t.tape");
    assert_eq!(info["complete"], false, "{info}");
    let gaps = info["gaps"].as_array().expect("gaps");
    for family in ["syscall", "process", "sched", "block", "signal", "net"] {
        let of = gaps.iter().find(|gap| gap["cause"] == "skipped" && gap["family"] == family);
        let count = of.and_then(|gap| gap["count"].as_u64()).unwrap_or(0);
        assert!(count > 0 && count % 3 == 0, "{family}: {info}");
    }
    assert!(!summary_is_complete(&lab));
    let reports: [&[&str]; 8] =
        [&["-s"], &["exec"], &["kills"], &["block"], &["sched", "latency"], &["states"], &["offcpu"], &["net"]];
    for report in reports {
        let run = lab.analyze(&[report, &["t.tape"]].concat()).expect(0);
        let all = run.text() + &run.stderr;
        assert!(all.contains("the kernel skipped the BPF program"), "{report:?}: {all}");
        lab.analyze(&[report, &["t.tape", "--fail-on-loss"]].concat()).expect(3);
    }
}
