//! Any tracepoint: the rows are the workload's own doings with every kind of target, and event by event, field by field what perf
//! prints of the same run; what finds no room is counted, and perf loses none of its events.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use systape_e2e::disk::{has, skipped};
use systape_e2e::lab;
use systape_e2e::{Background, Lab};

const ITIMER: &str = "timer:itimer_state";
const COUNT: i64 = 1009;

/// Seconds and interval in rows of itimer_state of one process, in order.
fn timers(lab: &Lab, pid: &str) -> Vec<(i64, i64)> {
    let lines = lab.analyze(&["t.tape", "-e", ITIMER, "-p", pid, "--format", "json"]).expect(0).json();
    let of = |line: &Value| {
        assert_eq!((&line["event"], &line["args"]["which"]), (&ITIMER.into(), &0.into()), "{line}");
        assert!(line["cpu"].is_u64() && line["tid"].as_u64() == pid.parse().ok(), "{line}");
        let [value, interval] = ["value_sec", "interval_sec"].map(|name| line["args"][name].as_i64().expect(name));
        (value, interval)
    };
    lines.iter().filter(|line| line.get("lost").is_none()).map(of).collect()
}

fn expected() -> Vec<(i64, i64)> {
    (0..COUNT).map(|i| (1000 + i, i)).collect()
}

#[test]
fn events_are_those_of_the_program_whatever_the_target() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = lab.cc("itimers", &[]);
    let count = COUNT.to_string();
    let run = lab.record("t.tape", &["-e", ITIMER], &[&program, &count]).expect(0);
    assert_eq!(timers(&lab, run.text().trim()), expected(), "a command");
    lab.assert_whole("t.tape");
    assert!(lab.info("t.tape")["families"].to_string().contains("tracepoint"));
    // calls only when they are named too
    assert!(lab.analyze(&["t.tape", "--format", "json"]).expect(0).json().is_empty());
    let both = ["-e", "timer:itimer_state,setitimer"];
    lab.record("t.tape", &both, &[&program, &count]).expect(0);
    assert_eq!(lab.analyze(&["t.tape", "--format", "json"]).expect(0).json().len() as i64, COUNT);
    for target in [&["-p", "PID"][..], &["-t", "PID"], &["-a"]] {
        fs::remove_file(lab.path("go")).ok();
        let waits = Background::start(lab.command(&program).args([count.as_str(), "go"]));
        let pid = waits.pid_text();
        let words = target.iter().map(|word| if *word == "PID" { pid.as_str() } else { word });
        let options: Vec<&str> = ["-e", ITIMER].into_iter().chain(words).collect();
        let record = lab.attach("t.tape", &options);
        fs::write(lab.path("go"), "").expect("go");
        waits.wait().expect(0);
        record.stop(libc::SIGINT).expect(0);
        assert_eq!(timers(&lab, &pid), expected(), "{options:?}");
    }
}

/// `name=value` in a line of perf's.
fn printed(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split([' ', ',', '(', ')']).filter_map(|word| word.trim_end_matches(':').split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn number(text: &str) -> Option<i128> {
    match text.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Whether perf's text of a field is the value in JSON; None = perf prints a word for it.
fn same(perf: &str, ours: &Value) -> Option<bool> {
    let ours = ours.as_str().map_or_else(|| ours.to_string(), str::to_owned);
    // some formats print hexadecimal without saying so
    let hex = i128::from_str_radix(perf, 16).ok();
    match (number(perf), number(&ours)) {
        (_, Some(ours)) if hex == Some(ours) => Some(true),
        (Some(theirs), Some(ours)) => Some(theirs == ours),
        (None, None) => Some(perf == ours),
        // a symbol, flags, a device
        _ => None,
    }
}

/// How many fields of an event are the same in perf's text and ours, and how many perf prints as words.
struct Equal {
    fields: i64,
    words: i64,
}

/// None: one differs.
fn compared(perf: &str, ours: &Value) -> Option<Equal> {
    let mut equal = Equal { fields: 0, words: 0 };
    for (name, value) in printed(perf) {
        match ours.get(&name).and_then(|ours| same(&value, ours)) {
            Some(true) => equal.fields += 1,
            Some(false) => return None,
            None => equal.words += 1,
        }
    }
    Some(equal)
}

const DAY: i64 = 86_400;

/// A clock of the kernel's, ns.
fn clock(id: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to.
    assert_eq!(unsafe { libc::clock_gettime(id, &raw mut time) }, 0);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Nanoseconds since midnight of a line's `time`.
fn time_of_day(line: &Value) -> i64 {
    let time = line["time"].as_str().expect("a time");
    let (_, clock) = time.trim_end_matches('Z').split_once('T').expect("a date");
    let (hms, ns) = clock.split_once('.').expect("a fraction");
    let seconds = hms.split(':').fold(0, |all, part| all * 60 + part.parse::<i64>().expect("a number"));
    seconds * 1_000_000_000 + ns.parse::<i64>().expect("ns")
}

#[test]
fn perf_prints_the_same_of_the_same_run() {
    let Some(lab) = Lab::with_bpf() else { return };
    if !has("perf") {
        return skipped("no perf: tracepoints are not compared");
    }
    let program = lab.cc("itimers", &[]);
    let events = [
        ITIMER,
        "task:task_newtask",
        "task:task_prctl_unknown",
        "kmem:mm_page_alloc",
        "kmem:kfree",
        "writeback:writeback_dirty_inode",
        "writeback:writeback_mark_inode_dirty",
        "timer:hrtimer_start",
        "timer:hrtimer_init",
        "exceptions:page_fault_kernel",
        "filemap:mm_filemap_add_to_page_cache",
    ];
    let there =
        |event: &&&str| std::path::Path::new("/sys/kernel/tracing/events").join(event.replace(':', "/")).is_dir();
    let events: Vec<&str> = events.iter().filter(there).copied().collect();
    assert!(events.len() > 5, "{events:?}");
    let list = events.join(",");
    let work = format!("{program} {COUNT}; dd if=/dev/zero of=file bs=4k count=97 2>/dev/null; usleep 10; sync file");
    let perf = [
        "perf",
        "record",
        "-q",
        "-m",
        "16M",
        "-k",
        "CLOCK_MONOTONIC",
        "-o",
        "p.data",
        "-e",
        &list,
        "--",
        "sh",
        "-c",
        &work,
    ];
    lab.record("t.tape", &["-e", &list, "-m", "64M"], &perf).expect(0);
    // runs within a run on the same CPU are skipped, and counted
    let skipped = lost(&lab);
    let script = lab::run(lab.command("perf").args([
        "script",
        "-i",
        "p.data",
        "--ns",
        "-F",
        "tid,time,event,trace",
        "--show-lost-events",
    ]));
    let script = script.expect(0).text();
    assert!(!script.contains("PERF_RECORD_LOST"), "perf lost events: nothing is compared");
    let since_boot = clock(libc::CLOCK_REALTIME) - clock(libc::CLOCK_MONOTONIC);
    // (event, thread) -> when, and fields, in order
    let mut ours: BTreeMap<(String, u64), Vec<(i64, Value)>> = BTreeMap::new();
    for line in lab.analyze(&["t.tape", "-e", &list, "--format", "json"]).expect(0).json() {
        if line.get("lost").is_some() {
            continue;
        }
        let key = (line["event"].as_str().expect("a name").to_owned(), line["tid"].as_u64().expect("a tid"));
        ours.entry(key).or_default().push((time_of_day(&line), line["args"].clone()));
    }
    let (mut fields, mut words, mut rows, mut missing) = (0, 0, 0, Vec::new());
    for line in script.lines() {
        let mut parts = line.trim().splitn(4, char::is_whitespace);
        let mut part = || parts.by_ref().find(|part| !part.is_empty()).unwrap_or_else(|| panic!("{line}"));
        let (tid, time) = (part().parse().expect("a thread"), part().trim_end_matches(':').to_owned());
        let (event, rest) = line.split_once(": ").and_then(|(_, rest)| rest.trim().split_once(": ")).expect("an event");
        let (seconds, ns) = time.split_once('.').expect("a time");
        let at = seconds.parse::<i64>().expect("seconds") * 1_000_000_000 + ns.parse::<i64>().expect("ns");
        let at = (at + since_boot) % (DAY * 1_000_000_000);
        let rows_of = ours.entry((event.to_owned(), tid)).or_default();
        // ours is read just before, unless an interrupt comes between the two, which may have events of its own; the clocks of both agree
        // within the 100 us that one of them was set by meanwhile
        let before = rows_of.partition_point(|(ours, _)| *ours <= at + 100_000);
        // the earliest that is equal: the latest would be another event's, and leave none for the last of many
        let from = rows_of.partition_point(|(ours, _)| *ours < at - 10_000_000);
        let Some((i, equal)) = (from..before).find_map(|i| Some((i, compared(rest, &rows_of[i].1)?))) else {
            missing.push(line);
            continue;
        };
        rows_of.remove(i);
        rows += 1;
        fields += equal.fields;
        words += equal.words;
    }
    assert!(missing.len() as u64 <= skipped, "{skipped} are told as missing, and these are:\n{}", missing.join("\n"));
    assert!(rows > COUNT && fields > 2 * COUNT, "{rows} rows, {fields} fields equal, {words} words");
    eprintln!("{rows} events, {fields} fields equal, {words} that perf prints as words");
}

/// Filters of some tracepoints each, recorded and given to perf in one run.
const FILTERS: [[(&str, &str); 3]; 5] = [
    [
        (ITIMER, "value_sec > 1100 && value_sec <= 1200"),
        (TASK, "comm == \"worker-70\""),
        (PACKET, "name == \"lo\" && len > 500"),
    ],
    [
        (ITIMER, "!(value_sec < 1500) && (interval_sec == 0x200 || interval_sec == 999)"),
        (TASK, "comm ~ \"worker-1*\""),
        (PACKET, "name ~ \"l*\" && len < 0x80"),
    ],
    [
        (ITIMER, "interval_sec & 3"),
        (TASK, "comm ~ \"*-?[1-5]0\" || oom_score_adj < -1000"),
        (PACKET, "name != \"lo\" || skbaddr == 0"),
    ],
    [
        (ITIMER, "which == 0 && common_pid > 0 && value_sec != 1003"),
        (TASK, "comm != \"worker-0\" && clone_flags & 0x1000000 && oom_score_adj >= -1000"),
        (PACKET, "len == 100 || len == 0144 || len == 0x64 || len == 101 || len >= 1000 || name ~ \"e*\""),
    ],
    [
        (ITIMER, "interval_sec < 10 || interval_sec >= 1000 && !(interval_sec == 1003)"),
        (TASK, "comm ~ \"[!w]*\""),
        (PACKET, "name ~ \"?o\" && !(len & 1)"),
    ],
];
const TASK: &str = "task:task_newtask";
const PACKET: &str = "net:net_dev_queue";
/// How many of the timers each of them lets through.
const TIMERS: [usize; 5] = [100, 2, 756, 1008, 18];

#[test]
fn filters_let_through_what_perf_does() {
    let Some(lab) = Lab::with_bpf() else { return };
    if !has("perf") {
        return skipped("no perf: filters are not compared");
    }
    let program = lab.cc("filters", &[]);
    for (filters, timers) in FILTERS.iter().zip(TIMERS) {
        let asked = filters.map(|(event, filter)| format!("{event}/{filter}/")).join(",");
        let mut perf = vec!["perf", "record", "-q", "-o", "p.data"];
        filters.iter().for_each(|(event, filter)| perf.extend(["-e", event, "--filter", filter]));
        let count = COUNT.to_string();
        perf.extend(["--", &program, &count]);
        // an event in an interrupt of the program is skipped, and counted: another run has none
        let mut runs = (0..5).map(|_| lab.record("t.tape", &["-e", &asked], &perf).expect(0));
        let run = runs.find(|_| lost(&lab) == 0).expect("a run without lost events");
        let pid = run.text().lines().next().expect("its id").to_owned();
        let script = ["script", "-i", "p.data", "-F", "tid,event,trace", "--show-lost-events"];
        let script = lab::run(lab.command("perf").args(script)).expect(0).text();
        assert!(!script.contains("PERF_RECORD_LOST"), "perf lost events: nothing is compared");
        let names = filters.map(|(event, _)| event).join(",");
        let listed = lab.analyze(&["t.tape", "-e", &names, "-p", &pid, "--format", "json"]).expect(0);
        for (event, filter) in filters {
            assert!(listed.stderr.contains(&format!("{event}: only events with {filter} were recorded")), "{listed:?}");
        }
        let mut ours: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for line in listed.json() {
            ours.entry(line["event"].as_str().expect("a name").to_owned()).or_default().push(line["args"].clone());
        }
        let mut theirs: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in script.lines() {
            let (tid, rest) = line.trim().split_once(char::is_whitespace).expect("a thread");
            let (event, fields) = rest.trim().split_once(": ").expect("an event");
            if tid == pid {
                theirs.entry(event.to_owned()).or_default().push(fields.to_owned());
            }
        }
        assert_eq!(ours.get(ITIMER).map_or(0, Vec::len), timers, "{asked}");
        for (event, filter) in filters {
            let (ours, theirs) = (ours.remove(*event).unwrap_or_default(), theirs.remove(*event).unwrap_or_default());
            assert_eq!(ours.len(), theirs.len(), "{event}: {filter}");
            for (ours, theirs) in ours.iter().zip(&theirs) {
                let equal = compared(theirs, ours).unwrap_or_else(|| panic!("{event}: {filter}: {ours} and {theirs}"));
                assert!(equal.fields > 0, "{theirs}");
            }
            eprintln!("{event}/{filter}/: {} events, as perf has them", ours.len());
        }
        assert!(ours.is_empty() && theirs.is_empty(), "{ours:?}, {theirs:?}");
    }
}

/// Events of tracepoints that the tape says are missing.
fn lost(lab: &Lab) -> u64 {
    lab.info("t.tape")["lost"]["tracepoint"].as_u64().unwrap_or(0)
}

#[test]
fn what_a_filter_leaves_out_is_not_lost() {
    let Some(lab) = Lab::beside() else { return };
    let program = lab.cc("itimers", &[]);
    let only = "timer:itimer_state/value_sec==1500/";
    let run = lab.record("t.tape", &["-e", only, "-m", "1", "-g"], &[&program, "100003"]).expect(0);
    assert_eq!(timers(&lab, run.text().trim()), [(1500, 500)]);
    assert_eq!(lost(&lab), 0);
    assert!(lab.info("t.tape")["selection"].to_string().contains(only), "{}", lab.info("t.tape"));
    let none = lab.analyze(&["t.tape", "-e", ITIMER, "-p", "1", "--format", "json"]).expect(0);
    assert!(none.json().is_empty() && none.stderr.contains("only events with value_sec==1500"), "{none:?}");
    // the recorder leaves out what the program cannot; of texts nothing is on a tape without texts
    let hard = "task:task_newtask/comm ~ \"*no such thread*\"/";
    lab.record("t.tape", &["-e", hard, "-g", "--redact", "strings"], &["sh", "-c", "true | true"]).expect(0);
    assert!(lab.analyze(&["t.tape", "-e", TASK, "--format", "json"]).expect(0).json().is_empty());
    assert_eq!(lost(&lab), 0);
    let selection = lab.info("t.tape")["selection"].to_string();
    assert!(selection.contains("...") && !selection.contains("no such thread"), "{selection}");
}

#[test]
fn what_finds_no_room_is_counted() {
    let Some(lab) = Lab::beside() else { return };
    let program = lab.cc("itimers", &[]);
    let count = "100003";
    let run = lab.record("t.tape", &["-e", ITIMER, "-m", "1"], &[&program, count]).expect(0);
    let stored = timers(&lab, run.text().trim()).len() as u64;
    let info = lab.info("t.tape");
    let lost = info["lost"]["tracepoint"].as_u64().expect("nothing was lost, so nothing is tested");
    assert_eq!(stored + lost, 100_003, "{info}");
    let sums = lab.analyze(&["t.tape", "-s", "-e", ITIMER, "--format", "json"]).expect(0).json();
    assert!(sums.iter().all(|sum| sum["count_at_least"] == true), "{sums:?}");
}

#[test]
fn what_cannot_be_recorded_is_said() {
    let Some(lab) = Lab::beside() else { return };
    let said = |options: &[&str], code: i32| lab.record("t.tape", options, &["true"]).expect(code).stderr;
    assert!(said(&["-e", "timer:itimer_stat"], 2).contains("did you mean timer:itimer_state?"));
    assert!(said(&["-e", "timr:itimer_state"], 2).contains("did you mean timer:itimer_state?"));
    assert!(said(&["-e", "sched:sched_switch,task:task_rename"], 0).contains("is recorded by the family sched"));
    let wrong = said(&["-e", "timer:itimer_state/value_se>1/"], 2);
    assert!(wrong.contains("did you mean value_sec?") && wrong.contains("interval_nsec, common_pid"), "{wrong}");
    assert!(said(&["-e", "timer:itimer_state/value_sec>'x'/"], 2).contains("texts are compared by"));
    assert!(said(&["-e", "timer:itimer_state/value_sec>1"], 2).contains("ends with a slash"));
    assert!(said(&["-e", "sched:sched_switch/prev_pid==1/"], 2).contains("the family sched, which takes no filter"));
    assert!(said(&["--filter", "value_sec>1"], 2).contains("CATEGORY:NAME/FILTER/"));
    assert!(said(&["-e", "*:*"], 2).contains("a tape takes"));
    let force = ["-e", ITIMER, "--force", "unloadable=any_tracepoint"];
    assert!(said(&force, 0).contains("tracepoint is not recorded: the kernel refused the program any_tracepoint"));
    // not recorded is not "it did not happen", which a tape says of what it records
    assert_eq!(lab.analyze(&["t.tape", "-e", ITIMER]).code(), 2);
    said(&["-e", ITIMER], 0);
    assert!(lab.analyze(&["t.tape", "-e", ITIMER, "--format", "json"]).expect(0).json().is_empty());
}
