//! Reports about stacks: that they agree with the reports that know nothing of stacks, and what they say when something is missing.

use crate::common::{self, Place, stacks};
use serde_json::Value;
use systape_format::header::BlockKind;
use systape_format::model::StackOf;

fn place() -> Place {
    let place = Place::new();
    stacks::write(&place.path("stacks.tape"), 1);
    stacks::write(&place.path("more.tape"), 3);
    place
}

/// Output of a run that says nothing on stderr.
fn out(place: &Place, words: &str) -> String {
    let got = place.analyze(words);
    assert_eq!((got.status, got.told().as_str()), (0, ""), "{words}");
    got.out
}

fn rows(place: &Place, words: &str) -> Vec<Value> {
    out(place, words).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Sum of a field over the roots of a call graph.
fn roots(place: &Place, words: &str, field: &str) -> u64 {
    let rows = rows(place, &format!("callgraph --format json stacks.tape {words}"));
    rows.iter().filter(|row| row["parent"].is_null()).map(|row| row[field].as_u64().unwrap()).sum()
}

fn sum(rows: &[Value], field: &str) -> u64 {
    rows.iter().map(|row| row[field].as_u64().unwrap()).sum()
}

#[test]
fn totals_agree_with_the_summary() {
    let place = place();
    for filter in
        ["", "-p 100", "-t 101", "-e read", "--duration 0.003", "--failure", "--time ,215us", "-C 0", "--comm=oth*"]
    {
        let summary = rows(&place, &format!("-s --format json stacks.tape {filter}"));
        assert_eq!(roots(&place, &format!("--of syscall {filter}"), "count"), sum(&summary, "calls"), "{filter}");
        assert_eq!(roots(&place, &format!("--of syscall {filter}"), "time_ns"), sum(&summary, "total_ns"), "{filter}");
        assert_eq!(
            roots(&place, &format!("--of syscall --callee {filter}"), "count"),
            sum(&summary, "calls"),
            "{filter}: the other order has every event too"
        );
    }
}

#[test]
fn totals_agree_with_offcpu() {
    let place = place();
    for filter in ["", "-t 100", "-t 101,102", "--time 210us,", "--time 202us,232us", "--comm=oth*"] {
        let offcpu = rows(&place, &format!("offcpu --by state --format json stacks.tape {filter}"));
        assert_eq!(roots(&place, &format!("--of offcpu {filter}"), "time_ns"), sum(&offcpu, "total_ns"), "{filter}");
    }
}

#[test]
fn totals_agree_with_lists() {
    let place = place();
    assert_eq!(roots(&place, "--of block -p 100", "count"), 1);
    assert_eq!(roots(&place, "--of block --duration 1", "count"), 0);
    assert_eq!(roots(&place, "--of signal", "count"), 1);
    for (filter, waked) in [("", 3), ("-p 102", 1), ("-C 0", 2)] {
        let listed = out(&place, &format!("-e sched:sched_waking stacks.tape {filter}")).lines().count() as u64;
        assert_eq!((roots(&place, &format!("--of wakeup {filter}"), "count"), waked), (listed, listed), "{filter}");
    }
    // 1000 Hz
    assert_eq!(roots(&place, "--of cpu", "time_ns"), 4_000_000);
    assert_eq!(roots(&place, "--of cpu -t 100", "count"), 3);
}

#[test]
fn folded_stacks_have_the_total() {
    let place = place();
    for words in ["--of syscall", "--of syscall --callee", "--of offcpu --max-depth 2", "--of syscall --metric bytes"] {
        let folded = out(&place, &format!("callgraph --folded stacks.tape {words}"));
        let total: u64 = folded.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
        let expected = match words {
            "--of offcpu --max-depth 2" => roots(&place, "--of offcpu", "time_ns"),
            // reads return 4 x 64 and 2 x 32, the write 10
            "--of syscall --metric bytes" => 330,
            _ => 13,
        };
        assert_eq!(total, expected, "{words}");
    }
}

#[test]
fn a_flame_graph_is_a_file() {
    let place = place();
    assert_eq!(out(&place, "callgraph --of offcpu --idle --svg a.svg stacks.tape"), "");
    let svg = std::fs::read_to_string(place.path("a.svg")).unwrap();
    for part in
        ["<svg", "[stack ends: lost, no buffer or stack ring full]", "sa\\x1bve:all", "schedule", "at least 3.799 ms"]
    {
        assert!(svg.contains(part), "{part}");
    }
    assert!(!svg.contains('\x1b'), "names are escaped");
    assert_eq!(out(&place, "callgraph --of syscall --svg b.svg --diff stacks.tape more.tape"), "");
    let difference = std::fs::read_to_string(place.path("b.svg")).unwrap();
    assert!(difference.contains("; +"), "{difference}");
    // both at once, and a file that cannot be written
    assert!(out(&place, "callgraph --of offcpu --svg a.svg --folded stacks.tape").contains("schedule_[k]"));
    let got = place.analyze("callgraph --svg no/such.svg stacks.tape");
    assert_eq!(
        (got.status, got.err.as_str()),
        (1, "analyze: cannot write no/such.svg: No such file or directory (os error 2)\n")
    );
    let got = place.analyze("callgraph --of syscall -p 9999 --svg c.svg stacks.tape");
    assert_eq!(got.status, 1);
    assert!(!place.path("c.svg").exists());
}

#[test]
fn lost_stacks_are_said() {
    let place = Place::new();
    stacks::write_with(&place.path("lossy.tape"), 1, &stacks::of_tape(), &[stacks::gap()]);
    let lost = "LOST 7 stack events, 0.000–0.000 s: ring buffer full";
    let got = place.analyze("callgraph --of syscall --fail-on-loss lossy.tape");
    assert_eq!((got.status, got.err.as_str()), (3, ""));
    assert!(got.out.contains(lost) && got.out.contains("# Total (100%): at least 13 events"), "{}", got.out);
    let got = place.analyze("callgraph --of syscall --format json --fail-on-loss lossy.tape");
    assert_eq!((got.status, &got.err), (3, &format!("analyze: {lost}\n")));
    assert!(got.json().iter().all(|row| row["count_at_least"] == true));
    // they touch a listing only when it prints stacks
    assert_eq!(place.analyze("--fail-on-loss lossy.tape").status, 0);
    let got = place.analyze("--call-graph --fail-on-loss lossy.tape");
    assert_eq!(got.status, 3);
    assert!(got.out.contains(lost), "{}", got.out);
    // and not outside the time asked for
    assert_eq!(place.analyze("callgraph --of syscall --time 1ms, --fail-on-loss lossy.tape").status, 0);
}

#[test]
fn stacks_that_cannot_be_read_leave_their_events() {
    let place = place();
    let path = place.path("stacks.tape");
    let tape = systape_format::reader::Tape::open(&path).unwrap();
    let block = tape.blocks().into_iter().find(|block| block.kind == BlockKind::Stacks).unwrap();
    drop(tape);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[block.offset as usize + 128 + block.stored_len as usize / 2] ^= 0x55;
    std::fs::write(&path, bytes).unwrap();
    let got = place.analyze("callgraph --of syscall --fail-on-loss stacks.tape");
    assert_eq!(got.status, 3);
    assert!(got.out.contains("segment 0: its stacks cannot be read"), "{}", got.out);
    assert!(
        got.out.contains("[no stack: cannot be read]") && got.out.contains("# Events: 13 (syscalls)"),
        "{}",
        got.out
    );
    let got = place.analyze("callgraph --of offcpu --idle stacks.tape");
    assert!(got.out.contains("[no stack: cannot be read]") && got.out.contains("at least 3.799 ms"), "{}", got.out);
    let got = place.analyze("--call-graph --max-events 1 stacks.tape");
    assert!(got.out.contains("[no stack: cannot be read]"), "{}", got.out);
    assert!(got.err.contains("its stacks cannot be read"), "{}", got.err);
}

#[test]
fn questions_a_tape_cannot_answer() {
    let place = place();
    common::sample(&place.path("sample.tape"));
    let mut session = stacks::of_tape();
    session.stacks.on = vec![StackOf::Syscall];
    stacks::write_with(&place.path("calls.tape"), 1, &session, &[]);
    session.stacks.on = vec![StackOf::Sample];
    stacks::write_with(&place.path("samples.tape"), 1, &session, &[]);
    for (words, status, message) in [
        ("callgraph sample.tape", 1, "this tape has no stacks: record them with 'record -g'"),
        ("--call-graph sample.tape", 1, "this tape has no stacks: record them with 'record -g'"),
        ("callgraph --of cpu calls.tape", 1, "this tape has no stacks of CPU samples; it has those of: syscall"),
        ("callgraph --of signal --metric time stacks.tape", 2, "--metric time: signals have none"),
        (
            "callgraph --of cpu -e read stacks.tape",
            2,
            "-e selects calls: stacks of CPU samples are of other events, and take no -e",
        ),
        ("callgraph --of wakeup --duration 1 stacks.tape", 2, "--duration: wake-ups have none"),
        ("callgraph --of block -C 1 stacks.tape", 2, "-C: block I/Os are recorded without a CPU"),
        ("callgraph --diff more.tape stacks.tape", 2, "--diff compares two tapes"),
        ("callgraph --max-depth 0 stacks.tape", 2, "--max-depth 0 leaves nothing"),
        ("callgraph --min-percent 101 stacks.tape", 2, "a percentage is between 0 and 100"),
        (
            "--folded stacks.tape",
            2,
            "--folded is not for the listing; it is for 'analyze offcputime' and 'analyze callgraph'",
        ),
        ("-s --call-graph stacks.tape", 2, "--call-graph is not for 'analyze summary'"),
        ("info --call-graph stacks.tape", 2, "it is for the listing"),
        ("--call-graph=caller stacks.tape", 2, "invalid value 'caller'"),
        ("--debug-dir . stacks.tape", 2, "--debug-dir names functions on stacks"),
        ("callgraph --debug-dir nowhere stacks.tape", 1, "there is no such directory"),
        ("--call-graph samples.tape", 1, "this tape has stacks, but none of syscalls"),
        ("diff --summary-mode process stacks.tape more.tape", 2, "--summary-mode is not for 'analyze diff'"),
        ("diff stacks.tape", 2, "'analyze diff BEFORE AFTER' compares two tapes"),
        ("diff -s stacks.tape more.tape", 2, "leave out the name of the report"),
        ("diff stacks.tape missing.tape", 1, "missing.tape: no such file"),
    ] {
        let got = place.analyze(words);
        assert_eq!(got.status, status, "{words}: {}", got.err);
        assert!(got.err.contains(message), "{words}: {}", got.err);
    }
}

#[test]
fn the_tape_that_only_has_calls_is_about_calls() {
    let place = Place::new();
    let mut session = stacks::of_tape();
    session.stacks.on = vec![StackOf::Wakeup, StackOf::Syscall];
    session.stacks.min_dur = 3_000;
    stacks::write_with(&place.path("calls.tape"), 1, &session, &[]);
    let text = out(&place, "callgraph calls.tape");
    assert!(
        text.starts_with(
            "# Stacks of syscalls by count, callers first\n# (--of syscall; this tape also has: wakeup)\n"
        )
    );
    assert!(text.contains("[no stack: call too short to have one taken]"), "{text}");
}

#[test]
fn two_summaries_differ_by_what_was_added() {
    let place = place();
    let mut rows = rows(&place, "diff stacks.tape more.tape --format json");
    // what is not calls has rows of its own
    rows.retain(|row| row.get("measure").is_none());
    let read = rows.iter().find(|row| row["syscall"] == "read").unwrap();
    assert_eq!(
        (&read["calls_diff"], &read["errors_after"], &read["total_ns_diff"]),
        (&6.into(), &1.into(), &6_000.into())
    );
    let summary = self::rows(&place, "-s --summary-mode total --format json more.tape");
    let of = |field: &str| sum(&summary, field);
    assert_eq!((sum(&rows, "calls_after"), sum(&rows, "total_ns_after")), (of("calls"), of("total_ns")));
}

/// The names come from a program that gcc made; its own symbol table says where they are.
#[cfg(target_os = "linux")]
#[test]
fn names_are_found_by_build_id() {
    let place = Place::new();
    let Some(program) = stacks::program(&place) else { return };
    let offset = program.offset;
    stacks::one_frame(&place.path("a.tape"), program.mapping(), offset);
    let folded = |options: &str| out(&place, &format!("callgraph --folded {options} a.tape"));
    assert_eq!(folded(""), format!("app;[{offset:#x}] (/usr/bin/gone) 1\n"));
    assert_eq!(folded("--debug-dir files").split(" 1\n").next().unwrap().split(';').nth(1), Some("outer"));
    let listed = rows(&place, "--call-graph --debug-dir files --format json a.tape");
    let stack = listed[0]["stack"].as_array().unwrap();
    assert_eq!(stack.last().unwrap()["sym"], "outer");
    assert_eq!(stack.last().unwrap()["module"], "/usr/bin/gone");
    assert!(stack.last().unwrap()["file"].as_str().unwrap().ends_with("a.c"));
}
