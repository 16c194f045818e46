//! `rate` beside the listing and `top`: the calls of each row are those that `top` counts, and each slice has those that are listed in it.

use std::collections::BTreeMap;

use crate::common::stored::{rows, tapes};
use serde_json::Value;

const FILTERS: [&str; 5] = ["", "-e read,write,openat", "--failure", "--comm=sh", "--time 10%,70%"];

#[test]
fn slices_and_the_rest_are_what_top_counts() {
    let mut compared = 0;
    for tape in tapes() {
        for by in ["comm", "syscall,errno", "file"] {
            for filter in FILTERS {
                let keys: Vec<&str> = by.split(',').collect();
                let key = |row: &Value| keys.iter().map(|key| row[key].to_string()).collect::<Vec<_>>().join(" ");
                let top = rows(&format!("top --metric calls --by {by} {filter}"), &tape);
                let rate = rows(&format!("rate --by {by} --slices 13 {filter}"), &tape);
                let calls = |rows: &[Value]| -> BTreeMap<String, (u64, Value)> {
                    rows.iter()
                        .map(|row| (key(row), (row["calls"].as_u64().unwrap(), row["calls_at_least"].clone())))
                        .collect()
                };
                assert_eq!(calls(&top), calls(&rate), "{} --by {by} {filter}", tape.display());
                for row in &rate {
                    let slices = row["slices"].as_array().unwrap();
                    let counts: Vec<u64> = slices.iter().map(|slice| slice["count"].as_u64().unwrap()).collect();
                    let timed: u64 = counts.iter().sum();
                    assert_eq!(row["calls"], timed + row["untimed_calls"].as_u64().unwrap(), "{row}");
                    let width = row["slice_ns"].as_f64().unwrap() / 1e9;
                    let peak = counts.iter().copied().max().unwrap_or(0) as f64 / width;
                    let mean = timed as f64 / (13.0 * width);
                    for (column, expected) in [("peak_per_s", peak), ("mean_per_s", mean)] {
                        let told = row[column].as_f64().unwrap();
                        assert!((told - expected).abs() <= 1e-9 * expected.max(1.0), "{column}: {expected}, {row}");
                    }
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 500, "{compared}");
}

#[test]
fn each_slice_has_what_is_listed_in_it() {
    for tape in tapes() {
        let listed = rows("", &tape);
        let mut left = 0;
        for row in rows("rate --by comm --slices 29", &tape) {
            let mine = || listed.iter().filter(|call| call["comm"] == row["comm"]);
            for slice in row["slices"].as_array().unwrap() {
                let (from, to) = (slice["from"].as_i64().unwrap(), slice["to"].as_i64().unwrap());
                assert_eq!(to - from, row["slice_ns"].as_i64().unwrap());
                // a call from before the recording stands at its start, and where the child returns is no call of its own
                let inside = |call: &&Value| {
                    let start = call["ts_ns"].as_i64().unwrap();
                    let begun = call["incomplete"] != "began-before" && call["incomplete"] != "clone-child";
                    begun && (from..to).contains(&start)
                };
                let count = mine().filter(inside).count() as u64;
                assert_eq!(slice["count"], count, "{}: {from} of {row}", tape.display());
                left += count;
            }
        }
        assert!(left > 2, "{}", tape.display());
    }
}
