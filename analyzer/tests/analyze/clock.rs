//! Times in text: by which clock they are, and that a time which was copied from a report finds what it is of.

use std::fs;

use crate::common::{self, Place, Row, Tape};
use systape_format::model::{Checkpoint, ClockSample, Family, Gap, GapCause};

/// (report, what stands behind its numbers: the listing's are ms).
const REPORTS: [(&str, &str); 5] =
    [("", "ms"), ("-e sched:*,signal:*,process:*", "ms"), ("kills --all", ""), ("exec", ""), ("sched timehist", "")];

/// The times at the beginning of the lines of events.
fn stamps(out: &str) -> Vec<&str> {
    let words = out.lines().filter_map(|line| line.split_whitespace().next());
    let number =
        |word: &str| word.contains('.') && word.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
    words.filter(|word| number(word) && word.bytes().all(|b| b.is_ascii_digit() || b".:-TZ/".contains(&b))).collect()
}

#[test]
fn a_time_that_was_copied_finds_its_event() {
    let place = Place::with_sample();
    common::events::write(&place.path("events.tape"), false);
    common::life::write(&place.path("life.tape"), &[]);
    let tapes = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes");
    for name in ["kernel-6.1-mix.tape", "kernel-6.12-sh.tape"] {
        fs::copy(tapes.join(name), place.path(name)).unwrap();
    }
    let mut tried = 0;
    for tape in ["sample.tape", "events.tape", "life.tape", "kernel-6.1-mix.tape", "kernel-6.12-sh.tape"] {
        for (report, unit) in REPORTS {
            for (clock, before, unit) in [("start", "", unit), ("mono", "mono:", unit), ("wall", "", "")] {
                let all = place.analyze(&format!("{report} --clock {clock} {tape}"));
                if all.status != 0 {
                    // it was not recorded
                    continue;
                }
                let all = stamps(&all.out);
                for stamp in all.iter().step_by(all.len() / 7 + 1) {
                    let at = format!("{before}{stamp}{unit}");
                    let found =
                        |range: &str| place.analyze(&format!("{report} --clock {clock} --time {range} {tape}")).out;
                    let (until, from) = (found(&format!(",{at}")), found(&format!("{at},")));
                    let what = format!("{report} --clock {clock} --time {at}, {tape}");
                    assert_eq!(stamps(&from).first(), Some(stamp), "{what}: {from}");
                    assert!(!stamps(&until).contains(stamp), "{what}: {until}");
                    // processes that one signal reached are one line of kills; timehist takes a run by its end
                    if report != "kills --all" && report != "sched timehist" {
                        assert_eq!(stamps(&until).len() + stamps(&from).len(), all.len(), "{what}");
                    }
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 100, "{tried}");
}

fn line(place: &Place, words: &str) -> String {
    let got = place.analyze(words);
    assert_eq!((got.status, got.err.as_str()), (0, ""), "{words}");
    got.out.lines().next().unwrap_or_default().to_owned()
}

/// A tape of one call, half a second after it began, at these times of day (ns since 1970) at its start and its end a second later.
fn tape(place: &Place, open: u64, end: u64) {
    let mut session = common::session();
    session.clock.realtime = open;
    let mut tape = Tape::create_at(&place.path("t.tape"), &session, &Checkpoint::default());
    let sample = |monotonic, realtime| ClockSample { monotonic, realtime, ..ClockSample::default() };
    tape.segment(1_000_000, &[Row { tid: 100, name: "read", start: 500_000, dur: 10, ..Row::default() }], &[]);
    if end != 0 {
        tape.finish_at(sample(common::OPEN + 1_000_000_000, end));
    } else {
        tape.abandon();
    }
}

#[test]
fn times_of_day() {
    const SECOND: u64 = 1_000_000_000;
    // 2026-11-21T05:48:19Z, and 23:59:59 of that day
    let (morning, night) = (1_795_240_099 * SECOND, 1_795_305_599 * SECOND);
    let place = Place::new();
    tape(&place, morning, morning + SECOND);
    assert!(line(&place, "t.tape").starts_with("   500.000 ("));
    assert!(line(&place, "--clock start t.tape").starts_with("   500.000 ("));
    assert!(line(&place, "-T t.tape").starts_with("1000500.000 ("));
    assert!(line(&place, "--clock mono t.tape").starts_with("1000500.000 ("));
    assert!(line(&place, "--clock wall t.tape").starts_with("05:48:19.500000 ("));
    assert_eq!(place.analyze("--time 05:48:19.4,05:48:19.6 t.tape").out.lines().count(), 1);
    assert_eq!(place.analyze("--time 05:48:19.6, t.tape").out.lines().count(), 0);
    let mono = place.analyze("--time 1000.5, t.tape");
    assert!(mono.err.contains("CLOCK_MONOTONIC is written mono:SECONDS"), "{mono:?}");
    // over midnight each time has its date
    tape(&place, night, night + SECOND);
    assert!(line(&place, "--clock wall t.tape").starts_with("2026-11-21T23:59:59.500000Z ("));
    assert_eq!(place.analyze("--time 23:59:59.5,00:00:00 t.tape").out.lines().count(), 1);
    let none = place.analyze("--time 12:00, t.tape");
    assert!(none.status == 2 && none.err.contains("write the date too, 2026-11-21T12:00:00"), "{none:?}");
    // somebody set the clock: it is one of two times, and either of them finds it
    tape(&place, morning, morning + 41 * SECOND);
    assert!(line(&place, "--clock wall t.tape").starts_with("05:48:19.500000/05:48:59.500000 ("));
    for range in ["05:48:19.5,05:48:19.6", "05:48:59.5,05:48:59.6", "05:48:19.500000/05:48:59.500000,"] {
        assert_eq!(place.analyze(&format!("--time {range} t.tape")).out.lines().count(), 1, "{range}");
    }
    // set back by 40 s it may have been before 05:48:19.2, and for certain before 05:48:19.6
    tape(&place, morning, morning - 39 * SECOND);
    for range in [",05:48:19.2", ",05:48:19.6", "05:47:39.2,05:47:39.6"] {
        assert_eq!(place.analyze(&format!("--time {range} t.tape")).out.lines().count(), 1, "{range}");
    }
    assert_eq!(place.analyze("--time ,05:47:39.2 t.tape").out.lines().count(), 0);
}

#[test]
fn without_clock_samples_no_time_of_day_is_made_up() {
    let place = Place::new();
    tape(&place, 0, 0);
    for words in ["--clock wall t.tape", "--clock wall --max-events 1 t.tape"] {
        let got = place.analyze(words);
        assert_eq!((got.status, got.out.as_str()), (2, ""), "{got:?}");
        assert!(got.err.contains("no clock sample") && got.err.contains("--clock mono"), "{got:?}");
    }
    let got = place.analyze("--time 05:48:19, t.tape");
    assert!(got.status == 2 && got.err.contains("no clock sample"), "{got:?}");
    let got = place.analyze("-s --time ,2026-11-21T05:48:19Z t.tape");
    assert!(got.status == 2 && got.err.contains("--time: this tape has no clock sample"), "{got:?}");
}

#[test]
fn lines_of_losses_have_the_time_of_the_others() {
    let place = Place::new();
    let mut session = common::session();
    session.clock.realtime = 1_795_240_099_000_000_000;
    let mut tape = Tape::create_at(&place.path("t.tape"), &session, &Checkpoint::default());
    let at = |us: u64| common::OPEN + us * common::US;
    let (cause, family) = (GapCause::RingFull, Family::Syscall);
    let gap = Gap { cause, family, cpu: 1, count: 5, first: at(1_999), last: at(2_001), pid: 0, ledger: false };
    tape.segment(1_000_000, &[Row { tid: 100, name: "read", start: 500, dur: 10, ..Row::default() }], &[gap]);
    tape.finish();
    let lost = |words: &str| place.analyze(words).out.lines().last().unwrap_or_default().to_owned();
    let line = |times: &str| format!("LOST 5 syscall events on cpu 1, {times}: ring buffer full");
    assert_eq!(lost("t.tape"), line("0.001–0.002 s"));
    assert_eq!(lost("--clock mono t.tape"), line("1000.001–1000.002 s"));
    assert_eq!(lost("--clock wall t.tape"), line("05:48:19.001999–05:48:19.002001"));
}

#[test]
fn what_has_no_times_in_text_refuses_a_clock() {
    let place = Place::with_sample();
    for (words, text) in [
        ("--clock wall --format json", "ts_ns"),
        ("kills --clock wall --format csv", "ts_ns"),
        ("-T --clock wall", "give one of them"),
        ("block --top --clock wall", "sums have no time"),
        ("files --clock wall", "--opens or --slower"),
        ("-s --clock wall", "it is for the listing"),
    ] {
        let got = place.analyze(&format!("{words} sample.tape"));
        assert!(got.status == 2 && got.err.contains(text), "{words}: {got:?}");
    }
}
