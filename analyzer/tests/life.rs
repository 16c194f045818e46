//! kills and exec: filters, forms, and what they say when something is missing.

mod common;

use common::{Place, life};
use systape_format::model::{CPU_NONE, Family, Gap, GapCause};

fn place(gaps: &[Gap]) -> Place {
    let place = Place::with_sample();
    life::write(&place.path("life.tape"), gaps);
    place
}

fn gap(family: Family) -> Gap {
    let at = common::OPEN + 5 * common::MS;
    Gap { cause: GapCause::RingFull, family, cpu: CPU_NONE, count: 2, first: at, last: at, pid: 0, ledger: false }
}

#[test]
fn filters_take_either_side() {
    let place = place(&[]);
    let of = |words: &str| -> Vec<(u64, u64)> {
        let got = place.analyze(&format!("kills --format json {words} life.tape"));
        assert_eq!((got.status, got.err.as_str()), (0, ""), "{words}");
        let pid = |value: &serde_json::Value| value["pid"].as_u64().unwrap_or(0);
        got.json().iter().map(|record| (pid(&record["sender"]), pid(&record["target"]))).collect()
    };
    assert_eq!(of("-p 4711"), [(4800, 4711), (4700, 4711)]);
    assert_eq!(of("--comm=sh"), [(4800, 4711), (4700, 4721)]);
    assert_eq!(of("-u 33"), [(4800, 4711), (4700, 4711)]);
    assert_eq!(of("--signal SEGV,31"), [(4730, 4730), (0, 901)]);
    assert_eq!(of("--time 0.04,"), [(4730, 4730), (4700, 4711), (0, 901)]);
    assert_eq!(of("--max-events 1"), [(4800, 4711)]);
    assert_eq!(of("--signal USR2"), []);
}

#[test]
fn one_act_has_one_number() {
    let got = place(&[]).analyze("kills --format json life.tape").json();
    let acts: Vec<u64> = got.iter().map(|record| record["act"].as_u64().unwrap()).collect();
    assert_eq!(acts, [1, 2, 2, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn csv_has_a_cell_for_every_column() {
    let place = place(&[]);
    for words in ["kills", "kills --all", "exec", "exec --tree"] {
        let got = place.analyze(&format!("{words} --format csv life.tape"));
        let columns = |line: &str| {
            let mut quoted = false;
            let comma = |c: char| {
                quoted ^= c == '"';
                c == ',' && !quoted
            };
            line.matches(comma).count()
        };
        let counts: Vec<usize> = got.out.lines().map(columns).collect();
        assert!(counts.len() > 5 && counts.iter().all(|count| *count == counts[0]), "{words}: {counts:?}");
        assert!(!got.out.contains('\x1b'), "{words}");
    }
}

#[test]
fn losses_are_told_and_counted() {
    for family in [Family::Signal, Family::Process] {
        let place = place(&[gap(family)]);
        let got = place.analyze("kills --fail-on-loss life.tape");
        assert_eq!(got.status, 3);
        assert!(got.out.starts_with("LOST 2 "), "{}", got.out);
        assert!(got.out.contains("at least 9 signals, at least 7 processes were ended by one"), "{}", got.out);
        assert!(!got.out.contains("alive at the end"), "{}", got.out);
        let got = place.analyze("kills --signal USR2 life.tape");
        assert!(got.out.ends_with("Nothing in what was recorded, which is not all.\n"), "{}", got.out);
        let got = place.analyze("kills --format json --fail-on-loss life.tape");
        assert_eq!((got.status, got.json()[0]["lost"].as_u64()), (3, Some(2)));
        // the handler's process may have ended
        let open = got.json().into_iter().find(|record| record["target"]["pid"] == 800).unwrap();
        assert!(open["outcome"]["exited"].is_null());
    }
    let place = place(&[gap(Family::Syscall)]);
    assert_eq!(place.analyze("kills --fail-on-loss life.tape").status, 0, "calls have nothing to do with it");
    assert_eq!(place.analyze("exec --tree --fail-on-loss life.tape").status, 0);
    let got = place.analyze("exec --fail-on-loss life.tape");
    assert!(got.status == 3 && got.out.contains("at least 5 started, at least 1 failed to start"), "{}", got.out);
}

#[test]
fn what_was_not_recorded_is_said() {
    let got = place(&[]).analyze("kills sample.tape");
    assert_eq!(got.status, 0);
    assert!(got.out.starts_with("NOT RECORDED: signals were not recorded"), "{}", got.out);
    assert!(got.out.ends_with("Nothing in what was recorded, which is not all.\n"), "{}", got.out);
}

#[test]
fn options_of_another_report_are_refused() {
    let place = place(&[]);
    for (words, part) in [
        ("--signal KILL", "'analyze kills'"),
        ("exec -v life.tape", "'analyze kills'"),
        ("kills --tree life.tape", "'analyze exec'"),
        ("kills -e read life.tape", "-e is about calls"),
        ("kills --signal NOSUCH life.tape", "no such signal"),
        ("kills --all --signal 9 life.tape", "give one of them"),
    ] {
        let got = place.analyze(words);
        assert!(got.status == 2 && got.err.contains(part), "{words}: {}", got.err);
    }
}

#[test]
fn the_tree_shows_what_is_above_and_below() {
    let place = place(&[]);
    let pids = |words: &str| -> Vec<u64> {
        let got = place.analyze(&format!("exec --tree --format json {words} life.tape"));
        got.json().iter().map(|process| process["pid"].as_u64().unwrap()).collect()
    };
    assert_eq!(pids("--comm=watch"), [1, 800, 4700, 4720, 4721, 4722]);
    assert_eq!(pids("-p 4711"), [1, 4711, 4712]);
    assert_eq!(pids("--time 0.0325, -p 800"), [1, 800, 4700, 4730], "alive then");
}
