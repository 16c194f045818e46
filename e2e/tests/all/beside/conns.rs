//! What connections did: bytes of each and of each (user, name, other end) are those that the programs counted, and every
//! count of an open one is what `ss -i` printed. Ends of both families, closed, reset, open, from before the recording,
//! lossy, handed over, from a port that was used a moment ago.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use serde_json::Value;
use systape_e2e::{Background, Call, Lab};

/// What the workload said of one end.
struct End(Value);

impl End {
    fn text(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or_else(|| panic!("{key}: {}", self.0))
    }

    fn number(&self, key: &str) -> i64 {
        self.0[key].as_i64().unwrap_or_else(|| panic!("{key}: {}", self.0))
    }

    fn is_udp(&self) -> bool {
        ["bound", "connected", "unconnected"].contains(&self.text("kind"))
    }
}

/// Records the workload with these options from when it has made its first connections; returns what it said.
fn recorded(lab: &Lab, options: &[&str]) -> Vec<End> {
    let workload = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads/conns.py");
    let mut program = Background::start(lab.command("python3").arg(workload));
    lab.until_file("ready");
    let pid = program.pid_text();
    let options: Vec<&str> = if options.is_empty() { vec!["-p", &pid] } else { options.to_vec() };
    let record = lab.attach("t.tape", &options);
    // what happens until the sockets of all processes were looked at is not known
    std::thread::sleep(Duration::from_secs(1));
    fs::write(lab.path("go"), "go").expect("go");
    lab.until("done", || {
        assert!(program.ended().is_none(), "the workload failed");
        lab.path("done").exists()
    });
    record.stop(libc::SIGINT).expect(0);
    fs::write(lab.path("end"), "end").expect("end");
    lab.until("its end", || program.ended().is_some());
    let log = fs::read_to_string(lab.path("log")).expect("log");
    log.lines().map(|line| End(serde_json::from_str(line).expect("JSON"))).collect()
}

/// A number that JSON has as text when it may have 64 bits.
#[track_caller]
fn wide(value: &Value) -> i64 {
    value.as_i64().or_else(|| value.as_str()?.parse().ok()).unwrap_or_else(|| panic!("{value}"))
}

fn end_of(row: &Value, address: &str, port: &str) -> String {
    let (address, port) = (row[address].as_str().unwrap_or("?"), row[port].as_i64().unwrap_or(0));
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}

/// The connection of one end, of those whose ends are these; in the order in which they were made.
#[track_caller]
fn connection<'a>(rows: &'a [Value], end: &End) -> &'a Value {
    let is = |row: &&Value| {
        end_of(row, "laddr", "lport") == end.text("local") && end_of(row, "raddr", "rport") == end.text("remote")
    };
    let found: Vec<&Value> = rows.iter().filter(is).collect();
    match (end.text("kind"), &found[..]) {
        ("reset", [first, _]) => first,
        ("again", [_, second]) => second,
        ("reset" | "again", _) => panic!("{}: {found:?}", end.0),
        (_, [one]) => one,
        _ => panic!("{}: {found:?}", end.0),
    }
}

#[test]
fn counts_are_those_of_the_programs_and_of_ss() {
    let Some(lab) = Lab::beside() else { return };
    let ends = recorded(&lab, &[]);
    lab.assert_whole("t.tape");
    let run = lab.analyze(&["net", "t.tape", "--format", "json"]).expect(0);
    assert_eq!(run.complaints(), "");
    let rows = run.json();
    let retransmits = lab.analyze(&["t.tape", "-e", "socket:retransmit", "--format", "json"]).expect(0).json();
    for end in ends.iter().filter(|end| !end.is_udp()) {
        let (row, kind) = (connection(&rows, end), end.text("kind"));
        let what = format!("{}\n{row}", end.0);
        let moved = [wide(&row["sent_bytes"]), wide(&row["received_bytes"])];
        assert_eq!(moved, [end.number("sent"), end.number("received")], "{what}");
        assert_eq!(row["sent_bytes_at_least"], kind == "old", "{what}");
        let before = [wide(&end.0["before"][0]), wide(&end.0["before"][1])];
        let tcp = &row["tcp"];
        let all = wide(&tcp["bytes_sent"]) - wide(&tcp["bytes_retrans"]);
        assert_eq!(all, before[0] + end.number("sent"), "{what}");
        let owner = &row["owner"];
        assert_eq!((wide(&owner["pid"]), wide(&owner["uid"])), (end.number("pid"), end.number("uid")), "{what}");
        assert_eq!(owner["comm"], end.text("comm"), "{what}");
        if kind == "reset" {
            assert_eq!(row["outcome"], "reset", "{what}");
        }
        let sent_again =
            retransmits.iter().filter(|again| wide(&again["args"]["socket"]) == wide(&row["socket"])).count();
        assert_eq!(sent_again as i64, wide(&row["retransmits"]), "{what}");
        if kind == "lossy" {
            println!("lossy: {tcp}");
        }
        let Some(ss) = end.0["ss"].as_object() else { continue };
        assert_eq!(row["outcome"], "open", "{what}");
        for (key, truth) in ss {
            let ours = match key.as_str() {
                "rtt" | "rttvar" | "min_rtt" => tcp[&format!("{key}_ns")].as_i64().unwrap_or(0) / 1000,
                key => wide(&tcp[key]),
            };
            assert_eq!(ours, wide(truth), "{key} {what}");
        }
    }
    let lossy = |end: &&End| end.text("kind") == "lossy" && end.number("sent") > 0;
    let lossy = connection(&rows, ends.iter().find(lossy).expect("a lossy one"));
    assert!(wide(&lossy["retransmits"]) > 0 && wide(&lossy["tcp"]["bytes_retrans"]) > 0, "{lossy}");
    let errors = lab.analyze(&["t.tape", "-e", "socket:error", "--format", "json"]).expect(0).json();
    assert!(errors.iter().any(|row| wide(&row["args"]["error"]) == i64::from(libc::ECONNRESET)), "{errors:?}");
    // the inode joins a connection with its name
    let names = lab.analyze(&["t.tape", "-e", "socket:name", "--format", "json"]).expect(0).json();
    for row in rows.iter().filter(|row| row["direction"] != "listen") {
        let is =
            |name: &&Value| wide(&name["args"]["inode"]) == wide(&row["inode"]) && name["args"]["remote"].is_string();
        let named: Vec<&Value> = names.iter().filter(is).map(|name| &name["args"]["remote"]).collect();
        assert!(named.iter().any(|remote| **remote == end_of(row, "raddr", "rport").as_str()), "{row}: {named:?}");
    }
}

/// What calls moved, by user, name and socket, is what the programs counted, TCP and UDP.
#[test]
fn bytes_of_calls_are_those_of_the_programs() {
    let Some(lab) = Lab::beside() else { return };
    let ends = recorded(&lab, &["-e", "network,desc,process"]);
    let mut truth: BTreeMap<(i64, String, String), [i64; 2]> = BTreeMap::new();
    for end in ends.iter().filter(|end| end.text("kind") != "passed") {
        let six = if end.text("local").starts_with('[') { "v6" } else { "" };
        let protocol = if end.is_udp() { "UDP" } else { "TCP" };
        let peer = match (end.text("kind"), &end.0["remote"]) {
            (_, Value::String(remote)) => format!("->{remote}"),
            _ => String::new(),
        };
        let name = format!("{protocol}{six}:[{}{peer}]", end.text("local"));
        let sums = truth.entry((end.number("uid"), end.text("comm").to_owned(), name)).or_default();
        sums[0] += end.number("sent");
        sums[1] += end.number("received");
    }
    let by = ["files", "t.tape", "--sockets", "--by", "uid,comm,file", "--format", "json"];
    let rows = lab.analyze(&by).expect(0).json();
    let calls = lab.calls("t.tape", &[]);
    for ((uid, comm, name), sums) in truth {
        let is = |row: &&Value| row["uid"] == uid && row["comm"] == comm.as_str() && row["file"] == name.as_str();
        // a connected UDP socket has its other end in its name, which the program did not log
        let starts = |row: &&Value| {
            let file = row["file"].as_str().unwrap_or_default();
            name.starts_with("UDP") && file.starts_with(&format!("{}->", name.trim_end_matches(']')))
        };
        let mut found =
            rows.iter().filter(|row| is(row) || row["uid"] == uid && row["comm"] == comm.as_str() && starts(row));
        let all =
            found.by_ref().fold([0, 0], |[w, r], row| [w + wide(&row["write_bytes"]), r + wide(&row["read_bytes"])]);
        assert_eq!(all, sums, "{uid} {comm} {name}");
        for row in rows.iter().filter(|row| is(row) || starts(row)) {
            let [first, last] = ["first_ns", "last_ns"].map(|key| row[key].as_i64().expect(key));
            let on = |call: &&Call| {
                let args = call.0["args"].as_object().into_iter().flat_map(|args| args.values());
                call.comm() == comm && args.into_iter().any(|arg| arg["path"] == row["file"])
            };
            let calls = calls.iter().filter(on);
            let spans: Vec<(i64, i64)> = calls.map(|call| (call.ts(), call.ts() + call.dur().unwrap_or(0))).collect();
            let truth = (spans.iter().map(|span| span.0).min(), spans.iter().map(|span| span.1).max());
            assert_eq!((Some(first), Some(last)), truth, "{row}");
        }
    }
}
