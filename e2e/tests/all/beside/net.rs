//! TCP connections between two processes that log what they do: both ends, who, which side closed, how long, and every
//! change of state in its order.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use systape_e2e::Lab;

const MS: i64 = 1_000_000;

#[track_caller]
fn rows(lab: &Lab, arguments: &[&str]) -> Vec<Value> {
    let run = lab.analyze(&[&["net", "t.tape", "--format", "json"], arguments].concat()).expect(0);
    assert_eq!(run.complaints(), "");
    run.json()
}

#[track_caller]
fn num(row: &Value, key: &str) -> i64 {
    row[key].as_i64().unwrap_or_else(|| panic!("{key}: {row}"))
}

/// A line of the workload's log.
struct Logged {
    what: String,
    local: i64,
    remote: i64,
    dur: i64,
}

/// The log, and the process ids of client and server.
fn truth(lab: &Lab) -> (Vec<Logged>, i64, i64) {
    let (mut log, mut pids) = (Vec::new(), BTreeMap::new());
    let text = fs::read_to_string(lab.path("log")).expect("log");
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let n: Vec<i64> = words[1..].iter().map(|n| n.parse().expect("number")).collect();
        match words[0] {
            who @ ("client" | "server") => _ = pids.insert(who, n[0]),
            what => log.push(Logged { what: what.into(), local: n[0], remote: n[1], dur: n[3] - n[2] }),
        }
    }
    (log, pids["client"], pids["server"])
}

#[test]
fn connections_are_those_the_programs_made() {
    let Some(lab) = Lab::beside() else { return };
    // free now; another program may take it, but none does
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("port").local_addr().expect("address").port();
    let workload = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads/net.py");
    let command = ["python3", workload.to_str().expect("UTF-8"), &port.to_string(), "log"];
    lab.record("t.tape", &[], &command).expect(0);
    lab.assert_whole("t.tape");
    let (log, client, server) = truth(&lab);
    assert_eq!(log.len(), 11);
    let port = i64::from(port);
    let ours =
        |row: &Value| [num(row, "lport"), row["rport"].as_i64().unwrap_or(0)].contains(&port) || row["rport"] == 1;
    let connections: Vec<Value> = rows(&lab, &[]).into_iter().filter(ours).collect();
    // the listening socket has no remote end
    assert_eq!(connections.len(), log.len() + 1, "{connections:?}");
    let events: Vec<Value> = rows(&lab, &["--events"]);

    let mut nth = BTreeMap::new();
    for logged in &log {
        let is = |row: &&Value| match logged.what.as_str() {
            "refused" => row["rport"] == 1,
            _ => row["lport"] == logged.local && row["rport"] == logged.remote,
        };
        let found: Vec<&Value> = connections.iter().filter(is).collect();
        let [row] = found[..] else { panic!("{} {}: {found:?}", logged.what, logged.local) };
        let i = nth.entry(logged.what.as_str()).and_modify(|i| *i += 1).or_insert(0);
        let (direction, pid, first) = match logged.what.as_str() {
            "accept" => ("accept", server, *i % 2 == 1),
            _ => ("connect", client, *i % 2 == 0),
        };
        assert_eq!((row["direction"].as_str(), num(&row["owner"], "pid")), (Some(direction), pid), "{row}");
        assert_eq!((&row["laddr"], &row["raddr"]), (&"127.0.0.1".into(), &"127.0.0.1".into()), "{row}");
        assert_eq!((&row["protocol"], &row["dur_ns_at_least"]), (&"TCP".into(), &false.into()), "{row}");
        let (outcome, end): (_, &[&str]) = match (logged.what.as_str(), first) {
            ("refused", _) => ("failed", &[]),
            (_, true) => ("closed", &["ESTABLISHED", "FIN_WAIT1", "FIN_WAIT2", "CLOSE"]),
            (_, false) => ("closed-by-peer", &["ESTABLISHED", "CLOSE_WAIT", "LAST_ACK", "CLOSE"]),
        };
        assert_eq!(row["outcome"], outcome, "{row}");

        // a connection may be there before accept returns it, and a little after close
        let (dur, longest) = (num(row, "dur_ns"), logged.dur + 100 * MS);
        let least = if logged.what == "refused" { 0 } else { (i64::from(*i) + 1) * 50 * MS };
        assert!((least..longest).contains(&dur), "{} for {} ns: {row}", logged.what, logged.dur);
        assert_eq!(row["established_ns"].is_i64(), logged.what != "refused", "{row}");

        let changes: Vec<&Value> = events.iter().filter(|event| event["socket"] == row["socket"]).collect();
        let states: Vec<&str> = changes.iter().map(|e| e["new_state"].as_str().expect("state")).collect();
        let begin: &[&str] = match logged.what.as_str() {
            "refused" => &["SYN_SENT", "CLOSE"],
            "connect" => &["SYN_SENT"],
            _ => &["SYN_RECV"],
        };
        assert_eq!(states, [begin, end].concat(), "{row}");
        for pair in changes.windows(2) {
            assert!(pair[0]["new_state"] == pair[1]["old_state"] && num(pair[0], "ts_ns") <= num(pair[1], "ts_ns"));
        }
        assert_eq!(num(changes[changes.len() - 1], "ts_ns") - num(changes[0], "ts_ns"), dur, "{row}");
    }

    let listen = connections.iter().find(|row| row["direction"] == "listen").expect("listening socket");
    assert_eq!((num(listen, "lport"), num(&listen["owner"], "pid")), (port, server), "{listen}");
    assert!(listen["rport"].is_null() && num(listen, "dur_ns") >= 750 * MS, "{listen}");

    let failed = rows(&lab, &["--failure"]);
    let refused: Vec<&Value> = connections.iter().filter(|row| row["outcome"] == "failed").collect();
    assert_eq!((failed.iter().collect::<Vec<_>>(), refused.len()), (refused, 1));
    let text = lab.analyze(&["net", "t.tape", "-p", &client.to_string()]).expect(0).text();
    assert_eq!(text.lines().filter(|line| line.contains(&format!("127.0.0.1:{port} "))).count(), 5, "{text}");
}
