//! `--self-stats`: what is printed of recording's own cost agrees with itself, with the tape, and with a known number of calls.

use std::fs;
use std::os::unix::fs::chown;

use systape_e2e::lab::{binary, run};
use systape_e2e::more::NOBODY;
use systape_e2e::{Lab, Run};

/// A prime: what comes out as this number was counted.
const CALLS: u64 = 10_007;

/// A line of a table: what it is about, and three columns.
type Row = (String, [f64; 3]);

/// The lines from the one that begins with `head` to the one about `last`.
fn table(run: &Run, head: &str, last: &str) -> Vec<Row> {
    let lines = run.stderr.lines().skip_while(|line| !line.starts_with(&format!("  {head} "))).skip(1);
    let mut rows = Vec::new();
    for line in lines {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        let columns = words.split_off(words.len().checked_sub(3).unwrap_or_else(|| panic!("{line}")));
        let number = |word: &str| word.replace(',', "").parse().unwrap_or_else(|_| panic!("{line}"));
        rows.push((words.join(" "), [number(columns[0]), number(columns[1]), number(columns[2])]));
        if rows.last().is_some_and(|(name, _)| name == last) {
            return rows;
        }
    }
    panic!("no table of {head} up to {last}: {}", run.stderr);
}

/// The number before `unit` in the lines after the tables.
fn number(run: &Run, unit: &str) -> u64 {
    let at = run.stderr.find(unit).unwrap_or_else(|| panic!("{unit}: {}", run.stderr));
    let digits = run.stderr[..at].split_whitespace().next_back().expect("number");
    digits.replace(',', "").parse().unwrap_or_else(|_| panic!("{unit}: {digits}"))
}

#[test]
fn totals_agree() {
    let Some(lab) = Lab::with_bpf() else { return };
    let count = format!("count={CALLS}");
    let dd = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "status=none", &count];
    let run = lab.record("t.tape", &["--self-stats"], &dd).expect(0);
    lab.assert_whole("t.tape");
    assert!(run.stderr.lines().all(|line| line.starts_with("record: ") || line.len() <= 100), "{}", run.stderr);

    let mut programs = table(&run, "BPF program", "all programs");
    let (_, [all_runs, _, all_ms]) = programs.pop().expect("last row");
    for name in ["sys_enter", "sys_exit"] {
        let (_, [runs, ns, ms]) = programs.iter().find(|(of, _)| of == name).unwrap_or_else(|| panic!("{name}"));
        assert!(*runs >= (2 * CALLS) as f64, "{name}: {runs}");
        // the mean is rounded to 1 ns, the sum to 1 us
        assert!((runs * ns / 1e6 - ms).abs() <= runs * 0.5 / 1e6 + 0.001, "{name}: {runs} of {ns} ns are {ms} ms");
    }
    let sum = |column: usize| programs.iter().map(|(_, columns)| columns[column]).sum::<f64>();
    assert!((sum(0) - all_runs).abs() < 0.5, "{programs:?}");
    assert!((sum(2) - all_ms).abs() <= 0.001 * (programs.len() + 1) as f64, "{programs:?}");

    let mut threads = table(&run, "thread", "all threads");
    let (_, all) = threads.pop().expect("last row");
    for (name, [user, system, total]) in &threads {
        assert!((user + system - total).abs() < 0.003, "{name}: {user} and {system} are {total}");
    }
    let sum: f64 = threads.iter().map(|(_, columns)| columns[2]).sum();
    assert!((sum - all[2]).abs() <= 0.001 * (threads.len() + 1) as f64, "{threads:?}");
    // what no thread's line has is the beginning and the end of threads
    let known: f64 = threads.iter().filter(|(name, _)| name != "not known whose").map(|(_, columns)| columns[2]).sum();
    assert!(known <= all[2] + 0.1 && known >= 0.9 * all[2], "{known} of {}: {threads:?}", all[2]);
    for name in ["main, before it recorded", "main", "drain", "encode", "ledger", "write"] {
        assert!(threads.iter().any(|(of, _)| of == name), "{name}: {threads:?}");
    }

    // the tape's end was written before the table
    let info = lab.info("t.tape");
    let told = info["recorder_cpu_ns"].as_u64().expect("cpu") as f64 / 1e6;
    assert!(told <= all[2] + 0.001 && told >= 0.8 * all[2], "{told} ms in the tape, {} ms", all[2]);
    // tables are beside the families that they are of
    let families = info["events"].as_object().expect("events").iter().filter(|(name, _)| !name.contains(':'));
    let events: u64 = families.filter_map(|(_, count)| count.as_u64()).sum();
    assert_eq!(number(&run, " events, "), events);
    assert_eq!(number(&run, " bytes, "), fs::metadata(lab.path("t.tape")).expect("tape").len());
    assert!(!run.stderr.contains("not measured"), "{}", run.stderr);
    for part in ["CPU per million events: threads ", "bytes per event; peak memory ", "  of process life  "] {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }

    let run = lab.record("t.tape", &[], &dd).expect(0);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
}

#[test]
fn stacks_have_threads_of_their_own() {
    let Some(lab) = Lab::with_bpf() else { return };
    let run = lab.record("t.tape", &["--self-stats", "-a", "-g", "-F", "99", "--for", "200ms"], &[]).expect(0);
    let threads = table(&run, "thread", "all threads");
    for name in ["unwind", "names", "scan"] {
        assert!(threads.iter().any(|(of, _)| of == name), "{name}: {threads:?}");
    }
    assert!(run.stderr.contains("  of stacks  "), "{}", run.stderr);
}

#[test]
fn without_the_right_to_it_the_rest_is_told() {
    let Some(lab) = Lab::with_bpf() else { return };
    fs::copy(binary("record"), lab.path("record")).expect("copy");
    fs::create_dir(lab.path("out")).expect("mkdir");
    chown(lab.path("out"), Some(65534), Some(65534)).expect("chown");
    let mut nobody = lab.command(NOBODY[0]);
    nobody.args(&NOBODY[1..]);
    for option in ["inh-caps", "ambient-caps", "bounding-set"] {
        nobody.arg(format!("--{option}=-all,+bpf,+perfmon"));
    }
    let run = run(nobody.args(["./record", "-o", "out/t.tape", "--self-stats", "--", "true"])).expect(0);
    let line = "record: --self-stats: runs of BPF programs are not measured: that takes CAP_SYS_ADMIN\n";
    assert!(run.stderr.contains(line), "{}", run.stderr);
    assert!(!run.stderr.contains("BPF program  "), "{}", run.stderr);
    assert!(run.stderr.contains(", programs not measured\n"), "{}", run.stderr);
    assert!(table(&run, "thread", "all threads").len() > 4, "{}", run.stderr);
    lab.assert_whole("out/t.tape");
}
