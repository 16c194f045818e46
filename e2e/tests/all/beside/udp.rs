//! What `analyze net --udp` says of processes that log what they sent and received by UDP, row by row.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use systape_e2e::{Background, Lab};

/// The columns of numbers, in the log's order.
const NUMBERS: [&str; 6] = ["sent", "sent_bytes", "received", "received_bytes", "errors", "refused"];

/// Process, protocol, own end, peer.
type Key = [String; 4];

/// Numbers, and whether they are only known to the program.
type Numbers = [(u64, bool); 6];

fn log(lab: &Lab) -> BTreeMap<Key, Numbers> {
    let text = fs::read_to_string(lab.path("log")).expect("log");
    let rows = text.lines().map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let key = std::array::from_fn(|at| words[at].to_owned());
        let number = |at: usize| {
            let word = words[4 + at];
            (word.trim_start_matches('~').parse().expect("a number"), word.starts_with('~'))
        };
        (key, std::array::from_fn(number))
    });
    rows.collect()
}

fn number(value: &Value) -> u64 {
    value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap_or_else(|| panic!("{value}"))
}

fn end(row: &Value, side: char) -> String {
    let (address, port) = (&row[format!("{side}addr")], &row[format!("{side}port")]);
    match address.as_str() {
        Some(address) if address.contains(':') => format!("[{address}]:{port}"),
        Some(address) => format!("{address}:{port}"),
        None => "?".to_owned(),
    }
}

#[track_caller]
fn rows(lab: &Lab, options: &[&str]) -> BTreeMap<Key, Value> {
    let run = lab.analyze(&[&["net", "--udp", "t.tape", "--format", "json"], options].concat()).expect(0);
    assert_eq!(run.complaints(), "");
    let rows = run.json();
    let count = rows.len();
    let word = |row: &Value| row["protocol"].as_str().expect("a protocol").to_owned();
    let key = |row: &Value| [row["pid"].to_string(), word(row), end(row, 'l'), end(row, 'r')];
    let rows: BTreeMap<Key, Value> = rows.into_iter().map(|row| (key(&row), row)).collect();
    assert_eq!(rows.len(), count, "each once");
    rows
}

#[test]
fn messages_and_bytes_are_those_of_the_programs() {
    let Some(lab) = Lab::beside() else { return };
    let program = lab.cc("udp", &[]);
    lab.record("t.tape", &[], &[&program, "log"]).expect(0);
    lab.assert_whole("t.tape");
    let (log, rows) = (log(&lab), rows(&lab, &[]));
    assert_eq!(log.len(), 2 * 4 + 2 + 1 + 2 + 3, "{log:?}");
    assert_eq!(rows.keys().collect::<Vec<_>>(), log.keys().collect::<Vec<_>>());
    for (key, numbers) in &log {
        let row = &rows[key];
        for (name, (truth, tilde)) in NUMBERS.iter().zip(numbers) {
            let (is, at_least) = (number(&row[*name]), row[format!("{name}_at_least")] == true);
            assert!(if at_least { is <= *truth } else { is == *truth }, "{name} {truth}: {row}");
            assert!(at_least || !tilde, "{name} cannot be known: {row}");
        }
        // what can be known is
        let unknown = numbers.iter().any(|(_, tilde)| *tilde);
        let exact = |name: &&str| row[format!("{name}_at_least")] == false;
        assert!(unknown || NUMBERS.iter().all(exact), "{row}");
        let times = ["first_ns", "last_ns", "dur_ns"].map(|name| row[name].as_i64().expect("a time"));
        assert_eq!(times[2], times[1] - times[0], "{row}");
        assert_eq!(row["comm"], "udp", "{row}");
    }
    let failed: Vec<_> = self::rows(&lab, &["--failure"]).into_keys().collect();
    let refused: Vec<_> = log.iter().filter(|(_, numbers)| numbers[5].0 > 0).map(|(key, _)| key.clone()).collect();
    assert_eq!((failed, refused.len()), (refused.clone(), 1));
    // text has a line for each
    let text = lab.analyze(&["net", "--udp", "t.tape"]).expect(0).text();
    assert_eq!(text.lines().count(), 1 + log.len(), "{text}");
}

/// An echo server on a socket from before the recording, until it gets an empty message.
const ECHO: &str = "import os, socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 0))
open('port.new', 'w').write(str(s.getsockname()[1])); os.rename('port.new', 'port')
while True:
    data, peer = s.recvfrom(100)
    s.sendto(data, peer)
    if not data: break
os._exit(0)";

#[test]
fn an_older_socket_did_at_least_what_was_seen() {
    let Some(lab) = Lab::beside() else { return };
    let mut server = Background::start(lab.command("python3").args(["-c", ECHO]));
    let port: u16 = lab.until_file("port").parse().expect("a port");
    let record = lab.attach("t.tape", &["-p", &server.pid_text()]);
    let client = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    client.connect(("127.0.0.1", port)).expect("connect");
    client.set_read_timeout(Some(std::time::Duration::from_secs(60))).expect("a timeout");
    let mut buffer = [0; 100];
    for size in [7, 13, 0] {
        client.send(&buffer[..size]).expect("send");
        assert_eq!(client.recv(&mut buffer).expect("an answer"), size);
    }
    lab.until("its end", || server.ended().is_some());
    record.wait().expect(0);
    lab.assert_whole("t.tape");
    let run = lab.analyze(&["net", "--udp", "t.tape", "--format", "json"]).expect(0);
    // the recorder reads a moment later what descriptors of the beginning stand for: what was called until then is said
    let complaints = run.complaints();
    let doubts = match complaints.strip_prefix("analyze: AT LEAST: ").and_then(|rest| rest.split_once(" more call")) {
        Some((count, _)) => count.parse().expect("a number"),
        None => {
            assert_eq!(complaints, "");
            0
        }
    };
    let rows = run.json();
    let own = client.local_addr().expect("address").to_string();
    let mut sums = [0; 4];
    for row in &rows {
        assert_eq!(
            (row["pid"].as_i64(), end(row, 'l')),
            (Some(server.pid().into()), format!("127.0.0.1:{port}")),
            "{row}"
        );
        assert!([own.as_str(), "?"].contains(&end(row, 'r').as_str()), "{row}");
        for (sum, name) in sums.iter_mut().zip(NUMBERS) {
            assert_eq!(row[format!("{name}_at_least")], true, "{row}");
            *sum += number(&row[name]);
        }
    }
    let [sent, sent_bytes, received, received_bytes] = sums;
    assert_eq!(sent + received + doubts, 6, "{rows:?}");
    assert!(sent_bytes <= 20 && received_bytes <= 20 && (doubts > 0 || sent_bytes + received_bytes == 40), "{rows:?}");
}
