//! Questions that stacks answer: who asks for the time zone again and again, what a thread waits for, where the CPU time
//! goes, what function sent the signal, wakes another or writes to the disk. The programs' answers are known.

use std::fs;

use serde_json::Value;
use systape_e2e::disk::{skipped, under};
use systape_e2e::more::{bare_root, in_bare_root};
use systape_e2e::stacks::Stack;
use systape_e2e::{Lab, lab};

/// Lines `FRAME;FRAME;… VALUE` of a folded call graph, the outermost frame first.
fn folded(text: &str) -> Vec<(Vec<&str>, u64)> {
    let mut stacks = Vec::new();
    for line in text.lines() {
        let (frames, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no folded stack: {line}"));
        stacks.push((frames.split(';').collect(), value.parse().unwrap_or_else(|e| panic!("{e}: {line}"))));
    }
    stacks
}

/// Part of a thread's sum whose stacks have the function, and that sum.
fn share(text: &str, comm: &str, function: &str) -> (f64, u64) {
    let stacks: Vec<_> = folded(text).into_iter().filter(|(frames, _)| frames[0] == comm).collect();
    let total: u64 = stacks.iter().map(|(_, value)| value).sum();
    let with = stacks.iter().filter(|(frames, _)| frames.contains(&function)).map(|(_, value)| value).sum::<u64>();
    (with as f64 / total as f64, total)
}

/// The beginning of a report, for messages.
fn head(text: &str) -> String {
    text.lines().take(12).map(|line| format!("{line:.300}\n")).collect()
}

const DATES: usize = 2003;

/// Records the parser of dates; TZ is that of the command only.
#[track_caller]
fn parse_dates(lab: &Lab, tape: &str, tz: &[&str]) {
    let options = ["--call-graph", "dwarf", "-e", "stat,newfstatat,openat"];
    let (program, dates) = (lab.file("tz"), DATES.to_string());
    let command = [&["env", "-u", "TZ", "-u", "LD_LIBRARY_PATH"], tz, &[&*program, &dates]].concat();
    lab.record(tape, &options, &command).expect(0);
    lab.assert_whole(tape);
}

#[test]
fn who_asks_for_the_time_zone() {
    let Some(lab) = Lab::with_bpf() else { return };
    lab.cc("tz", &["-O2"]);
    parse_dates(&lab, "unset.tape", &[]);
    // on another machine, without the program and its libraries
    let (root, _) = bare_root(&lab, "unset.tape");
    let there = |arguments: &[&str]| lab::run(in_bare_root(&lab, &root, arguments)).expect(0);
    let listing = ["unset.tape", "-e", "=newfstatat", "--comm=tz", "--call-graph"];
    let run = there(&[&listing[..], &["--format", "json"]].concat());
    assert_eq!(run.complaints(), "");
    let chain =
        "~fstatat ~__tzfile_read ~tzset_internal ~tzset ?mktime ?__GI_mktime seconds_of! parse_line parse_log main";
    let is = |s: &Stack| {
        // functions that libc inlines are the compiler's choice
        let frames = s.frames.iter().filter(|f| !(f.inlined && f.is_libs())).cloned().collect();
        s.status == "complete" && Stack { frames, status: s.status.clone() }.is(chain, true)
    };
    let lines = run.json();
    let of_zone: Vec<_> = lines.iter().filter(|line| line["args"]["filename"] == "/etc/localtime").collect();
    assert!(of_zone.len() >= DATES - 1, "{} calls", of_zone.len());
    let stacks: Vec<_> = of_zone.iter().filter_map(|line| Stack::of(line)).collect();
    let right = stacks.iter().filter(|s| is(s)).count();
    assert!(
        right * 100 >= DATES * 99,
        "{right} of {DATES}: {}",
        stacks.iter().find(|s| !is(s)).map_or_else(String::new, Stack::brief)
    );
    // where it stands in the source
    let frame = stacks[DATES / 2].frames.iter().find(|f| f.name() == "parse_line").expect("parse_line");
    assert!(frame.file.as_ref().is_some_and(|file| file.ends_with("tz.c")) && frame.line.is_some(), "{frame:?}");

    // the same to read
    let text = there(&[&listing[..], &["--max-events", "50"]].concat()).text();
    let under = text.split("newfstatat(").find(|part| part.contains("/etc/localtime")).expect("a call");
    let at = |name: &str| under.find(name).unwrap_or_else(|| panic!("no {name} in {under}"));
    let order = ["tzset_internal", "seconds_of", "parse_line", "parse_log", "main", "_start"].map(at);
    assert!(order.is_sorted(), "{under}");
    let inlined = under.lines().find(|line| line.contains("seconds_of")).expect("line");
    assert!(inlined.contains("(inlined)"), "{inlined}");

    // and as one graph: nearly all calls of that kind come from one line of the program
    let text =
        there(&["callgraph", "unset.tape", "--of", "syscall", "-e", "=newfstatat", "--comm=tz", "--folded"]).text();
    let (part, calls) = share(&text, "tz", "parse_line");
    assert!(calls + 1 >= DATES as u64 && part > 0.99, "{part} of {calls}\n{}", head(&text));

    // the remedy, and what it changes
    parse_dates(&lab, "set.tape", &["TZ=:/etc/localtime"]);
    let calls = |tape: &str| {
        let rows = lab.analyze(&[tape, "-s", "-e", "=newfstatat", "--comm=tz", "--format", "json"]).expect(0).json();
        rows.iter().filter_map(|row| row["calls"].as_u64()).sum::<u64>()
    };
    let (before, after) = (calls("unset.tape"), calls("set.tape"));
    assert!(before + 1 >= DATES as u64 && after < 20, "{before} {after}");
    let diff = lab.analyze(&["diff", "unset.tape", "set.tape", "--comm=tz"]).expect(0).text();
    let line = diff.lines().find(|line| line.starts_with("newfstatat ")).unwrap_or_else(|| panic!("{diff}"));
    assert!(line.split_whitespace().any(|word| word.replace(',', "").parse() == Ok(before)), "{before}: {line}");
    let by_file =
        lab.analyze(&["diff", "unset.tape", "set.tape", "--comm=tz", "--by", "syscall,file"]).expect(0).text();
    assert!(by_file.contains("most changed: newfstatat /etc/localtime, "), "{by_file}");
}

#[test]
fn what_a_thread_waits_for() {
    let Some(lab) = Lab::with_bpf() else { return };
    let busy = lab.cc("busy", &["-O2"]);
    for call_graph in ["dwarf", "fp"] {
        if call_graph == "fp" {
            // the wrappers of a C library without frame pointers hide their callers, not the callers' callers
            lab.cc("busy", &["-O1", "-fno-omit-frame-pointer"]);
        }
        lab.record("t.tape", &["--call-graph", call_graph], &[&busy, "contend", "60"]).expect(0);
        lab.assert_whole("t.tape");
        let options = ["callgraph", "t.tape", "--of", "offcpu", "--comm=waiter", "--folded"];
        let text = lab.analyze(&options).expect(0).text();
        let function = if call_graph == "dwarf" { "contended_function" } else { "want_the_lock" };
        let (part, total) = share(&text, "waiter", function);
        println!("{call_graph}: {part} of {total} in {function}");
        assert!(total > 0 && part >= 0.9, "{call_graph}: {part} of {total}\n{}", head(&text));
    }
}

#[test]
fn where_the_cpu_time_goes() {
    let Some(lab) = Lab::with_bpf() else { return };
    let busy = lab.cc("busy", &["-O2"]);
    for (call_graph, frequency) in [("dwarf", 997), ("fp", 499)] {
        let options = ["--call-graph", call_graph, "-F", &frequency.to_string()];
        let run = lab.record("t.tape", &options, &[&busy, "hot", "700"]).expect(0);
        lab.assert_whole("t.tape");
        let cpu: f64 = run.text().trim().parse::<f64>().expect("microseconds") / 1e6;
        let text = lab.analyze(&["callgraph", "t.tape", "--of", "cpu", "--comm=busy", "--folded"]).expect(0).text();
        let (part, _) = share(&text, "busy", "hot_loop");
        println!("{call_graph}: {part} in hot_loop");
        assert!(part >= 0.95, "{call_graph}: {part}\n{}", head(&text));
        // as many samples as the CPU time it says it used asks for
        let samples = lab.info("t.tape")["events"]["sample"].as_f64().unwrap_or(0.0);
        let expected = cpu * f64::from(frequency);
        assert!((samples / expected - 1.0).abs() < 0.2, "{samples} samples of {expected}");
    }
}

#[test]
fn what_function_sent_the_signal() {
    let Some(lab) = Lab::with_bpf() else { return };
    let busy = lab.cc("busy", &["-O2"]);
    lab.record("t.tape", &["--call-graph", "dwarf"], &[&busy, "kill"]).expect(0);
    lab.assert_whole("t.tape");
    let kills = lab.analyze(&["kills", "t.tape", "--format", "json"]).expect(0).json();
    let term: Vec<&Value> = kills.iter().filter(|record| record["signal_name"] == "SIGTERM").collect();
    assert_eq!(term.len(), 1, "{kills:?}");
    let text = lab.analyze(&["kills", "-v", "t.tape"]).expect(0).text();
    let at = |name: &str| text.find(name).unwrap_or_else(|| panic!("no {name} in {text}"));
    assert!(["SIGTERM", "send_it", "end_child", "main"].map(at).is_sorted(), "{text}");
    let graph = lab.analyze(&["callgraph", "t.tape", "--of", "signal", "--folded"]).expect(0).text();
    assert!(graph.contains("main;end_child;send_it"), "{graph}");
}

#[test]
fn who_wakes_and_who_writes() {
    let Some(lab) = Lab::with_bpf() else { return };
    let busy = lab.cc("busy", &["-O2"]);
    let graph = |of: &str, comm: &str| {
        let options = ["callgraph", "t.tape", "--of", of, &format!("--comm={comm}"), "--folded"];
        lab.analyze(&options).expect(0).text()
    };
    let options = ["--call-graph", "dwarf", "--stacks-on", "wakeup"];
    lab.record("t.tape", &options, &[&busy, "contend", "60"]).expect(0);
    lab.assert_whole("t.tape");
    let text = graph("wakeup", "holder");
    let (part, woken) = share(&text, "holder", "hold_the_lock");
    assert!(woken >= 60 && part > 0.9, "{part} of {woken}\n{}", head(&text));

    // a loop that makes no calls wakes nobody: interrupts do, and they are nobody's
    lab.record("t.tape", &options, &[&busy, "hot", "500"]).expect(0);
    let text = graph("wakeup", "busy");
    let looping = folded(&text).into_iter().filter(|(frames, _)| frames.last() == Some(&"hot_loop"));
    assert_eq!(looping.map(|(_, woken)| woken).sum::<u64>(), 0, "{}", head(&text));

    if under(&lab).is_none() {
        return skipped("the directory for temporary files is on no disk");
    }
    lab.record("t.tape", &["--call-graph", "dwarf"], &[&busy, "write", &lab.file("blocks")]).expect(0);
    lab.assert_whole("t.tape");
    let text = graph("block", "busy");
    let (part, queued) = share(&text, "busy", "write_block");
    assert!(queued >= 101 && part > 0.9, "{part} of {queued}\n{}", head(&text));
}

/// A tape is read by others: what the graph prints is the same whoever prints it, and an SVG is one.
#[test]
fn graphs() {
    let Some(lab) = Lab::with_bpf() else { return };
    let busy = lab.cc("busy", &["-O2"]);
    lab.record("t.tape", &["--call-graph", "dwarf", "-F", "997"], &[&busy, "hot", "200"]).expect(0);
    let graph = |more: &[&str]| lab.analyze(&[&["callgraph", "t.tape", "--of", "cpu"], more].concat()).expect(0);
    graph(&["--svg", "out.svg"]);
    let svg = fs::read_to_string(lab.path("out.svg")).expect("svg");
    assert!(svg.contains("<svg") && svg.contains("hot_loop") && svg.trim_end().ends_with("</svg>"), "{svg:.300}");
    let caller = graph(&[]).text();
    let callee = graph(&["--callee"]).text();
    assert!(caller.contains("hot_loop") && callee.contains("hot_loop"), "{caller}\n{callee}");
    // callers stand above what they call, or below
    let before = |text: &str, a: &str, b: &str| text.find(a) < text.find(b);
    assert!(before(&caller, "main", "hot_loop") && before(&callee, "hot_loop", "main"), "{caller}\n{callee}");
    assert!(!graph(&["--format", "json"]).json().is_empty());
    // an answer nobody can give is said to be none
    let none = lab.analyze(&["callgraph", "t.tape", "--of", "block"]).expect(0);
    assert!(!none.text().contains("hot_loop"), "{}", none.text());
    assert!(!folded(&graph(&["--folded"]).text()).is_empty());
}

#[test]
fn names_are_found_where_nobody_may_not_search_the_root_directory() {
    let Some(lab) = Lab::with_bpf() else { return };
    lab.cc("busy", &["-O2"]);
    fs::copy(lab::binary("record"), lab.path("record")).expect("copy");
    // the root of a container, its owner's alone
    let script = r#"
mount -t tmpfs -o mode=700 root root && mkdir root/lab && mount --bind . root/lab && cd root || exit 1
for name in dev etc proc sys usr; do mkdir "$name" && mount --rbind "/$name" "$name" || exit 1; done
for name in bin lib lib64; do ln -s "usr/$name" "$name"; done
exec chroot . sh -c 'cd /lab && exec ./record -F 199 --call-graph dwarf -o t.tape -- ./busy hot 300'
"#;
    fs::create_dir(lab.path("root")).expect("mkdir");
    lab::run(lab.command("unshare").args(["-m", "sh", "-c", script])).expect(0);
    let info = lab.analyze(&["info", "t.tape"]).expect(0).text();
    assert!(!info.contains("Permission denied"), "{info}");
    let folded = lab.analyze(&["callgraph", "--of", "cpu", "--folded", "t.tape"]).expect(0).text();
    assert!(folded.contains(";hot_loop"), "{folded}");
}
