//! `analyze across`: two network namespaces of this machine stand for two machines, each process with a recorder of its own. One clock is
//! that of both: the truth is known.

use std::fs;
use std::time::Duration;

use serde_json::Value;
use systape_e2e::{Background, Lab};

/// What `e2e/workloads/machines.py` does: connections, exchanges of each after the recording began, of those from before and of the others.
const EXCHANGES: u64 = 2 * 58 + 2 * 60;

#[test]
fn two_machines_have_one_answer() {
    let Some(lab) = Lab::beside() else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/workloads/machines.py");
    let program = Background::start(lab.command("python3").args(["-B", script]));
    lab.until_file("connected");
    let pids = lab.until_file("pids");
    let pids: Vec<&str> = pids.split_whitespace().collect();
    let server = lab.attach("server.tape", &["-p", pids[0]]);
    let client = lab.attach("client.tape", &["-p", pids[1]]);
    // until the descriptors of all were listed it is not known what calls are on
    std::thread::sleep(Duration::from_secs(1));
    fs::write(lab.path("go"), "").expect("go");
    program.wait().expect(0);
    for record in [server, client] {
        record.stop(libc::SIGINT).expect(0);
    }

    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value}"));
    for order in [["client.tape", "server.tape"], ["server.tape", "client.tape"]] {
        let rows = lab.analyze(&["across", order[0], order[1], "--format", "json"]).expect(0).json();
        let [sums, clocks] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((&sums["client_tape"], &sums["server"]), (&"client.tape".into(), &"10.9.1.1:8080".into()), "{sums}");
        // the first of each from before was perhaps under way, and has no times
        assert!((EXCHANGES - 2..=EXCHANGES).contains(&(number(&sums["exchanges"]) as u64)), "{sums}");
        assert_eq!((&clocks["connections"], &clocks["unsure"]), (&4.into(), &0.into()), "{clocks}");
        // there is one clock; the bounds of the tapes' times of day have the width of a read of it
        let [least, most] = ["ahead_least_ms", "ahead_most_ms"].map(|name| number(&clocks[name]));
        assert!(least <= 0.05 && -0.05 <= most && most - least < 5.0, "{clocks}");
        // who asks waits for no shorter than the server takes, and not much longer on one machine
        let [asked, took, way] = ["client_p50_ns", "server_p50_ns", "network_p50_ns"].map(|name| number(&sums[name]));
        assert!(asked >= 2e6 && took >= 2e6 && way < asked, "{sums}");
    }

    let slowest = ["across", "client.tape", "server.tape", "--slowest", "4", "--format", "json"];
    let rows = lab.analyze(&slowest).expect(0).json();
    let slow: Vec<&Value> = rows.iter().filter(|row| !row["total_ns"].is_null()).collect();
    assert_eq!(slow.len(), 4, "{rows:?}");
    for row in slow {
        assert!(number(&row["serve_ns"]) >= 50e6, "the server slept then: {row}");
        let [there, back] = ["there_most_ns", "back_most_ns"].map(|name| number(&row[name]));
        let known: f64 = ["queue_ns", "receive_ns", "serve_ns", "send_ns", "held_ns"]
            .map(|name| row[name].as_f64().unwrap_or(0.0))
            .iter()
            .sum();
        let [total, way] = ["total_ns", "network_ns"].map(|name| number(&row[name]));
        assert!(there <= way && back <= way && (known + way - total).abs() < 1.0, "{row}");
        assert_eq!(
            [&row["asked"]["pid"], &row["answered"]["pid"]].map(|pid| pid.to_string()),
            [pids[1], pids[0]],
            "{row}"
        );
    }

    // a tape has nothing in common with another time, or with itself
    lab.record("other.tape", &[], &["true"]).expect(0);
    let none = lab.analyze(&["across", "client.tape", "other.tape"]).expect(0);
    assert!(none.text().contains("no connection is on two of the tapes"), "{}", none.text());
}
