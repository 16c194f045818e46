//! Every filter on the sample tape, in listing and summary alike; and the shape of JSON.

use crate::common::{self, OPEN, Place, Row, Tape, session};
use systape_format::model::{ByteStatus, Checkpoint, Family, FdTable, Session};

/// The calls a listing with these options has.
fn names(place: &Place, words: &str) -> Vec<String> {
    let got = place.analyze(&format!("--format json {words} sample.tape"));
    assert_eq!(got.status, 0, "{words}: {}", got.err);
    got.json().iter().map(|row| row["syscall"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn filters_agree_in_listing_and_summary() {
    let place = Place::with_sample();
    for (words, expected) in [
        ("--duration 0.5", "wait4 futex nanosleep read"),
        ("--duration 500us -e !futex", "wait4 nanosleep read"),
        ("--duration 8", "futex"),
        ("--failure", "openat openat connect sys_4511 ptrace"),
        ("-e network,kill", "connect kill"),
        ("-e file,!openat", "execve"),
        ("-p 102", "execve read"),
        ("-t 101", "read wait4 futex"),
        ("-u eva -e read", "read read"),
        ("-u 0", "execve read"),
        ("--comm=oth*", "execve read"),
        ("--comm=app,oth? -e execve", ""),
        ("--comm=!app", "execve read"),
        ("--comm=o*,!app", "execve read"),
        ("--comm=!app,oth*", ""),
        ("--comm=\\!app", ""),
        ("-G /user.slice -e kill,execve", "kill"),
        ("-C 2", "execve read"),
        ("-P /etc/ld.so.conf", "openat close"),
        ("-P ld.so.conf -P /staging/*", "read openat close"),
        ("-P /var/log", "openat"),
        ("-P /var/log --time 26us,", ""),
        ("-P /staging/* -P !*_file", ""),
        ("-P ld.so.conf -P /staging/* -P !/staging/*", "openat close"),
        ("-e kill,close -P !/etc/*", "kill"),
        ("--time 800us,1ms", "execve kill sys_4511 nanosleep"),
        ("--time 50%,", "exit_group"),
        ("--time 2026-11-21T05:48:19.0018Z,2026-11-21T05:48:19.0020Z", "ptrace read write"),
        ("--time ,11us", "read openat"),
        ("-e =dup2", ""),
        ("-e sys_4511", "sys_4511"),
    ] {
        let listed = names(&place, words);
        assert_eq!(listed.join(" "), expected, "{words}");
        let summary = place.analyze(&format!("-s --summary-mode total --format json {words} sample.tape")).json();
        let counted: u64 = summary.iter().map(|row| row["calls"].as_u64().unwrap()).sum();
        assert_eq!(counted, listed.len() as u64, "{words}");
    }
    assert_eq!(names(&place, "").len(), 21);
    assert_eq!(names(&place, "--clone-child").len(), 22);
    assert_eq!(names(&place, "--max-events 3").len(), 3);
    assert_eq!(names(&place, "--max-events 0").len(), 0);
}

#[test]
fn calls_are_on_what_they_name() {
    let place = Place::new();
    let session = Session { families: vec![Family::Syscall, Family::Process], ..session() };
    let cwd = FdTable { upid: 1, complete: true, cwd: b"/home".to_vec(), fds: Vec::new(), ..FdTable::default() };
    let tasks = vec![common::task(100)];
    let start =
        Checkpoint { ts: OPEN, tasks, fd_tables: vec![cwd], source: "snapshot".into(), ..Checkpoint::default() };
    let mut tape = Tape::create_at(&place.path("t.tape"), &session, &start);
    let call = |name, start, args: [u64; 6]| Row { tid: 100, name, start, dur: 5, args, ..Row::default() };
    let path = |text: &'static str| vec![(0, ByteStatus::Whole, 4, text.as_bytes())];
    let cwd = 0xffff_ff9c;
    let rows = [
        Row { errno: 14, ..call("open", 10, [0; 6]) },
        Row { errno: 14, ..call("openat", 20, [cwd, 0, 0, 0, 0, 0]) },
        Row { captured: path("me"), ..call("chdir", 30, [0x5600, 0, 0, 0, 0, 0]) },
        Row { captured: path("file"), ..call("open", 40, [0x5600, 0, 0, 0, 0, 0]) },
        call("getpid", 50, [0; 6]),
    ];
    tape.segment(200, &rows, &[]);
    tape.finish();
    let files = |words: &str| {
        let rows = place.analyze(&format!("files --by file,syscall --format json {words} t.tape")).json();
        let mut files: Vec<_> = rows
            .iter()
            .map(|row| format!("{} {}", row["file"].as_str().unwrap_or("?"), row["syscall"].as_str().unwrap()))
            .collect();
        files.sort();
        files.join(", ")
    };
    assert_eq!(files(""), "/home/me chdir, /home/me/file open");
    assert_eq!(files("-P /home/me"), "/home/me chdir");
    assert_eq!(files("-P !/home/me"), "/home/me/file open");
    let listed = |words: &str| {
        let got = place.analyze(&format!("--format json {words} t.tape"));
        assert_eq!(got.err, "", "{words}");
        got.json().iter().map(|row| row["syscall"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(listed("-P !/home/me"), "open openat open getpid");
    assert_eq!(listed("-P /home/* -P !*/file"), "chdir");
}

#[test]
fn both_orders_hold_the_same_calls() {
    let place = Place::with_sample();
    let rows = |words: &str| place.analyze(&format!("--format json {words} sample.tape")).json();
    let starts: Vec<i64> = rows("").iter().map(|row| row["ts_ns"].as_i64().unwrap()).collect();
    assert!(starts.is_sorted(), "{starts:?}");
    let ended = rows("--sort end");
    let ends: Vec<i64> =
        ended.iter().map(|row| row["ts_ns"].as_i64().unwrap() + row["dur_ns"].as_i64().unwrap_or(0)).collect();
    assert!(ends.is_sorted(), "{ends:?}");
    let sorted = |words: &str| {
        let mut lines: Vec<_> = place.analyze(&format!("{words} sample.tape")).out.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(""), sorted("--sort end"));
}

/// The first lines of the first segment are written before its others are rendered, and none that is not asked for.
#[test]
fn a_listing_is_in_order_across_its_pieces() {
    let place = Place::new();
    // one begins every 10 µs; every seventh takes 20 ms and ends in a later segment
    let calls = (0..2_630_u64).map(|n| Row {
        tid: if n % 7 == 0 { 300 + n as u32 } else { 200 },
        name: "lseek",
        start: n * 10,
        dur: if n % 7 == 0 { 20_000 } else { 5 },
        args: [3, n, 0, 0, 0, 0],
        ..Row::default()
    });
    let calls: Vec<Row<'_>> = calls.collect();
    let mut tape = Tape::create(&place.path("sample.tape"));
    let mut from = 0;
    for until in [15_000, 26_000, 60_000] {
        let mut rows: Vec<_> = calls.iter().filter(|c| (from..until).contains(&(c.start + c.dur))).cloned().collect();
        rows.sort_by_key(|c| c.start + c.dur);
        tape.segment(until, &rows, &[]);
        from = until;
    }
    tape.finish();
    let offsets = |words: &str| -> Vec<u64> {
        let rows = place.analyze(&format!("--format json {words} sample.tape")).json();
        rows.iter().map(|row| row["args"]["offset"].as_str().unwrap().parse().unwrap()).collect()
    };
    let all: Vec<u64> = (0..2_630).collect();
    assert_eq!(offsets(""), all);
    for limit in [1, 1_023, 1_024, 1_025, 1_285, 1_286, 1_499, 1_500, 1_501, 2_229, 2_629, 2_630, 2_631] {
        assert_eq!(offsets(&format!("--max-events {limit}")), all[..limit.min(all.len())], "{limit}");
    }
    let mut by_end = all.clone();
    by_end.sort_by_key(|n| (calls[*n as usize].start + calls[*n as usize].dur, *n));
    let ended = offsets("--sort end");
    let end = |n: &u64| calls[*n as usize].start + calls[*n as usize].dur;
    assert_eq!(ended.iter().map(end).collect::<Vec<_>>(), by_end.iter().map(end).collect::<Vec<_>>());
    assert_eq!(offsets("--sort end --max-events 1030"), ended[..1_030]);
}

#[test]
fn json_has_the_documented_fields_and_types() {
    let place = Place::with_sample();
    let rows = place.analyze("--format json sample.tape").json();
    let fields = [
        "abi",
        "args",
        "cgroup",
        "comm",
        "cpu",
        "dur_ns",
        "dur_ns_at_least",
        "errno",
        "errno_code",
        "host",
        "incomplete",
        "pid",
        "ret",
        "syscall",
        "tid",
        "time",
        "time_uncertain_ns",
        "ts_ns",
        "uid",
        "upid",
        "utid",
    ];
    for row in &rows {
        let mut names: Vec<_> = row.as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, fields);
    }
    let of = |name: &str| rows.iter().find(|row| row["syscall"] == name).unwrap();
    assert_eq!(of("mmap")["ret"], "0x7f34dd549000");
    assert_eq!(of("mmap")["args"]["len"], "8192");
    assert_eq!(of("close")["args"]["fd"], serde_json::json!({"fd": 3, "path": "/etc/ld.so.conf"}));
    assert_eq!(of("openat")["args"]["flags"], serde_json::json!({"value": 0o2_000_000, "text": "O_RDONLY|O_CLOEXEC"}));
    assert_eq!(of("execve")["args"]["argv"], serde_json::json!(["ls", "-l", "a b"]));
    assert_eq!(of("pipe2")["args"]["fildes"], serde_json::json!([3, 4]));
    assert_eq!((&of("futex")["incomplete"], &of("futex")["ret"]), (&"in-flight".into(), &serde_json::Value::Null));
    assert_eq!((&of("ptrace")["errno"], &of("ptrace")["dur_ns"]), (&"EPERM".into(), &serde_json::Value::Null));
    assert_eq!(of("sys_4511")["args"]["arg2"], "0xff");
}

#[test]
fn a_summary_equals_adding_up_the_listing() {
    let place = Place::new();
    let mut tape = Tape::create(&place.path("sample.tape"));
    for segment in 0..12_u64 {
        let rows: Vec<_> = (0..300)
            .map(|i| {
                let name = ["read", "write", "close"][(i % 3) as usize];
                let errno = if i % 7 == 0 { 11 } else { 0 };
                Row {
                    tid: 100 + (i % 4) as u32,
                    name,
                    start: segment * 3_000 + i * 5,
                    dur: i * i % 997,
                    errno,
                    ..Row::default()
                }
            })
            .collect();
        tape.segment((segment + 1) * 3_000, &rows, &[]);
    }
    tape.finish();
    for words in ["", "-e read", "--time 7ms,20ms", "-C 1,2", "--duration 0.3", "--failure"] {
        let listed = place.analyze(&format!("--format json {words} sample.tape")).json();
        for row in place.analyze(&format!("-s --format json {words} sample.tape")).json() {
            let mine: Vec<_> =
                listed.iter().filter(|call| call["tid"] == row["tid"] && call["syscall"] == row["syscall"]).collect();
            let mut durs: Vec<u64> = mine.iter().map(|call| call["dur_ns"].as_u64().unwrap()).collect();
            durs.sort_unstable();
            let number = |name: &str| row[name].as_u64().unwrap();
            assert_eq!(number("calls"), mine.len() as u64, "{words}");
            assert_eq!(number("errors"), mine.iter().filter(|call| !call["errno"].is_null()).count() as u64);
            assert_eq!(
                (number("total_ns"), number("min_ns"), number("max_ns")),
                (durs.iter().sum(), durs[0], durs[durs.len() - 1])
            );
            assert_eq!(number("avg_ns"), durs.iter().sum::<u64>() / durs.len() as u64);
            let exact = durs[(durs.len() * 99).div_ceil(100) - 1];
            assert!(
                number("p99_ns").abs_diff(exact) as f64 <= exact as f64 * row["quantile_error"].as_f64().unwrap() + 1.0
            );
        }
        let counted: u64 = place
            .analyze(&format!("-s --format json {words} sample.tape"))
            .json()
            .iter()
            .map(|row| row["calls"].as_u64().unwrap())
            .sum();
        assert_eq!(counted, listed.len() as u64, "{words}");
    }
}

/// Somebody set the clock forward by 40 s between the only two samples.
#[test]
fn a_time_of_day_while_the_clock_may_have_been_set_is_one_of_two() {
    let place = Place::new();
    let path = place.path("t.tape");
    let mut session = session();
    session.clock.realtime -= 40_000_000_000;
    let mut tape = Tape::create_at(&path, &session, &Checkpoint::default());
    let call = Row { tid: 100, name: "read", start: 0, dur: 10, ..Row::default() };
    tape.segment(1_000_000, &[call.clone(), Row { start: 500_000, ..call }], &[]);
    tape.finish();
    let [first, second] = &place.analyze("--format json t.tape").json()[..] else { panic!("two calls") };
    assert_eq!(
        (&first["time"], first.get("time_uncertain_ns")),
        (&"2026-11-21T05:47:39.000000000Z".into(), Some(&serde_json::Value::Null))
    );
    let both = "2026-11-21T05:47:39.500000000Z/2026-11-21T05:48:19.500000000Z";
    assert_eq!((&second["time"], &second["time_uncertain_ns"]), (&both.into(), &40_000_000_000_u64.into()));
    assert!(place.analyze("--format csv t.tape").out.contains(both));
    let listed = |range: &str| place.analyze(&format!("--time {range} t.tape")).out.lines().count();
    // what may match is listed, whichever of both it was
    assert_eq!(listed("2026-11-21T05:47:39.4Z,2026-11-21T05:47:39.6Z"), 1);
    assert_eq!(listed("2026-11-21T05:48:19.4Z,2026-11-21T05:48:19.6Z"), 1);
    assert_eq!(listed("2026-11-21T05:48:21Z,2026-11-21T05:48:30Z"), 0);
    assert_eq!(listed("2026-11-21T05:47:30Z,2026-11-21T05:47:39.4Z"), 1);
}

#[test]
fn fields_choose_events() {
    let place = Place::new();
    common::events::write(&place.path("events.tape"), false);
    common::tables::write(&place.path("tables.tape"));
    let ask = |words: &[&str]| place.ask_words(words.iter().copied());
    let listed = |term: &str, tape: &str| {
        let run = ask(&["-e", term, tape]);
        assert!(run.status == 0 && (run.err.is_empty() || run.out.is_empty()), "{term}: {run:?}");
        run.out.lines().count()
    };
    for (term, expected) in [
        ("sched:sched_switch/prev_state==R && preempted==true/", 1),
        ("sched:*/prev_comm ~ 'a*'/,sched:*/wakee_tid == 101/", 2),
        ("sched:sched_waking,sched:sched_switch/!(next_comm == app)/", 2),
        ("block:block_rq_complete/bytes >= 0x2000 && rwbs ~ *S*/", 1),
        // those without an error have none that is another one
        ("block:*/errno != EIO/", 0),
        ("block:*/errno_code == 5/", 1),
        ("sock:inet_sock_set_state/oldstate==LISTEN && lport > 40002/", 1),
    ] {
        assert_eq!(listed(term, "events.tape"), expected, "{term}");
    }
    for (term, expected) in [
        ("exceptions:page_fault_user/error_code == -1/", 1),
        ("exceptions:page_fault_user/address > 0x7f0000000000 && tid == 100/", 1),
        ("fault:page_fault_user/address & 1/", 1),
        ("writeback:*/name ~ vda*/,exceptions:*/pid == 1/", 1),
    ] {
        assert_eq!(listed(term, "tables.tape"), expected, "{term}");
        let counts = ask(&["-s", "--format", "json", "-e", term, "tables.tape"]).json();
        let counts = counts.iter().filter(|row| row.get("event").is_some()).filter_map(|row| row["count"].as_u64());
        assert_eq!(counts.sum::<u64>(), expected as u64, "{term}");
    }
    let top =
        ask(&["top", "-e", "sched:sched_switch/prev_state==S/", "--by", "prev_tid", "--format", "json", "events.tape"]);
    assert_eq!((top.json().len(), &top.json()[0]["fields"]["prev_tid"]), (1, &100.into()), "{top:?}");
    let noted = ask(&["-e", "sched:sched_switch/prev_pid==100/", "events.tape"]);
    assert!(noted.status == 0 && noted.err.contains("prev_pid is the process; the thread is prev_tid"), "{noted:?}");
    for (term, said) in [
        ("sched:sched_switch/prev_stat==S/", "sched:sched_switch has no field 'prev_stat'; did you mean prev_state"),
        ("sched:sched_switch/prev_tid==x/", "'prev_tid' is a number: 'x' is not"),
        ("sched:sched_switch/prev_tid==1", "a filter ends with a slash"),
    ] {
        let refused = ask(&["-e", term, "events.tape"]);
        assert!(refused.status == 2 && refused.err.contains(said), "{term}: {refused:?}");
    }
}
