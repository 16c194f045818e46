//! `net --udp`: whose messages and bytes, what is at least, and what is not known.

use crate::common::{self, Place, udp};
use serde_json::Value;
use systape_format::model::{CPU_NONE, Family, Gap, GapCause};

fn rows(place: &Place, words: &str) -> Vec<Value> {
    let got = place.analyze(&format!("net --udp --format json {words} udp.tape"));
    assert_eq!((got.status, got.err.as_str()), (0, ""), "{words}");
    got.json()
}

fn place(gaps: &[Gap]) -> Place {
    let place = Place::new();
    udp::write(&place.path("udp.tape"), gaps);
    place
}

/// Names of the numbers that are bounds.
fn bounds(row: &Value) -> Vec<&str> {
    let flags = row.as_object().unwrap().iter().filter(|(_, value)| **value == true);
    let mut names: Vec<&str> = flags.filter_map(|(name, _)| name.strip_suffix("_at_least")).collect();
    names.sort_unstable();
    names
}

#[test]
fn rows_are_of_process_and_both_ends() {
    let rows = rows(&place(&[]), "");
    let ends: Vec<_> = rows.iter().map(|row| (row["lport"].as_u64(), row["rport"].as_u64())).collect();
    let of = |local, peer| (Some(local), peer);
    let expected =
        [of(40_001, Some(53)), of(40_002, Some(9)), of(5353, Some(5353)), of(5353, None), of(40_003, Some(53))];
    assert_eq!(ends, expected, "the first call had an end as soon as it returned");
    assert!(bounds(&rows[0]).is_empty() && bounds(&rows[1]).is_empty(), "{rows:?}");
    assert_eq!((&rows[1]["errors"], &rows[1]["refused"]), (&1.into(), &1.into()));
    // from before the recording
    assert_eq!(bounds(&rows[2]).len(), 8, "{}", rows[2]);
    assert_eq!(rows[2]["first_ns_at_most"], true);
    // several messages a call
    assert_eq!(bounds(&rows[4]), ["received_bytes", "sent_bytes"]);
    assert_eq!((&rows[4]["sent"], &rows[4]["received"], &rows[4]["raddr"]), (&4.into(), &2.into(), &"::1".into()));
}

#[test]
fn filters_choose_calls_and_rows() {
    let place = place(&[]);
    let ports =
        |words: &str| -> Vec<u64> { rows(&place, words).iter().map(|row| row["lport"].as_u64().unwrap()).collect() };
    assert_eq!(ports("-p 102"), [5353, 5353]);
    assert_eq!(ports("-t 101"), [40_003]);
    assert_eq!(ports("--failure"), [40_002]);
    assert_eq!(ports("--duration 0.05"), [40_001, 40_003]);
    assert_eq!(ports("--max-events 1"), [40_001]);
    // the name of its socket came before
    assert_eq!(ports("--time 0.00015,0.0003"), [40_001]);
    let got = place.analyze("net --udp --events udp.tape");
    assert_eq!((got.status, got.out.as_str()), (2, ""));
    assert!(got.err.contains("leave out --events"), "{}", got.err);
}

#[test]
fn losses_make_all_of_it_at_least() {
    let at = common::OPEN + 500 * common::US;
    let gap = Gap {
        cause: GapCause::RingFull,
        family: Family::Syscall,
        cpu: CPU_NONE,
        count: 2,
        first: at,
        last: at,
        pid: 0,
        ledger: false,
    };
    let place = place(&[gap]);
    let got = place.analyze("net --udp --format json --fail-on-loss udp.tape");
    assert_eq!(got.status, 3);
    assert!(got.json().iter().all(|row| bounds(row).len() == 8), "{}", got.out);
    let text = place.analyze("net --udp udp.tape").out;
    assert!(text.starts_with("Events are missing: numbers are lower bounds:\n"), "{text}");
}

#[test]
fn a_tape_without_the_calls_says_so() {
    let place = Place::new();
    let mut session = udp::of_tape();
    session.selection = vec![b"network".to_vec()];
    udp::write_with(&place.path("udp.tape"), &session, &[]);
    let got = place.analyze("net --udp --format json udp.tape");
    assert!(got.err.contains("AT LEAST: record was asked to leave out read, write"), "{}", got.err);
    assert!(got.json().iter().all(|row| bounds(row).len() == 8), "{}", got.out);
}
