//! Scheduler reports on a tape whose every microsecond is known.

use std::collections::BTreeMap;

use crate::common::sched::{LENGTH, sched_gap, tape, task, unseen};
use crate::common::{OPEN, Place, US};
use serde_json::Value;

/// Sum of `time_ns` of each thread.
fn lifetimes(rows: &[Value]) -> BTreeMap<u64, u64> {
    let mut sums = BTreeMap::new();
    for row in rows {
        *sums.entry(row["utid"].as_u64().unwrap()).or_default() += row["time_ns"].as_u64().unwrap();
    }
    sums
}

#[test]
fn states_add_up_to_the_lifetime_of_every_thread() {
    let place = Place::with_sample();
    // 102 is made at 500 and ends at 1300 µs
    let lived = |from: u64, to: u64| {
        let whole = [100, 101, 200, 300].map(|utid| (utid, (to - from) * US));
        let born = 1_300.min(to).saturating_sub(from.max(500)) * US;
        let mut all: BTreeMap<u64, u64> = whole.into_iter().collect();
        if born > 0 {
            all.insert(102, born);
        }
        all
    };
    for name in ["sched.tape", "sched-lost.tape"] {
        for by in ["task,state", "task,state,syscall,file", "task", "task,comm,user,cgroup,syscall"] {
            let all = place.analyze(&format!("states --by {by} --format json {name}"));
            assert_eq!(lifetimes(&all.json()), lived(0, LENGTH), "{name} {by}");
        }
        let part = place.analyze(&format!("states --by task,state --format json --time 600us,1700us {name}"));
        assert_eq!(lifetimes(&part.json()), lived(600, 1_700), "{name}");
    }
}

#[test]
fn what_a_loss_touches_is_unknown_and_told() {
    let place = Place::with_sample();
    let got = place.analyze("states --by task,state --format json --fail-on-loss sched-lost.tape");
    assert_eq!((got.status, got.err.lines().count()), (3, 1), "{}", got.err);
    assert!(got.err.contains("LOST 12 sched events on cpu 1"), "{}", got.err);
    let unknown = |utid: u64| {
        let rows = got.json();
        let row = rows.iter().find(|row| row["utid"] == utid && row["state"] == "?");
        row.map_or(0, |row| row["time_ns"].as_u64().unwrap())
    };
    // to the end: nothing more is heard of them
    assert_eq!((unknown(100), unknown(200), unknown(300)), (800_000, 800_000, 800_000));
    // until it is woken; the one that ran on the other CPU stays known
    assert_eq!((unknown(101), unknown(102)), (250_000, 0));
    assert!(got.json().iter().all(|row| row["time_ns_of_known"] == true));
    // outside the time that is asked for it does not matter
    let before = place.analyze("states --by state --fail-on-loss --time ,1ms sched-lost.tape");
    assert_eq!((before.status, before.err.as_str()), (0, ""));
    assert!(!before.out.contains('?'), "{}", before.out);
    assert_eq!(sched_gap().first, OPEN + 1_200 * US);
}

#[test]
fn a_switch_that_no_program_saw_touches_those_it_hides() {
    let place = Place::with_sample();
    unseen(&place.path("unseen.tape"));
    let all = place.analyze("states --by task,state --format json --fail-on-loss unseen.tape");
    assert_eq!(all.status, 3);
    assert!(all.err.contains("the kernel skipped the probe"), "{}", all.err);
    let time = |utid: u64, state: &str| {
        let row = all.json().into_iter().find(|row| row["utid"] == utid && row["state"] == state);
        row.map_or(0, |row| row["time_ns"].as_u64().unwrap() / US)
    };
    // of who came at a known time nothing is missing
    assert_eq!((time(200, "RUN"), time(200, "RQ"), time(200, "?")), (40 + 60, 10 + 40, 0));
    assert_eq!((time(300, "?"), time(300, "S")), (100, 1_700 + 200));
    assert_eq!(lifetimes(&all.json())[&300], LENGTH * US);
    let pid = task(200).pid;
    let known = place.analyze(&format!("states --by task,state -p {pid} --format json --fail-on-loss unseen.tape"));
    assert_eq!((known.status, known.err.as_str()), (0, ""));
    let lines = place.analyze("-e sched:sched_switch unseen.tape");
    assert!(lines.out.contains("prev_came: unseen 60000 ns before"), "{}", lines.out);
    assert!(lines.out.contains("prev_came: unseen <=190000 ns before"), "{}", lines.out);
}

#[test]
fn a_tape_without_the_family_says_so() {
    let place = Place::with_sample();
    for report in ["sched", "sched latency", "runqlat", "offcpu", "offcpu --wakers 100", "states", "states --at 1"] {
        let got = place.analyze(&format!("{report} sample.tape"));
        assert_eq!((got.status, got.out.as_str()), (1, ""), "{report}");
        assert!(got.err.contains("scheduler events were not recorded"), "{report}: {}", got.err);
    }
    let summary = place.analyze("-s --cpu --format json sample.tape");
    assert_eq!((summary.status, &summary.json()[0]["cpu_ns"]), (0, &Value::Null));
    assert!(summary.err.contains("not recorded"), "{}", summary.err);
}

#[test]
fn a_file_named_like_a_view_is_a_path() {
    let place = Place::new();
    tape(&place.path("latency"), false);
    assert!(place.analyze("sched ./latency").out.contains("sch delay"));
    assert!(place.analyze("sched latency latency").out.contains("Avg delay ms"));
    assert!(place.analyze("sched latency").err.contains("trace.tape: no such file"));
}

#[test]
fn filters_choose_threads_cpus_and_calls() {
    let place = Place::with_sample();
    let lines = |words: &str| {
        let got = place.analyze(&format!("{words} --format json sched.tape"));
        assert_eq!((got.status, got.err.as_str()), (0, ""), "{words}");
        got.json()
    };
    assert_eq!(lines("sched").len(), 7);
    assert_eq!(lines("sched -t 102").len(), 3);
    assert_eq!(lines("sched -C 1").len(), 1);
    assert_eq!(lines("sched --cpu=1").len(), 1);
    assert_eq!(lines("sched --max-events 2").len(), 2);
    assert_eq!(lines("sched --time 0.0006,0.0007").len(), 3);
    assert!(lines("sched -p 100").iter().all(|row| row["pid"] == 100));
    assert!(
        lines("offcpu -e read,write").iter().all(|row| ["read", "write"].contains(&row["syscall"].as_str().unwrap()))
    );
    assert!(lines("offcpu --duration 700us").iter().all(|row| row["max_ns"].as_u64().unwrap() > 700_000));
    assert_eq!(lines("states --at 1ms --comm=sleeper")[0]["pid"], task(300).pid);
    for words in ["sched -e read", "runqlat --failure", "states --duration 1", "states --by cpu", "offcpu --at 1"] {
        assert_eq!(place.analyze(&format!("{words} sched.tape")).status, 2, "{words}");
    }
}

#[test]
fn a_recording_that_was_killed_is_told_to_where_it_is_whole() {
    let place = Place::with_sample();
    let whole = std::fs::read(place.path("sched.tape")).unwrap();
    for cut in [whole.len() - 100, whole.len() * 3 / 4, whole.len() / 2] {
        std::fs::write(place.path("cut.tape"), &whole[..cut]).unwrap();
        for report in ["sched", "sched latency", "runqlat", "offcpu", "states", "states --at 50%", "-s --cpu"] {
            let got = place.analyze(&format!("{report} cut.tape"));
            assert!(matches!(got.status, 0 | 1), "{report}: {}", got.err);
            assert!(got.status == 1 || got.out.contains("ended abnormally") || got.err.contains("ended abnormally"));
        }
    }
}

/// What a thread is called, and the cgroup that it is in, may change while it runs or waits: that is one run all the same.
#[test]
fn a_run_is_one_whatever_changes_in_it() {
    let place = Place::with_sample();
    let mut seen = 0;
    for report in ["cpudist", "runqlat"] {
        let buckets = |by: &str| {
            let mut buckets = BTreeMap::new();
            for row in place.analyze(&format!("{report} {by} --format json sched.tape")).json() {
                let count = row["count"].as_u64().expect("a count");
                *buckets.entry(row["low_ns"].as_u64().expect("a bound")).or_insert(0) += count;
            }
            buckets.retain(|_, count| *count > 0);
            buckets
        };
        let all = buckets("");
        seen += all.values().sum::<u64>();
        for key in ["comm", "cgroup", "task", "cpu"] {
            assert_eq!(buckets(&format!("--by {key}")), all, "{report} by {key}");
        }
    }
    assert!(seen > 5, "{seen}");
}
