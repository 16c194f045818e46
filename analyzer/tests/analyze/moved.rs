//! Sums of bytes: what calls for several messages moved is not on a tape, and looking at data moves none.

use crate::common::{Place, udp};
use serde_json::Value;

fn place() -> Place {
    let place = Place::new();
    udp::write(&place.path("udp.tape"), &[]);
    place
}

fn bytes(row: &Value, column: &str) -> (u64, bool) {
    let number = row[column].as_str().unwrap_or_else(|| panic!("{column}: {row}"));
    (number.parse().unwrap(), row[format!("{column}_at_least")].as_bool().unwrap())
}

#[test]
fn sums_of_files_are_bounds_where_messages_were_counted() {
    let place = place();
    let got = place.analyze("files --sockets --format json udp.tape");
    assert_eq!((got.status, got.err.as_str()), (0, ""));
    let rows = got.json();
    let of = |file: &str| {
        let row = rows.iter().find(|row| row["file"] == file).unwrap_or_else(|| panic!("{file}: {rows:?}"));
        ((row["reads"].as_u64(), bytes(row, "read_bytes")), (row["writes"].as_u64(), bytes(row, "write_bytes")))
    };
    // one of two looked only
    assert_eq!(of("UDP:[0.0.0.0:40001]"), ((Some(2), (120, false)), (Some(0), (0, false))));
    assert_eq!(of("UDP:[0.0.0.0:5353]"), ((Some(3), (72, false)), (Some(1), (70, false))));
    assert_eq!(of("UDPv6:[[::1]:40003->[::1]:53]"), ((Some(3), (0, true)), (Some(2), (100, true))));
    let text = place.analyze("files --sockets udp.tape").out;
    let line = text.lines().find(|line| line.contains("40003")).expect("a line");
    assert!(line.split_whitespace().any(|word| word == ">=100"), "{text}");
}

#[test]
fn a_call_of_unknown_size_is_listed_without_one() {
    let place = place();
    let rows = place.analyze("files --sockets --slower 0.001ms --format json udp.tape").json();
    let of = |syscall: &str| -> Vec<(Value, Value)> {
        let found = rows.iter().filter(|row| row["syscall"] == syscall);
        found.map(|row| (row["read_bytes"].clone(), row["write_bytes"].clone())).collect()
    };
    assert_eq!(of("recvmmsg"), [(Value::Null, Value::Null)]);
    assert_eq!(of("sendmmsg"), [(Value::Null, Value::Null)]);
    assert_eq!(of("recvmsg"), [("12".into(), Value::Null), ("0".into(), Value::Null)]);
    assert_eq!(of("write"), [(Value::Null, "100".into())]);
    let text = place.analyze("files --sockets --slower 0.001ms udp.tape").out;
    let line = text.lines().find(|line| line.contains("sendmmsg")).expect("a line");
    assert!(line.split_whitespace().any(|word| word == "?"), "{text}");
}

#[test]
fn a_call_graph_by_bytes_says_that_it_is_a_bound() {
    let place = place();
    let graph = |words: &str| place.analyze(&format!("callgraph --of syscall --metric bytes {words} udp.tape"));
    let text = graph("").out;
    // 30 + 120 + 5 + 60 + 70 + 12 + 100
    assert!(text.contains("# Total (100%): at least 397 bytes\n"), "{text}");
    assert!(text.contains("# 2 of them: how many bytes they moved is not known"), "{text}");
    let rows = graph("--format json").json();
    let of = |comm: &str| bytes(rows.iter().find(|row| row["comm"] == comm).unwrap(), "bytes");
    assert_eq!((of("app"), of("other")), ((255, true), (142, false)));
    assert!(rows.iter().all(|row| row["percent_of_known"] == true), "{rows:?}");
    let text = graph("-p 102").out;
    assert!(text.contains("# Total (100%): 142 bytes\n"), "{text}");
}

#[test]
fn a_sum_of_bytes_has_those_that_are_known() {
    let rows = place().analyze("top --value bytes --format json udp.tape").json();
    let of = |event: &str| {
        let rows = rows.iter().filter(|row| row["event"] == event);
        rows.map(|row| (row["measured"].as_u64(), row["total"].as_u64())).collect::<Vec<_>>()
    };
    // of two programs; a look is measured: it moves none
    assert_eq!(of("recvmsg"), [(Some(1), Some(12)), (Some(1), Some(0))], "{rows:?}");
    assert_eq!((of("recvmmsg"), of("close")), (vec![(None, None)], Vec::new()), "{rows:?}");
    let total: u64 = rows.iter().filter_map(|row| row["total"].as_u64()).sum();
    assert_eq!(total, 30 + 120 + 5 + 60 + 70 + 12 + 100, "{rows:?}");
}
