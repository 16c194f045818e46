//! `diff` says what was changed between two recordings, and nothing of two that are of the same work.

use serde_json::Value;
use systape_e2e::Lab;

/// Programs whose runs are as equal as runs can be; two pairs are recorded of each.
const EQUAL: [&str; 5] = [
    "for i in $(seq 100); do /bin/true; date >/dev/null; done",
    "find /usr/share/doc -name '*.gz' | sort | md5sum",
    "tar cf - /usr/include/linux | gzip -1 | cat >packed",
    "dd if=/dev/zero of=file bs=4k count=2000 conv=fsync; dd if=file of=/dev/null bs=512; rm file",
    "perl -e 'for (1..3000) { open my $f, \"<\", \"/etc/passwd\"; my @lines = <$f>; stat \"/no/such\" }'",
];

/// Of the rows of `by` those that differ by more than chance, and whether there are any others.
fn changed(lab: &Lab, by: &str, [before, after]: [&str; 2]) -> (Vec<Value>, bool) {
    let mut rows = lab.analyze(&["diff", "--by", by, before, after, "--format", "json"]).expect(0).json();
    // those of calls; CPU time, waits and the like differ by what else the machine does
    rows.retain(|row| row.get("measure").is_none_or(Value::is_null));
    let all = rows.len();
    let changed: Vec<Value> =
        rows.into_iter().filter(|row| !row["changed"].as_str().expect("nothing is missing").is_empty()).collect();
    let others = changed.len() < all;
    (changed, others)
}

#[test]
fn equal_runs_differ_in_nothing() {
    let Some(lab) = Lab::with_bpf() else { return };
    let mut wrong = Vec::new();
    for program in EQUAL {
        let command = ["sh", "-c", program];
        // the page cache is warm then
        lab.record("0.tape", &["--families", "syscall"], &command).expect(0);
        for pair in [["1.tape", "2.tape"], ["3.tape", "4.tape"]] {
            for tape in pair {
                lab.record(tape, &[], &command).expect(0);
                lab.assert_whole(tape);
            }
            let mut of_pair = Vec::new();
            for by in ["syscall", "comm,syscall", "file"] {
                let (rows, others) = changed(&lab, by, pair);
                assert!(others, "{program}: no row by {by}");
                of_pair.extend(rows.into_iter().map(|row| format!("{program} by {by}: {row}")));
            }
            // one call that took longer is one by its name, and one by program and name
            wrong.extend(Some(of_pair).filter(|rows| !rows.is_empty()));
        }
    }
    // of ten pairs
    assert!(wrong.len() <= 1, "{wrong:#?}");
}

#[test]
fn what_was_changed_is_first_with_its_counts() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = lab.cc("tz", &[]);
    let dates = 20_000;
    let count = dates.to_string();
    lab.record("without.tape", &[], &["env", "-u", "TZ", &program, &count]).expect(0);
    lab.record("with.tape", &[], &["env", "TZ=:/etc/localtime", &program, &count]).expect(0);
    let (rows, _) = changed(&lab, "syscall,file", ["without.tape", "with.tape"]);
    let number = |column: &str| rows[0][column].as_i64().expect("a number");
    let name = (rows[0]["syscall"].as_str(), rows[0]["file"].as_str());
    assert_eq!(name, (Some("newfstatat"), Some("/etc/localtime")), "{rows:#?}");
    // the first date reads the file
    assert!((dates - 1..=dates).contains(&number("calls_before")), "{rows:#?}");
    assert_eq!((number("calls_after"), number("calls_diff")), (0, -number("calls_before")));
    let text = lab.analyze(&["diff", "--by", "syscall,file", "without.tape", "with.tape"]).expect(0).text();
    assert!(text.contains("most changed: newfstatat /etc/localtime, -"), "{text}");

    // a sleep of 9 ms in place of one of 1 ms, and more files that are not there
    let script = |ms: u32, missing: u32| {
        format!(
            "for (1..200) {{ select undef, undef, undef, 0.00{ms}; stat '/etc/passwd'; stat \"/no/such/$_\" for 1..{missing} }}"
        )
    };
    for (tape, ms, missing) in [("a.tape", 1, 2), ("b.tape", 9, 2), ("c.tape", 1, 9)] {
        lab.record(tape, &[], &["perl", "-e", &script(ms, missing)]).expect(0);
    }
    let (slept, _) = changed(&lab, "syscall", ["a.tape", "b.tape"]);
    let names: Vec<_> = slept.iter().map(|row| (row["syscall"].as_str(), row["changed"].as_str())).collect();
    assert_eq!(names, [(Some("pselect6"), Some("time"))], "{slept:#?}");
    let (failed, _) = changed(&lab, "syscall", ["a.tape", "c.tape"]);
    let row = failed.iter().find(|row| row["syscall"] == "newfstatat").unwrap_or_else(|| panic!("{failed:#?}"));
    assert!(row["changed"].as_str().is_some_and(|changed| changed.starts_with("calls,errors")), "{row}");
    assert_eq!(row["errors_diff"], 200 * 7, "{row}");
    assert_eq!(failed.len(), 1, "{failed:#?}");
}
