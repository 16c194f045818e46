//! Sums for which there is no memory go to a file and come back: the answer is the same, byte for byte.

use std::path::Path;

use crate::common::sched::system_wide;
use crate::common::{self, OPEN, Place, Row, Tape, US, task};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use systape_format::model::{BlockIo, CallState, Checkpoint, NetState, RunState, Switch};
use systape_format::tables::Field;

/// Questions with a sum for each of very many files.
const QUESTIONS: [&str; 10] = [
    "top --by file",
    "top --by file,syscall --metric calls --top 0",
    "top --by comm,file --metric max --format json",
    "-s --by file",
    "-s --by errno,file --sort p99 --format csv",
    "files --top 0",
    "files --by file,comm --rank calls --format json",
    "files --rank bytes",
    "states --top 0",
    "states --by file,comm --format json",
];

/// What a tape is made of.
#[derive(Clone, Copy, Debug)]
struct Made {
    /// Calls.
    calls: u64,
    /// How many names there are.
    names: u64,
    /// Bytes of the longest.
    longest: usize,
    seed: u64,
}

/// Writes a tape of calls on many files, in threads that take turns on a CPU.
fn write(path: &Path, made: Made) {
    let run = |utid, on_cpu| RunState { utid, state: b'R', on_cpu, cpu: 0, last_run: OPEN, seen: 0 };
    let start = Checkpoint {
        ts: OPEN,
        tasks: [100, 101].map(task).to_vec(),
        run: vec![run(100, true), run(101, false)],
        source: "snapshot".into(),
        ..Checkpoint::default()
    };
    let mut tape = Tape::create_at(path, &system_wide(), &start);
    let mut state = made.seed | 1;
    let mut chance = move |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    let (mut now, mut left) = (10, made.calls);
    while left > 0 {
        let count = left.min(20_000);
        let mut names = Vec::new();
        for _ in 0..count {
            let name = chance(made.names);
            names.push((name, format!("/srv/{name:0width$}", width = 1 + (name as usize * 7) % made.longest)));
        }
        let mut switches = Vec::new();
        let rows: Vec<Row<'_>> = names
            .iter()
            .map(|(name, path)| {
                let tid = 100 + (now / 1000 % 2) as u32;
                let dur = 1 + chance(1 + name % 50);
                let start = now;
                now += dur + chance(3);
                if now / 1000 != start / 1000 {
                    // to the other thread
                    switches.push((now, tid, 100 + (now / 1000 % 2) as u32));
                }
                let (call, errno) = [("read", 0), ("write", 0), ("fsync", 0), ("read", 5)][chance(4) as usize];
                let state = if chance(900) == 0 { CallState::NoReturn } else { CallState::Complete };
                let ret = if errno == 0 { chance(5000) as i64 } else { 0 };
                Row {
                    tid,
                    name: call,
                    start,
                    dur,
                    args: [3, 0, 5000, 0, 0, 0],
                    ret,
                    errno,
                    state,
                    path: Some(path),
                    ..Row::default()
                }
            })
            .collect();
        tape.segment_with(now + 1, &rows, &[], |builder| {
            for (at, prev, next) in switches {
                let (prev, next) = (builder.intern_task(&task(prev)), builder.intern_task(&task(next)));
                let switch = Switch { ts: OPEN + at * US, cpu: 0, prev, next, prev_state: 0, ..Switch::default() };
                builder.push_switch(switch);
            }
        });
        left -= count;
    }
    tape.finish();
}

#[test]
fn with_little_memory_the_answer_is_the_same() {
    let config = Config { cases: 2, failure_persistence: None, ..Config::default() };
    let made = (300_000_u64..360_000, 150_000_u64..260_000, 60_usize..250, any::<u64>());
    TestRunner::new(config)
        .run(&made, |(calls, names, longest, seed)| {
            let place = Place::new();
            write(&place.path("t.tape"), Made { calls, names, longest, seed });
            for words in QUESTIONS {
                let whole = place.analyze(&format!("{words} --memory 8G t.tape"));
                prop_assert!(whole.status == 0 && whole.out.lines().count() > 9, "{words}: {}", whole.err);
                prop_assert!(!whole.err.contains("temporary file"), "{words}: {}", whole.err);
                let little = place.analyze(&format!("{words} --memory 16M t.tape"));
                prop_assert!(little.err.contains("in a temporary file"), "{words} does not spill: {}", little.err);
                // not in the failure: they are long
                prop_assert!(little.out == whole.out, "{words} --memory 16M differs");
                prop_assert_eq!(little.status, 0);
            }
            Ok(())
        })
        .unwrap();
}

/// Questions with a sum for each of very many events of other kinds, and of connections.
const OF_EVENTS: [&str; 7] = [
    "top -e block:block_rq_complete --by sector",
    "top -e block:block_rq_complete --by sector,comm --value bytes --top 0 --format json",
    "top -e block:block_rq_complete --by sector --value bytes --metric max --hist --format json",
    "top -e exceptions:page_fault_user --by memory,comm --top 0",
    "-s -e exceptions:page_fault_user --by file",
    "-s -e exceptions:page_fault_user --by file,comm --format csv",
    "net --by peer,comm --format json",
];

/// Writes a tape of block I/Os, faults and connections, of which most have a key of their own.
fn write_events(path: &Path, count: u64) {
    let mut tape = Tape::create_with(path, &common::events::of_tape());
    let faults = std::sync::Arc::new(systape_format::families::PAGE_FAULT_USER.clone());
    for from in (0..count).step_by(10_000) {
        let at = |nth: u64| OPEN + (10 + nth) * US;
        tape.segment_with(10 + from + 10_000, &[], &[], |builder| {
            let tasks = [100, 101].map(|tid| builder.intern_task(&task(tid)));
            for nth in from..count.min(from + 10_000) {
                let (owner, some) = (tasks[nth as usize % 2], nth % (count - count / 7));
                let bytes = 512 << (nth % 7);
                let io = BlockIo {
                    complete: at(nth),
                    dev: 254 << 20,
                    sector: some,
                    bytes,
                    owner: Some(owner),
                    ..BlockIo::default()
                };
                builder.push_block(io);
                let name = format!("/srv/{some:0width$}", width = 1 + some as usize % 90);
                let number = Field::Number(nth);
                let fields = [
                    Field::Task(owner),
                    Field::Number(0),
                    number,
                    number,
                    Field::Bytes(name.as_bytes()),
                    number,
                    Field::Unknown,
                    Field::Unknown,
                ];
                builder.push_table_row(&faults, at(nth), &fields).unwrap();
                for (old_state, new_state) in [(7, 2), (2, 1), (1, 7)] {
                    builder.push_net(NetState {
                        ts: at(nth),
                        task: Some(owner),
                        socket: nth + 1,
                        family: 2,
                        protocol: 6,
                        old_state,
                        new_state,
                        sport: 4000,
                        dport: 443,
                        saddr: vec![10, 0, 0, 1],
                        daddr: [vec![10], (some as u32).to_be_bytes()[1..].to_vec()].concat(),
                        ..NetState::default()
                    });
                }
            }
        });
    }
    tape.finish();
}

#[test]
fn sums_of_events_with_little_memory_are_the_same() {
    let place = Place::new();
    write_events(&place.path("t.tape"), 30_000);
    for words in OF_EVENTS {
        let whole = place.analyze(&format!("{words} --memory 8G t.tape"));
        assert!(whole.status == 0 && whole.out.lines().count() > 9, "{words}: {}", whole.err);
        let little = place.analyze(&format!("{words} --memory 1M t.tape"));
        assert!(little.err.contains("in a temporary file"), "{words} does not spill: {}", little.err);
        assert!(little.out == whole.out && little.status == 0, "{words} --memory 1M differs");
    }
}

/// A tape with messages to that many ends, each of a socket of its own, in several segments.
fn write_udp(path: &Path, ends: u64) {
    let mut tape = Tape::create_with(path, &system_wide());
    let names: Vec<String> = (0..ends)
        .map(|end| format!("UDP:[127.0.0.1:4000->10.{}.{}.{}:9]", end >> 16, end >> 8 & 255, end & 255))
        .collect();
    let sent = |(at, name): (usize, &'static str)| {
        let start = 10 + at as u64;
        Row {
            tid: 100,
            name: "sendto",
            start,
            dur: 1,
            args: [3, 0, 9, 0, 0, 0],
            ret: 9,
            path: Some(name),
            ..Row::default()
        }
    };
    let names: &'static [String] = names.leak();
    let rows: Vec<Row<'_>> = names.iter().map(String::as_str).enumerate().map(sent).collect();
    for rows in rows.chunks(5_000) {
        tape.segment_with(rows.last().map_or(0, |row| row.start + 2), rows, &[], |_| {});
    }
    tape.finish();
}

/// Reports that keep their sums in memory say so when there are too many, and answer nothing.
#[test]
fn sums_for_which_there_is_no_memory_are_refused() {
    let place = Place::new();
    write(&place.path("t.tape"), Made { calls: 30_000, names: 30_000, longest: 200, seed: 7 });
    write_udp(&place.path("u.tape"), 30_000);
    for words in [
        "diff t.tape t.tape --by file",
        "top t.tape t.tape --by file",
        "rate t.tape --by file --top 0",
        "net u.tape --udp",
    ] {
        let enough = place.analyze(&format!("{words} --memory 8G"));
        assert_eq!(enough.status, 0, "{words}: {}", enough.err);
        let little = place.analyze(&format!("{words} --memory 1M"));
        assert!(
            little.status == 1 && little.out.is_empty() && little.err.contains("--memory"),
            "{words}: {} {}",
            little.status,
            little.err
        );
    }
}

/// What the file does not take is no answer.
#[test]
fn without_a_place_for_the_file_it_fails() {
    let place = Place::new();
    write(&place.path("t.tape"), Made { calls: 60_000, names: 60_000, longest: 200, seed: 7 });
    let analyze = |words: &str| {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("analyze"));
        command.args(words.split(' ')).current_dir(place.path(".")).env("TMPDIR", place.path("nowhere"));
        command.output().unwrap()
    };
    let enough = analyze("top --by file t.tape");
    assert!(enough.status.success(), "{enough:?}");
    let little = analyze("top --by file --memory 1M t.tape");
    let err = String::from_utf8_lossy(&little.stderr).into_owned();
    assert_eq!(little.status.code(), Some(1), "{err}");
    assert!(err.contains("the temporary file fails") && err.contains("TMPDIR"), "{err}");
    let wrong = analyze("top --memory 7k t.tape");
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
    // nothing is left behind
    assert_eq!(std::fs::read_dir(place.path(".")).unwrap().count(), 1);
}
