//! What a gap does to each report: what it touches is "at least" or unknown, pairs are never formed across it, and `--fail-on-loss` says so.

use systape_analyzer::exercise;

use crate::common::sched::{sched_gap, tape_with};
use crate::common::{self, OPEN, Place, Row, Tape, US, life, session, stacks, task};
use systape_format::model::{ByteStatus, CPU_NONE, Checkpoint, Family, FdTable, Gap, GapCause, Session};

/// Scheduler events lost on `cpu`, µs after the start.
fn sched(cpu: u32, from: u64, to: u64) -> Gap {
    Gap { cpu, first: OPEN + from * US, last: OPEN + to * US, ..sched_gap() }
}

fn place(gaps: &[Gap]) -> Place {
    let place = Place::new();
    tape_with(&place.path("whole.tape"), &[]);
    tape_with(&place.path("gap.tape"), gaps);
    place
}

/// Sum of a number over rows of JSON.
fn sum(place: &Place, words: &str, field: &str) -> u64 {
    place.analyze(words).json().iter().filter_map(|row| row[field].as_u64()).sum()
}

#[test]
fn a_wait_across_a_gap_is_none() {
    // 101 is woken at 1450 and runs at 1460: what is between them was lost
    let place = place(&[sched(1, 1_452, 1_458)]);
    let count = |tape: &str| sum(&place, &format!("runqlat --format json -t 101 {tape}"), "count");
    assert_eq!((count("whole.tape"), count("gap.tape")), (2, 1));
    let got = place.analyze("runqlat --fail-on-loss gap.tape");
    assert_eq!(got.status, 3);
    assert!(got.out.contains("LOST 12 sched events on cpu 1"), "{}", got.out);
    assert!(got.out.contains("1 waits are not counted"), "{}", got.out);
    let delays = |tape: &str| sum(&place, &format!("sched latency --by task --format json -t 101 {tape}"), "delays");
    assert_eq!((delays("whole.tape"), delays("gap.tape")), (2, 1));
    assert_eq!(place.analyze("sched latency --fail-on-loss gap.tape").status, 3);
    // off the CPU from 660 on: as far as it is known
    let off = |tape: &str| {
        let rows = place.analyze(&format!("offcpu --by task,state --format json -t 101 {tape}")).json();
        let blocked = rows.into_iter().find(|row| row["state"] == "D").unwrap();
        (blocked["total_ns"].as_u64().unwrap(), blocked["total_ns_of_known"].as_bool().unwrap())
    };
    assert_eq!(off("whole.tape"), (790_000, false));
    // it had been woken before, but whatever is lost may have been time of this kind
    assert_eq!(off("gap.tape"), (790_000, true));
    tape_with(&place.path("gap.tape"), &[sched(1, 900, 950)]);
    assert_eq!(off("gap.tape"), (240_000, true));
    let woken = place.analyze("offcpu --wakers 100 --format json --fail-on-loss gap.tape");
    assert_eq!(woken.status, 3);
    let of_101 = woken.json().into_iter().filter(|row| row["tid"] == 101 && row["slept_ns"].as_u64() == Some(790_000));
    assert_eq!(of_101.count(), 0, "{}", woken.out);
}

#[test]
fn a_loss_before_the_time_asked_for_counts_while_it_is_felt() {
    let place = place(&[sched(1, 1_200, 1_400)]);
    // 300 sleeps to the end for all that is known, 101 is woken at 1450
    for words in ["states", "offcpu", "sched timehist", "sched latency", "runqlat", "offcpu --wakers 100"] {
        let got = place.analyze(&format!("{words} --time 1420us, --fail-on-loss gap.tape"));
        assert_eq!(got.status, 3, "{words}: {}{}", got.out, got.err);
        let whole = place.analyze(&format!("{words} --time 1420us, --fail-on-loss whole.tape"));
        assert_eq!(whole.status, 0, "{words}");
    }
    // all of 101 is known again by then
    for words in ["states", "offcpu", "sched timehist"] {
        let got = place.analyze(&format!("{words} -t 101 --time 1460us, --fail-on-loss gap.tape"));
        assert_eq!(got.status, 0, "{words}: {}{}", got.out, got.err);
    }
    assert_eq!(place.analyze("states --at 1300us --fail-on-loss gap.tape").status, 3);
    assert_eq!(place.analyze("states --at 1100us --fail-on-loss gap.tape").status, 0);
    assert_eq!(place.analyze("states -t 101 --at 1500us --fail-on-loss gap.tape").status, 3, "others are unknown then");
}

#[test]
fn a_run_across_a_gap_is_unknown() {
    // 102 runs from 1100 to 1300 on CPU 0
    let place = place(&[sched(0, 1_150, 1_160)]);
    let run = |tape: &str| {
        let rows = place.analyze(&format!("sched timehist --format json -t 102 {tape}")).json();
        rows.into_iter().rfind(|row| row.get("run_ns").is_some()).map(|row| row["run_ns"].clone())
    };
    assert_eq!(run("whole.tape"), Some(200_000.into()));
    assert_ne!(run("gap.tape"), Some(200_000.into()));
    let on = |tape: &str| {
        let rows = place.analyze(&format!("states --by task,state --format json -t 102 {tape}")).json();
        rows.iter().filter(|row| row["state"] == "RUN").filter_map(|row| row["time_ns"].as_u64()).sum::<u64>()
    };
    assert_eq!(on("whole.tape") - on("gap.tape"), 150_000, "from the gap to its end");
    // the other CPU has nothing to do with it
    let other = |tape: &str| place.analyze(&format!("states --by state -t 101 --time ,1ms --format json {tape}")).out;
    assert_eq!(other("whole.tape").replace("true", ""), other("gap.tape").replace("true", ""));
}

#[test]
fn lost_calls_leave_a_thread_in_no_known_call() {
    let gap = Gap { family: Family::Syscall, ..sched(1, 700, 800) };
    let place = place(&[gap]);
    for (words, status) in [
        ("states --by syscall", 3),
        ("offcpu --by syscall", 3),
        ("offcpu --by comm,state", 0),
        ("states --by comm,state", 0),
        ("runqlat", 0),
        ("sched", 0),
    ] {
        assert_eq!(place.analyze(&format!("{words} --fail-on-loss gap.tape")).status, status, "{words}");
    }
    // a ledger counts calls; in which of them a thread was it does not say; this tape's has not even their counts
    tape_with(&place.path("gap.tape"), &[Gap { ledger: true, ..gap }]);
    assert_eq!(place.analyze("states --by syscall --fail-on-loss gap.tape").status, 3);
    assert_eq!(place.analyze("-s --fail-on-loss gap.tape").status, 3);
}

#[test]
fn calls_are_lost_from_their_time_on_though_other_events_are_lost_later() {
    // 300 is in a futex all the time; nothing happens between 1100 and 1290
    let calls = Gap { family: Family::Syscall, ..sched(CPU_NONE, 1_120, 1_130) };
    let place = place(&[calls, sched(CPU_NONE, 1_200, 1_210)]);
    let futex = |tape: &str| {
        let rows = place.analyze(&format!("states --by syscall --format json -t 300 {tape}")).json();
        let row = rows.into_iter().find(|row| row["syscall"] == "futex").unwrap();
        row["time_ns"].as_u64().unwrap()
    };
    assert_eq!((futex("whole.tape"), futex("gap.tape")), (2_000_000, 1_120_000));
}

#[test]
fn where_a_process_went_in_a_missing_segment_is_not_known() {
    let place = Place::new();
    let write = |name: &str, missing: bool| {
        let session = Session { families: vec![Family::Syscall, Family::Process], ..session() };
        let cwd = FdTable { upid: 1, complete: true, cwd: b"/before".to_vec(), fds: Vec::new(), ..FdTable::default() };
        let start = Checkpoint {
            ts: OPEN,
            tasks: vec![task(100)],
            fd_tables: vec![cwd],
            source: "snapshot".into(),
            ..Checkpoint::default()
        };
        let mut tape = Tape::create_at(&place.path(name), &session, &start);
        if missing {
            tape.skip(100);
        }
        let captured = vec![(1, ByteStatus::Whole, 4, &b"file"[..])];
        let open = Row {
            tid: 100,
            name: "openat",
            start: 150,
            dur: 10,
            args: [0xffff_ff9c, 0x5600, 0, 0, 0, 0],
            captured,
            ..Row::default()
        };
        tape.segment(200, &[open], &[]);
        tape.finish();
    };
    write("whole.tape", false);
    write("cut.tape", true);
    let file = |tape: &str| place.analyze(&format!("files --opens --format json {tape}")).json()[0]["file"].clone();
    assert_eq!(file("whole.tape"), "/before/file");
    assert!(file("cut.tape").is_null(), "{}", file("cut.tape"));
    let listed = |tape: &str| place.analyze(&format!("-y {tape}")).out;
    assert!(listed("whole.tape").contains("openat(dfd: CWD</before>, filename: \"file\""), "{}", listed("whole.tape"));
    assert!(listed("cut.tape").contains("openat(dfd: CWD, filename: \"file\""), "{}", listed("cut.tape"));
    let path = |tape: &str| place.analyze(&format!("-y --format json {tape}")).json()[0]["args"]["dfd"]["path"].clone();
    assert_eq!((path("whole.tape"), path("cut.tape")), ("/before".into(), serde_json::Value::Null));
}

#[test]
fn counted_calls_make_unknown_the_process_that_made_them() {
    use common::ledger::{count, parts};
    use systape_format::model::{CallState, LedgerReason};
    let place = Place::new();
    // 102 writes for 300 µs and nobody saw: it ends at 1250
    let write = Row { tid: 102, name: "write", start: 950, dur: 300, state: CallState::Complete, ..Default::default() };
    let counted = parts(&[write], LedgerReason::Lost, false);
    let gap = Gap { family: Family::Syscall, ledger: true, ..sched(0, 1_250, 1_250) };
    common::sched::tape_and(&place.path("counted.tape"), &[gap], |b| counted.iter().for_each(|part| count(b, part)));
    tape_with(&place.path("gap.tape"), &[Gap { ledger: false, ..gap }]);
    tape_with(&place.path("whole.tape"), &[]);
    let places = |tid: u32, tape: &str| {
        let rows = place.analyze(&format!("states --by task,state,syscall --format json -t {tid} {tape}")).json();
        let of = |name: &str| {
            let mine = rows.iter().filter(|row| row["syscall"] == name && row["state"] == "RUN");
            mine.filter_map(|row| row["time_ns"].as_u64()).sum::<u64>()
        };
        (of("[user]"), of("?"))
    };
    // on a CPU from 530 to 600, 640 to 790, 1100 to 1300
    assert_eq!(places(102, "whole.tape"), (420_000, 0));
    assert_eq!(places(102, "counted.tape"), (220_000, 200_000), "since it may have been in that call");
    assert_eq!(places(102, "gap.tape").1, 50_000, "how long a call took of which nothing is known is not known either");
    assert_eq!(places(101, "counted.tape"), places(101, "whole.tape"));
    assert_ne!(places(101, "counted.tape").0, 0);
}

fn of_life(family: Family, us: u64) -> Gap {
    let at = OPEN + us * US;
    Gap { cause: GapCause::RingFull, family, cpu: CPU_NONE, count: 2, first: at, last: at, pid: 0, ledger: false }
}

#[test]
fn a_program_that_may_have_become_another_has_no_known_end() {
    let place = Place::new();
    life::write(&place.path("life.tape"), &[]);
    let ends = |place: &Place| {
        let got = place.analyze("exec --format json life.tape").json();
        got.iter().filter(|row| row["dur_ns_at_least"] == false).count()
    };
    let whole = ends(&place);
    assert!(whole >= 3, "{whole}");
    life::write(&place.path("life.tape"), &[of_life(Family::Process, 5_000)]);
    assert!(ends(&place) < whole, "those that span the gap are no pairs");
    let got = place.analyze("exec --fail-on-loss life.tape");
    assert_eq!(got.status, 3);
    assert!(got.out.contains(" ? "), "{}", got.out);
    // ends after the time asked for may be among what was lost
    let early = place.analyze("kills --time ,4ms --format json life.tape").json();
    assert!(early.iter().all(|record| record["outcome"]["exited"] != false), "{early:?}");
}

#[test]
fn lost_stacks_touch_graphs_alone() {
    let place = Place::new();
    let session = stacks::of_tape();
    stacks::write_with(&place.path("stacks.tape"), 1, &session, &[stacks::gap()]);
    for (words, status) in [
        ("callgraph --of syscall", 3),
        ("callgraph --of cpu", 3),
        ("callgraph --of offcpu", 3),
        ("-s", 0),
        ("", 0),
        ("--call-graph", 3),
    ] {
        let got = place.analyze(&format!("{words} --fail-on-loss stacks.tape"));
        assert_eq!(got.status, status, "{words}: {}", got.err);
    }
    let rows = place.analyze("callgraph --of syscall --format json stacks.tape").json();
    assert!(!rows.is_empty() && rows.iter().all(|row| row["count_at_least"] == true));
}

#[test]
fn a_graph_of_calls_says_that_some_were_only_counted() {
    let place = Place::new();
    let session = Session { call_filters: vec![b"--failure".to_vec()], ..stacks::of_tape() };
    stacks::write_with(&place.path("stacks.tape"), 1, &session, &[]);
    let got = place.analyze("callgraph --of syscall --fail-on-loss stacks.tape");
    assert_eq!((got.status, got.err.as_str()), (0, ""));
    let note = "# record stored only some calls (--failure): the others have no stack and are not in it\n";
    assert!(got.out.contains(note) && got.out.contains("# Total (100%): at least "), "{}", got.out);
    let rows = place.analyze("callgraph --of syscall --format json stacks.tape");
    assert!(rows.json().iter().all(|row| row["count_at_least"] == true) && rows.err.contains("stored only some"));
    let cpu = place.analyze("callgraph --of cpu stacks.tape");
    assert!(!cpu.out.contains("only some"), "samples are all there: {}", cpu.out);
}

/// The table of causes of docs/reading/losses.md.
fn causes_table() -> String {
    let mut table = "| cause | what it is | loses events | what to do |\n|---|---|---|---|\n".to_owned();
    for cause in exercise::CAUSES {
        // on a kernel that lets programs be preempted it may be another remedy
        let mut remedies = [false, true]
            .map(|preemptible| exercise::remedy(cause, &Session { preemptible, ..Session::default() }))
            .to_vec();
        remedies.dedup();
        let loses = if exercise::is_loss(cause) { "yes" } else { "no" };
        let what = exercise::cause_text(cause);
        table += &format!("| `{}` | {what} | {loses} | {} |\n", cause.name(), remedies.join(". Or: "));
    }
    table
}

#[test]
fn every_cause_has_a_remedy_in_the_manual() {
    const MARKS: [&str; 2] =
        ["<!-- causes: UPDATE_GOLDEN=1 cargo test --workspace --test analyze gaps:: -->\n", "<!-- end of causes -->"];
    let manual = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reading/losses.md");
    let text = std::fs::read_to_string(manual).unwrap();
    let (before, rest) = text.split_once(MARKS[0]).expect("the mark");
    let (is, after) = rest.split_once(MARKS[1]).expect("the other mark");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(manual, format!("{before}{}{}{}{after}", MARKS[0], causes_table(), MARKS[1])).unwrap();
    } else {
        assert_eq!(is, causes_table(), "docs/reading/losses.md: UPDATE_GOLDEN=1 writes it");
    }
}
