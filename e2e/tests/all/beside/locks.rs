//! What `analyze locks` says of threads that fight for a lock is what they count themselves: waits, calls that were not to wait, threads that
//! were woken, times that were up.

use std::collections::BTreeMap;

use serde_json::Value;
use systape_e2e::Lab;

#[test]
fn waits_are_those_that_the_threads_count() {
    let Some(lab) = Lab::beside() else { return };
    let program = lab.cc("futexes", &["-pthread"]);
    let said = lab.record("t.tape", &["-e", "futex"], &[&program, "5", "41"]).expect(0).text();
    lab.assert_whole("t.tape");
    let rows = lab.analyze(&["locks", "t.tape", "--format", "json"]).expect(0).json();
    let by_address: BTreeMap<&str, &Value> =
        rows.iter().filter_map(|row| Some((row["address"].as_str()?, row))).collect();
    let of = |address: &str| *by_address.get(address).unwrap_or_else(|| panic!("no {address}: {rows:?}"));
    let numbers = |words: &[&str]| -> Vec<u64> { words.iter().map(|word| word.parse().expect("a number")).collect() };
    for line in said.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["lock", address, ref counted @ ..] => {
                let row = of(address);
                let seen = ["waits", "again", "woken", "threads"].map(|name| row[name].as_u64().expect("a number"));
                assert_eq!(seen.to_vec(), numbers(counted), "{row}");
                assert!(seen[0] > 0, "nobody had to wait: {said}");
                assert_eq!(row["kind"], "lock", "{row}");
                assert!(row["waker_woken"].as_u64() <= row["woken"].as_u64() && row["waker_tid"].is_u64(), "{row}");
            }
            ["time", address, ref counted @ ..] => {
                let row = of(address);
                let seen = ["waits", "timeouts"].map(|name| row[name].as_u64().expect("a number"));
                assert_eq!(seen.to_vec(), numbers(counted), "{row}");
                assert_eq!((&row["kind"], &row["waker_tid"]), (&"idle".into(), &Value::Null), "{row}");
            }
            _ => panic!("{line}"),
        }
    }
    for row in &rows {
        assert!(row["max_ns"].as_u64() <= row["total_ns"].as_u64() && row["total_ns_at_least"] == false, "{row}");
    }
    // the sums are those of the calls
    let calls = lab.analyze(&["t.tape", "-e", "futex", "--format", "json"]).expect(0).json();
    let waits = calls.iter().filter(|call| {
        let op = call["args"]["op"]["text"].as_str().unwrap_or_default();
        op.contains("WAIT") && call["errno"] != "EAGAIN"
    });
    let sum: u64 = rows.iter().filter_map(|row| row["waits"].as_u64()).sum();
    assert_eq!(waits.count() as u64, sum);
}
