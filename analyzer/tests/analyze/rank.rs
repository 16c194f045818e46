//! Rankings print the busiest rows and say how many more there are; of the whole machine idle waits are one line.

use crate::common::{self, Place};

/// sched.tape: the whole machine; thread 300 (sleeper) is in futex all the time.
fn place() -> Place {
    let place = Place::new();
    common::sched::tape(&place.path("sched.tape"), false);
    place
}

fn ok(place: &Place, words: &str) -> String {
    let got = place.analyze(words);
    assert_eq!(got.status, 0, "{words}: {got:?}");
    got.out
}

#[test]
fn what_is_not_printed_is_counted() {
    let place = place();
    for report in [
        "states --by tid,state",
        "offcpu --by tid,state",
        "sched latency --by tid",
        "states --at 50%",
        "offcpu --wakers 100",
    ] {
        let rows = |words: &str| {
            let out = ok(&place, &format!("{report} {words} --format csv sched.tape"));
            out.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
        };
        let all = rows("");
        assert_eq!(rows("--top 0"), all, "{report}");
        if all.len() < 2 {
            continue;
        }
        assert_eq!(rows("--top 1"), all[..1], "{report}");
        assert_eq!(rows("--top 9 --max-events 1"), all[..1], "{report}");
        let text = ok(&place, &format!("{report} --top 1 -p 100,200,300 sched.tape"));
        let few = ok(&place, &format!("{report} -p 100,200,300 --format csv sched.tape")).lines().count() - 1;
        assert!(few < 2 || text.contains(&format!("and {} more (--top 0)", few - 1)), "{report}:\n{text}");
        let whole = ok(&place, &format!("{report} --top 0 sched.tape"));
        assert!(!whole.contains(" more ("), "{report}:\n{whole}");
    }
}

#[test]
fn idle_waits_are_one_line() {
    let place = place();
    let folded = ok(&place, "states --by tid,state,syscall sched.tape");
    assert!(folded.contains("\nidle waits: "), "{folded}");
    assert!(!folded.contains("sleeper"), "{folded}");
    // the others' shares are of all time, as before
    let whole = ok(&place, "states --by tid,state,syscall --top 0 sched.tape");
    assert!(whole.contains("sleeper") && !whole.contains("idle waits"), "{whole}");
    assert_eq!(ok(&place, "states --by tid,state,syscall --idle sched.tape"), whole);
    // with their sum it is all that there is
    let sum = |text: &str| {
        let first = |line: &str| line.trim_start_matches("idle waits:").split_whitespace().next().map(str::to_owned);
        let times = text.lines().filter(|line| line.contains('%')).filter_map(first);
        times.map(|ms| (ms.parse::<f64>().unwrap() * 1000.0).round() as u64).sum::<u64>()
    };
    assert_eq!(sum(&folded), sum(&whole), "{folded}\n{whole}");
    let words =
        |text: &str| text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>();
    for line in words(&folded).iter().filter(|line| line.contains('%') && !line.starts_with("idle waits")) {
        assert!(words(&whole).contains(line), "{line} is not in\n{whole}");
    }
    // who asks for it, or for data, gets it
    for words in [
        "--by tid,state,syscall -p 300",
        "--by tid,state,syscall -e futex",
        "--by tid,syscall --format csv",
        "--at 50%",
    ] {
        let out = ok(&place, &format!("states {words} sched.tape"));
        assert!(!out.contains("idle waits") && out.contains("300"), "{words}:\n{out}");
    }
    // a row in which others slept too is none of it; nor is one whose calls are not looked at
    let out = ok(&place, "states --by state sched.tape");
    assert!(!out.contains("idle waits"), "{out}");
}

#[test]
fn a_summary_is_sorted_by_any_of_its_columns() {
    let place = Place::with_sample();
    let value = |line: &str, at: usize| {
        let word = line.split_whitespace().nth(at).unwrap_or_else(|| panic!("{line}"));
        word.trim_start_matches(['>', '<', '=', '~']).parse::<f64>().ok()
    };
    let mut unknown = 0;
    for (column, at) in [("calls", 0), ("errors", 1), ("total", 2), ("avg", 4), ("max", 5), ("p99", 8)] {
        let out = ok(&place, &format!("-s --by tid,syscall --sort {column} sample.tape"));
        let rows = out.lines().skip_while(|line| !line.contains("total ms")).skip(1).filter(|line| !line.is_empty());
        let values: Vec<Option<f64>> = rows.map(|line| value(line, at)).collect();
        assert!(values.len() > 5 && values[0] > values[values.len() - 1], "{column}: {out}");
        // None is less than all numbers
        assert!(values.is_sorted_by(|before, after| before >= after), "{column}: {values:?}\n{out}");
        unknown += values.iter().filter(|value| value.is_none()).count();
    }
    assert!(unknown > 0, "no value of the sample is unknown");
    assert_eq!(ok(&place, "-s --by syscall sample.tape"), ok(&place, "-s --by syscall --sort total sample.tape"));
    // threads by their busiest call
    let out = ok(&place, "-s --sort max --format json sample.tape");
    let first = ok(&place, "-s --by tid,syscall --sort max --format json sample.tape");
    let (task, other) = (out.lines().next().unwrap(), first.lines().next().unwrap());
    let tid = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["tid"].clone();
    assert_eq!(tid(task), tid(other));
}

#[test]
fn in_both_the_column_says_what_is_sorted() {
    let place = Place::with_sample();
    let (both, sums) = (ok(&place, "-S --sort calls sample.tape"), ok(&place, "-s --sort calls sample.tape"));
    assert!(both.ends_with(&sums), "{both}\n{sums}");
    assert!(both.starts_with(&ok(&place, "sample.tape")));
    assert!(ok(&place, "-S --sort end sample.tape").starts_with(&ok(&place, "--sort end sample.tape")));
}
