//! What `analyze requests` says of servers and clients of which each knows what it did.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use serde_json::Value;
use systape_e2e::{Background, Lab};

/// What a case says of itself.
#[derive(Debug)]
struct Truth {
    /// Port, or path.
    server: String,
    exchanges: u64,
    errors: u64,
    received: u64,
    sent: u64,
}

fn log(lab: &Lab) -> BTreeMap<String, Truth> {
    let text = fs::read_to_string(lab.path("log")).expect("log");
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse().expect("a number");
        let truth = Truth {
            server: words[1].to_owned(),
            exchanges: number(2),
            errors: number(3),
            received: number(4),
            sent: number(5),
        };
        (words[0].to_owned(), truth)
    };
    text.lines().map(line).collect()
}

fn script() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/workloads/exchanges.py")
}

fn number(value: &Value) -> u64 {
    value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap_or_else(|| panic!("{value}"))
}

/// Rows by port, or path.
fn rows(lab: &Lab, options: &[&str]) -> BTreeMap<String, Value> {
    let run = lab.analyze(&[&["requests", "t.tape", "--format", "json"], options].concat()).expect(0);
    let key = |row: &Value| match row["port"].as_u64() {
        Some(port) => port.to_string(),
        None => row["server"].as_str().expect("a path").to_owned(),
    };
    run.json().into_iter().map(|row| (key(&row), row)).collect()
}

fn assert_numbers(name: &str, row: &Value, truth: &Truth, [received, sent]: [u64; 2]) {
    let of = |column: &str| number(&row[column]);
    assert_eq!(
        [of("exchanges"), of("errors"), of("received_bytes"), of("sent_bytes")],
        [truth.exchanges, truth.errors, received, sent],
        "{name} {truth:?}: {row}"
    );
    assert_eq!(row["exchanges_at_least"], false, "{name}: {row}");
    assert_eq!(of("timed"), truth.exchanges - truth.errors, "{name}: {row}");
}

#[test]
fn exchanges_are_those_of_the_programs() {
    let Some(lab) = Lab::beside() else { return };
    lab.record("t.tape", &[], &["python3", "-B", script()]).expect(0);
    lab.assert_whole("t.tape");
    let log = log(&lab);
    assert_eq!(log.len(), 13, "{log:?}");
    let (servers, clients) = (rows(&lab, &[]), rows(&lab, &["--client"]));
    for (name, truth) in &log {
        assert_numbers(name, &servers[&truth.server], truth, [truth.received, truth.sent]);
        // a client that gives up does not say that anything went wrong
        if name != "reset" {
            assert_numbers(name, &clients[&truth.server], truth, [truth.sent, truth.received]);
        }
    }
    assert_eq!((servers.len(), clients.len()), (log.len(), log.len()));
    // the client's slowness is not the server's
    let upload = &servers[&log["uploads"].server];
    let of = |column: &str| number(&upload[column]);
    assert!(of("receive_max_ns") >= 80_000_000 && of("serve_max_ns") >= 30_000_000, "{upload}");
    assert!(of("max_ns") >= of("receive_max_ns") + of("serve_max_ns"), "{upload}");
    // both ends of a connection find each other
    for options in [&["--slowest", "200"][..], &["--slowest", "200", "--client"]] {
        let run = lab.analyze(&[&["requests", "t.tape", "--format", "json"], options].concat()).expect(0);
        let slowest = run.json();
        let timed: u64 = log.values().map(|truth| truth.exchanges - truth.errors).sum();
        assert_eq!(slowest.len() as u64, timed, "{options:?}");
        let times: Vec<u64> = slowest.iter().map(|row| number(&row["total_ns"])).collect();
        assert!(times.is_sorted_by(|one, other| one >= other), "{times:?}");
        for row in &slowest {
            let [own, other] = [number(&row["total_ns"]), number(&row["peer"]["total_ns"])];
            // a write may return when the client has read its bytes
            match options.contains(&"--client") {
                true => assert!(own >= number(&row["peer"]["serve_ns"]), "{row}"),
                false => assert!(other >= own - number(&row["send_ns"]), "{row}"),
            }
        }
    }
    // of one port, and of one process
    let port = &log["keep_alive"].server;
    assert_eq!(rows(&lab, &["--port", port]).len(), 1);
    let pid =
        lab.analyze(&["requests", "t.tape", "--by", "process", "--format", "json", "--port", port]).expect(0).json();
    assert_eq!(pid.len(), 1);
    assert_eq!(rows(&lab, &["-p", &pid[0]["pid"].to_string(), "--port", port]).len(), 1);
    assert!(rows(&lab, &["-p", "1", "--port", port]).is_empty());
    let threads =
        lab.analyze(&["requests", "t.tape", "--by", "thread", "--format", "json", "--port", port]).expect(0).json();
    assert_eq!(threads.iter().map(|row| number(&row["exchanges"])).collect::<Vec<_>>(), [7; 5]);
}

#[test]
fn descriptors_that_were_passed_have_no_name_and_that_is_said() {
    let Some(lab) = Lab::beside() else { return };
    lab.record("t.tape", &[], &["python3", "-B", script(), "passed"]).expect(0);
    let log = log(&lab);
    let truth = &log["passed"];
    let run = lab.analyze(&["requests", "t.tape", "--client"]).expect(0);
    // 6 exchanges, a read and a write of each
    assert!(
        run.text().contains("AT LEAST: 12 more calls are on sockets whose addresses are not known"),
        "{}",
        run.text()
    );
    let row = &rows(&lab, &["--client"])[&truth.server];
    assert_eq!((number(&row["exchanges"]), &row["exchanges_at_least"]), (truth.exchanges, &Value::Bool(true)), "{row}");
    assert!(rows(&lab, &[]).is_empty());
}

#[test]
fn what_is_older_than_the_recording_is_counted_and_not_timed() {
    let Some(lab) = Lab::beside() else { return };
    let dir = lab.dir().to_str().expect("a path").to_owned();
    let program = Background::start(lab.command("python3").args(["-B", script(), "attach", &dir]));
    let port = lab.until_file("ready");
    let record = lab.attach("t.tape", &["-p", &program.pid_text()]);
    // until the descriptors of the process were listed it is not known what calls are on
    std::thread::sleep(Duration::from_secs(1));
    fs::write(lab.path("go"), "").expect("go");
    program.wait().expect(0);
    record.wait().expect(0);
    lab.assert_whole("t.tape");
    let row = &rows(&lab, &["--port", &port])[&port];
    let of = |column: &str| number(&row[column]);
    assert_eq!((of("exchanges"), of("timed"), of("errors")), (8, 7, 0), "{row}");
    assert_eq!(of("received_bytes"), 5 + 7 * 10, "{row}");
}

#[test]
fn the_time_of_the_slowest_is_followed_to_the_next_server() {
    let Some(lab) = Lab::beside() else { return };
    lab.record("t.tape", &[], &["python3", "-B", script(), "chain"]).expect(0);
    let log = log(&lab);
    let (servers, front) = (rows(&lab, &[]), &log["chain"].server);
    for (name, truth) in &log {
        assert_numbers(name, &servers[&truth.server], truth, [truth.received, truth.sent]);
    }
    let asked = ["requests", "t.tape", "--port", front, "--slowest", "3", "--where", "--format", "json"];
    let rows = lab.analyze(&asked).expect(0).json();
    let is = |row: &Value, [comm, cause]: [&str; 2]| row["comm"] == comm && row["cause"] == cause;
    let mut sleeping = 0;
    for rank in 1..=3 {
        let of_one = || rows.iter().filter(|row| row["rank"] == rank);
        let slept: u64 = of_one().filter(|row| is(row, ["back", "sleep"])).map(|row| number(&row["total_ns"])).sum();
        sleeping += usize::from(slept >= 49_000_000);
        // nothing is counted twice
        let all: u64 = of_one().map(|row| number(&row["total_ns"])).sum();
        assert!(of_one().all(|row| all <= number(&row["exchange_ns"])), "{rank}: {all}");
    }
    // on a busy machine one may be slower that waits for a CPU
    assert!(sleeping >= 2, "{rows:?}");
    let more = rows.iter().find(|row| row["more_ns"].is_number() && is(row, ["back", "sleep"])).expect("that cause");
    assert!(number(&more["slow"]) >= 2 && more["of_slow"] == 3, "{more}");
    assert!(number(&more["more_ns"]) >= 30_000_000, "{more}");
}

/// The script that has connections in several network namespaces.
fn namespaces() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/workloads/namespaces.py")
}

/// What a connection of that script was: namespace and pid of the server, those of the client, exchanges, bytes in and out.
fn connections(lab: &Lab) -> Vec<[u64; 7]> {
    let text = fs::read_to_string(lab.path("log")).expect("log");
    let line = |line: &str| {
        let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
        numbers.try_into().expect("seven numbers")
    };
    text.lines().map(line).collect()
}

/// Holds what the tape says of each server beside the script, and that it is never taken for the other one. How many servers more there are.
fn assert_apart(lab: &Lab, without_times: u64) -> usize {
    let rows = lab.analyze(&["requests", "t.tape", "--port", "8080", "--format", "json"]).expect(0).json();
    let connections = connections(lab);
    let more = rows.len() - connections.len();
    for [namespace, _, _, _, exchanges, received, sent] in connections {
        let of = |row: &&Value| row["server"] == format!(":8080@{namespace}");
        let row = rows.iter().find(of).unwrap_or_else(|| panic!("{namespace}: {rows:?}"));
        let told = ["exchanges", "timed", "errors", "received_bytes", "sent_bytes"].map(|name| number(&row[name]));
        assert_eq!(told, [exchanges, exchanges - without_times, 0, received, sent], "{row}");
    }
    more
}

#[test]
fn equal_addresses_in_two_network_namespaces_are_two_connections() {
    let Some(lab) = Lab::beside() else { return };
    lab.record("t.tape", &[], &["python3", "-B", namespaces(), "alone"]).expect(0);
    lab.assert_whole("t.tape");
    assert_eq!(assert_apart(&lab, 0), 0);
    let found = assert_ends(&lab);
    assert_eq!(found, 8, "both ends are in one namespace");
}

/// Holds the other ends of all exchanges beside the script: none is the wrong one. How many have one.
fn assert_ends(lab: &Lab) -> usize {
    let slowest = ["requests", "t.tape", "--port", "8080", "--slowest", "99", "--format", "json"];
    let rows = lab.analyze(&slowest).expect(0).json();
    let clients: BTreeMap<u64, u64> =
        connections(lab).into_iter().map(|[_, server, _, client, ..]| (server, client)).collect();
    let known = rows.iter().filter(|row| !row["peer"].is_null());
    known.map(|row| assert_eq!(number(&row["peer"]["pid"]), clients[&number(&row["pid"])], "{row}")).count()
}

#[test]
fn ends_in_two_network_namespaces_are_joined_if_no_other_may_be_meant() {
    let Some(lab) = Lab::beside() else { return };
    for pairs in [1, 2] {
        lab.record("t.tape", &[], &["python3", "-B", namespaces(), "between", &pairs.to_string()]).expect(0);
        lab.assert_whole("t.tape");
        assert_eq!(assert_apart(&lab, 0), 0);
        let found = assert_ends(&lab);
        assert!(pairs > 1 || found == 3, "{found}");
    }
}

#[test]
fn namespaces_of_sockets_from_before_are_known() {
    let Some(lab) = Lab::beside() else { return };
    let dir = lab.dir().to_str().expect("a path").to_owned();
    let program = Background::start(lab.command("python3").args(["-B", namespaces(), "alone", "2", &dir]));
    lab.until("connections", || lab.path("ready").exists());
    let record = lab.attach("t.tape", &["--comm", "python3"]);
    // until the descriptors of all were listed it is not known what calls are on
    std::thread::sleep(Duration::from_secs(1));
    fs::write(lab.path("go"), "").expect("go");
    program.wait().expect(0);
    record.stop(libc::SIGINT).expect(0);
    lab.assert_whole("t.tape");
    // the first exchange of each was perhaps under way; other tests have such processes too
    assert_apart(&lab, 1);
}

/// The part of 12 pairs that are equal within 5 % and 60 us: what is told, and what packets say, ns.
fn near(pairs: &[(u64, u64)]) -> usize {
    pairs.iter().filter(|(told, packets)| told.abs_diff(*packets) <= packets / 20 + 60_000).count()
}

#[test]
fn queue_held_and_drain_are_those_of_the_packets() {
    let Some(lab) = Lab::beside() else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/workloads/segments.py");
    let dir = lab.dir().to_str().expect("a path").to_owned();
    let packets = Background::start(lab.command("python3").args(["-B", script, "packets", &dir]));
    lab.until("packets are read", || lab.path("ready").exists());
    lab.record("t.tape", &[], &["python3", "-B", script]).expect(0);
    packets.wait().expect(0);
    lab.assert_whole("t.tape");
    let mut by_port: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
    for row in lab.analyze(&["requests", "t.tape", "--slowest", "99", "--format", "json"]).expect(0).json() {
        by_port.entry(number(&row["port"])).or_default().push(row);
    }
    let log = fs::read_to_string(lab.path("log")).expect("log");
    let mut cases: BTreeMap<&str, Vec<[u64; 3]>> = BTreeMap::new();
    for line in log.lines() {
        let (case, numbers) = line.split_once(' ').expect("a case");
        let numbers: Vec<u64> = numbers.split(' ').map(|word| word.parse().expect("a number")).collect();
        cases.entry(case).or_default().push(numbers.try_into().expect("three numbers"));
    }
    assert_eq!(cases.len(), 4, "{log}");
    for (case, packets) in cases {
        let rows = by_port.get_mut(&packets[0][0]).expect("its rows");
        rows.sort_by_key(|row| number(&row["ts_ns"]));
        assert_eq!((rows.len(), packets.len()), (12, 12), "{case}");
        let of = |row: &Value, column: &str| row[column].as_u64().unwrap_or_else(|| panic!("{case} {column}: {row}"));
        // the kernel may skip a program that would interrupt itself, then it is not known
        let is_known = |row: &Value| ["queue_ns", "held_ns", "drain_ns"].iter().all(|column| !row[*column].is_null());
        let known: Vec<(&Value, &[u64; 3])> = rows.iter().zip(&packets).filter(|(row, _)| is_known(row)).collect();
        assert!(known.len() >= 11, "{case}: {rows:?}");
        let left: Vec<(u64, u64)> = known.iter().map(|(row, [_, left, _])| (of(row, "total_ns"), *left)).collect();
        let until_acked = |row: &Value| of(row, "total_ns") - of(row, "held_ns") + of(row, "drain_ns");
        let acked: Vec<(u64, u64)> = known.iter().map(|(row, [_, _, acked])| (until_acked(row), *acked)).collect();
        assert!(near(&left) >= 9 && near(&acked) >= 9, "{case}: {left:?} {acked:?}");
        let most = |column: &str, least: u64| known.iter().filter(|(row, _)| of(row, column) >= least).count();
        // a busy machine reads late, but not so late
        assert_eq!(most("queue_ns", 18_000_000) >= 9, case == "late", "{case}: {rows:?}");
        assert_eq!(most("held_ns", 15_000_000) >= 8, case == "held", "{case}: {rows:?}");
        let accepted: Vec<u64> = rows.iter().filter_map(|row| row["accept_ns"].as_u64()).collect();
        assert_eq!(accepted.len(), 1, "{case}: a connection is accepted once: {rows:?}");
        assert_eq!(accepted[0] >= 25_000_000, case == "slow", "{case}: {accepted:?}");
        // what is held back is no wait of the thread, which is told for itself whatever that does meanwhile
        let port = packets[0][0].to_string();
        let asked = ["requests", "t.tape", "--port", &port, "--slowest", "12", "--where", "--format", "json"];
        let whys = lab.analyze(&asked).expect(0).json();
        let by_cause = |cause: &str| {
            let of_cause = whys.iter().filter(|row| row["rank"].is_u64() && row["cause"] == cause);
            of_cause.filter(|row| of(row, "total_ns") >= 15_000_000).count()
        };
        assert_eq!(by_cause("held") >= 8, case == "held", "{case}: {whys:?}");
        assert_eq!(by_cause("blocked"), 0, "{case}: {whys:?}");
    }
}
