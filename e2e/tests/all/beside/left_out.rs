//! What the kernel refuses is left out by name, and the rest is recorded. The kernel is made to refuse one program after the other
//! (`record --force unloadable=PROGRAM` gives it a flag that no kernel knows).

use std::path::Path;

use serde_json::Value;
use systape_e2e::Lab;
use systape_e2e::more::FREESTANDING;

const CHILDREN: u64 = 3;
const CALLS: u64 = 1009;
/// Of `flood CHILDREN CALLS` (see flood.c).
const ALL_CALLS: u64 = 2 + 3 * CHILDREN + CHILDREN * CALLS;

/// The program of io_uring's submissions that this kernel has a tracepoint for.
fn uring() -> &'static str {
    let has = Path::new("/sys/kernel/tracing/events/io_uring/io_uring_submit_req").exists();
    if has { "io_uring_submit_req" } else { "io_uring_submit_sqe" }
}

fn words(info: &Value, key: &str) -> Vec<String> {
    info[key].as_array().expect("list").iter().map(|word| word.as_str().expect("text").to_owned()).collect()
}

/// Calls of all programs in the tape.
fn calls(lab: &Lab) -> u64 {
    let rows = lab.analyze(&["t.tape", "-s", "--summary-mode", "total", "--format", "json"]).expect(0).json();
    rows.iter().filter_map(|row| row["calls"].as_u64()).sum()
}

fn record(lab: &Lab, options: &[&str], status: i32) -> String {
    let flood = lab.cc("flood", &FREESTANDING);
    let command = [flood.as_str(), &CHILDREN.to_string(), &CALLS.to_string()];
    lab.record("t.tape", options, &command).expect(status).stderr
}

#[test]
fn a_family_whose_program_does_not_load_is_named_and_the_rest_is_right() {
    let Some(lab) = Lab::beside() else { return };
    let cases: [(&str, &str, &[&str]); 5] = [
        ("sched_switch", "sched", &["sched"]),
        ("block_rq_complete", "block", &["block"]),
        ("signal_generate", "signal", &["kills"]),
        ("inet_sock_set_state", "net", &["net"]),
        (uring(), "io_uring", &["-e", "io_uring:*"]),
    ];
    let all = ["syscall", "process", "sched", "block", "signal", "net", "io_uring"];
    for (program, family, report) in cases {
        let said = record(&lab, &["--force", &format!("unloadable={program}")], 0);
        let note = format!("{family} is not recorded: the kernel refused the program {program}: EINVAL");
        assert!(said.contains(&note), "{said}");
        let info = lab.info("t.tape");
        let expected: Vec<&str> = all.into_iter().filter(|name| *name != family).collect();
        let mut held = words(&info, "families");
        held.sort_by_key(|name| all.iter().position(|known| known == name));
        assert_eq!(held, expected);
        let left = serde_json::json!([{"family": family, "program": program, "reason": "EINVAL"}]);
        assert_eq!(info["left_out"], left);
        assert!(words(&info, "notes").contains(&note), "{info}");
        assert!(lab.analyze(&["info", "t.tape"]).expect(0).text().contains(&format!("the program {program}")));
        // an empty answer would look like "nothing happened"
        let run = lab.analyze(&[report, &["t.tape"]].concat());
        let answer = run.text() + &run.stderr;
        assert!(answer.contains("not recorded") && answer.contains(program), "{family}: {answer}");
        // the rest
        assert_eq!(info["complete"], true, "{info}");
        assert_eq!(calls(&lab), ALL_CALLS, "{family}");
        let forks = lab.analyze(&["exec", "--tree", "t.tape", "--format", "json"]).expect(0).json();
        let floods = forks.iter().filter(|row| row["comm"] == "flood" && row["exit_code"] == 0).count();
        assert_eq!(floods as u64, 1 + CHILDREN, "{forks:?}");
        if family != "sched" {
            let rows = lab.analyze(&["sched", "t.tape", "--format", "json"]).expect(0).json();
            assert!(rows.iter().any(|row| row["comm"] == "flood"), "{family}: no switches");
        }
    }
}

#[test]
fn several_families_may_be_left_out() {
    let Some(lab) = Lab::with_bpf() else { return };
    let force = "unloadable=cpu_sample,unloadable=sched_waking,unloadable=block_rq_issue";
    let said = record(&lab, &["-F", "99", "--force", force], 0);
    for family in ["sample", "sched", "block"] {
        assert!(said.contains(&format!("{family} is not recorded: the kernel refused")), "{said}");
    }
    let info = lab.info("t.tape");
    assert_eq!(words(&info, "families"), ["syscall", "process", "signal", "net", "io_uring"]);
    let run = lab.analyze(&["callgraph", "--of", "cpu", "t.tape"]);
    assert!(run.code() != 0 && run.stderr.contains("stacks"), "{}", run.stderr);
    assert_eq!(calls(&lab), ALL_CALLS);
}

#[test]
fn what_a_family_can_do_without_is_left_out_alone() {
    let Some(lab) = Lab::beside() else { return };
    for (program, lacks, options) in [
        ("check_io", "whose end no program sees", &[][..]),
        ("writeback_dirty_folio", "who wrote what is written back", &[]),
        ("copy_sleepers", "kernel frames only", &["-g"]),
        ("walk_sleepers", "no stacks of 'asleep'", &["-g"]),
        ("sys_exit_stack", "no stacks of 'syscall'", &["-g"]),
    ] {
        let force = format!("unloadable={program}");
        let said = record(&lab, &[options, &["--force", &force]].concat(), 0);
        assert!(said.contains(lacks) && said.contains(&format!("the kernel refused the program {program}")), "{said}");
        let info = lab.info("t.tape");
        assert_eq!(words(&info, "families").len(), 7, "{info}");
        assert!(info["notes"].to_string().contains(lacks), "{info}");
        assert_eq!(info["left_out"], serde_json::json!([]));
        assert_eq!(calls(&lab), ALL_CALLS, "{program}");
        lab.analyze(&["block", "t.tape"]).expect(0);
    }
}

#[test]
fn without_calls_and_process_life_nothing_is_recorded() {
    let Some(lab) = Lab::beside() else { return };
    for program in ["sys_enter", "sys_exit", "sched_process_exit", "walk_tasks"] {
        let said = record(&lab, &["--force", &format!("unloadable={program}")], 125);
        assert!(said.contains(program) && said.contains("EINVAL"), "{said}");
        assert!(!lab.path("t.tape").exists());
    }
    // all that was asked for
    let said = record(&lab, &["--families", "block", "--force", "unloadable=block_rq_issue"], 125);
    assert!(said.contains("block cannot be recorded: the kernel refused the program block_rq_issue"), "{said}");
    let said = record(&lab, &["--force", "unloadable=no_such_program"], 125);
    assert!(said.contains("no_such_program"), "{said}");
}
