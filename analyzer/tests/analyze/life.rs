//! kills and exec: filters, forms, and what they say when something is missing.

use crate::common::{self, Place, life};
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
        let told =
            got.told().replace("analyze: -p 4711: 1 process below 4711 is left out; with them: -p 4711 --tree\n", "");
        assert_eq!((got.status, told.as_str()), (0, ""), "{words}");
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
        assert!(got.out.contains("at least 9 signals; at least 7 processes died of one"), "{}", got.out);
        assert!(!got.out.contains("alive at the end"), "{}", got.out);
        let got = place.analyze("kills --signal USR2 life.tape");
        assert!(got.out.ends_with("Nothing found; events are missing.\n"), "{}", got.out);
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

/// Signal 9 to 4711 at 12.345 ms, which ended at 12.745 ms.
#[test]
fn a_cause_is_not_certain_when_signals_were_lost_before_the_end() {
    let lost = |family, cause, count, first: u64, last: u64| {
        let at = |us| common::OPEN + us * common::US;
        Gap { cause, count, first: at(first), last: at(last), ..gap(family) }
    };
    let full = |count, first, last| lost(Family::Signal, GapCause::RingFull, count, first, last);
    let murder = |gaps: &[Gap]| {
        let place = place(gaps);
        let text = place.analyze("kills -p 4711 --time ,0.0124 life.tape");
        let line = text.out.lines().find(|line| line.contains("(4711, uid 33)")).unwrap().to_owned();
        let json = place.analyze("kills --format json -p 4711 --time ,0.0124 life.tape").json();
        let outcome = json.iter().find(|record| record["signal"] == 9).unwrap()["outcome"].clone();
        assert_eq!((&outcome["exit_signal"], &outcome["latency_ns"]), (&9.into(), &400_000.into()));
        let status = place.analyze("kills --fail-on-loss -p 4711 --time ,0.0124 life.tape").status;
        (line, outcome["cause"].clone(), outcome["maybe_cause"].clone(), status)
    };
    let certain = "   12.345 05:48:31.345000  SIGKILL  nginx (4711, uid 33) killed by sh (4800, uid 0) via kill; died after 0.400 ms";
    let certain = certain.replace("   12.345 05:48:31.345000", &murder(&[]).0[..25]);
    let maybe = |why: &str| format!("{}; {why} lost in between", certain.replace(" killed ", " maybe killed "));
    let null = serde_json::Value::Null;
    for elsewhere in [
        vec![],
        vec![full(5, 13_000, 14_000)],
        vec![lost(Family::Syscall, GapCause::RingFull, 5, 12_400, 12_500)],
        // events of processes say nothing of who sent a signal; SIGCHLD and the like are no SIGKILL
        vec![lost(Family::Process, GapCause::RingFull, 5, 12_600, 12_700)],
        vec![lost(Family::Signal, GapCause::Everyday, 5, 12_400, 12_500)],
    ] {
        let (line, cause, doubt, _) = murder(&elsewhere);
        assert_eq!((line, cause, doubt), (certain.clone(), true.into(), false.into()), "{elsewhere:?}");
    }
    // before the signal: "at least", but nothing that was lost then can have ended the process
    let (line, cause, _, status) = murder(&[full(5, 5_000, 12_000)]);
    assert_eq!((line, cause, status), (certain.clone(), true.into(), 3));
    for (gaps, why) in [
        (vec![full(1, 12_500, 12_500)], "a signal event was"),
        (vec![full(5, 12_400, 12_500), full(2, 1_000, 2_000), full(4, 12_700, 40_000)], "up to 9 signal events were"),
        (vec![lost(Family::Unknown, GapCause::Damaged, 0, 0, 60_000)], "an unknown number of signal events was"),
    ] {
        let (line, cause, doubt, status) = murder(&gaps);
        assert_eq!((line, cause, doubt, status), (maybe(why), null.clone(), true.into(), 3));
    }
    // one act that reached several: between its signals at 14.000 ms and the ends from 14.100 ms on
    let text = place(&[full(2, 14_050, 14_060)]).analyze("kills life.tape");
    let group = text.out.lines().find(|line| line.contains("3 processes")).unwrap();
    assert!(group.contains(") maybe killed by bash"), "{group}");
    assert!(group.contains("3 died, the last after 0.300 ms, 3 maybe by a signal that was lost"), "{group}");
}

#[test]
fn what_was_not_recorded_is_said() {
    let got = place(&[]).analyze("kills sample.tape");
    assert_eq!(got.status, 0);
    assert!(got.out.starts_with("NOT RECORDED: signals were not recorded"), "{}", got.out);
    assert!(got.out.ends_with("Nothing found; events are missing.\n"), "{}", got.out);
}

#[test]
fn options_of_another_report_are_refused() {
    let place = place(&[]);
    for (words, part) in [
        ("--signal KILL", "'analyze kills --signal"),
        ("kills --tree life.tape", "'analyze exec --tree'"),
        ("kills -e read life.tape", "-e is not for"),
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
