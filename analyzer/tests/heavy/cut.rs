//! `analyze cut` and `merge`: reports on a cut print what they print of the whole tape with `--time`, and what is put
//! together again prints what the original does, byte for byte.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use crate::common::{self, Place};
use systape_analyzer::exercise::VIEWS;
use systape_analyzer::frames::{self, Batch, Bounds, Values};

/// What is asked of every tape.
const REPORTS: &[&str] = &[
    "",
    "-y",
    "--sort end",
    "--format json",
    "--format csv",
    "-e all,sched:*,signal:*,block:*,sock:*,io_uring:*,process:* --call-graph",
    "-s",
    "-S",
    "-s --format json",
    "-s --cpu --errno-summary --summary-mode process",
    "-s --summary-mode cgroup",
    "-s --by comm,file,errno,cpu",
    "kills --all -v",
    "kills --all --format json",
    "exec",
    "exec --tree --all",
    "block",
    "block --top --by comm,tid,uid,cgroup,unit,cause,task",
    "block --hist --queued --by op,comm",
    "block --sizes --by comm",
    "top --by dir,ext,peer,port --metric count --hist",
    "top -e sched:*,signal:*,block:*,sock:*,process:* --by comm,cpu,second",
    "top -e exceptions:*,lock:*",
    "top --by comm,ret --value ret",
    "why",
    "why --floor 0",
    "files --format json",
    "files --opens",
    "files --slower 0ns --sockets",
    "opensnoop",
    "statsnoop",
    "execsnoop",
    "execsnoop --fails",
    "biosnoop",
    "biolatency",
    "tcplife",
    "syscount -P",
    "filetop",
    "killsnoop",
    "gethostlatency",
    "offcputime",
    "rate --by file,errno --slices 7",
    "net",
    "net --format json",
    "net --events",
    "net --udp",
    "net --by uid,comm,peer",
    "locks",
    "locks --metric waits",
    "probes --by comm,cpu",
    "path",
    "path --sums",
    "sched timehist",
    "sched latency --by task",
    "runqlat --by task",
    "cpudist --by cpu",
    "offcpu --by file,task,state,syscall --format json",
    "offcpu --wakers 100",
    "states --by process,state,syscall,file --format json",
    "callgraph",
    "callgraph --of offcpu",
    "callgraph --of syscall --format json",
    "callgraph --of wakeup --folded",
    "callgraph --of block",
    "callgraph --of signal",
    "samples",
    "env",
    "export strace",
    "stays --by comm,state,syscall",
    "stays --longest",
];

fn place() -> (Place, Vec<String>) {
    let place = Place::with_sample();
    common::events::write(&place.path("events.tape"), false);
    common::life::write(&place.path("life.tape"), &[]);
    common::stacks::write(&place.path("stacks.tape"), 1);
    common::ledger::write(&place.path("ledger.tape"), &[]);
    common::tables::write(&place.path("tables.tape"));
    common::udp::write(&place.path("udp.tape"), &[]);
    common::locks::write(&place.path("locks.tape"), &[]);
    common::tools::write(&place.path("tools.tape"), &[]);
    common::looks::write(&place.path("looks.tape"), &[]);
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes");
    for entry in fs::read_dir(recorded).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "tape") {
            fs::copy(&path, place.path("").join(path.file_name().unwrap())).unwrap();
        }
    }
    let mut tapes: Vec<String> = fs::read_dir(place.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".tape"))
        .collect();
    tapes.sort();
    (place, tapes)
}

/// Compares what is printed of `one` with `words` and of `other` without.
fn compare(place: &Place, (one, words): (&str, &str), other: &str) {
    for report in REPORTS {
        let before = place.ask(&format!("{report} {words} {one}"));
        let after = place.ask(&format!("{report} {other}"));
        let out = after.out.replace(other, one);
        let (before, after) = ((before.status, before.out), (after.status, out));
        assert_eq!(before, after, "'{report} {words}' of {one} and of {other}");
    }
}

#[test]
fn a_cut_says_what_the_tape_says_of_that_time() {
    let (place, tapes) = place();
    for tape in &tapes {
        for (at, time) in ["20%,60%", "55%,"].iter().enumerate() {
            let cut = format!("{at}-cut-of-{tape}");
            let made = place.ask(&format!("cut {tape} {cut} --time {time}"));
            assert_eq!(made.status, 0, "{tape} {time}: {} {}", made.out, made.err);
            compare(&place, (tape, &format!("--time {time}")), &cut);
        }
    }
}

#[test]
fn every_report_of_a_time_is_compared() {
    let of = |name: &str, asked: &str| match name {
        "" => asked.is_empty(),
        "summary" => asked == "-s",
        "with-summary" => asked == "-S",
        name => asked.split(" --").next() == Some(name) || asked.starts_with(&format!("{name} ")),
    };
    // fds is asked for a moment, below; what makes a file asks the same places as these
    // No tape here has servers: `requests` is still to be compared
    const NOT_HERE: [&str; 9] = [
        "cut",
        "diff",
        "fds",
        "report",
        "export perfetto",
        "export pprof",
        "export firefox",
        "export arrow",
        "requests",
    ];
    let timed = VIEWS.iter().filter(|view| view.takes("time") && !NOT_HERE.contains(&view.name));
    for view in timed {
        assert!(REPORTS.iter().any(|asked| of(view.name, asked)), "{}", view.name);
    }
}

#[test]
fn a_cut_says_what_was_open_at_a_moment_of_its_time() {
    let (place, tapes) = place();
    let mut open = 0;
    // in that one a process accepts after its end
    for tape in tapes.iter().filter(|tape| *tape != "events.tape") {
        let cut = format!("cut-of-{tape}");
        assert_eq!(place.ask(&format!("cut {tape} {cut} --time 20%,60%")).status, 0, "{tape}");
        let info: serde_json::Value =
            serde_json::from_str(place.ask(&format!("info {tape} --format json")).out.lines().next().unwrap()).unwrap();
        for percent in [21, 40, 59] {
            let at = info["duration_ns"].as_u64().unwrap() * percent / 100_000;
            let ask = |tape: &str| place.ask(&format!("fds {tape} --at {at}us"));
            let (before, after) = (ask(tape), ask(&cut));
            assert_eq!(
                (before.status, &before.out),
                (after.status, &after.out.replace(&cut, tape)),
                "{tape} at {at} us"
            );
            open += before.out.lines().count();
        }
    }
    assert!(open > 100, "{open} lines");
}

/// The rows of a table for queries whose time is `inside`, in words: all columns but numbers that are a tape's own.
fn rows(path: &Path, table: &str, inside: impl Fn(i64) -> bool + Sync) -> Vec<String> {
    let source = frames::source(path).unwrap();
    let table = source.tables().iter().find(|known| known.name == table).unwrap();
    let own = |field: &&frames::FrameField| !["tape", "stack", "raw"].contains(&&*field.name);
    let fields: Vec<&frames::FrameField> = table.fields.iter().filter(own).collect();
    let time = fields.iter().position(|field| field.name == "rel_ns").unwrap();
    let mut all = Vec::new();
    for part in source.parts(table, &Bounds::default()) {
        let take = &mut |batch: Batch| {
            let Values::Int(times) = &batch.columns[time] else { panic!("{}", table.name) };
            for row in (0..batch.rows).filter(|row| times.get(*row).is_some_and(&inside)) {
                let text = |values: &Values| match values {
                    Values::Int(all) => format!("{:?}", all.get(row)),
                    Values::Wide(all) => format!("{:?}", all.get(row)),
                    Values::Real(all) => format!("{:?}", all.get(row)),
                    Values::Flag(all) => format!("{:?}", all.get(row)),
                    Values::Text(all, names) => format!("{:?}", names.get(all[row] as usize)),
                    Values::Map(all) => format!("{:?}", all[row]),
                };
                all.push(batch.columns.iter().map(text).collect::<Vec<_>>().join(" "));
            }
            ControlFlow::Continue(())
        };
        source.read(table, part, &fields, take).unwrap();
    }
    all.sort_unstable();
    all
}

#[test]
fn tables_for_queries_have_the_rows_of_that_time() {
    let (place, tapes) = place();
    let mut compared = 0;
    for tape in &tapes {
        assert_eq!(place.ask(&format!("cut {tape} part --time 20%,60%")).status, 0, "{tape}");
        let made = &place.ask("cut part copy --time 0%,100% --format json").json()[0];
        let (from, to) = (made["from_ns"].as_i64().unwrap(), made["to_ns"].as_i64().unwrap());
        let (whole, part) = (place.path(tape), place.path("part"));
        let source = frames::source(&whole).unwrap();
        // what was counted has no moment
        let timed = |table: &&frames::Table| {
            !table.is_report()
                && !["ledger", "gaps"].contains(&&*table.name)
                && table.fields.iter().any(|field| field.name == "rel_ns")
        };
        for table in source.tables().iter().filter(timed) {
            let before = rows(&whole, &table.name, |ns| ns >= from && ns < to);
            compared += usize::from(!before.is_empty());
            assert_eq!(before, rows(&part, &table.name, |_| true), "{} of {tape}", table.name);
        }
        ["part", "copy"].iter().for_each(|name| fs::remove_file(place.path(name)).unwrap());
    }
    assert!(compared > 30, "{compared}");
}

#[test]
fn cuts_put_together_say_what_the_tape_says() {
    let (place, _) = place();
    for tape in ["kernel-6.1-mix.tape", "mix-1.5.tape", "kernel-6.12-sh.tape", "stacks.tape", "sched.tape"] {
        let parts = [(",30%", "a"), ("30%,31%", "b"), ("31%,", "c")];
        for (time, name) in parts {
            assert_eq!(place.ask(&format!("cut {tape} {name} --time {time}")).status, 0, "{tape}");
        }
        let made = place.ask("merge c a b -o joined.tape");
        assert!(made.status == 0 && made.out.contains("It is about the whole recording."), "{made:?}");
        compare(&place, (tape, ""), "joined.tape");
        ["a", "b", "c", "joined.tape"].iter().for_each(|name| fs::remove_file(place.path(name)).unwrap());
    }
}

/// The process with the most calls, and what `-G` says of the cgroup of the busiest that has one.
fn choices(place: &Place, tape: &str) -> Vec<String> {
    let rows = place.ask(&format!("-s --format json {tape}")).json();
    let pid = rows.iter().find_map(|row| row["pid"].as_u64()).map(|pid| format!("-p {pid}"));
    let rows = place.ask(&format!("-s --summary-mode cgroup --format json {tape}")).json();
    let cgroup = rows.iter().find_map(|row| row["cgroup"].as_str()).map(|path| format!("-G {path}"));
    pid.into_iter().chain(cgroup).collect()
}

#[test]
fn a_cut_of_tasks_says_what_the_tape_says_of_them() {
    let (place, tapes) = place();
    let mut compared = 0;
    for tape in &tapes {
        for words in choices(&place, tape) {
            assert_eq!(place.ask(&format!("cut {tape} alone.tape {words}")).status, 0, "{tape} {words}");
            // these also tell what others did: of a cut they say that it is not known
            let of_others = ["exec --tree", "why", "path", "states", "kills", "offcpu --wakers"];
            for report in REPORTS.iter().filter(|report| of_others.iter().all(|other| !report.starts_with(other))) {
                let [before, after] = [tape, "alone.tape"].map(|of| place.ask(&format!("{report} {words} {of}")));
                // what record itself used is said of a whole tape
                let own =
                    |out: &str| out.split("\nwithout record itself").next().unwrap_or_default().trim_end().to_owned();
                let taken = before.status == 0;
                compared += usize::from(taken && !before.out.is_empty());
                let out = after.out.replace("alone.tape", tape);
                assert!(
                    !taken || own(&before.out) == own(&out),
                    "{report} {words} of {tape}:\n{}\n{}",
                    before.out,
                    after.out
                );
            }
            assert_eq!(place.ask("check alone.tape").status, 0, "{tape} {words}");
            fs::remove_file(place.path("alone.tape")).unwrap();
        }
    }
    assert!(compared > 500, "{compared}");
}

#[test]
fn single_processes_and_families() {
    let (place, _) = place();
    let tape = "kernel-6.1-mix.tape";
    let pid = place.analyze(&format!("-s --format json {tape}")).json()[0]["pid"].to_string();
    assert_eq!(place.analyze(&format!("cut {tape} one -p {pid} --families syscall,sched")).status, 0);
    for report in ["", "-s --format json", "exec", "sched timehist", "offcpu --by file,task,state,syscall"] {
        let (before, after) =
            (place.analyze(&format!("{report} -p {pid} {tape}")), place.analyze(&format!("{report} one")));
        assert_eq!(before.out, after.out, "{report}");
        assert!(!before.out.is_empty(), "{report}");
    }
    let blocks = place.analyze("block one");
    assert!(blocks.status == 1 && blocks.err.contains("were not recorded"), "{blocks:?}");
    let info = place.analyze("info one");
    assert!(info.out.contains(&format!("cut to -p {pid} --families syscall,sched")), "{}", info.out);
}

#[test]
fn what_cannot_be_is_refused_with_a_sentence() {
    let (place, _) = place();
    for (words, status, sentence) in [
        ("cut sample.tape out", 2, "say what to keep"),
        ("cut sample.tape", 2, "name both files"),
        ("cut sample.tape out --time 100,200", 1, "nothing of that time is on the tape"),
        ("cut sample.tape out --families sched", 1, "events of sched were not recorded"),
        ("cut sample.tape out --families shed", 2, "there is no such family"),
        ("cut sample.tape sample.tape --time 0,1", 1, "not cut in place"),
        ("merge sample.tape events.tape", 2, "name it with -o"),
        ("merge sample.tape sched.tape -o sample.tape", 1, "not put together in place"),
        ("merge mix-1.1.tape mix-1.5.tape -o out", 1, "it is of another recording"),
    ] {
        let got = place.analyze(words);
        assert!(got.status == status && got.err.contains(sentence), "{words}: {got:?}");
        assert!(!place.path("out").exists(), "{words}");
    }
}
