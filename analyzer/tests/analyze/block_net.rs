//! The reports on block I/Os and connections, and events in the listing: filters, losses, and that sums agree with lists.

use crate::common::{self, Place};
use serde_json::Value;

fn place() -> Place {
    let place = Place::new();
    common::events::write(&place.path("events.tape"), false);
    common::events::write(&place.path("lossy.tape"), true);
    place
}

fn rows(place: &Place, words: &str) -> Vec<Value> {
    let got = place.analyze(words);
    // why there is none
    let nothing = got.out.is_empty() && got.err.starts_with("analyze: nothing ");
    assert!(got.status == 0 && (nothing || got.err.is_empty()), "{words}: {}", got.err);
    got.json()
}

/// A field of every line, joined.
fn field(place: &Place, words: &str, name: &str) -> String {
    let text = |row: &Value| row[name].as_str().map_or_else(|| row[name].to_string(), str::to_owned);
    rows(place, words).iter().map(text).collect::<Vec<_>>().join(" ")
}

#[test]
fn filters_look_at_whom_an_io_is_blamed_on() {
    let place = place();
    for (words, sectors) in [
        ("", "8 2348 2358 2448 2548 2648 2748 10000000"),
        ("-p 100", "8 2348 2648 10000000"),
        ("-t 101", "10000000"),
        ("-u root", "2448"),
        ("--comm=oth*", "2448"),
        ("-G /user.slice", "8 2348 2548 2648 10000000"),
        ("--failure", "2648"),
        ("--duration 0.09", "2348 10000000"),
        ("--time 400us,600us", "2448 2548"),
        ("--max-events 2", "8 2348"),
        ("-p 7", ""),
    ] {
        assert_eq!(field(&place, &format!("block --format json {words} events.tape"), "sector"), sectors, "{words}");
    }
}

#[test]
fn what_is_not_known_is_null() {
    let place = place();
    let all = rows(&place, "block --format json events.tape");
    let failed = all.iter().find(|row| row["errno"] == "EIO").unwrap();
    for name in ["queued_ns", "issued_ns", "dur_ns", "queue_ns", "cgroup"] {
        assert_eq!(failed[name], Value::Null, "{name}");
    }
    assert_eq!(
        (&failed["errno_code"], &failed["inode"], &failed["owner"]["tid"]),
        (&5.into(), &"77".into(), &100.into())
    );
    let nobody = &all[2];
    assert_eq!(
        (&nobody["owner"], &nobody["origin"]["comm"], &nobody["inode"]),
        (&Value::Null, &"other".into(), &Value::Null)
    );
    assert_eq!((&nobody["partition"], &all[0]["partition"]), (&"vda2".into(), &Value::Null));
    assert_eq!(
        (&all[1]["layer"], &all[1]["queue_ns"], &all[1]["dur_ns"]),
        (&"bio".into(), &Value::Null, &100_000.into())
    );
}

#[test]
fn sums_agree_with_the_list() {
    let place = place();
    let all = rows(&place, "block --format json events.tape");
    let lowest: Vec<_> = all.iter().filter(|row| row["disk"] != "dm-0").collect();
    for by in ["task", "tid", "comm", "uid", "cgroup", "cause", "op", "cause,op"] {
        let sums = rows(&place, &format!("block --top --by {by} --format json events.tape"));
        let sum = |name: &str| sums.iter().map(|row| row[name].as_u64().unwrap()).sum::<u64>();
        assert_eq!(sum("ios"), lowest.len() as u64, "{by}");
        assert_eq!(sum("total_ns"), lowest.iter().filter_map(|row| row["dur_ns"].as_u64()).sum::<u64>(), "{by}");
        let hists = rows(&place, &format!("block --hist --by {by} --format json events.tape"));
        let counts = hists.iter().flat_map(|row| row["histogram"].as_array().unwrap());
        assert_eq!(counts.map(|bucket| bucket["count"].as_u64().unwrap()).sum::<u64>(), sum("timed_ios"), "{by}");
    }
}

#[test]
fn connections_are_filtered_by_who_opened_them() {
    let place = place();
    for (words, sockets) in [
        ("", "4 2 1 3 5"),
        ("-p 100", "4 2"),
        ("--comm=other", "1 3"),
        ("--failure", "4"),
        ("--duration 1.7", "1 3 5"),
        ("--time ,150us", "1 5"),
        ("--time 1751us,", "1 3 5"),
        ("--max-events 1", "4"),
    ] {
        assert_eq!(field(&place, &format!("net --format json {words} events.tape"), "socket"), sockets, "{words}");
    }
    assert_eq!(field(&place, "net --events -p 102 --format json events.tape", "socket"), "1");
}

#[test]
fn losses_are_said_and_bound_nothing() {
    let place = place();
    let gap = "LOST 12 block events, 0.000–0.000 s: ring buffer full";
    let block = place.analyze("block --fail-on-loss lossy.tape");
    assert_eq!((block.status, block.err.as_str()), (3, ""));
    // between the I/Os of 0.4 and 0.5 ms
    assert_eq!(block.out.lines().position(|line| line == gap), Some(5), "{}", block.out);
    assert_eq!(place.analyze("block --fail-on-loss --time 1ms, lossy.tape").status, 0);
    for words in ["block --top", "block --hist"] {
        let got = place.analyze(&format!("{words} --fail-on-loss lossy.tape"));
        assert_eq!(got.status, 3);
        assert!(
            got.out.starts_with("Events are missing: numbers are lower bounds") && got.out.contains(gap),
            "{}",
            got.out
        );
        let json = place.analyze(&format!("{words} --format json lossy.tape"));
        assert!(json.err.contains(gap), "{}", json.err);
        assert!(json.json().iter().all(|row| row["ios_at_least"] == true));
    }
    assert!(place.analyze("block --format csv lossy.tape").err.contains(gap));
    assert!(place.analyze("block --format json lossy.tape").json().iter().any(|row| row["lost"] == 12));
    // a socket may have been closed in the gap: how long it lasted is not known
    let net = place.analyze("net lossy.tape");
    assert!(net.out.contains("LOST 3 net events") && !net.out.contains(">="), "{}", net.out);
    // and calls are not touched by any of this
    assert_eq!(place.analyze("-s --fail-on-loss lossy.tape").status, 0);
    assert_eq!(place.analyze("-e sched:* --fail-on-loss lossy.tape").status, 0);
    assert_eq!(place.analyze("-e block:* --fail-on-loss lossy.tape").status, 3);
}

#[test]
fn events_in_the_listing_obey_filters() {
    let place = place();
    for (words, events) in [
        (
            "-e sched:*",
            "sched:sched_switch sched:sched_waking sched:sched_switch sched:sched_wakeup_new sched:sched_process_exit",
        ),
        ("-e sched:*,!sched:sched_s* -p 102", "sched:sched_process_exit"),
        ("-e sched:sched_switch -t 101", ""),
        ("-e sched:* -C 0", "sched:sched_waking"),
        ("-e signal:* -p 102", "signal:signal_generate"),
        ("-e block:* --time 550us,650us", "block:block_rq_complete"),
        ("-e io_uring:* --max-events 2", "io_uring:io_uring_submit_req io_uring:io_uring_submit_req"),
        ("-e close,process:exit -p 102", "sched:sched_process_exit"),
    ] {
        assert_eq!(field(&place, &format!("--format json {words} events.tape"), "event"), events, "{words}");
    }
    let both = rows(&place, "-e close,io_uring:* --format json events.tape");
    let kinds: Vec<_> = both.iter().map(|row| row["syscall"].as_str().unwrap_or("-")).collect();
    assert_eq!(kinds, ["close", "-", "-", "-", "close"]);
    let plain = place.analyze("events.tape");
    assert_eq!(plain.out.lines().count(), 4, "without a name only calls are listed");
}
